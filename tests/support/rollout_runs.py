"""Synthetic runs of a roll-out, which no engine made, for tests of the planner's conclusions."""

from checker.rollout.runs import RunEnd, RunResult, SafetyVerdict
from checker.rollout.scenarios import RunSpec

ENDS = {
    SafetyVerdict.UNSAFE: RunEnd.VIOLATION,
    SafetyVerdict.OPEN: RunEnd.WORK,
    SafetyVerdict.STALLS: RunEnd.STALL,
    SafetyVerdict.SAFE: RunEnd.EXHAUSTED,
}


def made_up(
    spec: RunSpec, outcome: SafetyVerdict, *, seconds: float = 0.0, states: int = 10, name: str = ""
) -> RunResult:
    """Return a run with this outcome, without a finding."""
    return RunResult(spec, outcome, ENDS[outcome], states, 2, seconds, (), name or spec.name)
