"""Synthetic runs of a roll-out, which no engine made, for tests of the planner's conclusions."""

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
    """Return a run with this outcome, without a finding."""
    return Ran(asked, outcome, ENDS[outcome], states, 2, seconds, (), name or asked.name)
