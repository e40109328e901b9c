"""The budgets of a run, the servers that a fault has stopped, and the servers that have yet to start."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from checker.engine import Actor, Outcome, Read
from checker.models.ensemble.names import FAULTS
from checker.models.ensemble.setup import UNLIMITED, Budgets
from spec.quorum import Sid


class Faults(msgspec.Struct, frozen=True):
    """The remaining budgets; `late` servers have yet to start, `down` servers were crashed by a fault."""

    left: Budgets = Budgets()
    late: frozenset[Sid] = frozenset()
    down: frozenset[Sid] = frozenset()


class Spend(msgspec.Struct, frozen=True):
    """Take one from a budget; `late` and `down` change by these servers."""

    budget: str | None
    started: Sid | None = None
    crashed: Sid | None = None


def faults_actor() -> Actor:
    """The budgets; an operation on an exhausted budget is impossible."""

    def step(values: tuple[Any, ...], spend: Spend) -> Outcome | None:
        faults: Faults = values[0]
        left, late, down = faults.left, faults.late, faults.down
        if spend.budget is not None:
            available = getattr(left, spend.budget)
            if available <= 0:
                return None
            if available < UNLIMITED:
                left = replace(left, **{spend.budget: available - 1})
        if spend.started is not None:
            late, down = late - {spend.started}, down - {spend.started}
        if spend.crashed is not None:
            down = down | {spend.crashed}
        return Outcome((Faults(left, late, down),))

    return Actor(FAULTS, (FAULTS,), step)


def has_left(budget: str) -> Read:
    """A gate: the budget is not exhausted."""
    return Read(FAULTS, lambda faults: True if getattr(faults.left, budget) > 0 else None)
