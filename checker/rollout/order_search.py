"""Chooses the orders and the stages of a roll-out that are judged, the most useful first.

Rules of this module:

- Quorums first. Where they meet and no configuration changes as it is modelled, no run is made. Where a proof answers
  the questions about leaders and commits, they are explored only if the request demands it.
- Where quorums of the direct change may be disjoint, stages come first: a proof covers each of them. If they are safe,
  one order of the direct change is searched for a violation, which is the reason for the stages. Where a server runs
  standalone there is little to explore, so an order that cannot split the servers which run comes before the stages.
- An order that has a proof (`order_proof`) comes before the stages: it answers for any faults, without runs. If it is
  not safe all the same, as where servers change hosts, the stages are judged as well, and the better verdict counts.
- Without safe stages, an order that cannot split the servers which run comes next, if there is one. If that order is
  unsafe or waits in vain, others are tried, so that the answer shows a counterexample.
- Without a given leader every server that may lead at first is considered, each with a separate order: itself last.
  Under faults, where a run takes long and a proof covers the others, only the first of these leaders is explored.
- The runs that a verdict needs come first, for all stages. To ask once more what is known costs nothing
  (`checker.rollout.runs`), so a search for a violation may be followed by all the questions.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from checker.rollout.answer import Plan, PlanRequest
from checker.rollout.assessor import Assessor
from checker.rollout.orders import (
    OrderError,
    Steps,
    Way,
    candidates,
    in_way,
    may_lead,
    may_split,
    steps_of,
    unsplit,
    with_waits,
)
from checker.rollout.route_verdict import Order, PlanRoute, too_large
from checker.rollout.runs import SafetyVerdict, Work
from checker.rollout.scenarios import Question
from checker.rollout.stages import Stage, listed, one_at_a_time
from spec.quorum import Sid

QUESTIONS_IN_TURN = (
    (Question.COMMITS, False),
    (Question.ELECTION, True),
    (Question.HEALING, True),
    (Question.COMMITS, True),
    (Question.EMPTY_DISK, False),
    (Question.EMPTY_DISK, True),
)
"""The questions that follow settled steps, and whether they are asked under faults."""

ORDERS_TRIED = 6  # of a change in one go whose quorums may be disjoint
ORDERS_LOOKED_AT = 120  # for one that may make two quorums of the running servers
ORDERS_OF_A_STAGE = 6  # tried until one has no wait in vain


def _which_version(stage: Stage) -> str:
    """What gossip does to a roll-out by files."""
    old, new = stage.old.view.version, stage.new.view.version
    if stage.mixes_reconfig:
        return (
            "some servers have `reconfigEnabled=true`, others do not. A server with `reconfigEnabled=true` takes over "
            "the members of a newer version, one without keeps its file, and finds no leader after a restart once the "
            "members differ. This is not explored"
        )
    if not stage.states_versions:
        return (
            "with `reconfigEnabled=true` a leader gives its configuration a version, although no file states one. A "
            "server that restarts with other members in its file takes over the first members again when it hears of "
            "them, so that these restarts do not bring the change about. Use the command `reconfig`"
        )
    facts = f"configurations have versions (before: {old:x}, after: {new:x}), which servers send each other"
    if old > new:
        return (
            f"{facts}. The first is the newer one: a server that was restarted with the second takes over the first "
            "when it hears of it, so that these restarts do not bring the change about. Use the command `reconfig`"
        )
    if old == new:
        return f"{facts}. They are equal, so no server takes over another's members"
    return (
        f"{facts}. A server takes over the newer one, restarted or not, as soon as it hears of it. The command "
        "`reconfig` is what ZooKeeper has for such a change"
    )


class PlanSearch:
    """The runs of one plan, the most useful first."""

    def __init__(self, request: PlanRequest, work: Work) -> None:
        self._request, self._work = request, work
        self.assessor = Assessor(work, request.faults, request.down, request.way, at_step=request.at_step)

    def ordered(self, stage: Stage, order: Sequence[Sid]) -> Plan:
        """The given order, for each possible leader."""
        down = self._request.down
        order_steps = tuple(step for step in steps_of(stage, order) if step.sid not in down)
        steps = with_waits(self._request.way, order_steps)
        plan = Plan(self._request, self.assessor.begin(stage), tried=1)
        if down:
            plan.notes.append(f"down, now and later: {listed(down)}")
        first = [sid for sid in stage.added if sid not in order and sid not in down]
        if first:
            plan.notes.append(f"{listed(first)} are new and not in the order: started first")
        if stage.gossips:
            self._gossip(plan, steps)
            return plan
        if too_large(stage):
            plan.direct.orders = [Order(sid, steps, explored=False) for sid in self.leaders(stage)]
            return plan
        leaders = self.leaders(stage)
        is_proved = not plan.direct.quorums_meet and plan.direct.order_proof(Order(leaders[0], steps)) is not None
        self.follow(plan.direct, [(sid, steps) for sid in leaders], beside_a_proof=is_proved)
        self.answer([plan.direct])
        return plan

    def _gossip(self, plan: Plan, steps: Steps) -> None:
        """The elections where servers send each other configurations, if the files state the versions of these."""
        stage, leaders = plan.direct.stage, self.leaders(plan.direct.stage)
        plan.notes.append(_which_version(stage))
        if stage.states_versions and not stage.mixes_reconfig:
            self.assessor.with_versions(plan.direct, steps, leaders)
        else:
            plan.direct.orders = [Order(leader, steps, explored=False) for leader in leaders]

    def unexplored(self, stage: Stage, leader: Sid, way: Way | None = None) -> Order:
        """The preferred order, without runs."""
        return Order(leader, next(self._orders(stage, leader, way)), explored=False)

    def searched(self, stage: Stage) -> Plan:
        """The first order of the change in one go that is safe, or else the change in stages."""
        plan = Plan(self._request, self.assessor.begin(stage))
        if plan.direct.unchanged and self._request.is_plain:
            # The servers whose files differ are restarted, the leader last. No run is necessary.
            differ = {difference.sid for difference in stage.differences} & set(stage.remaining)
            for leader in self.leaders(stage) if differ else ():
                steps = steps_of(stage, [*sorted(differ - {leader}), *sorted(differ & {leader})])
                steps = in_way(self._request.way, stage, leader, steps, self._request.down)
                plan.direct.orders.append(Order(leader, steps, explored=False))
        elif stage.gossips:
            self._gossip(plan, next(self._orders(stage, self.leaders(stage)[0])))
        elif not plan.direct.quorums_meet:
            self._search_orders_and_stages(plan)
        else:
            self._judge_parts([plan.direct])
            if plan.direct.outcome_with_disks is SafetyVerdict.STALLS:
                plan.tried = min(ORDERS_OF_A_STAGE, plan.orders)
                self._judge_stages(plan)
        return plan

    def _search_orders_and_stages(self, plan: Plan) -> None:
        """Judge orders of the direct change, and stages, in the order of the rules above."""
        standalone = plan.direct.stage.standalone
        if self._try_unsplit(plan, proved=True):
            if plan.direct.outcome is SafetyVerdict.SAFE:
                return
            direct = plan.outcome, plan.outcome_with_disks
            self._judge_stages(plan)
            if (plan.outcome, plan.outcome_with_disks) <= direct:
                plan.stages = []
            return
        if not (standalone and self._try_unsplit(plan)):
            if not self._request.explored:
                self._judge_stages(plan)
            if plan.stages and plan.outcome_with_disks is SafetyVerdict.SAFE:
                self._show_danger(plan)
                return
            if standalone or not self._try_unsplit(plan):
                self._try_orders(plan)
        if plan.direct.outcome_with_disks is SafetyVerdict.SAFE:
            plan.stages = []
        elif not plan.stages:
            self._judge_stages(plan)

    def _judge_stages(self, plan: Plan) -> None:
        """Judge the change in stages, if stages may be the answer."""
        old, new = self._request.old, self._request.new
        if self._request.in_one_go or self._request.now is not None:
            return
        parts, reason = one_at_a_time(old, new)
        if reason:
            plan.notes.append(f"no stages are planned: ZooKeeper refuses a file between the two folders ({reason})")
        plan.stages = [self.assessor.begin(part) for part in parts]
        self._judge_parts(plan.stages)

    def _show_danger(self, plan: Plan) -> None:
        """Search one order of the direct change for a violation: the reason for the stages.

        It is the first order that may make two quorums of the servers that run.
        """
        stage, (leader, *_) = plan.direct.stage, self.leaders(plan.direct.stage)
        if too_large(stage):
            plan.direct.orders.append(self.unexplored(stage, leader))
            return
        orders = list(islice(self._orders(stage, leader), ORDERS_LOOKED_AT))
        steps = next((steps for steps in orders if may_split(stage, steps, self._request.down)), orders[0])
        with self._work.beside():
            self.follow(plan.direct, [(leader, steps)])
            self.answer([plan.direct], whole=False)
        plan.tried, plan.unsafe = 1, int(plan.direct.outcome_with_disks is SafetyVerdict.UNSAFE)

    def follow(
        self,
        route: PlanRoute,
        planned: Iterable[tuple[Sid, Steps]],
        *,
        beside_a_proof: bool = False,
        waits: bool = False,
    ) -> bool:
        """Run the steps for each leader without faults, until one run is unsafe, or has a wait in vain if it `waits`.

        Whether it has one. The orders after a violation are not explored.
        """
        for leader, steps in planned:
            if route.worst(faulty=False).outcome is SafetyVerdict.UNSAFE:
                route.orders.append(Order(leader, steps, explored=False))
                continue
            order = self.assessor.without_faults(route, leader, steps, beside_a_proof=beside_a_proof)
            if waits and order.vain:
                return True
        return False

    def answer(self, parts: Sequence[PlanRoute], *, whole: bool = True) -> None:
        """The questions that follow settled steps, for all parts: what may find something comes first.

        Unless the `whole` answer is wanted, a violation ends them.
        """
        for question, faulty in QUESTIONS_IN_TURN:
            for part in parts:
                if self._is_asked(part, question, faulty=faulty, whole=whole):
                    self.assessor.explore(question, part, faulty=faulty)

    def _is_asked(self, part: PlanRoute, question: Question, *, faulty: bool, whole: bool) -> bool:
        """Whether a question is still useful.

        Not where a proof answers, unless runs are demanded. No proof covers servers with other addresses, which may
        look for a leader for ever.
        """
        is_needed = self._request.explored or not part.is_settled_by_proof or bool(part.stage.readdressed)
        if question not in part.questions or not is_needed or too_large(part.stage) or (faulty and not part.faults):
            return False
        if faulty and part.answer(question, faulty=False).outcome is SafetyVerdict.UNSAFE:
            return False  # and so it is under faults
        if question in (Question.HEALING, Question.EMPTY_DISK):
            return whole
        is_large = faulty and question is Question.COMMITS
        return part.outcome_with_disks is not SafetyVerdict.UNSAFE or (whole and not is_large)

    def _judge_parts(self, parts: Sequence[PlanRoute]) -> None:
        """All questions about some stages, in a good order for every leader, the first leader of each stage first."""
        turns = [(place, part, leader) for part in parts for place, leader in enumerate(self.leaders(part.stage))]
        for _, part, leader in sorted(turns, key=lambda turn: turn[0] > 0):
            self._best_order(part, leader)
        self.answer(parts)

    def leaders(self, stage: Stage) -> list[Sid]:
        """The servers that may lead when a stage begins; a given leader applies to the first stage only."""
        leader_given = self._request.leader
        leaders = [leader_given] if leader_given is not None and stage.old.given else self.assessor.leaders(stage)
        if not leaders and stage.applied:  # the interruption has left no leader
            leaders = sorted(may_lead(stage, self._request.down))[-1:]
        if not leaders:
            problem = "no server of the first folder can lead by its file"
            raise OrderError(f"{problem}; compare its weights and groups", "before")
        return leaders

    def _orders(self, stage: Stage, leader: Sid, way: Way | None = None) -> Iterator[Steps]:
        """The orders that are worth trying in a way of working, without the servers that are down."""
        orders: set[Steps] = set()
        for steps in candidates(stage, leader):
            up = tuple(step for step in steps if step.sid not in self._request.down)
            up = in_way(way or self._request.way, stage, leader, up, self._request.down)
            if up not in orders:
                orders.add(up)
                yield up

    def _best_order(self, route: PlanRoute, leader: Sid) -> None:
        """Add the first order that is not unsafe and has no wait in vain, or else the best that was tried.

        After a wait in vain the same order is tried with that server one step later, so that the steps before and after
        it keep their order, as they do in the rest of an interrupted roll-out.
        """
        if too_large(route.stage):
            route.orders.append(self.unexplored(route.stage, leader))
            return
        best: PlanRoute | None = None
        least = (True, len(route.stage.sids))
        preferred, repaired, attempts = self._orders(route.stage, leader), list[Steps](), set[Steps]()
        while len(attempts) < ORDERS_OF_A_STAGE and least > (False, 0):
            fresh = (steps for steps in preferred if steps not in attempts)
            steps = repaired.pop() if repaired else next(fresh, None)
            if steps is None:
                break
            attempts.add(steps)
            trial = route.blank
            order = self.assessor.without_faults(trial, leader, steps)
            badness = (trial.outcome is SafetyVerdict.UNSAFE, len(order.vain))
            if best is None or badness < least:
                best, least = trial, badness
            if order.vain and not self._request.way.has_one_order:
                place = next(number for number, step in enumerate(steps) if step.sid == order.vain[0].stuck)
                later = (*steps[:place], *steps[place + 1 : place + 2], steps[place], *steps[place + 2 :])
                repaired += [later] if later not in attempts else []
        assert best is not None
        route.orders += best.orders
        route.runs += best.runs

    def _try_unsplit(self, plan: Plan, *, proved: bool = False) -> bool:
        """An order for every leader that cannot split the servers which run; whether it is one to follow.

        With `proved` each of them has a proof. Without, it is not one to follow if it is unsafe all the same. Nor is
        one where the operator would wait in vain; but an interrupted roll-out has no better way than a proved one.
        """
        trial, planned = plan.direct.blank, list[tuple[Sid, Steps]]()
        if too_large(trial.stage):
            return False
        for leader in self.leaders(trial.stage):
            for steps in self._unsplit(trial.stage, leader):
                if not proved or trial.order_proof(Order(leader, steps)) is not None:
                    planned.append((leader, steps))
                    break
            else:
                return False
        waits = not (proved and trial.stage.applied)
        if self.follow(trial, planned, beside_a_proof=proved, waits=waits):
            plan.tried += 0 if proved else len(trial.orders)
            return False
        self.answer([trial], whole=False)
        plan.tried += len(planned)
        if trial.outcome_with_disks is SafetyVerdict.UNSAFE and not proved:
            plan.unsafe += 1
            return False
        plan.direct = trial
        self.answer([trial])
        return True

    def _unsplit(self, stage: Stage, leader: Sid) -> Iterator[Steps]:
        """The orders that cannot split the servers which run, in the way of working; none if it fixes the order."""
        way, down = self._request.way, self._request.down
        for steps in () if way.has_one_order else unsplit(stage, leader, down):
            changed = in_way(way, stage, leader, steps, down)
            if way is not Way.PARALLEL or not may_split(stage, changed, down):
                yield changed

    def _try_orders(self, plan: Plan) -> None:
        """Orders of a change whose quorums may be disjoint, until one is safe; the first stays as the example."""
        stage, (leader, *later) = plan.direct.stage, self.leaders(plan.direct.stage)
        if too_large(stage):
            plan.direct.orders.append(self.unexplored(stage, leader))
            return
        for number, steps in enumerate(islice(self._orders(stage, leader), ORDERS_TRIED)):
            if number and not self._work.left:
                break
            trial = plan.direct.blank
            self.follow(trial, [(leader, steps)])
            self.answer([trial], whole=not number)
            if trial.outcome_with_disks is not SafetyVerdict.UNSAFE:
                self.answer([trial])
            if trial.outcome_with_disks is SafetyVerdict.SAFE:  # for this leader; the others were not explored
                trial.orders += [self.unexplored(stage, peer) for peer in later]
            plan.tried += 1
            plan.unsafe += trial.outcome_with_disks is SafetyVerdict.UNSAFE
            if not plan.direct.runs or trial.outcome_with_disks is not SafetyVerdict.UNSAFE:
                plan.direct = trial
            if trial.outcome_with_disks is not SafetyVerdict.UNSAFE:
                break
