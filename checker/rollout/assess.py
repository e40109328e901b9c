"""Judges one stage of a roll-out, in given orders, by runs with and without faults.

Each question is put to the model that answers it soonest (`checker.rollout.scenarios`): without faults for every
server that may lead at first, with faults for one of them. Rules of this module:

- A cell is UNSAFE if a run found a violation. It is SAFE if z3 has proved that quorums meet (leaders and commits), or
  if every run it rests on was exhausted; else it is OPEN. A proof is shown with the runs.
- A run depends on the steps that it follows. If the run that settled these steps was not finished, or was not made, no
  cell that needs it is SAFE.
- An answer that is UNSAFE without faults is UNSAFE under faults, without further runs.
- Quorum intersection proves nothing about a server that is an observer by one file and a voter by the other: it may
  acknowledge as an observer, and count as a voter. So a stage with such a server rests on exploration, with a disk that
  syncs late. An order in which such a server is counted is searched for a loss (`checker.rollout.observers`), and is
  never SAFE for commits: the search does not cover every run.
- Where addresses change, servers with different files may not reach each other. The runs follow the addresses in the
  files. A network that loses messages is no danger to a proof about quorums, but a server may look for a leader for
  ever: the stage is then STALLS.
- A server on another host has its old disk or an empty one. Both are judged: the second as a question of its own, which
  no proof about quorums covers.
- "At most k faults" are all ways of sharing k among the kinds of faults, each a run.
- A wait in vain is removed from the steps, the stage runs again, and the finding stays. So the steps after the wait are
  explored as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import product

from checker.rollout.budget import WorkBudget
from checker.rollout.divergence import after_split
from checker.rollout.observers import losses
from checker.rollout.quorums import ViewPair, pairs_of
from checker.rollout.runs import RunEnd, Runner, RunResult, SafetyVerdict, impossible, leads_first, not_begun
from checker.rollout.scenarios import CRASHES, DISCONNECTS, NO_LOSS, PARTITIONS, SAFE_DATA, Question, RunSpec
from checker.rollout.stages import Stage
from checker.rollout.steps import Steps, counts_an_observer, left_out, may_lead
from checker.scenario import ScenarioError
from spec.quorum import Sid

LEADERS = ("Leadership", "OneLeader", "LeaderIsAVoter")
BRIEFLY = 3.0  # seconds for a run that cannot change the verdict
SHARE_BESIDE_A_PROOF = 0.06  # of the budget, for a run whose answer is proved already
LARGEST = 9  # servers that are explored: an election looks at every set of them
QUESTIONS = (Question.ELECTION, Question.COMMITS, Question.HEALING)


@dataclass(frozen=True)
class Order:
    """The steps if that server leads at first. `vain` are the findings for the waits that were removed from them.

    An order that is not `explored` had no time, and rests on the proof alone. `open_run` is the run about leaders if a
    limit ended it before it found anything: the steps may then still contain waits in vain.
    """

    leader: Sid
    steps: Steps
    vain: tuple[RunResult, ...] = ()
    explored: bool = True
    open_run: RunResult | None = None

    @property
    def decided(self) -> bool:
        """False iff the steps may still change: the run that they rest on was not made, or not finished."""
        return self.explored and self.open_run is None


class Reason(Enum):
    """The reason for an answer. `checker.rollout.sentences` has the sentence for each."""

    PROVED = "proved"  # by z3
    UNCHANGED = "unchanged"  # no step changes a configuration as it is modelled
    EXPLORED = "explored"  # by the runs, finished or not
    FOUND = "found"  # by the run of the cell: a violation or a stall
    FOUND_WITHOUT_FAULTS = "found without faults"
    STEPS_OPEN = "steps open"  # the run about leaders that settles the steps was not finished
    OPEN_WITHOUT_FAULTS = "open without faults"
    NO_WORK_LEFT = "no work left"
    NO_FAULTS = "no faults"  # were asked for
    NO_SUCH_ELECTION = "no such election"  # of the model ends in the first state
    VERSIONS = "versions"  # configurations have versions, which commits do not carry here
    TOO_LARGE = "too large"  # to be explored
    OLD_DISK = "old disk"  # a server comes back to a host whose disk may be outdated
    ANY_ADDRESS = "any address"  # a server listens on all addresses of its machine
    NOT_MODELLED = "not modelled"  # a key that changes
    OBSERVER_COUNTED = "observer counted"  # as a voter, by the leader's file


@dataclass(frozen=True)
class QuestionAnswer:
    """The answer to a question, with or without faults: the outcome, its reason, and the run with a finding.

    `runs` are the runs that the answer shows, `subjects` the servers or keys that the reason is about.
    """

    outcome: SafetyVerdict
    reason: Reason
    finding: RunResult | None = None
    runs: tuple[RunResult, ...] = ()
    subjects: tuple[Sid | str, ...] = ()


@dataclass
class StageAssessment:
    """A stage with its orders and all that was run of it."""

    stage: Stage
    pairs: tuple[ViewPair, ...]
    faults: int
    orders: list[Order] = field(default_factory=list)
    runs: list[RunResult] = field(default_factory=list)

    @property
    def quorums_meet(self) -> bool:
        """Whether z3 has proved that every two quorums meet."""
        return all(pair.disjoint is None for pair in self.pairs)

    @property
    def proved(self) -> bool:
        """Whether every two quorums meet, and all servers keep their roles: then leaders and commits are safe."""
        return self.quorums_meet and not (self.stage.remaining and self.stage.changed_roles)

    @property
    def unchanged(self) -> bool:
        """Whether quorums meet and no step changes a configuration as it is modelled: then no run is necessary."""
        return self.quorums_meet and self.stage.unchanged

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions about this stage."""
        return (*QUESTIONS, Question.EMPTY_DISK) if self.stage.moved else QUESTIONS

    @property
    def orders_to_explore(self) -> list[Order]:
        """The orders whose commits and faults are explored: the first where a proof covers the others, else all."""
        return self.orders[:1] if self.proved else self.orders

    def answer(self, question: Question, *, faulty: bool) -> QuestionAnswer:
        """The answer to a question. SAFE is withheld if the change is outside of the model."""
        found = self._found(question, faulty=faulty)
        if found.outcome is SafetyVerdict.SAFE and (withheld := self._not_modelled(question)) is not None:
            return withheld
        return found

    def _not_modelled(self, question: Question) -> QuestionAnswer | None:
        """The answer where neither the proof nor the runs cover this question for this change."""
        if not self.stage.remaining:
            return None
        if self.stage.outdated:
            return QuestionAnswer(SafetyVerdict.OPEN, Reason.OLD_DISK, subjects=tuple(sorted(self.stage.outdated)))
        if self.stage.uncertain and question is Question.HEALING:
            return QuestionAnswer(SafetyVerdict.OPEN, Reason.ANY_ADDRESS, subjects=tuple(self.stage.uncertain))
        if self.stage.unmodelled:
            return QuestionAnswer(SafetyVerdict.OPEN, Reason.NOT_MODELLED, subjects=tuple(self.stage.unmodelled))
        if question is Question.COMMITS and any(counts_an_observer(self.stage, order.steps) for order in self.orders):
            return QuestionAnswer(SafetyVerdict.OPEN, Reason.OBSERVER_COUNTED)
        return None

    def _found(self, question: Question, *, faulty: bool) -> QuestionAnswer:
        """The answer by the runs and the proof."""
        of_question = (result for result in self.runs if result.spec.question is question)
        runs = [result for result in of_question if bool(result.spec.faults) == faulty]
        absent = self._absent(runs)
        if not any(result.begun for result in runs):
            runs = []
        worst = next((result for outcome in SafetyVerdict for result in runs if result.outcome is outcome), None)
        if worst and worst.outcome is SafetyVerdict.UNSAFE:
            return QuestionAnswer(SafetyVerdict.UNSAFE, Reason.FOUND, worst)
        if faulty and (plain := self.answer(question, faulty=False)).outcome is SafetyVerdict.UNSAFE:
            return QuestionAnswer(SafetyVerdict.UNSAFE, Reason.FOUND_WITHOUT_FAULTS, plain.finding)
        if worst and worst.outcome is SafetyVerdict.STALLS:
            return QuestionAnswer(SafetyVerdict.STALLS, Reason.FOUND, worst)
        if self.unchanged and not runs:
            return QuestionAnswer(
                SafetyVerdict.SAFE, Reason.PROVED if question is not Question.HEALING else Reason.UNCHANGED
            )
        proved = self.proved and not self.stage.gossips and question in (Question.ELECTION, Question.COMMITS)
        if proved:
            return QuestionAnswer(SafetyVerdict.SAFE, Reason.PROVED, runs=tuple(runs))
        if worst is None:
            return QuestionAnswer(SafetyVerdict.OPEN, absent)
        missing = self._missing(question, faulty=faulty) if worst.outcome is SafetyVerdict.SAFE else None
        outcome = worst.outcome if missing is None else SafetyVerdict.OPEN
        return QuestionAnswer(outcome, missing or Reason.EXPLORED, runs=tuple(runs))

    def _missing(self, question: Question, *, faulty: bool) -> Reason | None:
        """The unfinished run that the runs of a question depend on; None if they are all finished.

        All runs depend on the steps. Runs under faults also depend on the answer without faults. Where quorums always
        meet no two leaders can split the data, and healing is explored without waits, so it depends on nothing else.
        Where addresses change, healing depends on the leader, so each leader must have been explored.
        """
        healing = question is Question.HEALING and not self.stage.readdressed
        if self.proved and not self.stage.gossips and healing:
            return None
        if not all(order.decided for order in self.orders):
            return Reason.STEPS_OPEN
        if faulty and self.answer(question, faulty=False).outcome is SafetyVerdict.OPEN:
            return Reason.OPEN_WITHOUT_FAULTS
        return None

    def _has_begun(self, question: Question) -> bool:
        """Whether a run without faults has looked at some states for a question."""
        return any(result.begun for result in self.runs if result.spec.question is question and not result.spec.faults)

    def _absent(self, runs: list[RunResult]) -> Reason:
        """The reason for a missing answer, where no run has begun."""
        if runs:
            return Reason.NO_SUCH_ELECTION if runs[0].end is RunEnd.IMPOSSIBLE else Reason.NO_WORK_LEFT
        if self.stage.gossips:
            return Reason.VERSIONS
        if too_large(self.stage):
            return Reason.TOO_LARGE
        return Reason.NO_WORK_LEFT if self.faults else Reason.NO_FAULTS

    @property
    def outcome(self) -> SafetyVerdict:
        """The verdict on the whole stage. The worst case counts: a server on another host starts with an empty disk."""
        return self._outcome(self.questions)

    @property
    def outcome_with_disks(self) -> SafetyVerdict:
        """The same if the disk of each server is moved to its new host."""
        return self._outcome(QUESTIONS)

    def _outcome(self, questions: Iterable[Question]) -> SafetyVerdict:
        """The verdict by some questions.

        Healing whose search is not finished is reported and does not count under faults, nor beside a proof of the two
        safety questions.
        """
        cells = {(q, faulty): self.answer(q, faulty=faulty).outcome for q in questions for faulty in (False, True)}
        if SafetyVerdict.UNSAFE in cells.values():
            return SafetyVerdict.UNSAFE
        safety_is_proved = self.proved and not self.stage.gossips
        for faulty in (False, True):
            is_open = cells[Question.HEALING, faulty] is SafetyVerdict.OPEN
            beside_a_proof = safety_is_proved and not self.stage.readdressed and self._has_begun(Question.HEALING)
            if is_open and (faulty or beside_a_proof):
                del cells[Question.HEALING, faulty]
        if not self.faults:
            cells = {key: outcome for key, outcome in cells.items() if not key[1]}
        if SafetyVerdict.OPEN in cells.values():
            return SafetyVerdict.OPEN
        stalls = self.stage.readdressed and SafetyVerdict.STALLS in cells.values()
        return SafetyVerdict.STALLS if stalls else SafetyVerdict.SAFE


