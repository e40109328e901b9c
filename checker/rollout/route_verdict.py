"""The verdicts on one stage of a roll-out, derived from a proof about quorums and from runs.

The quorums of every two views that servers have at the same time in a stage are compared, and those of each view. Where
all of them meet, that is proved for any order of restarts and any faults.

Rules of this module:

- An answer is UNSAFE if a run found a violation. It is SAFE if it is proved that quorums meet (leaders and commits),
  or if every run that it depends on was exhausted; else it is OPEN. A proof is shown with the runs.
- A run depends on the steps that it follows. If the run that settled these steps was not finished, or was not made, no
  answer that needs it is SAFE.
- An answer that is UNSAFE without faults is UNSAFE under faults, without further runs.
- Where quorums may be disjoint, the order may still have a proof (`checker.rollout.order_proof`), for any faults. It
  rests on conditions that the operator keeps. A run that finds a violation all the same is not hidden by it.
- Quorum intersection proves nothing about a server that is an observer by one file and a voter by the other: it may
  acknowledge as an observer, and count as a voter. So a stage with such a server rests on exploration, with a disk that
  syncs late. An order that counts such a server is never SAFE for commits: the search for a loss does not cover
  every run.
- It proves nothing about a standalone server either, which asks no quorum. Such a stage rests on exploration.
- Where addresses change, servers with different files may not reach each other. The runs follow the addresses in the
  files. A network that loses messages does not touch a proof about quorums, but a server may look for a leader for
  ever: the stage is then STALLS.
- A server on another host has its old disk or an empty one. Both are judged. The second is a separate question, which
  no proof about quorums covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations

from checker.execution import poll
from checker.rollout.claims import Claim, Evidence, Reason, verdict_of, worst_of
from checker.rollout.disks import Disks, harmless
from checker.rollout.files.differences import WITHHOLDING
from checker.rollout.files.keys import Effect
from checker.rollout.order_proof import OrderProof, StageCondition, order_proof
from checker.rollout.orders import Steps, Way, counts_an_observer, proof_covers
from checker.rollout.runs import RunEnd, RunResult, SafetyVerdict
from checker.rollout.scenarios import OF_RELEASES, Question, ReleaseChange
from checker.rollout.stages import Stage
from checker.symbolic.disjoint import DisjointQuorums, disjoint_quorums
from spec.quorum import Sid, View


@dataclass(frozen=True)
class ViewPair:
    """Two states of a stage, or one twice, and two disjoint quorums; None if it is proved that all quorums meet."""

    old: str
    new: str
    disjoint: DisjointQuorums | None


def pairs_of(stage: Stage) -> tuple[ViewPair, ...]:
    """Every two views that servers have during a stage.

    Raises checker.symbolic.disjoint.UndecidedError if the comparison is given up.
    """
    poll()
    views: dict[str, View] = {stage.old.label: stage.old.view} if stage.remaining else {}
    views[stage.new.label] = stage.new.view
    couples = [(label, label) for label in views] + list(combinations(views, 2))
    return tuple(ViewPair(a, b, disjoint_quorums(views[a], views[b])) for a, b in couples)


LARGEST = 9  # servers that are explored: an election looks at every set of them
SAFETY = (Question.ELECTION, Question.COMMITS)
QUESTIONS = (*SAFETY, Question.HEALING)


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


@dataclass
class PlanRoute:
    """A route through a stage: its orders in one way of working, with the disks of the request, and the runs about it.

    `asked` are the questions about it; None for all those about the protocol. With `releases` its servers run these.
    """

    stage: Stage
    pairs: tuple[ViewPair, ...]
    faults: int
    orders: list[Order] = field(default_factory=list)
    runs: list[RunResult] = field(default_factory=list)
    way: Way = Way.ONE_BY_ONE
    disks: Disks = field(default_factory=dict)
    asked: tuple[Question, ...] | None = None
    releases: ReleaseChange | None = None
    _order_proofs: dict[Steps, OrderProof | None] = field(default_factory=dict, repr=False)

    def record(self, result: RunResult) -> RunResult:
        """Add a run, or put it in the place of its earlier result."""
        for place, run in enumerate(self.runs):
            if (run.spec.question, run.text) == (result.spec.question, result.text):
                self.runs[place] = result
                return result
        self.runs.append(result)
        return result

    @property
    def quorums_meet(self) -> bool:
        """Whether it is proved that every two quorums meet."""
        return all(pair.disjoint is None for pair in self.pairs)

    @property
    def proved(self) -> bool:
        """Whether every two quorums meet, and no order counts an observer: then leaders and commits are safe.

        Not so where a server runs standalone, or where one may be an observer by its file and a voter by the file of a
        leader.
        """
        stage = self.stage
        if not stage.remaining:
            return self.quorums_meet
        covered = bool(self.orders) and all(proof_covers(self.way, stage, order.steps) for order in self.orders)
        alone = stage.standalone and not stage.unchanged
        return self.quorums_meet and not alone and (covered or not stage.changed_roles)

    @property
    def order_proofs(self) -> tuple[OrderProof, ...]:
        """The proof of each order, where no proof covers every order; empty if one of them has none."""
        if self.proved:
            return ()
        proofs = [self.order_proof(order) for order in self.orders]
        return tuple(proof for proof in proofs if proof is not None) if None not in proofs else ()

    def conditions_of(self, order: Order) -> dict[int, StageCondition]:
        """The conditions of the proof of an order, by step; empty where the verdict rests on no such proof."""
        proof = self.order_proof(order) if self.order_proofs else None
        return {} if proof is None else proof.by_step

    def order_proof(self, order: Order) -> OrderProof | None:
        """The proof of one order, if there is one."""
        poll()
        if order.steps not in self._order_proofs:
            self._order_proofs[order.steps] = order_proof(self.stage, order.steps, self.way)
        return self._order_proofs[order.steps]

    @property
    def is_settled_by_proof(self) -> bool:
        """Whether a proof answers the questions about leaders and commits, for any faults."""
        return (self.proved or bool(self.order_proofs)) and not self.stage.gossips

    @property
    def blank(self) -> PlanRoute:
        """The same stage in the same way, without orders and runs."""
        return PlanRoute(self.stage, self.pairs, self.faults, way=self.way, disks=self.disks)

    @property
    def unchanged(self) -> bool:
        """Whether quorums meet and no step changes a configuration as it is modelled: then no run is necessary."""
        return self.quorums_meet and self.stage.unchanged

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions about this stage."""
        if self.asked is not None:
            return self.asked
        moved = (Question.EMPTY_DISK,) if self.stage.moved else ()
        return (*QUESTIONS, *moved, *((Question.GIVEN_DISKS,) if self.disks else ()))

    @property
    def orders_to_explore(self) -> list[Order]:
        """The orders whose commits and faults are explored: the first where a proof covers the others, else all.

        If some of them have a violation, only these.
        """
        if self.proved:
            return self.orders[:1]
        violated = {result.spec.leader for result in self.runs if result.outcome is SafetyVerdict.UNSAFE}
        return [order for order in self.orders if order.leader in violated] or self.orders

    def answer(self, question: Question, *, faulty: bool) -> Evidence:
        """The answer to a question. SAFE is withheld if the change is outside of the model."""
        poll()
        evidence = self._by_runs_and_proof(question, faulty=faulty)
        if evidence.outcome is not SafetyVerdict.SAFE:
            return evidence
        facts = self.facts() if self.stage.remaining else self.facts_of_now()
        return next((fact for questions, fact in facts if question in questions), evidence)

    def facts(self) -> Iterator[tuple[Iterable[Question], Evidence]]:
        """The facts in the files that no run covers, the gravest first: the questions, and the answer to them."""
        stage, healing = self.stage, (Question.HEALING,)
        if stage.outdated:
            yield Question, Evidence(SafetyVerdict.OPEN, Reason.OLD_DISK, subjects=tuple(sorted(stage.outdated)))
        if stage.uncertain:
            yield healing, Evidence(SafetyVerdict.OPEN, Reason.ANY_ADDRESS, subjects=stage.uncertain)
        if stage.strangers and self.way is not Way.STOP_ALL:  # which mixes no files
            yield healing, Evidence(SafetyVerdict.STALLS, Reason.STRANGERS, subjects=stage.strangers[0])
        if stage.disables_reconfig and self.way is not Way.STOP_ALL:
            yield healing, Evidence(SafetyVerdict.STALLS, Reason.RECONFIG_OFF, subjects=stage.disables_reconfig)
        observers = stage.old.view.observers | stage.new.view.observers
        if foreign := [sid for sid, hazard in sorted(self.disks.items()) if hazard.is_foreign and sid in observers]:
            # What clients read of them is not explored.
            evidence = Evidence(SafetyVerdict.UNSAFE, Reason.FOREIGN_OBSERVER, subjects=tuple(foreign))
            yield (Question.GIVEN_DISKS,), evidence
        if undurable := stage.keys_with(Effect.DURABILITY):
            evidence = Evidence(SafetyVerdict.UNSAFE, Reason.NOT_DURABLE, subjects=undurable)
            yield (Question.COMMITS,), evidence
        if unmodelled := stage.keys_with(*WITHHOLDING):
            yield Question, Evidence(SafetyVerdict.OPEN, Reason.NOT_MODELLED, subjects=unmodelled)
        if any(counts_an_observer(stage, order.steps) for order in self.orders):
            yield (Question.COMMITS,), Evidence(SafetyVerdict.OPEN, Reason.OBSERVER_COUNTED)
        yield from self.facts_of_now()

    def facts_of_now(self) -> Iterator[tuple[Iterable[Question], Evidence]]:
        """The gaps in the evidence about the state in which the stage begins."""
        if (now := self.stage.now) is not None and now.unseen:
            yield Question, Evidence(SafetyVerdict.OPEN, Reason.UNSEEN, subjects=tuple(sorted(now.unseen)))
        if now is not None and now.unstated:
            yield Question, Evidence(SafetyVerdict.OPEN, Reason.UNSTATED_FILE, subjects=tuple(sorted(now.unstated)))

    def _by_runs_and_proof(self, question: Question, *, faulty: bool) -> Evidence:
        of_question = (result for result in self.runs if result.spec.question is question)
        runs = [result for result in of_question if bool(result.spec.faults) == faulty]
        absent = self._absent(runs)
        if not any(result.begun for result in runs):
            runs = []
        worst = next((result for outcome in SafetyVerdict for result in runs if result.outcome is outcome), None)
        if worst and worst.outcome is SafetyVerdict.UNSAFE:
            return Evidence(SafetyVerdict.UNSAFE, Reason.FOUND, worst)
        if faulty and (plain := self.answer(question, faulty=False)).outcome is SafetyVerdict.UNSAFE:
            return Evidence(SafetyVerdict.UNSAFE, Reason.FOUND_WITHOUT_FAULTS, plain.finding)
        if worst and worst.outcome is SafetyVerdict.STALLS:
            return Evidence(SafetyVerdict.STALLS, Reason.FOUND, worst)
        given_disks = question is Question.GIVEN_DISKS
        if self.unchanged and not runs and question in QUESTIONS:
            return Evidence(SafetyVerdict.SAFE, Reason.PROVED if question is not Question.HEALING else Reason.UNCHANGED)
        covered = question in SAFETY or (self.proved and given_disks and harmless(self.stage, self.disks))
        if covered and self.is_settled_by_proof:
            reason = Reason.PROVED if self.proved else Reason.PROVED_IN_ORDER
            return Evidence(SafetyVerdict.SAFE, reason, runs=tuple(runs))
        if worst is None:
            return Evidence(SafetyVerdict.OPEN, absent)
        missing = self._missing(question, faulty=faulty) if worst.outcome is SafetyVerdict.SAFE else None
        outcome = worst.outcome if missing is None else SafetyVerdict.OPEN
        return Evidence(outcome, missing or Reason.EXPLORED, runs=tuple(runs))

    def _missing(self, question: Question, *, faulty: bool) -> Reason | None:
        """The unfinished run that the runs of a question depend on; None if they are all finished.

        All runs depend on the steps, except those about a release, whose steps are settled. Runs under faults also
        depend on the answer without faults. Where quorums always meet no two leaders can split the data, and healing is
        explored without waits, so it depends on nothing else. Where addresses change, healing depends on the leader, so
        each leader must have been explored.
        """
        healing = question is Question.HEALING and not self.stage.readdressed
        if self.proved and not self.stage.gossips and healing:
            return None
        own_steps = question in OF_RELEASES or (question is Question.GIVEN_DISKS and self.unchanged)
        if not own_steps and not all(order.decided for order in self.orders):
            return Reason.STEPS_OPEN
        if faulty and self.answer(question, faulty=False).outcome is SafetyVerdict.OPEN:
            return Reason.OPEN_WITHOUT_FAULTS
        return None

    def _absent(self, runs: list[RunResult]) -> Reason:
        """The reason for a missing answer, where no run has begun."""
        if runs:
            return Reason.NO_SUCH_ELECTION if runs[0].end is RunEnd.IMPOSSIBLE else Reason.NO_WORK_LEFT
        if self.stage.gossips:
            return Reason.VERSIONS
        if too_large(self.stage):
            return Reason.TOO_LARGE
        if not self.faults:
            return Reason.NO_FAULTS
        if any(result.outcome is SafetyVerdict.UNSAFE for result in self.runs):
            return Reason.UNSAFE_ALREADY
        return Reason.NOT_DEMANDED if self.is_settled_by_proof else Reason.NO_WORK_LEFT

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims about this stage, without faults and under those that were asked for."""
        budgets = (False, True) if self.faults else (False,)
        return tuple(self._claim(question, faulty=faulty) for faulty in budgets for question in self.questions)

    def _claim(self, question: Question, *, faulty: bool) -> Claim:
        """A claim, and whether it counts.

        Healing whose search is not finished is reported and does not count under faults, nor beside a proof of the two
        safety questions. A person may leave out a wait in vain, so it does not stop a person.
        """
        evidence, counts = self.answer(question, faulty=faulty), True
        if question is Question.HEALING and evidence.outcome is SafetyVerdict.OPEN:
            beside_a_proof = self.is_settled_by_proof and not self.stage.readdressed
            is_begun = any(run.begun for run in self.runs if run.spec.question is question and not run.spec.faults)
            counts = not faulty and not (beside_a_proof and is_begun)
        if evidence.outcome is SafetyVerdict.STALLS:
            by_files = self.stage.readdressed or self.stage.strangers or self.stage.disables_reconfig
            counts = bool(by_files or self.way.is_of_controller)
        return Claim(question, self.faults if faulty else 0, evidence, counts)

    @property
    def outcome(self) -> SafetyVerdict:
        """The verdict on the whole stage. The worst case counts: a server on another host starts with an empty disk."""
        return verdict_of(self.claims)

    @property
    def outcome_with_disks(self) -> SafetyVerdict:
        """The same if the disk of each server is moved to its new host."""
        return verdict_of(claim for claim in self.claims if claim.question in QUESTIONS)

    def worst(self, *, faulty: bool) -> Evidence:
        """The worst answer, with or without faults."""
        claims = [claim for claim in self.claims if bool(claim.faults) == faulty]
        return worst_of([claim for claim in claims if claim.counts] or claims)


def too_large(stage: Stage) -> bool:
    """Whether a stage has too many servers to be explored, so that the quorums alone speak of it."""
    return len(stage.sids) > LARGEST
