"""What was asked of the planner, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import factorial

from checker.rollout.assess import Assessed
from checker.rollout.folders import Folder
from checker.rollout.runs import Outcome, Ran
from checker.rollout.steps import left_out, steps_of
from spec.quorum import Sid


@dataclass(frozen=True)
class Wish:
    """What was asked for: two folders, perhaps an order and a leader, faults, seconds, servers that are down."""

    old: Folder
    new: Folder
    order: tuple[Sid, ...] | None = None
    leader: Sid | None = None
    faults: int = 1
    seconds: float = 60.0
    down: frozenset[Sid] = frozenset()


@dataclass
class Plan:
    """What came of it. `direct` is the change in one go; `stages` are there if that is not safe, and not ordered.

    `tried` and `orders` say how many orders of the whole change were run, and how many there are.
    """

    wish: Wish
    direct: Assessed
    stages: list[Assessed] = field(default_factory=list)
    tried: int = 0
    unsafe: int = 0
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def orders(self) -> int:
        """How many orders the change in one go has."""
        return factorial(len(self.direct.stage.sids))

    @property
    def left_out(self) -> tuple[Sid, ...]:
        """The servers that a given order leaves as they are, though they are to change."""
        if self.wish.order is None:
            return ()
        out = left_out(self.direct.stage, steps_of(self.direct.stage, self.wish.order))
        return tuple(sid for sid in out if sid not in self.wish.down)

    @property
    def advised(self) -> list[Assessed]:
        """The stages that are the answer."""
        return self.stages or [self.direct]

    @property
    def outcome(self) -> Outcome:
        """The verdict on what is advised: the gravest of its stages."""
        outcomes = [each.outcome for each in self.advised]
        return next(each for each in (Outcome.UNSAFE, Outcome.OPEN, Outcome.SAFE) if each in outcomes)

    @property
    def runs(self) -> list[tuple[Assessed, Ran]]:
        """Every run, with its stage, those of the change in one go first."""
        stages = [self.direct, *self.stages]
        return [(stage, ran) for stage in stages for ran in stage.runs]
