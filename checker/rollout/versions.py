"""Roll-outs of files whose configurations have versions (`reconfigEnabled=true` with a dynamic file).

Servers tell each other the newest version in their notifications, and adopt it. The election in one step does not
carry that, so messages are explored one by one. Five servers have too many of them, so the steps before the restart in
question follow one order only: each step waits until all messages have arrived.

Rules of this module: one run for each restart explores every order of the messages after it. Packets after an election
carry no configuration here, so these runs do not cover commits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from checker.rollout.assess import Assessor, Order, StageAssessment
from checker.rollout.runs import RunEnd
from checker.rollout.scenarios import Question, RunSpec
from checker.rollout.stages import Stage
from checker.rollout.steps import RESTART, START, STOP, Steps
from spec.quorum import Sid


def with_versions(assessment: StageAssessment, assessor: Assessor, steps: Steps, leaders: Sequence[Sid]) -> None:
    """Run every restart of an order, for each server that may lead at first."""
    for leader in leaders:
        order = Order(leader, steps)
        for number, step in enumerate(steps):
            if step.action == RESTART:
                sofar = steps[: number + 1]
                opening = tuple(_opening(assessment.stage, sofar))
                spec = RunSpec(
                    assessment.stage, sofar, leader, Question.ELECTION, zab=False, patient=False,
                    always=("OneLeader", "LeaderIsAVoter", "OnlyVotersCounted"), opening=opening,
                )  # fmt: skip
                result = assessor.explore(spec, len(steps) * len(leaders))
                if result.end is RunEnd.IMPOSSIBLE:
                    order = replace(order, explored=False)  # the steps after this one were not run
                    break
                assessment.runs.append(result)
        assessment.orders.append(order)


def _opening(stage: Stage, steps: Steps) -> Iterator[dict[str, object]]:
    """All steps but the last start. All servers settle after each: first those with the same file, then all."""
    running, changed = set(stage.running), set(stage.renewed)
    for number, step in enumerate(steps):
        if step.action in (RESTART, STOP):
            running.discard(step.sid)
            yield from _planned_and_settled(running, changed)
        if step.action in (RESTART, START):
            if number == len(steps) - 1:
                return
            running.add(step.sid)
            changed.add(step.sid)
            yield from _planned_and_settled(running, changed)


def _planned_and_settled(running: set[Sid], changed: set[Sid]) -> Iterator[dict[str, object]]:
    yield {"planned": 1}
    for group in (running - changed, running & changed, running):
        if group:
            yield {"settle": sorted(group)}
