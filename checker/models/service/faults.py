"""The budgets of the faults of a run, in one column."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from checker.engine import Actor, Outcome, Read, Send
from checker.models.service.setup import FAULTS_LEFT, Budgets
from checker.models.service.words import Spend

FAULTS = frozenset({"disconnect", "expire", "crash"})
"""The actions that are faults: no liveness property may depend on them."""


def faults_actor() -> Actor:
    """The budgets; an operation on an exhausted budget is impossible."""

    def step(values: tuple[Any, ...], spend: Spend) -> Outcome | None:
        left: Budgets = values[0]
        remaining = getattr(left, spend.budget) - 1
        return None if remaining < 0 else Outcome((replace(left, **{spend.budget: remaining}),))

    return Actor(FAULTS_LEFT, (FAULTS_LEFT,), step)


def has_left(budget: str) -> Read:
    """A gate: the budget is not exhausted."""
    return Read(FAULTS_LEFT, lambda left: True if getattr(left, budget) > 0 else None)


def spend(budget: str) -> Send:
    """Take one from a budget."""
    return Send(FAULTS_LEFT, Spend(budget))
