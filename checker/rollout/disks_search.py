"""Searches for a loss where servers start with lost, old or foreign disks.

Rules of this module:

- A proof comes first: no disk of a new id, nor of a server that never votes, matters where all quorums meet, unless it
  is one of another cluster.
- A violation ends the search. So every server that may lead at first is explored without faults before faults are.
- A server that loses its disk under an old id is a matter of the first stage; a new server one of the stage that adds
  it.
"""

from __future__ import annotations

from collections.abc import Collection

from checker.rollout.answer import Plan, PlanRequest
from checker.rollout.assessor import Assessor, splits
from checker.rollout.disks import harmless, remedies, with_lost_volumes
from checker.rollout.route import PlanRoute, too_large
from checker.rollout.runs import SafetyVerdict
from checker.rollout.scenarios import CRASHES, DISCONNECTS, PARTITIONS
from checker.rollout.search import PlanSearch
from checker.rollout.stages import Stage
from checker.rollout.steps import Steps, steps_of
from spec.quorum import Sid


def judge_disks(made: Plan, search: PlanSearch) -> None:
    """Judge the disks of the request in the stages that the plan recommends, and find the safe ways.

    Raises checker.symbolic.disjoint.UndecidedError.
    """
    request = made.request
    for number, part in enumerate(made.advised):
        part.disks = {
            sid: hazard
            for sid, hazard in request.disks.items()
            if sid in part.stage.added or (sid in part.stage.running and not number)
        }
        _judge(part, search, request)
    if made.outcome is not SafetyVerdict.SAFE:
        first = made.advised[0]
        made.remedies = remedies(first.stage, first.disks, request.down, quorums_meet=first.quorums_meet)


def judge_way_back(made: Plan, search: PlanSearch) -> None:
    """Judge the disks that are lost on the way back, where servers restart once more."""
    part, request = made.back, made.request
    if part is not None:
        spared = request.new.servers.keys() - set(part.stage.restarted)
        part.disks = with_lost_volumes(request.old, request.new, {}, spared | request.down)
        _judge(part, search, request)


def _judge(part: PlanRoute, search: PlanSearch, request: PlanRequest) -> None:
    """Explore the starts with the disks of a stage, unless a proof covers them or no run can."""
    proved = part.proved and harmless(part.stage, part.disks)
    if part.disks and not proved and not part.stage.gossips and not too_large(part.stage):
        _explore(part, search.assessor, _steps(part, search, request))


def _steps(part: PlanRoute, search: PlanSearch, request: PlanRequest) -> list[tuple[Sid, Steps]]:
    """Each first leader with the steps: those of the plan, or none where nothing changes but the disks.

    Servers whose volumes are lost at a restart are restarted one after the other, the leader last.
    """
    if part.unchanged:
        lost = with_lost_volumes(request.old, request.new, {})
        restarted = {sid for sid in part.disks if sid in lost and sid in part.stage.restarted}
        found = [(leader, _restarts(part.stage, restarted, leader)) for leader in search.leaders(part.stage)]
    else:
        found = [(order.leader, order.steps) for order in part.orders]
    return [(leader, steps) for leader, steps in found if leader not in part.disks or not part.disks[leader].is_foreign]


def _restarts(stage: Stage, sids: Collection[Sid], leader: Sid) -> Steps:
    return steps_of(stage, sorted(sids, key=lambda sid: (sid == leader, sid)))


def _explore(part: PlanRoute, assessor: Assessor, orders: list[tuple[Sid, Steps]]) -> None:
    """All leaders without faults, then all under faults, until a write is lost."""
    for faults in ({}, *splits(part.faults, (CRASHES, PARTITIONS, DISCONNECTS))):
        for leader, steps in orders:
            if assessor.given_disks(part, leader, steps, faults=faults):
                return
