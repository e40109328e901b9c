"""Openings: the first moves of runs that are too deep for a search from the beginning.

Each function here lists moves, and `checker.rollout.assessor` explores everything behind them.

    after_split        two leaders are established. A client writes at each of them, and the plan continues: do both
                       commit, and do replicas differ after the operator has healed them? Where one of them is a
                       standalone server, the client writes there alone, and the plan continues: is the write thrown
                       away?
    lonely_writes      a transaction is on the disk of one server only. That server leads again, because an observer
                       that its file counts as a voter acknowledges NEWLEADER without a log. So the transaction is
                       committed, and can be lost.
    before_restart     configurations have versions. Servers send the newest version in their notifications and adopt
                       it. The election in one step does not carry that, so messages are explored one by one. Five
                       servers have too many of them, so the steps before a restart follow one order only: each step
                       waits until all messages have arrived.

Rules of this module: an opening is a run of the whole model, so a violation behind it is a violation of the roll-out.
An opening that is impossible claims nothing.

Source: `Learner.syncWithLeader` (an observer keeps what it received in memory), `Leader.waitForNewLeaderAck` (counts
the acknowledgement of any learner), `SyncedLearnerTracker.addAck` (counts by the leader's file).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from checker.models.ensemble.actions import Action
from checker.rollout.runs import RunResult
from checker.rollout.scenarios import ELECTIONS, SERVED_ALONE, THROWN_AWAY, Question, RunSpec
from checker.rollout.stages import Stage
from checker.rollout.steps import RESTART, START, STOP, Steps
from spec.quorum import Sid

OperatorMove = Mapping[str, object]


def after_split(result: RunResult) -> tuple[RunSpec, ...]:
    """The two questions about data behind a split; none if the run does not end with two leaders."""
    if result.found is None or not result.spec.zab or result.spec.faults:
        return ()
    sides = _sides(result)
    if len(sides) != 2:
        return ()
    if result.prop == SERVED_ALONE:
        alone = [sid for sid, status in result.last_statuses.items() if status.is_standalone]
        opening = (*result.spec.opening, *_split(result, sides, alone))
        spec = replace(result.spec, recoverable=False, writes=1, elections=ELECTIONS, opening=opening)
        return (replace(spec, question=Question.COMMITS, always=THROWN_AWAY),)
    opening = (*result.spec.opening, *_split(result, sides))
    behind = replace(result.spec, recoverable=False, writes=2, elections=ELECTIONS, opening=opening)
    return (
        replace(behind, question=Question.COMMITS, always=("OneTxnPerZxid",)),
        replace(behind, question=Question.HEALING, always=("ReplicasAgree",)),
    )


def _sides(result: RunResult) -> dict[Sid, list[Sid]]:
    """The leaders at the end of a run, and the servers that follow each, itself included."""
    sides: dict[Sid, list[Sid]] = {}
    for sid, status in sorted(result.last_statuses.items()):
        if status.leader is not None:
            sides.setdefault(status.leader, []).append(sid)
    return {leader: side for leader, side in sorted(sides.items()) if leader in side}


def _split(
    result: RunResult, sides: Mapping[Sid, list[Sid]], writers: Collection[Sid] | None = None
) -> Iterator[OperatorMove]:
    """The operator's steps and the elections in the order of the run, then a write on each side, or by `writers`."""
    waits = _waits(result.spec)
    everybody = [sid for sid in result.spec.stage.sids if sid not in result.spec.down]
    for move in result.moves:
        if not isinstance(move.action, Action):  # an action of the plan
            if next(waits):
                yield {"settle": everybody}
            yield {"planned": 1}
        elif move.action is Action.ELECT:
            leader, members = move.arguments
            if leader in sides and leader in members:
                yield {"settle": sides[leader]}
    for leader, side in sides.items():
        if writers is not None and leader not in writers:
            continue
        yield {"write": leader}
        yield {"settle": side}


def _waits(spec: RunSpec) -> Iterator[bool]:
    """For each action of the plan whether it waits for the one before it."""
    waiting = False
    for step in spec.steps_taken:
        yield waiting
        if step.action == RESTART:
            yield False
        waiting = step.wait


def lonely_writes(spec: RunSpec) -> Iterator[RunSpec]:
    """A question about commits, behind each number of steps and two writes of each server, the second one lonely."""
    servers = [sid for sid in spec.stage.sids if sid not in spec.down]
    done = spec.opening
    for step in spec.steps_taken:
        for leader in servers:
            written = {"write": leader}
            opening = (*done, written, {"settle": servers}, written, {"settle": [leader]})
            yield replace(spec, writes=2, elections=ELECTIONS, opening=opening)
        done = (*done, {"planned": 2 if step.action == RESTART else 1}, {"settle": servers})


def before_restart(stage: Stage, steps: Steps) -> Iterator[OperatorMove]:
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


def _planned_and_settled(running: set[Sid], changed: set[Sid]) -> Iterator[OperatorMove]:
    yield {"planned": 1}
    for group in (running - changed, running & changed, running):
        if group:
            yield {"settle": sorted(group)}