class Assessor:
    """Runs the questions about stages, which share `budget`."""

    def __init__(self, budget: WorkBudget, run: Runner, faults: int, down: frozenset[Sid] = frozenset()) -> None:
        self._budget, self._run, self._faults, self._down = budget, run, faults, down
        self._leaders: dict[tuple[str, str], list[Sid]] = {}  # by the labels of a stage

    def begin(self, stage: Stage) -> StageAssessment:
        """A stage without runs."""
        return StageAssessment(stage, pairs_of(stage), self._faults)

    def leaders(self, stage: Stage) -> list[Sid]:
        """The servers that may lead when the stage begins. The first one leads if all start together."""
        voters = sorted(may_lead(stage, self._down), reverse=True)
        if too_large(stage):
            return voters
        key = stage.old.label, stage.new.label
        if key not in self._leaders:
            spec = RunSpec(stage, (), None, Question.ELECTION, zab=True, always=LEADERS, down=self._down)
            self._leaders[key] = [sid for sid in voters if leads_first(replace(spec, leader=sid))]
        return self._leaders[key]

    def without_faults(self, assessment: StageAssessment, leader: Sid, steps: Steps, share: int) -> Order:
        """Check for two leaders and for servers that never settle. Adds the runs, and the order without vain waits."""
        vain: list[RunResult] = []
        while True:
            spec = RunSpec(
                assessment.stage, steps, leader, Question.ELECTION, always=LEADERS, recoverable=True, down=self._down
            )
            result = self.explore(spec, share)
            if result.outcome is not SafetyVerdict.STALLS or result.stuck is None:
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
            yield from after_split(result, self._run, self._budget)
            yield self._settles(assessment, order)
            return
        settled = result.complete or result.outcome is SafetyVerdict.STALLS
        yield replace(
            result,
            outcome=SafetyVerdict.SAFE if settled else SafetyVerdict.OPEN,
            found=None,
        )
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
            always=SAFE_DATA, down=self._down,
        )  # fmt: skip
        result = self.explore(spec, share, beside_a_proof=assessment.proved)
        assessment.runs.append(result)
        if result.outcome is not SafetyVerdict.UNSAFE and counts_an_observer(spec.stage, spec.steps, spec.down):
            assessment.runs += losses(spec, self._run, self._budget)
        return assessment.runs[-1]

    def explore(self, spec: RunSpec, share: int, *, beside_a_proof: bool = False) -> RunResult:
        """Run a question within its share of the rest of the budget: one of `share` runs."""
        most = self._budget.seconds * SHARE_BESIDE_A_PROOF if beside_a_proof else self._budget.left
        return self._within(spec, min(most, self._budget.share(share)))

    def _within(self, spec: RunSpec, seconds: float) -> RunResult:
        """Run a question, unless the budget is used up, or the model has no such first state."""
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
                always=("OneLeader", "LeaderIsAVoter"), down=self._down,
            )  # fmt: skip
            assessment.runs.append(self.explore(spec, share, beside_a_proof=assessment.proved))
            if assessment.runs[-1].outcome is SafetyVerdict.UNSAFE:
                return True
        return False

    def commits_under_faults(self, assessment: StageAssessment, order: Order, share: int) -> None:
        """The same of commits, until a violation is found."""
        ways = list(splits(self._faults, (PARTITIONS, DISCONNECTS, CRASHES)))
        for number, faults in enumerate(ways):
            if assessment.proved and not self._budget.left:
                return
            if self.commits(assessment, order, share - number, faults).outcome is SafetyVerdict.UNSAFE:
                return

    def empty_disks(self, assessment: StageAssessment, order: Order, share: int) -> None:
        """Check that committed writes survive if servers on other hosts start with empty disks; a crash comes first."""
        for faults in ({}, *splits(self._faults, (CRASHES, PARTITIONS, DISCONNECTS))):
            spec = RunSpec(
                assessment.stage, order.steps, order.leader, Question.EMPTY_DISK, faults, writes=1, elections=2,
                always=NO_LOSS, down=self._down,
            )  # fmt: skip
            assessment.runs.append(self.explore(spec, share))
            if assessment.runs[-1].outcome is SafetyVerdict.UNSAFE:
                return

    def heals(self, assessment: StageAssessment, order: Order) -> None:
        """Healing under faults: partitions during the roll-out; crashes and partitions after it, if it gets there."""
        assessment.runs.append(self._settles(assessment, order, {PARTITIONS: self._faults}))
        if self._down or left_out(assessment.stage, order.steps):
            return
        for faults in splits(self._faults, (PARTITIONS, CRASHES)):
            assessment.runs.append(self._settles(assessment, order, faults, done=True))


def too_large(stage: Stage) -> bool:
    """Whether a stage has too many servers to be explored, so that z3 alone speaks of it."""
    return len(stage.sids) > LARGEST


def splits(faults: int, kinds: Iterable[str]) -> Iterator[dict[str, int]]:
    """Every way of having that many faults of these kinds in all."""
    names = list(kinds)
    for counts in product(range(faults, -1, -1), repeat=len(names)):
        if sum(counts) == faults and faults:
            yield {name: count for name, count in zip(names, counts, strict=True) if count}
