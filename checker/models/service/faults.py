"""The budgets of the faults of a run, in one column."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from checker.engine import Actor, Outcome, Read, Send
from checker.models.service.messages import SpendFault
from checker.models.service.setup import FAULTS_LEFT, FaultBudgets

FAULTS = frozenset({"disconnect", "expire", "crash"})
"""The actions that are faults: no liveness property may depend on them."""


def faults_actor() -> Actor:
    """The budgets; an operation on an exhausted budget is impossible."""

    def step(values: tuple[Any, ...], spend_fault: SpendFault) -> Outcome | None:
        left: FaultBudgets = values[0]
        remaining = getattr(left, spend_fault.budget) - 1
        return None if remaining < 0 else Outcome((replace(left, **{spend_fault.budget: remaining}),))

    return Actor(FAULTS_LEFT, (FAULTS_LEFT,), step)


def has_left(budget: str) -> Read:
    """A gate: the budget is not exhausted."""
    return Read(FAULTS_LEFT, lambda left: True if getattr(left, budget) > 0 else None)


def spend_fault(budget: str) -> Send:
    """Take one from a budget."""
    return Send(FAULTS_LEFT, SpendFault(budget))
