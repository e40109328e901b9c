"""Asks the questions about a stage, in given orders, by runs with and without faults.

Each question is put to the model that answers it soonest (`checker.rollout.scenarios`): without faults for every
server that may lead at first, with faults for one of them. `checker.rollout.route` derives the answers.

Rules of this module:

- "At most k faults" are all ways of sharing k among the kinds of faults, each a run.
- A wait in vain is removed from the steps, the stage runs again, and the finding stays. So the steps after the wait are
  explored as well. A controller keeps its waits.
- An order in which a leader counts an observer as a voter is searched for a loss (`openings.lonely_writes`).
- Where configurations have versions (`reconfigEnabled=true` with a dynamic file), one run for each restart explores
  every order of the messages after it. Packets after an election carry no configuration here, so these runs do not
  cover commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from checker.rollout.disks import with_disks
from checker.rollout.openings import after_split, before_restart, lonely_writes
from checker.rollout.route import Order, PlanRoute, pairs_of, too_large
from checker.rollout.runs import RunEnd, RunResult, SafetyVerdict, leads_first
from checker.rollout.scenarios import (
    ALONE_COMPLETE,
    CRASHES,
    DISCONNECTS,
    NO_LOSS,
    PARTITIONS,
    SAFE_DATA,
    SERVED_ALONE,
    Opening,
    Question,
    RunSpec,
)
from checker.rollout.stages import Stage
from checker.rollout.steps import RESTART, Steps, counts_an_observer, left_out, may_lead
from checker.rollout.ways import Way
from checker.rollout.work import Work
from spec.quorum import Sid

LEADERS = ("Leadership", "OneLeader", "LeaderIsAVoter")


class Assessor:
    """The questions about stages in one way of working. With `at_step` a new file is not there before its step."""

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
        self._at_step = at_step and not way.is_of_controller
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

        Before an interrupted roll-out continues, all servers that run follow one leader, if their files allow that.
        """
        key = stage.old.label, stage.new.label
        if key not in self._first_states:
            settled: Opening = ({"settle": sorted(stage.running - self._down)},)
            voters = sorted(may_lead(stage, self._down), reverse=True)
            for opening in (settled, ()) if stage.applied else ((),):
                spec = RunSpec(
                    stage, (), None, Question.ELECTION, always=_leaders(stage), down=self._down, opening=opening
                )
                leaders = [sid for sid in voters if leads_first(replace(spec, leader=sid))]
                self._first_states[key] = opening, leaders
                if leaders:
                    break
        return self._first_states[key]

    def _spec(
        self, part: PlanRoute, order: Order, question: Question, faults: Mapping[str, int] | None = None
    ) -> RunSpec:
        """A question about an order of a stage, with nothing to check yet."""
        opening = self._first_state(part.stage)[0] if part.stage.applied and not too_large(part.stage) else ()
        return RunSpec(
            part.stage, order.steps, order.leader, question, faults or {},
            down=self._down, way=self._way, at_step=self._at_step, opening=opening,
        )  # fmt: skip

    def without_faults(
        self, route: PlanRoute, leader: Sid, steps: Steps, *, beside_a_proof: bool = False, last: bool = True
    ) -> Order:
        """Check for two leaders and for servers that never settle. Adds the runs, and the order without vain waits.

        If more leaders follow, this is not the `last`, and `settle` asks the open questions. Beside a proof about
        leaders, the runs answer only whether all servers settle, so that a run that is not finished is followed by one
        of the election alone.
        """
        vain: list[RunResult] = []
        always = _leaders(route.stage)
        while True:
            spec = self._spec(route, Order(leader, steps), Question.ELECTION)
            spec = replace(spec, always=always, recoverable=True)
            result = self._work.ask(spec)
            if (beside_a_proof or route.proved) and result.outcome is SafetyVerdict.OPEN:
                result = self._work.ask(replace(spec, zab=False, always=always[1:]))
            if result.outcome is not SafetyVerdict.STALLS or result.stuck is None or self._way.is_of_controller:
                break
            vain.append(result)
            steps = tuple(replace(step, wait=step.wait and step.sid != result.stuck) for step in steps)
        cut = result.outcome is SafetyVerdict.OPEN and not result.complete
        unsettled = result.outcome in (SafetyVerdict.UNSAFE, SafetyVerdict.OPEN) or bool(vain)
        order = Order(leader, steps, tuple(vain), open_run=result if cut else None, unsettled=unsettled)
        route.orders.append(order)
        route.runs += self._of_both(order, result)
        if last:
            self.settle(route, order)
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
        yield from (replace(each, spec=replace(each.spec, question=Question.HEALING)) for each in order.vain)
        if result.outcome is SafetyVerdict.STALLS or (result.outcome is SafetyVerdict.SAFE and not order.vain):
            yield replace(result, spec=healing)

    def settle(self, route: PlanRoute, order: Order) -> None:
        """Check that all servers can settle, if the run about leaders does not say it."""
        if order.unsettled:
            route.runs.append(self._settles(route, order))

    def _settles(
        self, route: PlanRoute, order: Order, faults: Mapping[str, int] | None = None, *, done: bool = False
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

    def commits(self, route: PlanRoute, order: Order, faults: Mapping[str, int] | None = None) -> RunResult:
        """Check that committed writes survive."""
        spec = self._spec(route, order, Question.COMMITS, faults)
        always = (*SAFE_DATA, ALONE_COMPLETE) if route.stage.standalone else SAFE_DATA
        route.runs.append(self._work.ask(replace(spec, writes=1, elections=2, always=always)))
        result = route.runs[-1]
        if result.outcome is not SafetyVerdict.UNSAFE and counts_an_observer(spec.stage, spec.steps, spec.down):
            route.runs += self._losses(result.spec)
        return route.runs[-1]

    def _after_split(self, split: RunResult) -> list[RunResult]:
        """The runs that lose or double data, and those that a limit ended; empty if the opening is impossible."""
        results = []
        for spec in after_split(split):
            results.append(self._work.ask(spec))
            if results[-1].end is RunEnd.IMPOSSIBLE:
                return []
        return [each for each in results if each.begun and each.outcome is not SafetyVerdict.SAFE]

    def _losses(self, spec: RunSpec) -> Iterator[RunResult]:
        """The runs behind lonely writes, until one loses a write."""
        for behind in lonely_writes(spec):
            result = self._work.ask(behind)
            if result.begun:
                yield result
            if result.outcome is SafetyVerdict.UNSAFE:
                return

    def leaders_under_faults(self, route: PlanRoute, order: Order) -> bool:
        """Whether faults make two leaders, by the election alone."""
        always = _leaders(route.stage)[1:]
        for faults in splits(self._faults, (PARTITIONS, CRASHES)):
            spec = self._spec(route, order, Question.ELECTION, faults)
            route.runs.append(self._work.ask(replace(spec, zab=False, always=always)))
            if route.runs[-1].outcome is SafetyVerdict.UNSAFE:
                return True
        return False

    def commits_under_faults(self, route: PlanRoute, order: Order) -> None:
        """Check that committed writes survive faults, until a violation is found."""
        for faults in splits(self._faults, (PARTITIONS, DISCONNECTS, CRASHES)):
            if self.commits(route, order, faults).outcome is SafetyVerdict.UNSAFE:
                return

    def empty_disks(self, route: PlanRoute, order: Order) -> None:
        """Check that committed writes survive if servers on other hosts start with empty disks; a crash comes first."""
        for faults in ({}, *splits(self._faults, (CRASHES, PARTITIONS, DISCONNECTS))):
            spec = self._spec(route, order, Question.EMPTY_DISK, faults)
            always = _no_loss(route.stage)
            route.runs.append(self._work.ask(replace(spec, writes=1, elections=2, always=always)))
            if route.runs[-1].outcome is SafetyVerdict.UNSAFE:
                return

    def given_disks(self, route: PlanRoute, leader: Sid, steps: Steps, *, faults: Mapping[str, int]) -> bool:
        """Whether a committed write is lost because servers start with the given disks."""
        order = Order(leader, with_disks(route.stage, steps, route.disks))
        spec = self._spec(route, order, Question.GIVEN_DISKS, faults)
        always, disks = _no_loss(route.stage), route.disks
        route.runs.append(self._work.ask(replace(spec, writes=1, elections=2, always=always, disks=disks)))
        return route.runs[-1].outcome is SafetyVerdict.UNSAFE

    def heals(self, route: PlanRoute, order: Order) -> None:
        """Healing under faults: partitions during the roll-out; crashes and partitions after it, if it gets there."""
        route.runs.append(self._settles(route, order, {PARTITIONS: self._faults}))
        if self._down or left_out(route.stage, order.steps):
            return
        for faults in splits(self._faults, (PARTITIONS, CRASHES)):
            route.runs.append(self._settles(route, order, faults, done=True))

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
                    route.runs.append(result)
            route.orders.append(order)


def _leaders(stage: Stage) -> tuple[str, ...]:
    """The invariants about leaders; the first one needs epochs."""
    return (*LEADERS, SERVED_ALONE) if stage.standalone else LEADERS


def _no_loss(stage: Stage) -> tuple[str, ...]:
    """The invariants about data where a server has lost its disk; a standalone server leads no epoch."""
    return (*NO_LOSS, ALONE_COMPLETE) if stage.standalone else NO_LOSS


def splits(faults: int, kinds: Iterable[str]) -> Iterator[dict[str, int]]:
    """Every way of having that many faults of these kinds in all."""
    names = list(kinds)
    for counts in product(range(faults, -1, -1), repeat=len(names)):
        if sum(counts) == faults and faults:
            yield {name: count for name, count in zip(names, counts, strict=True) if count}
