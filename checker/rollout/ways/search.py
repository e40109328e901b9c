"""The verdict on a change for each way of working, whatever way the plan itself follows.

Rules of this module:

- The questions are those about leaders and commits. Where addresses change, or a controller waits, it is also asked
  whether all servers find a leader, since one may then look for it for ever. The disk of a server that moves is taken
  to move with it.
- A proof comes first: it answers for every leader, without a run. Next are the runs that exist: those of one way are
  also runs of each way with fewer waits. What is left is searched for a violation, small models first, within a small
  part of the budget.
- A way is SAFE if it is proved, or if it was explored to the end for every server that may lead at first. All else is
  UNDECIDED.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from checker.rollout.answer import Plan, WayAnswer
from checker.rollout.assessment import QUESTIONS, Order, QuestionAnswer, Reason, StageAssessment, too_large
from checker.rollout.assessor import Assessor
from checker.rollout.runs import Runner, RunResult, SafetyVerdict, WorkBudget
from checker.rollout.scenarios import Question
from checker.rollout.search import PlanSearch
from checker.rollout.ways import Way, covers_runs, in_way
from spec.quorum import Sid

SHARE_OF_WAYS = 0.25  # of the rest of the budget, for all ways
MOST_WAITS_FIRST = (
    *(Way.ONE_BY_ONE, Way.PARALLEL, Way.NO_WAIT, Way.STOP_ALL),
    *(Way.CONTROLLER, Way.PARALLEL_CONTROLLER, Way.UNREADY_CONTROLLER),
)
SAFETY = (Question.ELECTION, Question.COMMITS)


def judged_ways(made: Plan, run: Runner, budget: WorkBudget) -> tuple[WayAnswer, ...]:
    """The answer for each way of working, about the change in one go."""
    work, base = WorkBudget(budget.left * SHARE_OF_WAYS, budget.clock), made.direct
    known, answers, leaders = list(base.runs), dict[Way, WayAnswer](), _leaders(made, run, work)
    for number, way in enumerate(MOST_WAITS_FIRST):
        if way is base.way and (planned := _answer(base)).is_decided and _covers(base, leaders):
            answers[way] = planned
            continue
        search = PlanSearch(replace(made.request, how=way, order=None), run, work)
        orders = [_order(way, base, leader, search, made.request.down) for leader in leaders]
        share = WorkBudget(work.left / (len(MOST_WAITS_FIRST) - number), work.clock)
        assessor = Assessor(share, run, _faults(way, made), made.request.down, way)
        answers[way] = _judged(way, made, orders, assessor, known)
        known += answers[way].assessment.runs
    return tuple(answers[way] for way in Way)


def _leaders(made: Plan, run: Runner, work: WorkBudget) -> list[Sid]:
    """The servers that may lead at first. A proof covers them all, so that those of the plan are enough."""
    planned = [order.leader for order in made.direct.orders]
    if made.direct.quorums_meet and planned:
        return planned
    return PlanSearch(made.request, run, work).leaders(made.direct.stage)


def _faults(way: Way, made: Plan) -> int:
    """The number of faults: a controller restarts a server that is not ready, which is a crash to the others."""
    return max(1, made.request.faults) if way.is_of_controller else made.request.faults


def _covers(base: StageAssessment, leaders: Sequence[Sid]) -> bool:
    """Whether the plan speaks of every server that may lead at first, or has a violation."""
    explored = {order.leader for order in base.orders if order.explored}
    return not _lasts(base) or base.unchanged or base.proved or explored.issuperset(leaders)


def _order(way: Way, base: StageAssessment, leader: Sid, search: PlanSearch, down: frozenset[Sid]) -> Order:
    """The order of the plan in another way, or else the preferred one; not explored."""
    for order in base.orders if not base.way.has_one_order else ():
        if order.leader == leader:
            return Order(leader, in_way(way, base.stage, leader, order.steps, down), explored=False)
    return search.unexplored(base.stage, leader)


def _judged(way: Way, made: Plan, orders: list[Order], assessor: Assessor, known: Sequence[RunResult]) -> WayAnswer:
    """The answer for a way that the plan does not follow, or of which it says too little."""
    stage = made.direct.stage
    trial = StageAssessment(stage, made.direct.pairs, _faults(way, made), orders, way=way)
    settled = trial.proved and not stage.readdressed and not way.is_of_controller
    if trial.unchanged or settled or stage.gossips or too_large(stage):
        return _answer(trial)
    carried = _carried(trial, known)
    if False not in carried:
        _explore(trial, assessor, under_faults=True not in carried)
    found = _answer(trial)
    return replace(found, plain=carried.get(False, found.plain), faulty=_under_faults(carried, found))


def _explore(trial: StageAssessment, assessor: Assessor, *, under_faults: bool) -> None:
    """Explore the order for each leader until a run has a violation."""
    orders, trial.orders = trial.orders, []
    for number, planned in enumerate(orders):
        if not _lasts(trial) or (number and not assessor.has_work):
            trial.orders.append(planned)
            continue
        order = assessor.without_faults(trial, planned.leader, planned.steps, 12)
        faulty = (assessor.leaders_under_faults, assessor.commits_under_faults) if under_faults else ()
        for search in () if trial.proved else (assessor.commits, *faulty):
            if _lasts(trial):
                search(trial, order, 6)


def _lasts(trial: StageAssessment) -> bool:
    """Whether no run has found a violation."""
    return trial.outcome_with_disks is not SafetyVerdict.UNSAFE


def _carried(trial: StageAssessment, known: Sequence[RunResult]) -> dict[bool, QuestionAnswer]:
    """The violations in runs of other ways that are runs of this way too: without faults, and under faults."""
    found: dict[bool, QuestionAnswer] = {}
    for result in known:
        if result.outcome is not SafetyVerdict.UNSAFE or result.spec.question not in SAFETY:
            continue
        early = result.spec.way.is_of_controller and result.spec.faults and trial.stage.changed_roles
        if not early and any(covers_runs(order.steps, result.spec.steps) for order in trial.orders):
            found.setdefault(bool(result.spec.faults), QuestionAnswer(SafetyVerdict.UNSAFE, Reason.FOUND, result))
    return found


def _under_faults(carried: dict[bool, QuestionAnswer], found: WayAnswer) -> QuestionAnswer | None:
    if found.faulty is None or found.faulty.outcome is SafetyVerdict.UNSAFE:
        return found.faulty
    if (plain := carried.get(False)) is not None:
        return QuestionAnswer(SafetyVerdict.UNSAFE, Reason.FOUND_WITHOUT_FAULTS, plain.finding)
    return carried.get(True, found.faulty)


def _answer(trial: StageAssessment) -> WayAnswer:
    plain = _worst(_answers(trial, faulty=False))
    return WayAnswer(trial.way, trial, plain, _worst(_answers(trial, faulty=True)) if trial.faults else None)


def _answers(trial: StageAssessment, *, faulty: bool) -> Iterator[QuestionAnswer]:
    questions = QUESTIONS if trial.stage.readdressed or trial.way.is_of_controller else SAFETY
    for question in questions:
        answer = trial.answer(question, faulty=faulty)
        if question is Question.HEALING and faulty and answer.outcome is SafetyVerdict.OPEN:
            continue  # as in the verdict on a stage
        yield answer


def _worst(answers: Iterator[QuestionAnswer]) -> QuestionAnswer:
    return min(answers, key=lambda each: list(SafetyVerdict).index(each.outcome))
