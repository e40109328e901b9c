"""Asks the questions about a route, in given orders, by runs with and without faults.

Each question is put to the model that answers it soonest (`checker.rollout.scenarios`): without faults for every
server that may lead at first, with faults for one of them. `checker.rollout.route_verdict` derives the answers.

Rules of this module:

- "At most k faults" are all ways of sharing k among the kinds of faults, each a run.
- A wait in vain is removed from the steps, the stage runs again, and the finding stays. So the steps after the wait are
  explored as well. A controller keeps its waits.
- An order in which a leader counts an observer as a voter is searched for a loss (`lonely_writes`).
- Where configurations have versions (`reconfigEnabled=true` with a dynamic file), one run for each restart explores
  every order of the messages after it. Packets after an election carry no configuration here, so these runs do not
  cover commits.
- The disk and the commits of runs about a release are late, since most defects need that.

Openings are the first moves of runs that are too deep for a search from the beginning; everything behind them is
explored. An opening is a run of the whole model, so a violation behind it is a violation of the roll-out. An opening
that is impossible claims nothing.

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

Source: `Learner.syncWithLeader` (an observer keeps what it received in memory), `Leader.waitForNewLeaderAck` (counts
the acknowledgement of any learner), `SyncedLearnerTracker.addAck` (counts by the leader's file).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from checker.models.ensemble.actions import ServerAction
from checker.rollout.disks import with_disks
from checker.rollout.orders import RESTART, START, STOP, Steps, Way, counts_an_observer, left_out, may_lead
from checker.rollout.route_verdict import Order, PlanRoute, pairs_of, too_large
from checker.rollout.runs import RunEnd, RunResult, SafetyVerdict, Work, leads_first
from checker.rollout.scenarios import (
    ALONE_COMPLETE,
    CRASHES,
    DISCONNECTS,
    ELECTIONS,
    NO_LOSS,
    PARTITIONS,
    SAFE_DATA,
    SERVED_ALONE,
    THROWN_AWAY,
    Opening,
    Question,
    RunSpec,
)
from checker.rollout.stages import Stage
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
        if not isinstance(move.action, ServerAction):  # an action of the plan
            if next(waits):
                yield {"settle": everybody}
            yield {"planned": 1}
        elif move.action is ServerAction.ELECT:
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
    opening_so_far = spec.opening
    for step in spec.steps_taken:
        for leader in servers:
            write = {"write": leader}
            opening = (*opening_so_far, write, {"settle": servers}, write, {"settle": [leader]})
            yield replace(spec, writes=2, elections=ELECTIONS, opening=opening)
        opening_so_far = (*opening_so_far, {"planned": 2 if step.action == RESTART else 1}, {"settle": servers})


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


LEADERS = ("Leadership", "OneLeader", "LeaderIsAVoter")
ACKNOWLEDGED_SURVIVES = ("Leadership", "AcknowledgedLogCompleteness", "OneTxnPerZxid")
"""The invariants of clients with an answer.

