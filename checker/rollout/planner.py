"""Plans a roll-out: judges the order that was given, or finds one, in stages if it must be.

    plan(request, run) -> Plan

`checker.rollout.search` chooses what is judged. This module checks the request, and adds the way back after an
interruption.
"""

from __future__ import annotations

from dataclasses import replace

from checker.rollout.answer import Plan, PlanRequest
from checker.rollout.disks.hazards import check_disks
from checker.rollout.disks.search import judge_disks, judge_way_back
from checker.rollout.files.differences import check_identities, check_startable
from checker.rollout.reconfig.search import SHARE_OF_RECONFIG, is_asked, judge_reconfig
from checker.rollout.runs import Meter, Runner, RunResult, WorkBudget
from checker.rollout.scenarios import RunSpec
from checker.rollout.search import PlanSearch
from checker.rollout.software.search import check_releases, judge_software
from checker.rollout.stages import Stage, listed, reverse, whole
from checker.rollout.steps import OrderError, may_lead
from checker.rollout.ways.search import judged_ways


def plan(request: PlanRequest, runner: Runner) -> Plan:
    """The plan, within the work that the request allows; with enough memory the same request always has the same plan.

    Raises OrderError, spec.config.ConfigError for a new file that ZooKeeper refuses where it accepts the old one, and
    checker.symbolic.disjoint.UndecidedError.
    """
    if request.way.is_of_controller and not request.faults:
        request = replace(request, faults=1)  # the restart of a server that is not ready
    if request.at_step and request.way.is_of_controller:
        what = "--files at-step: a controller has all new files from the beginning"
        raise OrderError(f"{what}; leave --files out", "files")
    meter = Meter(_at_step(runner) if request.at_step else runner)
    check_identities(request.old.servers, request.new.servers)
    check_startable(request.old.servers, request.new.servers)
    stage = whole(request.old, request.new, request.now.applied if request.now else frozenset())
    _check_servers(request, stage)
    check_disks(request.disks, stage, request.down)
    if request.releases is not None:
        check_releases(request.releases, stage)
    reconfig = request.seconds * SHARE_OF_RECONFIG if is_asked(request, stage) else 0.0
    seconds = request.seconds - reconfig if request.now is None else request.seconds / 2
    search = PlanSearch(request, meter.run, WorkBudget(seconds, meter.clock))
    made = search.searched(stage) if request.order is None else search.ordered(stage, request.order)
    if request.disks:
        judge_disks(made, search, meter.run)
    judge_software(made, meter.run, search.budget)
    if request.how is None and request.now is None and not request.disks:
        made.ways = judged_ways(made, meter.run, search.budget)
    if reconfig:
        judge_reconfig(made, meter.run, WorkBudget(reconfig, meter.clock))
    if request.now is not None:
        back = PlanSearch(request, meter.run, WorkBudget(seconds, meter.clock))
        made.back = back.searched(_way_back(stage)).direct
        judge_way_back(made, back, meter.run)
        made.notes.append(_which_applied(stage))
    if made.depends_on_the_way:
        made.notes.append("it is not safe in every way of working: name with `--how` the one that applies the change")
    made.seconds, made.depends_on_memory = meter.clock(), meter.filled_memory
    return made


def _at_step(runner: Runner) -> Runner:
    """The same runs where each new file is copied at its step."""

    def run(spec: RunSpec, seconds: float) -> RunResult:
        return runner(replace(spec, at_step=not spec.way.is_of_controller), seconds)

    return run


def _way_back(stage: Stage) -> Stage:
    """The way back to the old files, and to the old hosts."""
    return replace(reverse(stage), outdated=stage.applied.intersection(stage.readdressed))


def _which_applied(stage: Stage) -> str:
    """The state of an interrupted roll-out."""
    if not stage.applied:
        return "no server has its new file yet; without `--now` stages are planned as well"
    stopped = sorted(stage.applied - stage.new.members)
    absent = f"; {listed(stopped)} stopped" if stopped else ""
    return f"now {listed(stage.renewed) or 'no server'} with the new file{absent}"


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
