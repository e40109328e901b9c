"""Plans a roll-out: judges the order that was given, or finds one, in stages if it must be.

    plan(request, run) -> Plan

`checker.rollout.order_search` chooses the routes to judge. This module checks the request, and adds the other routes:
each way of working, the given disks, the releases, the way back, and `reconfig`. They follow the steps that the plan
recommends, or stand beside them, and are asked by the same search.

Rules of this module:

- A way of working is asked about leaders and commits. Where addresses change, or a controller waits, it is also asked
  whether all servers find a leader, since one may then look for it for ever. The disk of a server that moves is taken
  to move with it. A proof comes first: it answers for every leader, without a run. Next are the runs that exist: those
  of one way are also runs of each way with fewer waits. The other ways are searched for a violation.
- A way is SAFE if it is proved, or if it was explored to the end for every server that may lead at first.
- The releases are judged along steps that are safe by the protocol; others need other steps first. The runs without
  writes come first, because they are small. Without faults each first leader is explored. The others differ from the
  first one by their ids alone, so they are left out where its run was not finished. Under faults one is explored.
- A release that is the same before and after is judged in every stage; an upgrade has one stage, since it changes no
  member.
- The first violation of a route by `reconfig` ends its search: the route is unsafe.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace

from checker.rollout.answer import Plan, PlanRequest, ReleaseAnswer
from checker.rollout.assessor import INQUIRIES, Case, splits
from checker.rollout.disks import check_disks, harmless, remedies, with_lost_volumes
from checker.rollout.files.differences import check_identities, check_startable
from checker.rollout.order_search import PlanSearch
from checker.rollout.orders import OrderError, Way, covers_runs, in_way, may_lead, steps_of
from checker.rollout.reconfig.answers import (
    CommandAnswer,
    FaultBudget,
    ReconfigAnswer,
    ReconfigSpec,
    RouteAnswer,
    WayVerdicts,
    in_order,
    specs_of,
)
from checker.rollout.reconfig.commands import (
    MembershipCommand,
    RouteKind,
    at_once,
    member_lines,
    one_at_a_time,
    refusals,
)
from checker.rollout.route_verdict import LARGEST, QUESTIONS, SAFETY, Order, PlanRoute, too_large
from checker.rollout.runs import Runner, RunResult, SafetyVerdict, Work, not_begun, worst_verdict
from checker.rollout.scenarios import OF_RELEASES, Question, ReleaseChange
from checker.rollout.stages import Stage, listed, reverse, whole
from spec.quorum import Sid

# Ways of working.

MOST_WAITS_FIRST = (
    *(Way.ONE_BY_ONE, Way.PARALLEL, Way.NO_WAIT, Way.STOP_ALL),
    *(Way.CONTROLLER, Way.PARALLEL_CONTROLLER, Way.UNREADY_CONTROLLER),
)


def judge_ways(plan: Plan, search: PlanSearch) -> None:
    """Judge the change in one go in each way of working, whatever way the plan itself follows."""
    base, routes, results = plan.direct, dict[Way, PlanRoute](), list(plan.direct.runs)
    # A proof covers every leader, so that those of the plan are enough.
    planned_leaders = [order.leader for order in base.orders] if base.quorums_meet else []
    leaders = planned_leaders or search.leaders(base.stage)
    explored = {order.leader for order in base.orders if order.explored}
    violated = base.outcome_with_disks is SafetyVerdict.UNSAFE
    is_covered = violated or base.unchanged or base.proved or explored.issuperset(leaders)
    for way in MOST_WAITS_FIRST:
        questions = QUESTIONS if base.stage.readdressed or way.is_of_controller else SAFETY
        planned = replace(base, asked=questions)
        if way is base.way and is_covered and planned.outcome is not SafetyVerdict.OPEN:
            routes[way] = planned
            continue
        # A controller restarts a server that is not ready, which is a crash to the others.
        faults = max(1, plan.request.faults) if way.is_of_controller else plan.request.faults
        route = replace(base.blank, way=way, faults=faults, asked=questions)
        route.orders = [_order(route, base, leader, search, plan.request.down) for leader in leaders]
        _explore_way(route, search, results)
        results += route.runs
        routes[way] = route
    plan.ways = tuple(routes[way] for way in Way)


def _order(route: PlanRoute, base: PlanRoute, leader: Sid, search: PlanSearch, down: frozenset[Sid]) -> Order:
    """The order of the plan in another way, or else the preferred one; not explored."""
    for order in base.orders if not base.way.has_one_order else ():
        if order.leader == leader:
            return Order(leader, in_way(route.way, base.stage, leader, order.steps, down), explored=False)
    return search.unexplored(base.stage, leader, route.way)


def _explore_way(route: PlanRoute, search: PlanSearch, known: Sequence[RunResult]) -> None:
    """Find the evidence for a way, for each leader until the verdict is not SAFE: others hardly change it then."""
    settled = route.proved and not route.stage.readdressed and not route.way.is_of_controller
    if route.unchanged or settled or route.stage.gossips or too_large(route.stage):
        return
    route.runs += _carried(route, known)
    if any(not result.spec.faults for result in route.runs):
        return
    planned, route.orders = route.orders, []
    for order in planned:
        if route.orders and route.outcome is not SafetyVerdict.SAFE:
            route.orders.append(order)
            continue
        search.follow(route, [(order.leader, order.steps)])
        if not route.proved:
            search.answer([route], whole=False)


def _carried(route: PlanRoute, known: Sequence[RunResult]) -> Iterator[RunResult]:
    """The violations in runs of other ways that are runs of this way too: the first without faults, and under them."""
    kinds = set[bool]()
    for result in known:
        faulty = bool(result.spec.faults)
        if result.outcome is not SafetyVerdict.UNSAFE or result.spec.question not in SAFETY or faulty in kinds:
            continue
        early = result.spec.way.is_of_controller and faulty and route.stage.changed_roles
        if not early and any(covers_runs(order.steps, result.spec.steps) for order in route.orders):
            kinds.add(faulty)
            yield result


# Disks.


def judge_disks(plan: Plan, search: PlanSearch) -> None:
    """Judge the disks of the request in the stages that the plan recommends, and find the safe ways.

    Raises checker.symbolic.disjoint.UndecidedError.
    """
    request = plan.request
    for number, part in enumerate(plan.advised):
        part.disks = {
            sid: hazard
            for sid, hazard in request.disks.items()
            if sid in part.stage.added or (sid in part.stage.running and not number)
        }
        _explore_disks(part, search, request)
    if plan.outcome is not SafetyVerdict.SAFE:
        first = plan.advised[0]
        plan.remedies = remedies(first.stage, first.disks, request.down, quorums_meet=first.quorums_meet)


def _explore_disks(part: PlanRoute, search: PlanSearch, request: PlanRequest) -> None:
    """Explore the starts with the disks of a stage, unless a proof covers them or no run can."""
    proved = part.proved and harmless(part.stage, part.disks)
    if not part.disks or proved or part.stage.gossips or too_large(part.stage):
        return
    orders = part.orders
    if part.unchanged:
        # Nothing changes but the disks. Volumes are lost at a restart, one server after the other, the leader last.
        lost = with_lost_volumes(request.old, request.new, {})
        restarted = {sid for sid in part.disks if sid in lost and sid in part.stage.restarted}
        orders = []
        for leader in search.leaders(part.stage):
            order = [*sorted(restarted - {leader}), *sorted(restarted & {leader})]
            orders.append(Order(leader, steps_of(part.stage, order)))
    foreign = {sid for sid, hazard in part.disks.items() if hazard.is_foreign}
    orders = [order for order in orders if order.leader not in foreign]
    faults = ({}, *splits(part.faults, INQUIRIES[Question.GIVEN_DISKS].kinds))
    search.assessor.seek(Question.GIVEN_DISKS, ((part, order, budget) for budget in faults for order in orders))


# The way back.


def judge_way_back(plan: Plan, stage: Stage, search: PlanSearch) -> None:
    """Judge the way from a stage back to the old files and hosts, with the disks that are lost by one more restart."""
    request = plan.request
    plan.back = search.searched(replace(reverse(stage), outdated=stage.applied.intersection(stage.readdressed))).direct
    spared = request.new.servers.keys() - set(plan.back.stage.restarted)
    plan.back.disks = with_lost_volumes(request.old, request.new, {}, spared | request.down)
    _explore_disks(plan.back, search, request)


# Releases.


def check_releases(releases: ReleaseChange, stage: Stage) -> None:
    """Raises OrderError for an upgrade together with a change of members or of their roles."""
    if releases.is_upgrade and stage.old.view != stage.new.view:
        problem = "the release and the members change together"
        raise OrderError(f"{problem}; make two roll-outs of it, the upgrade and then the members", "to-release")


def judge_releases(plan: Plan, releases: ReleaseChange, search: PlanSearch, work: Work) -> None:
    """Judge the releases along the steps that the plan recommends, if these are safe by the protocol."""
    if plan.outcome is not SafetyVerdict.SAFE or not plan.direct.stage.remaining:
        return
    parts = [part for part in plan.advised if part.stage.remaining]
    routes = tuple(
        replace(part.blank, orders=part.orders, disks={}, releases=releases, asked=OF_RELEASES)
        for part in parts
        if not part.stage.gossips and not too_large(part.stage)
    )
    for question in reversed(OF_RELEASES):
        search.assessor.seek(question, _cases(question, routes))
    plan.releases = answer = ReleaseAnswer(releases, routes)
    if answer.finding is None:
        return
    spec, old = answer.finding.spec, ReleaseChange(releases.old, releases.old)
    with work.beside():
        alone = {defect: work.ask(replace(spec, releases=None, variants=(defect,))) for defect in releases.defects}
        staying = work.ask(replace(spec, releases=old)) if releases.is_upgrade else None
    culprits = tuple(defect for defect, result in alone.items() if result.outcome is SafetyVerdict.UNSAFE)
    plan.releases = replace(answer, staying=staying, culprits=culprits)


def _cases(question: Question, routes: Sequence[PlanRoute]) -> Iterator[Case]:
    """Without faults every first leader of each stage, then under each kind of fault one leader of each stage."""
    for route in routes:
        for order in route.orders:
            yield route, order, {}
            if route.runs[-1].outcome is SafetyVerdict.OPEN:
                break
    # All stages have the same number of faults.
    for faults in splits(routes[0].faults, INQUIRIES[question].kinds) if routes else ():
        yield from ((route, route.orders[0], faults) for route in routes)


# The change by `reconfig`.


def is_asked(request: PlanRequest, stage: Stage) -> bool:
    """Whether a change is compared with `reconfig`: a plain change of members, with `reconfigEnabled=true` somewhere.

    Not so for a given order, way of working, interruption or disk, for one direct change, and where a platform or an
    operator changes the members by itself.
    """
    options = (request.order, request.how, request.now, request.releases)
    if any(option is not None for option in options) or request.disks or request.down or request.in_one_go:
        return False
    if any(folder.working is not None for folder in (request.old, request.new)):
        return False
    servers = (*request.old.servers.values(), *request.new.servers.values())
    return stage.changes_members and any(server.config.reconfig_enabled for server in servers)


def judge_reconfig(made: Plan, work: Work) -> None:
    """Judge the change by `reconfig`, and compare it with the plan. Raises checker.symbolic.disjoint.UndecidedError."""
    old, new, faults = made.request.old, made.request.new, made.request.faults
    refused = refusals(old, new, made.direct.stage)
    routes: list[RouteAnswer] = []
    if not refused:
        lines = member_lines(old, new)
        single, together = (divide(old.view, new.view, lines) for divide in (one_at_a_time, at_once))
        if len(single) > 1:
            routes.append(_by_commands(RouteKind.AT_ONCE, together, faults, work))
        routes.insert(0, _by_commands(RouteKind.ONE_AT_A_TIME, single, faults, work))
    claims = [claim for part in made.advised for claim in part.claims]
    plain = worst_verdict(claim.evidence.outcome for claim in claims if not claim.faults)
    made.by_reconfig = ReconfigAnswer(refused, in_order(routes), WayVerdicts(made.outcome, plain))


def _by_commands(kind: RouteKind, commands: tuple[MembershipCommand, ...], faults: int, work: Work) -> RouteAnswer:
    """Explore a route until a run finds a violation."""
    runs: list[tuple[ReconfigSpec, RunResult]] = []
    left_out: set[FaultBudget] = set()
    for spec in specs_of(kind, commands, faults):
        if runs and runs[-1][1].outcome is SafetyVerdict.UNSAFE:
            left_out.add(spec.budget)
        else:
            runs.append((spec, work.ask(spec) if len(spec.stage.sids) <= LARGEST else not_begun(spec)))
    answers = []
    for command in commands:
        by_budget = {
            budget: tuple(result for spec, result in runs if spec.command is command and spec.budget is budget)
            for budget in FaultBudget
        }
        answers.append(CommandAnswer(command, command.disjoint, by_budget))
    return RouteAnswer(kind, tuple(answers), faults, frozenset(left_out))


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
    stage = whole(request.old, request.new, request.now)
    voters = sorted(may_lead(stage, request.down))
    if request.leader is not None and request.leader not in voters:
        raise OrderError(f"server {request.leader} cannot lead at first; one of {listed(voters)} can", "leader")
    for sid in sorted(request.down - set(stage.sids)):
        raise OrderError(f"server {sid} is in neither folder; they have {listed(stage.sids)}", "down")
    if request.down and not any(stage.view_of(sid, stage.renewed).contains_quorum(frozenset(voters)) for sid in voters):
        down = listed(request.down)
        raise OrderError(f"without {down} the ensemble has no quorum before the roll-out begins", "down")
    check_disks(request.disks, stage, request.down)
    if request.releases is not None:
        check_releases(request.releases, stage)
    work = Work(runner, request.seconds)
    search = PlanSearch(request, work)
    answer = _searched(request, stage, search, work)
    while not answer.is_settled and work.deepen():
        answer = _searched(request, stage, search, work)
    answer.seconds, answer.depends_on_memory = work.clock(), work.filled_memory
    return answer


def _searched(request: PlanRequest, stage: Stage, search: PlanSearch, work: Work) -> Plan:
    """The plan by one pass."""
    answer = search.searched(stage) if request.order is None else search.ordered(stage, request.order)
    if request.disks:
        judge_disks(answer, search)
    if request.releases is not None:
        judge_releases(answer, request.releases, search, work)
    if request.how is None and request.now is None and not request.disks:
        with nullcontext() if request.answers_for_every_way else work.beside():
            judge_ways(answer, search)
    if is_asked(request, stage):
        judge_reconfig(answer, work)
    if request.now is not None:
        judge_way_back(answer, stage, search)
        stopped = sorted(stage.applied - stage.new.members)
        absent = f"; {listed(stopped)} stopped" if stopped else ""
        state = f"now {listed(stage.renewed) or 'no server'} with the new file{absent}"
        untouched = "no server has its new file yet; without `--now` stages are planned as well"
        answer.notes.append(state if stage.applied else untouched)
    if answer.depends_on_the_way:
        answer.notes.append("it is not safe in every way of working: name with `--how` the one that applies the change")
    return answer
