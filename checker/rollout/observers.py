"""The effect on data of an observer that is counted as a voter: it acknowledges without a log, and a write is lost.

A leader has a transaction on its own disk only, and leads again because such an observer acknowledges NEWLEADER. So the
transaction is committed, and only one server has it on disk. The loss takes more steps than a search from the beginning
reaches. So the steps up to the lonely transaction are an opening, and every run behind it is explored.

Rules of this module: an opening is a run of the whole model, so a violation behind it is a violation of the roll-out.
An opening that is impossible claims nothing.

Source: `Learner.syncWithLeader` (an observer keeps what it received in memory), `Leader.waitForNewLeaderAck` (counts
the acknowledgement of any learner), `SyncedLearnerTracker.addAck` (counts by the leader's file).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from checker.rollout.budget import WorkBudget
from checker.rollout.runs import Runner, RunResult, SafetyVerdict
from checker.rollout.scenarios import ELECTIONS, RunSpec
from checker.rollout.stages import Stage
from checker.rollout.steps import RESTART, Steps
from checker.scenario import ScenarioError
from spec.quorum import Sid

MOST_SECONDS = 10.0  # for each run


def losses(spec: RunSpec, run: Runner, budget: WorkBudget) -> Iterator[RunResult]:
    """The runs behind an opening, the last one with a lost write, if any has one.

    `spec` is the question about commits. An opening ends after each number of steps, with a lonely transaction of the
    server that leads then.
    """
    for opening in _openings(spec.stage, spec.steps, spec.down):
        if not budget.left:
            return
        behind = replace(spec, writes=2, elections=ELECTIONS, opening=opening)
        try:
            result = run(behind, min(MOST_SECONDS, budget.share(4)))
        except ScenarioError:
            continue
        yield result
        if result.outcome is SafetyVerdict.UNSAFE:
            return


def _openings(stage: Stage, steps: Steps, down: frozenset[Sid]) -> Iterator[tuple[Mapping[str, object], ...]]:
    """For each number of steps and each server: the steps, then two writes of that server, the second one lonely."""
    steps = tuple(step for step in steps if step.sid not in down)
    servers = [sid for sid in stage.sids if sid not in down]
    for number in range(len(steps)):
        done: list[Mapping[str, object]] = []
        for before in steps[:number]:
            done += [{"planned": 2 if before.action == RESTART else 1}, {"settle": servers}]
        for leader in servers:
            written = {"write": leader}
            yield (*done, written, {"settle": servers}, written, {"settle": [leader]})
