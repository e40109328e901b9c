"""The quick answer: whether two views that servers have at the same time in a roll-out may have disjoint quorums.

Rules of this module: z3 is asked about every two views of a stage, and about each with itself. Where all quorums meet,
that is proved for any order of restarts and any faults. `ENOUGH` says once what follows from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from checker.rollout.stages import Stage
from checker.symbolic.disjoint import DisjointQuorums, disjoint_quorums
from checker.symbolic.report import set_text, view_text
from spec.quorum import View

ENOUGH = (
    "A server follows one leader at a time, a write is committed by a quorum, and a new leader asks a quorum what was "
    "committed. So where every two quorums meet and no server changes its role there are never two leaders that both "
    "have one, and no leader begins without what was committed: in any order, under any of these faults, as long as no "
    "disk is lost and every server keeps its address. A server that is an observer by its own file acknowledges "
    "without a log, and is counted by a leader whose file has it as a voter."
)
"""Why it is enough that quorums meet. That they do is proved by z3; this sentence is Zab's own argument."""


@dataclass(frozen=True)
class ViewPair:
    """Two states of a stage, or one twice, and two disjoint quorums; None if z3 has proved that all quorums meet."""

    old: str
    new: str
    disjoint: DisjointQuorums | None

    def __str__(self) -> str:
        whose = f"{self.old} and {self.new}" if self.old != self.new else f"{self.old} alone"
        if self.disjoint is None:
            return f"{whose}: every two quorums meet (proved)"
        a, b = set_text(self.disjoint.a), set_text(self.disjoint.b)
        return f"{whose}: DISJOINT QUORUMS. {a} is a quorum by {self.old}, {b} is one by {self.new}"


def pairs_of(stage: Stage) -> tuple[ViewPair, ...]:
    """Every two views that servers have during a stage.

    Raises checker.symbolic.disjoint.UndecidedError if z3 gives up.
    """
    views: dict[str, View] = {stage.old.label: stage.old.view} if stage.remaining else {}
    views[stage.new.label] = stage.new.view
    couples = [(label, label) for label in views] + list(combinations(views, 2))
    return tuple(ViewPair(a, b, disjoint_quorums(views[a], views[b])) for a, b in couples)


def view_words(view: View) -> str:
    """A view in one line."""
    return view_text(view)
