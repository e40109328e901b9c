"""Asks the questions about a stage, in given orders, by runs with and without faults.

Each question is put to the model that answers it soonest (`checker.rollout.scenarios`): without faults for every
server that may lead at first, with faults for one of them. `checker.rollout.assessment` derives the answers.

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

from checker.rollout.assessment import Order, StageAssessment, pairs_of, too_large
from checker.rollout.disks.hazards import with_disks
from checker.rollout.openings import after_split, before_restart, lonely_writes
from checker.rollout.runs import (
    RunEnd,
    Runner,
    RunResult,
    SafetyVerdict,
    WorkBudget,
    impossible,
    leads_first,
    not_begun,
)
from checker.rollout.scenarios import (
    ALONE_COMPLETE,
    CRASHES,
    DISCONNECTS,
    NO_LOSS,
    PARTITIONS,
    SAFE_DATA,
    SERVED_ALONE,
    Question,
    RunSpec,
)
from checker.rollout.stages import Stage
from checker.rollout.steps import RESTART, Steps, counts_an_observer, left_out, may_lead
from checker.rollout.ways import Way
from checker.scenario import ScenarioError
from spec.quorum import Sid

LEADERS = ("Leadership", "OneLeader", "LeaderIsAVoter")
MOST_SECONDS = 10.0  # for each run behind an opening
BRIEFLY = 3.0  # seconds for a run that cannot change the verdict
SHORTLY = 1.5  # seconds for a run about progress, where a proof answers the questions of safety
SHARE_BESIDE_A_PROOF = 0.06  # of the budget, for a run whose answer is proved already


class Assessor:
    """Runs the questions about stages in one way of working. The runs share `budget`."""

    def __init__(
        self,
        budget: WorkBudget,
        run: Runner,
        faults: int,
        down: frozenset[Sid] = frozenset(),
        way: Way = Way.ONE_BY_ONE,
    ) -> None:
        self._budget, self._run, self._faults, self._down, self._way = budget, run, faults, down, way
        self._leaders: dict[tuple[str, str], list[Sid]] = {}  # by the labels of a stage

    @property
    def has_work(self) -> bool:
        """Whether some of the budget is left."""
        return self._budget.left > 0

    def begin(self, stage: Stage) -> StageAssessment:
        """A stage without runs."""
        return StageAssessment(stage, pairs_of(stage), self._faults, way=self._way)

    def leaders(self, stage: Stage) -> list[Sid]:
        """The servers that may lead when the stage begins. The first one leads if all start together."""
        voters = sorted(may_lead(stage, self._down), reverse=True)
        if too_large(stage):
            return voters
        key = stage.old.label, stage.new.label
        if key not in self._leaders:
            spec = RunSpec(stage, (), None, Question.ELECTION, zab=True, always=_leaders(stage), down=self._down)
            self._leaders[key] = [sid for sid in voters if leads_first(replace(spec, leader=sid))]
        return self._leaders[key]

    def without_faults(
        self, assessment: StageAssessment, leader: Sid, steps: Steps, share: int, *, beside_a_proof: bool = False
    ) -> Order:
        """Check for two leaders and for servers that never settle. Adds the runs, and the order without vain waits.

        Beside a proof about leaders, the runs answer only whether all servers settle. They are short, and a run that is
        not finished is followed by one of the election alone.
        """
        vain: list[RunResult] = []
        while True:
            always = _leaders(assessment.stage)
            spec = RunSpec(
                assessment.stage, steps, leader, Question.ELECTION, always=always, recoverable=True, down=self._down
            )
            result = self._within(spec, SHORTLY) if beside_a_proof else self.explore(spec, share)
            if beside_a_proof and result.outcome is SafetyVerdict.OPEN:
                result = self._within(replace(spec, zab=False, always=always[1:]), SHORTLY)
            if result.outcome is not SafetyVerdict.STALLS or result.stuck is None or self._way.is_of_controller:
                break
            vain.append(result)
            steps = tuple(replace(step, wait=step.wait and step.sid != result.stuck) for step in steps)
        cut = result.outcome is SafetyVerdict.OPEN and not result.complete
        order = Order(leader, steps, tuple(vain), open_run=result if cut else None)
        assessment.orders.append(order)
        assessment.runs += self._of_both(assessment, order, result)
        return order

    def _of_both(self, assessment: StageAssessment, order: Order, result: RunResult) -> Iterator[RunResult]:
        """One run answers two questions: of leaders, and whether all settle."""
        healing = replace(result.spec, question=Question.HEALING)
        if result.outcome is SafetyVerdict.UNSAFE:
            yield result
            yield from self._after_split(result)
            yield self._settles(assessment, order)
            return
        settled = result.complete or result.outcome is SafetyVerdict.STALLS
        yield replace(result, outcome=SafetyVerdict.SAFE if settled else SafetyVerdict.OPEN, found=None)
        yield from (replace(each, spec=replace(each.spec, question=Question.HEALING)) for each in order.vain)
        if result.outcome is SafetyVerdict.OPEN:
            yield self._settles(assessment, order)
        elif result.outcome is SafetyVerdict.STALLS or not order.vain:
            yield replace(result, spec=healing)

    def _settles(
        self, assessment: StageAssessment, order: Order, faults: Mapping[str, int] | None = None, *, done: bool = False
    ) -> RunResult:
        """Check that all servers can settle, with the election alone, which needs no bound on elections."""
        spec = RunSpec(
            assessment.stage, order.steps, None if done else order.leader, Question.HEALING, faults or {}, zab=False,
            always=("LeaderIsAVoter",), recoverable=True, patient=False, done=done, down=self._down,
        )  # fmt: skip
        most = BRIEFLY if assessment.outcome is SafetyVerdict.UNSAFE else self._budget.share(4)
        result = self._within(spec, most)
        return replace(result, outcome=SafetyVerdict.UNSAFE) if result.outcome is SafetyVerdict.STALLS else result

    def commits(
        self, assessment: StageAssessment, order: Order, share: int, faults: Mapping[str, int] | None = None
    ) -> RunResult:
        """Check that committed writes survive."""
        spec = RunSpec(
            assessment.stage, order.steps, order.leader, Question.COMMITS, faults or {}, writes=1, elections=2,
            always=(*SAFE_DATA, ALONE_COMPLETE) if assessment.stage.standalone else SAFE_DATA, down=self._down,
        )  # fmt: skip
        result = self.explore(spec, share, beside_a_proof=assessment.is_settled_by_proof)
        assessment.runs.append(result)
        if result.outcome is not SafetyVerdict.UNSAFE and counts_an_observer(spec.stage, spec.steps, spec.down):
            assessment.runs += self._losses(spec)
        return assessment.runs[-1]

    def _after_split(self, split: RunResult) -> list[RunResult]:
        """The runs that lose or double data, and those that a limit ended; empty if the opening is impossible."""
        results = []
        for spec in after_split(split):
            if not self._budget.left:
                break
            results.append(self._within(spec, min(MOST_SECONDS, self._budget.share(4))))
            if results[-1].end is RunEnd.IMPOSSIBLE:
                return []
        return [each for each in results if each.outcome is not SafetyVerdict.SAFE]

    def _losses(self, spec: RunSpec) -> Iterator[RunResult]:
        """The runs behind lonely writes, until one loses a write."""
        for behind in lonely_writes(spec):
            if not self._budget.left:
                return
            result = self._within(behind, min(MOST_SECONDS, self._budget.share(4)))
            if result.end is not RunEnd.IMPOSSIBLE:
                yield result
            if result.outcome is SafetyVerdict.UNSAFE:
                return

    def explore(self, spec: RunSpec, share: int, *, beside_a_proof: bool = False) -> RunResult:
        """Run a question within its share of the rest of the budget: one of `share` runs."""
        most = self._budget.seconds * SHARE_BESIDE_A_PROOF if beside_a_proof else self._budget.left
        return self._within(spec, min(most, self._budget.share(share)))

    def _within(self, spec: RunSpec, seconds: float) -> RunResult:
        """Run a question, unless the budget is used up, or the model has no such first state."""
        spec = replace(spec, way=self._way)
        if not self._budget.left:
            return not_begun(spec)
        try:
            return self._run(spec, min(seconds, self._budget.left))
        except ScenarioError:
            return impossible(spec)

    def leaders_under_faults(self, assessment: StageAssessment, order: Order, share: int) -> bool:
        """Whether faults make two leaders, by the election alone. True if they do."""
        for faults in splits(self._faults, (PARTITIONS, CRASHES)):
            spec = RunSpec(
                assessment.stage, order.steps, order.leader, Question.ELECTION, faults, zab=False,
                always=_leaders(assessment.stage)[1:], down=self._down,
            )  # fmt: skip
            assessment.runs.append(self.explore(spec, share, beside_a_proof=assessment.is_settled_by_proof))
            if assessment.runs[-1].outcome is SafetyVerdict.UNSAFE:
                return True
        return False

    def commits_under_faults(self, assessment: StageAssessment, order: Order, share: int) -> None:
        """The same of commits, until a violation is found."""
        ways = list(splits(self._faults, (PARTITIONS, DISCONNECTS, CRASHES)))
        for number, faults in enumerate(ways):
            if assessment.is_settled_by_proof and not self._budget.left:
                return
            if self.commits(assessment, order, share - number, faults).outcome is SafetyVerdict.UNSAFE:
                return

    def empty_disks(self, assessment: StageAssessment, order: Order, share: int) -> None:
        """Check that committed writes survive if servers on other hosts start with empty disks; a crash comes first."""
        for faults in ({}, *splits(self._faults, (CRASHES, PARTITIONS, DISCONNECTS))):
            spec = RunSpec(
                assessment.stage, order.steps, order.leader, Question.EMPTY_DISK, faults, writes=1, elections=2,
                always=_no_loss(assessment.stage), down=self._down,
            )  # fmt: skip
            assessment.runs.append(self.explore(spec, share))
            if assessment.runs[-1].outcome is SafetyVerdict.UNSAFE:
                return

    def given_disks(
        self, assessment: StageAssessment, leader: Sid, steps: Steps, share: int, *, faults: Mapping[str, int]
    ) -> bool:
        """Whether a committed write is lost because servers start with the given disks."""
        spec = RunSpec(
            assessment.stage, with_disks(assessment.stage, steps, assessment.disks), leader, Question.GIVEN_DISKS,
            faults, writes=1, elections=2, always=_no_loss(assessment.stage), down=self._down, disks=assessment.disks,
        )  # fmt: skip
        assessment.runs.append(self.explore(spec, share))
        return assessment.runs[-1].outcome is SafetyVerdict.UNSAFE

    def heals(self, assessment: StageAssessment, order: Order) -> None:
        """Healing under faults: partitions during the roll-out; crashes and partitions after it, if it gets there."""
        assessment.runs.append(self._settles(assessment, order, {PARTITIONS: self._faults}))
        if self._down or left_out(assessment.stage, order.steps):
            return
        for faults in splits(self._faults, (PARTITIONS, CRASHES)):
            assessment.runs.append(self._settles(assessment, order, faults, done=True))


def _leaders(stage: Stage) -> tuple[str, ...]:
    """The invariants about leaders; the first one needs epochs."""
    return (*LEADERS, SERVED_ALONE) if stage.standalone else LEADERS


def _no_loss(stage: Stage) -> tuple[str, ...]:
    """The invariants about data where a server has lost its disk; a standalone server is no leader of an epoch."""
    return (*NO_LOSS, ALONE_COMPLETE) if stage.standalone else NO_LOSS


def splits(faults: int, kinds: Iterable[str]) -> Iterator[dict[str, int]]:
    """Every way of having that many faults of these kinds in all."""
    names = list(kinds)
    for counts in product(range(faults, -1, -1), repeat=len(names)):
        if sum(counts) == faults and faults:
            yield {name: count for name, count in zip(names, counts, strict=True) if count}


def with_versions(assessment: StageAssessment, assessor: Assessor, steps: Steps, leaders: Sequence[Sid]) -> None:
    """Run every restart of an order, for each server that may lead at first."""
    for leader in leaders:
        order = Order(leader, steps)
        for number, step in enumerate(steps):
            if step.action == RESTART:
                sofar = steps[: number + 1]
                opening = tuple(before_restart(assessment.stage, sofar))
                spec = RunSpec(
                    assessment.stage, sofar, leader, Question.ELECTION, zab=False, patient=False,
                    always=("OneLeader", "LeaderIsAVoter", "OnlyVotersCounted"), opening=opening,
                )  # fmt: skip
                result = assessor.explore(spec, len(steps) * len(leaders))
                if result.end is RunEnd.IMPOSSIBLE:
                    order = replace(order, explored=False)  # the steps after this one were not run
                    break
                assessment.runs.append(result)
        assessment.orders.append(order)
