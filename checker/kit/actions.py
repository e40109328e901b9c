"""Actions with their traits, the budgets that limit them, and the column that counts the budgets.

A model declares its actions as members of a subclass of `Action`. Fairness, captions, pictures and coverage derive from
their traits, so that a new fault is one member, one field of a struct of budgets, and the rule that lists its moves:

    class Step(Action):
        EXPIRE = "expire", Traits(fair=False, fault=True, budget="expiries", caption="the session of {} expires")

Rules of this module: an action is a value, and its traits say what holds for all of its moves. No other module derives
anything from the spelling of an action or of a rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any

import msgspec
from msgspec.structs import replace

from checker.engine import Actor, ModelError, Move, Outcome, Read, Rule, Send
from checker.engine.model import Strength

FAULTS = "faults"  # the column that counts the budgets
UNLIMITED = 1 << 30
"""A budget that is never exhausted, used where this adds no state."""


@dataclass(frozen=True)
class Traits:
    """The properties that all moves of an action share.

    - `fair`: a move that stays possible happens at last; with "strong", also one that is possible again and again.
      Steps of processes and of the network are fair; steps of a fault, of an operator and of a client need never
      happen.
    - `fault`: a run without this action explains a finding better.
    - `budget`: the budget from which each move takes one, if it is limited.
    - `actor`: the place of the acting process among the arguments of a move.
    - `caption`: the sentence for a reader, with a pair of braces for each process among the arguments; None where the
      presenter words the arguments.
    - `noted`: a picture notes the caption at the lane of the actor.
    - `waits`: the step takes longer than a message needs to arrive on a fast network.
    - `need`: the event without which the action need not fire in a run; every other action that never fires is
      reported.
    """

    fair: Strength = True
    fault: bool = False
    budget: str | None = None
    actor: int = 0
    caption: str | None = None
    noted: bool = False
    waits: bool = False
    need: Enum | None = None


class Action(StrEnum):
    """The base of the actions of a model. The value is the name that coverage, traces and JSON documents show."""

    traits: Traits

    def __new__(cls, name: str, traits: Traits = Traits()) -> Action:
        """Make the member of this name, with its traits."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.traits = traits
        return member

    __repr__ = str.__repr__  # reports and errors show the name

    def worded(self, *processes: str) -> str:
        """The caption, with the names of the processes; the action itself if it has none."""
        return (self.traits.caption or self.value).format(*processes)

    @property
    def entry(self) -> tuple[str, Traits]:
        """The name and the traits, for another table that has the same action."""
        return self.value, self.traits


def fair_among(actions: Iterable[str]) -> dict[str, Strength]:
    """The actions that must happen, each with its fairness. Those of an operator's plan need never happen."""
    return {action: action.traits.fair for action in actions if isinstance(action, Action) and action.traits.fair}


def faults_among(actions: Iterable[str]) -> frozenset[str]:
    """The actions that are faults."""
    return frozenset(action for action in actions if isinstance(action, Action) and action.traits.fault)


class FaultAction(Action):
    """The faults of processes and links, and their ends, and the completion of a late write, for any model."""

    CRASH = "crash", Traits(fair=False, fault=True, budget="crashes", caption="{} crashes")
    RESTART = "restart", Traits(fair=False, budget="restarts", caption="{} starts again")
    CUT = "cut", Traits(fair=False, fault=True, budget="cuts", caption="the link of {} and {} is cut")
    PARTITION = (
        "partition",
        Traits(fair=False, fault=True, budget="partitions", caption="{} can no longer be reached by the others"),
    )
    HEAL = "heal", Traits(fair=False, budget="heals", caption="all links are whole again")
    LOSE = "lose", Traits(fair=False, fault=True, budget="losses")
    SYNC = "sync", Traits(caption="a write of {} is on disk", noted=True)


NAMES_OF_FAULTS = faults_among(FaultAction)


def is_fault(action: str) -> bool:
    """Whether an action is a fault; one without traits is judged by its name."""
    return action.traits.fault if isinstance(action, Action) else action in NAMES_OF_FAULTS


@dataclass(frozen=True)
class Budget:
    """The description of a budget: its unit for reports (one, several), and the help text of its option, if any."""

    one: str
    several: str
    option: str | None = None

    def count(self, count: int) -> str:
        """A number of units, as in "2 crashes"."""
        return f"{count} {self.one if count == 1 else self.several}"


class BudgetCounts(msgspec.Struct, frozen=True):
    """The base of a struct of budgets: the number of times that each event may happen, over the whole run."""

    @property
    def by_name(self) -> dict[str, int]:
        """Each nonzero budget, by its name."""
        return {name: count for name, count in msgspec.structs.asdict(self).items() if count}

    def in_words(self, table: Mapping[str, Budget]) -> str:
        """The nonzero budgets, as in "1 crash, 2 cuts of a link"; one without a description by its name."""
        return ", ".join(table.get(name, Budget(name, name)).count(count) for name, count in self.by_name.items())


class Faults(msgspec.Struct, frozen=True):
    """The remaining budgets; `late` processes have yet to start, `down` ones were crashed by a fault."""

    left: Any = BudgetCounts()
    late: frozenset[Any] = frozenset()
    down: frozenset[Any] = frozenset()

    def lane_fields(self) -> dict[str, Any]:
        """The processes that are down and the remaining budgets, as a lane shows them."""
        return {"down": sorted(self.down), "left": self.left.by_name}


class Spend(msgspec.Struct, frozen=True):
    """Take one from a budget; `late` and `down` change by these processes."""

    budget: str | None
    started: Any = None
    crashed: Any = None


def faults_actor() -> Actor:
    """The budgets; an operation on an exhausted budget is impossible."""

    def step(values: tuple[Any, ...], spent: Spend) -> Outcome | None:
        faults: Faults = values[0]
        budgets, late, down = faults.left, faults.late, faults.down
        if spent.budget is not None:
            available = getattr(budgets, spent.budget, None)
            if available is None:
                names = ", ".join(budgets.__struct_fields__) or "none"
                raise ModelError(f"a move takes from the budget {spent.budget!r}, and the budgets are {names}")
            if available <= 0:
                return None
            if available < UNLIMITED:
                budgets = replace(budgets, **{spent.budget: available - 1})
        if spent.started is not None:
            late, down = late - {spent.started}, down - {spent.started}
        if spent.crashed is not None:
            down = down | {spent.crashed}
        return Outcome((replace(faults, left=budgets, late=late, down=down),))

    return Actor(FAULTS, (FAULTS,), step)


def budget_of(action: str) -> str | None:
    """The budget of an action, if it has one; any other string is the name of a budget itself."""
    return action.traits.budget if isinstance(action, Action) else action


def spend(action: str, **changes: Any) -> Send:
    """Take one from a budget, by its name or by an action that may have one, with other changes of `Spend`."""
    return Send(FAULTS, Spend(budget_of(action), **changes))


def has_left(action: str) -> Read:
    """A gate: a budget, by its name or by an action that has one, is not exhausted."""
    budget = budget_of(action)
    assert budget is not None, f"the action {action!r} has no budget"
    return Read(FAULTS, lambda faults: True if getattr(faults.left, budget) > 0 else None)


def limited_rule(
    action: Action, label: object, arguments: tuple[Any, ...], sends: tuple[Send, ...], gate: Read, **changes: Any
) -> Rule:
    """A rule of one move that takes one from the budget of its action, and is possible while `gate` is."""
    move = Move(action, arguments, (spend(action, **changes), *sends))
    return Rule(f"{action} {label}", (has_left(action), gate), lambda *_: [move], (action,), fair_among((action,)))
