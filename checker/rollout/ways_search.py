"""The verdict on a change for each way of working, whatever way the plan itself follows.

Rules of this module:

- The questions are those about leaders and commits. Where addresses change, or a controller waits, it is also asked
  whether all servers find a leader, since one may then look for it for ever. The disk of a server that moves is taken
  to move with it.
- A proof comes first: it answers for every leader, without a run. Next are the runs that exist: those of one way are
  also runs of each way with fewer waits. The other ways are searched for a violation, small models first.
- A way is SAFE if it is proved, or if it was explored to the end for every server that may lead at first. All else is
  UNDECIDED.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from checker.rollout.answer import Plan
from checker.rollout.assessor import Assessor
from checker.rollout.route import QUESTIONS, Order, PlanRoute, too_large
from checker.rollout.runs import RunResult, SafetyVerdict
from checker.rollout.scenarios import Question
from checker.rollout.search import PlanSearch
from checker.rollout.stages import Stage
from checker.rollout.ways import Way, covers_runs, in_way
from checker.rollout.work import Work
from spec.quorum import Sid

MOST_WAITS_FIRST = (
    *(Way.ONE_BY_ONE, Way.PARALLEL, Way.NO_WAIT, Way.STOP_ALL),
    *(Way.CONTROLLER, Way.PARALLEL_CONTROLLER, Way.UNREADY_CONTROLLER),
)
SAFETY = (Question.ELECTION, Question.COMMITS)


def judged_ways(made: Plan, search: PlanSearch, work: Work) -> tuple[PlanRoute, ...]:
    """The change in one go in each way of working, with its claims; `search` is the one that made the plan."""
    base = made.direct
    known, judged, leaders = list(base.runs), dict[Way, PlanRoute](), _leaders(made, search)
    for way in MOST_WAITS_FIRST:
        if way is base.way and _covers(base, leaders):
            planned = replace(base, asked=_questions(base.stage, way))
            if planned.outcome is not SafetyVerdict.OPEN:
                judged[way] = planned
                continue
        faults = _faults(way, made)
        of_way = PlanSearch(replace(made.request, how=way, order=None, faults=faults), work)
        trial = replace(base.blank, way=way, faults=faults, asked=_questions(base.stage, way))
        trial.orders = [_order(way, base, leader, of_way, made.request.down) for leader in leaders]
        _judge(trial, of_way.assessor, known)
        known += trial.runs
        judged[way] = trial
    return tuple(judged[way] for way in Way)


def _questions(stage: Stage, way: Way) -> tuple[Question, ...]:
    return QUESTIONS if stage.readdressed or way.is_of_controller else SAFETY


def _leaders(made: Plan, search: PlanSearch) -> list[Sid]:
    """The servers that may lead at first. A proof covers them all, so that those of the plan are enough."""
    planned = [order.leader for order in made.direct.orders]
    return planned if made.direct.quorums_meet and planned else search.leaders(made.direct.stage)


def _faults(way: Way, made: Plan) -> int:
    """The number of faults: a controller restarts a server that is not ready, which is a crash to the others."""
    return max(1, made.request.faults) if way.is_of_controller else made.request.faults


def _covers(base: PlanRoute, leaders: Sequence[Sid]) -> bool:
    """Whether the plan speaks of every server that may lead at first, or has a violation."""
    explored = {order.leader for order in base.orders if order.explored}
    return not _lasts(base) or base.unchanged or base.proved or explored.issuperset(leaders)


def _order(way: Way, base: PlanRoute, leader: Sid, search: PlanSearch, down: frozenset[Sid]) -> Order:
    """The order of the plan in another way, or else the preferred one; not explored."""
    for order in base.orders if not base.way.has_one_order else ():
        if order.leader == leader:
            return Order(leader, in_way(way, base.stage, leader, order.steps, down), explored=False)
    return search.unexplored(base.stage, leader)


def _judge(trial: PlanRoute, assessor: Assessor, known: Sequence[RunResult]) -> None:
    """Find the evidence for a way that the plan does not follow, or does not settle."""
    settled = trial.proved and not trial.stage.readdressed and not trial.way.is_of_controller
    if trial.unchanged or settled or trial.stage.gossips or too_large(trial.stage):
        return
    carried = list(_carried(trial, known))
    trial.runs += carried
    if all(result.spec.faults for result in carried):
        _explore(trial, assessor, under_faults=not carried)


def _explore(trial: PlanRoute, assessor: Assessor, *, under_faults: bool) -> None:
    """Explore the order for each leader until the verdict is not SAFE: other leaders hardly change it then."""
    orders, trial.orders = trial.orders, []
    for number, planned in enumerate(orders):
        if number and trial.outcome is not SafetyVerdict.SAFE:
            trial.orders.append(planned)
            continue
        order = assessor.without_faults(trial, planned.leader, planned.steps)
        if not trial.proved and trial.worst(faulty=False).outcome is not SafetyVerdict.UNSAFE:
            assessor.commits(trial, order)
        for search in (assessor.leaders_under_faults, assessor.commits_under_faults) if under_faults else ():
            if not trial.proved and _lasts(trial):
                search(trial, order)


def _lasts(trial: PlanRoute) -> bool:
    """Whether no run has found a violation."""
    return trial.outcome_with_disks is not SafetyVerdict.UNSAFE


def _carried(trial: PlanRoute, known: Sequence[RunResult]) -> Iterator[RunResult]:
    """The violations in runs of other ways that are runs of this way too: the first without faults, and under them."""
    found = set[bool]()
    for result in known:
        faulty = bool(result.spec.faults)
        if result.outcome is not SafetyVerdict.UNSAFE or result.spec.question not in SAFETY or faulty in found:
            continue
        early = result.spec.way.is_of_controller and faulty and trial.stage.changed_roles
        if not early and any(covers_runs(order.steps, result.spec.steps) for order in trial.orders):
            found.add(faulty)
            yield result
