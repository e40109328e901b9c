"""Runs of a roll-out that no engine made, for tests of what the planner makes of them."""

from __future__ import annotations

from checker.rollout.runs import End, Outcome, Ran
from checker.rollout.scenarios import Asked

ENDS = {
    Outcome.UNSAFE: End.VIOLATION,
    Outcome.OPEN: End.WORK,
    Outcome.STALLS: End.STALL,
    Outcome.SAFE: End.EXHAUSTED,
}


def made_up(asked: Asked, outcome: Outcome, *, seconds: float = 0.0, states: int = 10, name: str = "") -> Ran:
    """A run with this outcome, without a finding."""
    return Ran(asked, outcome, ENDS[outcome], states, 2, seconds, (), name or asked.name)
