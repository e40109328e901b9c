"""The verdict of a swarm, in the terms of a run: its judgement, and an exploration that reports can show.

A swarm is violated, deadlocked or incomplete, and never passed. Its expectation is that of the scenario, except that
the depths of the expected violations do not count.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from checker.engine.model import Kind
from checker.engine.result import Exploration, Limits, Stop
from checker.job import Job, Verdict
from checker.report.verdict import Judgement, judge
from checker.swarm.outcome import Ending, SwarmLimits, SwarmOutcome

STOPS = {
    Ending.FOUND: Stop.FOUND,
    Ending.WALKS: Stop.WORK,
    Ending.TIME: Stop.TIME,
    Ending.MEMORY: Stop.WORK,
    Ending.INTERRUPTED: Stop.INTERRUPTED,
}


@dataclass
class SampledExploration(Exploration):
    """A swarm as an exploration: `states` is an estimate, and `depth` is that of the longest walk."""

    swarm: SwarmOutcome = field(kw_only=True)

    @property
    def states(self) -> int:
        """The estimated number of distinct states."""
        return self.swarm.states

    @property
    def depth(self) -> int:
        """The number of moves of the longest walk."""
        return self.swarm.depth


def exploration_of(outcome: SwarmOutcome) -> SampledExploration:
    """The exploration for the reports of a swarm."""
    limits: SwarmLimits = outcome.limits
    return SampledExploration(
        outcome.model,
        "swarm",
        Limits(depth=limits.depth, seconds=limits.seconds),
        transitions=outcome.steps,
        stop=STOPS[outcome.ending],
        found=dict(outcome.found),
        coverage=outcome.coverage,
        evaluations=outcome.evaluations,
        seed=outcome.seed,
        deadlocks=outcome.dead,
        seconds=outcome.seconds,
        python_seconds=outcome.python_seconds,
        swarm=outcome,
    )


def judgement_of(job: Job, outcome: SwarmOutcome, *, bare: bool = False) -> Judgement:
    """The judgement of a swarm; `bare` gives the exit code of the verdict itself."""
    found = {each.prop.name for each in outcome.found.values() if each.prop.kind is not Kind.SOMETIMES}
    expected = job.violations
    if expected is not None and found and found <= set(expected):
        expected = None
    # `judge` formats the limit that ended a run; the sentence of a swarm without a finding is made below.
    exploration = replace(exploration_of(outcome), limits=Limits(work=0, seconds=outcome.limits.seconds or 0.0))
    judged = judge(replace(job, violations=expected), exploration, job.actions, bare=bare)
    if judged.verdict is not Verdict.INCOMPLETE:
        return judged
    reason = (
        f"no violation in what was executed: {outcome.walks:,} walks, {outcome.steps:,} steps, "
        f"about {outcome.states:,} distinct states, to depth {outcome.depth}; a swarm shows nothing about other runs"
    )
    return replace(judged, reasons=(reason,), sentence=f"{judged.verdict.value}: {reason}", explanation=reason)
