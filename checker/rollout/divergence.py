"""The effect of a split on data: both leaders commit, and replicas stay different after the operator has healed.

A run with two established leaders continues here: a client writes at each of them, and the plan continues. The result
is much deeper than the split, so the steps to the split are an opening, and everything after it is explored.

Rules of this module: the opening comes from the trace of the split. If it cannot be followed nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from checker.rollout.budget import WorkBudget
from checker.rollout.runs import Runner, RunResult, SafetyVerdict
from checker.rollout.scenarios import Question
from checker.scenario import ScenarioError
from checker.traces.trace import Trace
from spec.quorum import Sid

MOST_SECONDS = 10.0  # for each of the two runs
ELECTIONS = 4  # more than a split takes, so that the plan can continue


def after_split(result: RunResult, run: Runner, budget: WorkBudget) -> list[RunResult]:
    """The runs that lose or double data, and those that a limit ended; empty if the opening is impossible."""
    if result.trace is None or not result.spec.zab or result.spec.faults:
        return []
    sides = _sides(result.trace)
    if len(sides) != 2:
        return []
    opening = tuple(_opening(result, sides))
    found = []
    for question, prop in ((Question.COMMITS, "OneTxnPerZxid"), (Question.HEALING, "ReplicasAgree")):
        spec = replace(
            result.spec, question=question, always=(prop,), recoverable=False, writes=2, elections=ELECTIONS,
            opening=opening,
        )  # fmt: skip
        if not budget.left:
            break
        try:
            found.append(run(spec, min(MOST_SECONDS, budget.share(4))))
        except ScenarioError:
            return []
    return [each for each in found if each.outcome is not SafetyVerdict.SAFE]


def _sides(trace: Trace) -> dict[Sid, list[Sid]]:
    """The two leaders at the end of a split, and who follows each."""
    lanes = trace.steps[-1].lanes
    sides: dict[Sid, list[Sid]] = {}
    for name, fields in lanes.items():
        sid = int(name.partition(".")[2])
        leader = sid if fields.get("state") == "LEADING" else fields.get("leader")
        if leader is not None:
            sides.setdefault(int(leader), []).append(sid)
    return {leader: sorted(side) for leader, side in sorted(sides.items()) if leader in side}


def _opening(result: RunResult, sides: Mapping[Sid, list[Sid]]) -> Iterator[dict[str, object]]:
    """The operator's steps and the two elections in the order of the trace, then a write on each side."""
    assert result.trace is not None
    waits = list(_waits(result))
    everybody = [sid for sid in result.spec.stage.sids if sid not in result.spec.down]
    planned = 0
    for step in result.trace.steps[1:]:
        action = step.action or ""
        if action.startswith("plan "):
            if waits[planned]:
                yield {"settle": everybody}
            planned += 1
            yield {"planned": 1}
        elif action == "elect":
            leader, members = step.arguments
            if leader in sides and leader in members:
                yield {"settle": sides[leader]}
    for leader, side in sides.items():
        yield {"write": leader}
        yield {"settle": side}


def _waits(result: RunResult) -> Iterator[bool]:
    """For each action of the plan whether it waits for the one before it."""
    waiting = False
    for step in result.spec.steps:
        if step.sid in result.spec.down:
            continue
        yield waiting
        if step.action == "restart":
            yield False
        waiting = step.wait
