"""Plans a roll-out: judges the order that was given, or finds one, in stages if it must be.

    plan(request, run) -> Plan

`checker.rollout.search` chooses the routes to judge. This module checks the request, and adds the way back after an
interruption.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from checker.rollout.answer import Plan, PlanRequest
from checker.rollout.disks import check_disks
from checker.rollout.files.differences import check_identities, check_startable
from checker.rollout.other_routes import (
    check_releases,
    is_asked,
    judge_disks,
    judge_reconfig,
    judge_releases,
    judge_way_back,
    judge_ways,
)
from checker.rollout.runs import Runner
from checker.rollout.search import PlanSearch
from checker.rollout.stages import Stage, listed, whole
from checker.rollout.steps import OrderError, may_lead
from checker.rollout.work import Work


def plan(request: PlanRequest, runner: Runner) -> Plan:
    """The plan, within the work that the request allows; with enough memory the same request always has the same plan.

    Raises OrderError, spec.config.ConfigError for a new file that ZooKeeper refuses where it accepts the old one, and
    checker.symbolic.disjoint.UndecidedError.
    """
    if request.way.is_of_controller and not request.faults:
        request = replace(request, faults=1)  # the restart of a server that is not ready
    if request.at_step and request.way.is_of_controller:
        problem = "--files at-step: a controller has all new files from the beginning"
        raise OrderError(f"{problem}; leave --files out", "files")
    check_identities(request.old.servers, request.new.servers)
    check_startable(request.old.servers, request.new.servers)
    stage = whole(request.old, request.new, request.now.applied if request.now else frozenset())
    _check_servers(request, stage)
    check_disks(request.disks, stage, request.down)
    if request.releases is not None:
        check_releases(request.releases, stage)
    work = Work(runner, request.seconds)
    search = PlanSearch(request, work)
    made = _searched(request, stage, search, work)
    while not made.is_settled and work.deepen():
        made = _searched(request, stage, search, work)
    made.seconds, made.depends_on_memory = work.clock(), work.filled_memory
    return made


def _searched(request: PlanRequest, stage: Stage, search: PlanSearch, work: Work) -> Plan:
    """The plan by one pass."""
    made = search.searched(stage) if request.order is None else search.ordered(stage, request.order)
    if request.disks:
        judge_disks(made, search)
    if request.releases is not None:
        judge_releases(made, request.releases, search, work)
    if request.how is None and request.now is None and not request.disks:
        with nullcontext() if request.answers_for_every_way else work.beside():
            judge_ways(made, search)
    if is_asked(request, stage):
        judge_reconfig(made, work)
    if request.now is not None:
        judge_way_back(made, stage, search)
        stopped = sorted(stage.applied - stage.new.members)
        absent = f"; {listed(stopped)} stopped" if stopped else ""
        state = f"now {listed(stage.renewed) or 'no server'} with the new file{absent}"
        none = "no server has its new file yet; without `--now` stages are planned as well"
        made.notes.append(state if stage.applied else none)
    if made.depends_on_the_way:
        made.notes.append("it is not safe in every way of working: name with `--how` the one that applies the change")
    return made


def _check_servers(request: PlanRequest, stage: Stage) -> None:
    """Raises OrderError for a leader that cannot lead, unknown servers in `down`, or too few running voters."""
    voters = sorted(may_lead(stage, request.down))
    if request.leader is not None and request.leader not in voters:
        raise OrderError(f"server {request.leader} cannot lead at first; one of {listed(voters)} can", "leader")
    for sid in sorted(request.down - set(stage.sids)):
        raise OrderError(f"server {sid} is in neither folder; they have {listed(stage.sids)}", "down")
    if request.down and not any(stage.view_of(sid, stage.renewed).contains_quorum(frozenset(voters)) for sid in voters):
        down = listed(request.down)
        raise OrderError(f"without {down} the ensemble has no quorum before the roll-out begins", "down")
