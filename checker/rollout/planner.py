"""Plans a roll-out: judges the order that was given, or finds one, in stages if it must be.

    plan(request, run) -> Plan

Rules of this module:

- z3 first. Where quorums meet and no configuration changes as it is modelled, no run is made.
- Where quorums may be disjoint, an order that cannot split the servers which run comes next, if there is one. If that
  order is unsafe or waits in vain, others are tried, so that the answer shows a counterexample. A change that is not
  safe in one go is cut into stages, and each stage is judged like a separate change.
- Without a given leader every server that may lead at first is considered, each with a separate order: itself last.
  Under faults, where a run takes long and a proof covers the others, only the first of these leaders is explored.
- The runs that a verdict needs come first, for all stages. A short budget is spent on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from checker.rollout.answer import Plan, PlanRequest
from checker.rollout.assessment import Order, StageAssessment, too_large
from checker.rollout.assessor import Assessor, with_versions
from checker.rollout.differences import check_startable
from checker.rollout.runs import Meter, Runner, SafetyVerdict, WorkBudget
from checker.rollout.scenarios import Question
from checker.rollout.stages import Stage, one_at_a_time, refused_between, reverse, whole
from checker.rollout.steps import OrderError, Steps, candidates, may_lead, steps_of, unsplit
from spec.quorum import Sid

ORDERS_TRIED = 6  # of a change in one go whose quorums may be disjoint
SHARE_OF_ORDERS = 0.25  # of the budget, for those
SHARE_OF_UNSPLIT = 0.5  # of the budget, for one that cannot split the servers which run
SHARE_OF_OTHER_LEADERS = 0.25  # of the rest of the budget, for all leaders of a stage but the first
ORDERS_OF_A_STAGE = 6  # tried until one has no wait in vain


def plan(request: PlanRequest, runner: Runner) -> Plan:
    """The plan, within the work that the request allows; with enough memory the same request always has the same plan.

    Raises OrderError, spec.config.ConfigError for a new file that ZooKeeper refuses where it accepts the old one, and
    checker.symbolic.disjoint.UndecidedError.
    """
    meter = Meter(runner)
    check_startable(request.old.servers, request.new.servers)
    stage = whole(request.old, request.new, request.now.applied if request.now else frozenset())
    _check_servers(request, stage)
    seconds = request.seconds if request.now is None else request.seconds / 2
    search = _PlanSearch(request, meter.run, WorkBudget(seconds, meter.clock))
    made = search.searched(stage) if request.order is None else search.ordered(stage, request.order)
    if request.now is not None:
        back = _PlanSearch(request, meter.run, WorkBudget(seconds, meter.clock))
        made.back = back.searched(_way_back(stage)).direct
        made.notes.append(_which_applied(stage))
    made.seconds = meter.clock()
    return made


def _way_back(stage: Stage) -> Stage:
    """The way back to the old files, and to the old hosts."""
    return replace(reverse(stage), outdated=stage.applied.intersection(stage.readdressed))


def _which_applied(stage: Stage) -> str:
    """The state of an interrupted roll-out."""
    if not stage.applied:
        return "no server has its new file yet; without `--now` stages are planned as well"
    stopped = sorted(stage.applied - stage.new.members)
    absent = f"; {_listed(stopped)} stopped" if stopped else ""
    return f"now {_listed(sorted(stage.renewed)) or 'no server'} with the new file{absent}"


def _which_version(stage: Stage) -> str:
    """What gossip does to a roll-out by files."""
    old, new = stage.old.view.version, stage.new.view.version
    told = f"configurations have versions (before: {old:x}, after: {new:x}), which servers tell each other"
    if old > new:
        return (
            f"{told}. The first is the newer one: a server that was restarted with the second takes over the first "
            "when it hears of it, so that these restarts do not bring the change about. Use the command `reconfig`"
        )
    if old == new:
        return f"{told}. They are equal, so no server takes over another's members"
    return (
        f"{told}. A server takes over the newer one, restarted or not, as soon as it hears of it. The command "
        "`reconfig` is what ZooKeeper has for such a change"
    )


def _check_servers(request: PlanRequest, stage: Stage) -> None:
    """Raises OrderError for a leader that cannot lead, unknown servers in `down`, or too few running voters."""
    voters = sorted(may_lead(stage, request.down))
    if request.leader is not None and request.leader not in voters:
        raise OrderError(f"server {request.leader} cannot lead at first; one of {_listed(voters)} can")
    for sid in sorted(request.down - set(stage.sids)):
        raise OrderError(f"there is no server {sid} in either folder; they have {_listed(stage.sids)}")
    if request.down and not any(stage.view_of(sid, stage.renewed).contains_quorum(frozenset(voters)) for sid in voters):
        down = _listed(sorted(request.down))
        raise OrderError(f"without {down} the ensemble has no quorum before the roll-out begins")


def _unexplored(stage: Stage, leader: Sid) -> Order:
    """The preferred order, without runs."""
    return Order(leader, next(iter(candidates(stage, leader))), explored=False)


def _restarts(stage: Stage, leaders: Sequence[Sid]) -> list[Order]:
    """The servers whose files differ, restarted one after the other, the leader last. No run is necessary for them."""
    differ = sorted({each.sid for each in stage.differences} & set(stage.remaining))
    orders = {leader: [*(sid for sid in differ if sid != leader), *({leader} & set(differ))] for leader in leaders}
    return [Order(leader, steps_of(stage, order), explored=False) for leader, order in orders.items() if order]


def _listed(sids: Sequence[Sid]) -> str:
    return ", ".join(map(str, sids))


class _PlanSearch:
    """The runs of one plan, the most useful first."""

    def __init__(self, request: PlanRequest, run: Runner, budget: WorkBudget) -> None:
        self._request, self._run, self.budget = request, run, budget
        self._assessor = Assessor(budget, run, request.faults, request.down)

    def ordered(self, stage: Stage, order: Sequence[Sid]) -> Plan:
        """The given order, for each possible leader."""
        down = self._request.down
        steps = tuple(step for step in steps_of(stage, order) if step.sid not in down)
        made = Plan(self._request, self._assessor.begin(stage), tried=1)
        if down:
            made.notes.append(f"down, now and later: {_listed(sorted(down))}")
        first = [sid for sid in stage.added if sid not in order and sid not in down]
        if first:
            made.notes.append(f"{_listed(first)} are new and not in the order: started first")
        if stage.gossips:
            made.notes.append(_which_version(stage))
            with_versions(made.direct, self._assessor, steps, self._leaders(stage))
            return made
        if too_large(stage):
            made.direct.orders = [Order(sid, steps, explored=False) for sid in self._leaders(stage)]
            return made
        orders = [self._assessor.without_faults(made.direct, sid, steps, 8) for sid in self._leaders(stage)]
        for order_of in orders:
            self._assessor.commits(made.direct, order_of, 4)
        self._under_faults([made.direct])
        self._empty_disks([made.direct])
        return made

    def searched(self, stage: Stage) -> Plan:
        """The first order of the change in one go that is safe, or else the change in stages."""
        made = Plan(self._request, self._assessor.begin(stage))
        if made.direct.unchanged and self._request.is_plain:
            made.direct.orders = _restarts(stage, self._leaders(stage))
            return made
        if stage.gossips:
            steps = next(iter(self._orders(stage, self._leaders(stage)[0])))
            made.notes.append(_which_version(stage))
            with_versions(made.direct, self._assessor, steps, self._leaders(stage))
            return made
        if made.direct.quorums_meet:
            self._direct_work(stage).judge_parts([made.direct])
            if made.direct.outcome_with_disks is not SafetyVerdict.STALLS:
                return made
            made.tried = min(ORDERS_OF_A_STAGE, made.orders)
        elif not self._try_unsplit(made):
            self._try_orders(made)
        if not self._plans_stages or made.direct.outcome_with_disks is SafetyVerdict.SAFE:
            return made
        parts = one_at_a_time(self._request.old, self._request.new)
        if reason := refused_between(self._request.old, self._request.new):
            made.notes.append(f"no stages are planned: ZooKeeper refuses a file between the two folders ({reason})")
        if parts:
            made.stages = [self._assessor.begin(part) for part in parts]
            self.judge_parts(made.stages)
        return made

    @property
    def _plans_stages(self) -> bool:
        """Whether stages may be the answer."""
        return not self._request.in_one_go and self._request.now is None

    def _direct_work(self, stage: Stage) -> _PlanSearch:
        """The work on the change in one go: within a part of the budget if stages are a likely answer."""
        if not stage.readdressed or not self._plans_stages:
            return self
        return self._within(self.budget.left * SHARE_OF_ORDERS)

    def _within(self, seconds: float) -> _PlanSearch:
        """The same search within a part of the budget."""
        return _PlanSearch(self._request, self._run, WorkBudget(seconds, self.budget.clock))

    def judge_parts(self, parts: Sequence[StageAssessment]) -> None:
        """All questions about some stages."""
        self._without_faults(parts)
        self._commits(parts)
        self._under_faults(parts)
        self._empty_disks(parts)

    def _empty_disks(self, parts: Sequence[StageAssessment]) -> None:
        """The question about servers on other hosts. A violation answers it, so the first order is often enough."""
        parts = [part for part in parts if part.stage.moved and not too_large(part.stage)]
        for number, part in enumerate(parts):
            for order in part.orders:
                self._assessor.empty_disks(part, order, 2 * (len(parts) - number))
                if part.answer(Question.EMPTY_DISK, faulty=True).outcome is SafetyVerdict.UNSAFE:
                    break

    def _leaders(self, stage: Stage) -> list[Sid]:
        """The servers that may lead when a stage begins; a given leader applies to the first stage only."""
        given = self._request.leader
        leaders = [given] if given is not None and stage.old.given else self._assessor.leaders(stage)
        if not leaders and stage.applied:  # the interruption has left no leader
            leaders = sorted(may_lead(stage, self._request.down))[-1:]
        if not leaders:
            what = "no server of the first folder can come to lead by its file"
            raise OrderError(f"{what}; compare its weights and groups")
        return leaders

    def _without_faults(self, parts: Sequence[StageAssessment]) -> None:
        """For every leader of every stage the first order of preference without a wait in vain.

        The first leader of each stage comes first. The others, which differ from it by their ids alone, are run if that
        takes little of the rest of the budget.
        """
        leaders = [self._leaders(part.stage) for part in parts]
        for part, (first, *_) in zip(parts, leaders, strict=True):
            if too_large(part.stage):
                part.orders.append(_unexplored(part.stage, first))
            else:
                self._best_order(part, first, 3)
        for part, (_, *others) in zip(parts, leaders, strict=True):
            expected = sum(result.seconds for result in part.runs) * len(others)
            for leader in others:
                if too_large(part.stage) or expected > self.budget.left * SHARE_OF_OTHER_LEADERS:
                    part.orders.append(_unexplored(part.stage, leader))
                else:
                    self._best_order(part, leader, 3 * len(others))

    def _orders(self, stage: Stage, leader: Sid) -> Iterator[Steps]:
        """The orders that are worth trying, without the servers that are down."""
        seen: set[Steps] = set()
        for steps in candidates(stage, leader):
            up = tuple(step for step in steps if step.sid not in self._request.down)
            if up not in seen:
                seen.add(up)
                yield up

    def _best_order(self, assessment: StageAssessment, leader: Sid, share: int) -> None:
        """Add the first order that is not unsafe and has no wait in vain, or else the best that was tried."""
        best: StageAssessment | None = None
        least = (True, 0)
        for steps in islice(self._orders(assessment.stage, leader), ORDERS_OF_A_STAGE):
            trial = StageAssessment(assessment.stage, assessment.pairs, assessment.faults)
            order = self._assessor.without_faults(trial, leader, steps, share)
            badness = (trial.outcome is SafetyVerdict.UNSAFE, len(order.vain))
            if best is None or badness < least:
                best, least = trial, badness
            if least == (False, 0):
                break
        assert best is not None
        assessment.orders += best.orders
        assessment.runs += best.runs

    def _try_unsplit(self, made: Plan) -> bool:
        """An order that cannot split the servers which run, for every leader; whether it is one to follow.

        It is not one to follow if it is unsafe all the same, or if the operator would wait in vain.
        """
        stage, leaders = made.direct.stage, self._leaders(made.direct.stage)
        if too_large(stage):
            return False
        orders = ((leader, unsplit(stage, leader, self._request.down)) for leader in leaders)
        ways = [(leader, steps) for leader, found in orders for steps in islice(found, 1)]
        if len(ways) < len(leaders):
            return False
        trial = StageAssessment(stage, made.direct.pairs, made.direct.faults)
        waits = self._within(self.budget.seconds * SHARE_OF_UNSPLIT).judge_all(trial, ways)
        made.tried += len(trial.orders)
        made.unsafe += trial.outcome_with_disks is SafetyVerdict.UNSAFE
        if waits or trial.outcome_with_disks is SafetyVerdict.UNSAFE:
            return False
        made.direct = trial
        return True

    def _try_orders(self, made: Plan) -> None:
        """Orders of a change whose quorums may be disjoint, until one is safe; the first stays as the example.

        They have a limited part of the budget, since the stages are the likely answer.
        """
        stage, (leader, *others) = made.direct.stage, self._leaders(made.direct.stage)
        if too_large(stage):
            made.direct.orders.append(_unexplored(stage, leader))
            return
        work = self._within(self.budget.seconds * SHARE_OF_ORDERS)
        for number, steps in enumerate(islice(self._orders(stage, leader), ORDERS_TRIED)):
            if number and not work.budget.left:
                break
            trial = StageAssessment(stage, made.direct.pairs, made.direct.faults)
            work.judge(trial, leader, steps, whole=not number)
            if trial.outcome_with_disks is SafetyVerdict.SAFE:  # for this leader; the others were not explored
                trial.orders += [_unexplored(stage, other) for other in others]
            made.tried += 1
            made.unsafe += trial.outcome_with_disks is SafetyVerdict.UNSAFE
            if not made.direct.runs or trial.outcome_with_disks is not SafetyVerdict.UNSAFE:
                made.direct = trial
            if trial.outcome_with_disks is not SafetyVerdict.UNSAFE:
                break

    def judge_all(self, trial: StageAssessment, ways: Sequence[tuple[Sid, Steps]]) -> bool:
        """An order for each leader, until one is unsafe or has a wait in vain; whether one has."""
        for leader, steps in ways:
            order = self._assessor.without_faults(trial, leader, steps, len(ways) + 1)
            if order.vain or trial.outcome_with_disks is SafetyVerdict.UNSAFE:
                return bool(order.vain)
        for order in trial.orders:
            self._assessor.commits(trial, order, 2 * len(ways))
        if trial.outcome_with_disks is not SafetyVerdict.UNSAFE:
            self._under_faults([trial])
            self._empty_disks([trial])
        return False

    def judge(self, trial: StageAssessment, leader: Sid, steps: Steps, *, whole: bool) -> None:
        """One order, for one leader. Unless the `whole` answer is wanted, a violation ends it."""
        order = self._assessor.without_faults(trial, leader, steps, 6 if whole else 20)
        if whole or trial.outcome_with_disks is not SafetyVerdict.UNSAFE:
            self._assessor.commits(trial, order, 4)
        if whole or trial.outcome_with_disks is not SafetyVerdict.UNSAFE:
            self._under_faults([trial])
            self._empty_disks([trial])

    def _commits(self, parts: Sequence[StageAssessment]) -> None:
        parts = [part for part in parts if not too_large(part.stage)]
        for number, part in enumerate(parts):
            if part.proved and not self.budget.left:
                return
            for order in part.orders_to_explore:
                self._assessor.commits(part, order, 3 * (len(parts) - number))

    def _under_faults(self, parts: Sequence[StageAssessment]) -> None:
        """With faults: the runs that may find something come first, the runs that a proof covers last."""
        parts = [part for part in parts if self._request.faults and not too_large(part.stage)]
        for part in parts:
            for order in part.orders_to_explore:
                if part.proved and not self.budget.left:
                    return
                if part.answer(Question.ELECTION, faulty=False).outcome is SafetyVerdict.UNSAFE:
                    break  # and so they are under faults
                if self._assessor.leaders_under_faults(part, order, 4 * len(parts)):
                    break
        for part in parts:
            if self.budget.left or not part.proved:
                self._assessor.heals(part, part.orders[0])
        for number, part in enumerate(parts):
            if part.outcome_with_disks is not SafetyVerdict.UNSAFE and (self.budget.left or not part.proved):
                for order in part.orders_to_explore:
                    self._assessor.commits_under_faults(part, order, 3 * (len(parts) - number))