LeaderLogCompleteness is not one: some defects let one server apply a write that no quorum has, so no client has an
answer for it. HistoryConsistency is not one either: a release may log one transaction twice, without harm.
"""

Faults = Mapping[str, int]
Case = tuple[PlanRoute, Order, Faults]
"""An order of a route under some faults."""


@dataclass(frozen=True)
class Inquiry:
    """How a question is asked: the invariants, and those where a server runs standalone, which leads no epoch.

    `kinds` are the kinds of faults that may break them, the likeliest first. The election alone is asked without `zab`.
    """

    always: tuple[str, ...]
    alone: tuple[str, ...]
    kinds: tuple[str, ...]
    zab: bool = True

    def invariants(self, stage: Stage) -> tuple[str, ...]:
        """The invariants in a stage."""
        return (*self.always, *(self.alone if stage.standalone else ()))


_DISKS = Inquiry(NO_LOSS, (ALONE_COMPLETE,), (CRASHES, PARTITIONS, DISCONNECTS))
_DEFECTS = Inquiry(ACKNOWLEDGED_SURVIVES, (), (DISCONNECTS, CRASHES, PARTITIONS))
INQUIRIES = {
    Question.ELECTION: Inquiry(LEADERS[1:], (SERVED_ALONE,), (PARTITIONS, CRASHES), zab=False),
    Question.COMMITS: Inquiry(SAFE_DATA, (ALONE_COMPLETE,), (PARTITIONS, DISCONNECTS, CRASHES)),
    Question.EMPTY_DISK: _DISKS,
    Question.GIVEN_DISKS: _DISKS,
    Question.DEFECTS: _DEFECTS,
    Question.QUIET_DEFECTS: _DEFECTS,
}


class Assessor:
    """The questions about routes. With `at_step` a new file is not there before its step."""

    def __init__(
        self,
        work: Work,
        faults: int,
        down: frozenset[Sid] = frozenset(),
        way: Way = Way.ONE_BY_ONE,
        *,
        at_step: bool = False,
    ) -> None:
        self._work, self._faults, self._down, self._way = work, faults, down, way
        self._at_step = at_step
        self._first_states: dict[tuple[str, str], tuple[Opening, list[Sid]]] = {}  # by the labels of a stage

    def begin(self, stage: Stage) -> PlanRoute:
        """A stage without runs."""
        return PlanRoute(stage, pairs_of(stage), self._faults, way=self._way)

    def leaders(self, stage: Stage) -> list[Sid]:
        """The servers that may lead when the stage begins. The first one leads if all start together."""
        if too_large(stage):
            return sorted(may_lead(stage, self._down), reverse=True)
        return self._first_state(stage)[1]

    def _first_state(self, stage: Stage) -> tuple[Opening, list[Sid]]:
        """The moves before the first step, and the servers that may lead then.

        Before an interrupted roll-out continues, all servers that run follow one leader, if their files allow that and
        no server was seen without one.
        """
        key = stage.old.label, stage.new.label
        if key not in self._first_states:
            settled: Opening = ({"settle": sorted(stage.running - self._down)},)
            voters = sorted(may_lead(stage, self._down), reverse=True)
            for opening in (settled, ()) if stage.applied and not stage.looking else ((),):
                spec = RunSpec(
                    stage, (), None, Question.ELECTION, always=_leaders(stage), down=self._down, opening=opening
                )
                leaders = [sid for sid in voters if leads_first(replace(spec, leader=sid))]
                self._first_states[key] = opening, leaders
                if leaders:
                    break
        return self._first_states[key]

    def _spec(self, route: PlanRoute, order: Order, question: Question, faults: Faults | None = None) -> RunSpec:
        """A question about an order of a route, with nothing to check yet."""
        opening = self._first_state(route.stage)[0] if route.stage.applied and not too_large(route.stage) else ()
        return RunSpec(
            route.stage, order.steps, order.leader, question, faults or {}, down=self._down, way=route.way,
            at_step=self._at_step and not route.way.is_of_controller, opening=opening,
        )  # fmt: skip

    def ask(self, question: Question, route: PlanRoute, order: Order, faults: Faults | None = None) -> RunResult:
        """Ask a question about an order under some faults; the run that answers it, or that finds a violation."""
        inquiry, stage = INQUIRIES[question], route.stage
        spec = self._spec(route, order, question, faults)
        spec = replace(spec, zab=inquiry.zab, always=inquiry.invariants(stage), releases=route.releases)
        if inquiry.zab:
            spec = replace(spec, writes=1, elections=2)
        if question is Question.GIVEN_DISKS:
            spec = replace(spec, steps=with_disks(stage, order.steps, route.disks), disks=route.disks)
        if question is Question.QUIET_DEFECTS:  # the write is made before the first step: on every disk, and applied
            running = sorted(stage.running - self._down)
            spec = replace(spec, opening=(*spec.opening, {"write": order.leader}, {"settle": running}))
        result = route.record(self._work.ask(spec))
        if question is Question.COMMITS and result.outcome is not SafetyVerdict.UNSAFE:
            return self._lost(route, spec) or result
        return result

    def _lost(self, route: PlanRoute, spec: RunSpec) -> RunResult | None:
        """The run behind lonely writes that loses a write, if one does; where a leader counts an observer."""
        for behind in lonely_writes(spec) if counts_an_observer(spec.stage, spec.steps, spec.down) else ():
            result = self._work.ask(behind)
            if result.begun:
                route.record(result)
            if result.outcome is SafetyVerdict.UNSAFE:
                return result
        return None

    def seek(self, question: Question, cases: Iterable[Case]) -> bool:
        """Ask a question in each case until a run finds a violation; whether one does."""
        return any(self.ask(question, *case).outcome is SafetyVerdict.UNSAFE for case in cases)

    def explore(self, question: Question, route: PlanRoute, *, faulty: bool) -> None:
        """Ask a question about the orders of a route that are explored, without faults or under those of the route."""
        if question is Question.HEALING:
            self._heal(route, route.orders[0])
            return
        faults = splits(route.faults, INQUIRIES[question].kinds) if faulty else ({},)
        self.seek(question, product([route], route.orders_to_explore, faults))

    def without_faults(self, route: PlanRoute, leader: Sid, steps: Steps, *, beside_a_proof: bool = False) -> Order:
        """Check for two leaders and for servers that never settle. Adds the runs, and the order without vain waits.

        Where the run about leaders does not say whether all servers settle, another run does. Beside a proof about
        leaders that is the only question, so that a run that is not finished is followed by one of the election alone.
        """
        vain: list[RunResult] = []
        always, alone = _leaders(route.stage), INQUIRIES[Question.ELECTION].invariants(route.stage)
        while True:
            spec = self._spec(route, Order(leader, steps), Question.ELECTION)
            spec = replace(spec, always=always, recoverable=True)
            result = self._work.ask(spec)
            if (beside_a_proof or route.proved) and result.outcome is SafetyVerdict.OPEN:
                result = self._work.ask(replace(spec, zab=False, always=alone))
            if result.outcome is not SafetyVerdict.STALLS or result.stuck is None or route.way.is_of_controller:
                break
            vain.append(result)
            steps = tuple(replace(step, wait=step.wait and step.sid != result.stuck) for step in steps)
        cut = result.outcome is SafetyVerdict.OPEN and not result.complete
        unsettled = result.outcome in (SafetyVerdict.UNSAFE, SafetyVerdict.OPEN) or bool(vain)
        order = Order(leader, steps, tuple(vain), open_run=result if cut else None)
        route.orders.append(order)
        for answer in self._of_both(order, result):
            route.record(answer)
        if unsettled:
            route.record(self._settles(route, order))
        return order

    def _of_both(self, order: Order, result: RunResult) -> Iterator[RunResult]:
        """One run answers two questions: of leaders, and whether all settle."""
        healing = replace(result.spec, question=Question.HEALING)
        if result.outcome is SafetyVerdict.UNSAFE:
            yield result
            yield from self._after_split(result)
            return
        settled = result.complete or result.outcome is SafetyVerdict.STALLS
        yield replace(result, outcome=SafetyVerdict.SAFE if settled else SafetyVerdict.OPEN, found=None)
        yield from (replace(run, spec=replace(run.spec, question=Question.HEALING)) for run in order.vain)
        if result.outcome is SafetyVerdict.STALLS or (result.outcome is SafetyVerdict.SAFE and not order.vain):
            yield replace(result, spec=healing)

    def _settles(
        self, route: PlanRoute, order: Order, faults: Faults | None = None, *, done: bool = False
    ) -> RunResult:
        """Check that all servers can settle, with the election alone, which needs no bound on elections."""
        spec = self._spec(route, order, Question.HEALING, faults)
        result = self._work.ask(
            replace(
                spec, leader=None if done else order.leader, zab=False, always=("LeaderIsAVoter",), recoverable=True,
                patient=False, done=done, opening=() if done else spec.opening,
            )
        )  # fmt: skip
        return replace(result, outcome=SafetyVerdict.UNSAFE) if result.outcome is SafetyVerdict.STALLS else result

    def _after_split(self, split: RunResult) -> list[RunResult]:
        """The runs that lose or double data, and those that a limit ended; empty if the opening is impossible."""
        results = []
        for spec in after_split(split):
            results.append(self._work.ask(spec))
            if results[-1].end is RunEnd.IMPOSSIBLE:
                return []
        return [result for result in results if result.begun and result.outcome is not SafetyVerdict.SAFE]

    def _heal(self, route: PlanRoute, order: Order) -> None:
        """Healing under faults: partitions during the roll-out; crashes and partitions after it, if it gets there."""
        route.record(self._settles(route, order, {PARTITIONS: route.faults}))
        if self._down or left_out(route.stage, order.steps):
            return
        for faults in splits(route.faults, (PARTITIONS, CRASHES)):
            route.record(self._settles(route, order, faults, done=True))

    def with_versions(self, route: PlanRoute, steps: Steps, leaders: Sequence[Sid]) -> None:
        """Run every restart of an order, for each server that may lead at first."""
        for leader in leaders:
            order = Order(leader, steps)
            for number, step in enumerate(steps):
                if step.action == RESTART:
                    sofar = Order(leader, steps[: number + 1])
                    opening = tuple(before_restart(route.stage, sofar.steps))
                    spec = replace(
                        self._spec(route, sofar, Question.ELECTION), zab=False, patient=False,
                        always=("OneLeader", "LeaderIsAVoter", "OnlyVotersCounted"), opening=opening,
                    )  # fmt: skip
                    result = self._work.ask(spec)
                    if result.end is RunEnd.IMPOSSIBLE:
                        order = replace(order, explored=False)  # the steps after this one were not run
                        break
                    route.record(result)
            route.orders.append(order)


def _leaders(stage: Stage) -> tuple[str, ...]:
    """The invariants about leaders; the first one needs epochs."""
    return (LEADERS[0], *INQUIRIES[Question.ELECTION].invariants(stage))


def splits(faults: int, kinds: Iterable[str]) -> Iterator[dict[str, int]]:
    """Every way of having that many faults of these kinds in all."""
    names = list(kinds)
    for counts in product(range(faults, -1, -1), repeat=len(names)):
        if sum(counts) == faults and faults:
            yield {name: count for name, count in zip(names, counts, strict=True) if count}
