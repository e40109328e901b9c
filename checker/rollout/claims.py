"""The table of claims: the statements of a plan about its routes, with their evidence, and the fold to a verdict.

    Evidence      a proof, exhausted runs, a counterexample, a measured fact, or the reason for a gap
    Claim         a question about a route, with or without faults, and its evidence
    verdict_of    the verdict of some claims: the worst of those that count

A route is a list of actions of the operator: the steps of the plan in one go, a stage of it, a way of working, the
commands of `reconfig`, the rest of an interrupted roll-out, or the way back. Every section of an answer, its exit code
and its data are made from these claims, so no two of them can disagree.

Rule of this module: SAFE needs evidence for every claim that counts. One claim without evidence leaves the route
undecided, and its reason names the missing part.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from checker.rollout.order_proof import StageCondition
from checker.rollout.runs import RunResult, SafetyVerdict, worst_result, worst_verdict
from checker.rollout.scenarios import Question
from spec.quorum import Sid


class EvidenceKind(Enum):
    """The kind of an evidence."""

    PROOF = "proof"
    EXHAUSTED = "exhausted"
    COUNTEREXAMPLE = "counterexample"
    MEASURED = "measured"  # on real servers, where no run of the model speaks of it
    MISSING = "missing"


class Reason(Enum):
    """The reason for an answer. `checker.rollout.output.sentences` has the sentence for each."""

    PROVED = "proved"  # by the quorums, for any order
    PROVED_IN_ORDER = "proved in order"  # by the theorem about roll-outs, for the orders of the plan
    UNCHANGED = "unchanged"  # no step changes a configuration as it is modelled
    EXPLORED = "explored"  # by the runs, finished or not
    FOUND = "found"  # by one run: a violation or a stall
    FOUND_WITHOUT_FAULTS = "found without faults"
    STEPS_OPEN = "steps open"  # the run about leaders that settles the steps was not finished
    OPEN_WITHOUT_FAULTS = "open without faults"
    NO_WORK_LEFT = "no work left"
    NO_FAULTS = "no faults"  # were asked for
    UNSAFE_ALREADY = "unsafe already"  # by another question, so the search has ended
    NOT_DEMANDED = "not demanded"  # the runs of a proved stage that cannot change its verdict
    NO_SUCH_ELECTION = "no such election"  # of the model ends in the first state
    VERSIONS = "versions"  # configurations have versions, which commits do not carry here
    TOO_LARGE = "too large"  # to be explored
    OLD_DISK = "old disk"  # a server comes back to a host whose disk may be outdated
    ANY_ADDRESS = "any address"  # a server listens on all addresses of its machine
    NOT_MODELLED = "not modelled"  # a key that changes
    RECONFIG_OFF = "reconfig off"  # servers without reconfigEnabled do not follow those with it
    NOT_DURABLE = "not durable"  # the writes of a server with the new value of a key
    FOREIGN_OBSERVER = "foreign observer"  # with the disk of another cluster
    STRANGERS = "strangers"  # two servers refuse each other while one of them has its new file
    UNSEEN = "unseen"  # a server of which nothing shows whether it runs now
    UNSTATED_FILE = "unstated file"  # the answer of a server fits its old file and its new one
    OBSERVER_COUNTED = "observer counted"  # as a voter, by the leader's file
    CRASH_EXPLORED = "crash explored"  # of any server at any time
    NO_CRASH_EXPLORED = "no crash explored"
    TWO_DISKS = "two disks"  # addresses change, so a failed server may have two
    BACK_NOT_EXPLORED = "back not explored"
    DEFECTS = "defects"  # of the release lose a write
    DEFECTS_NOT_EXPLORED = "defects not explored"  # in this direction; by the protocol it is safe


PROOFS = frozenset({Reason.PROVED, Reason.PROVED_IN_ORDER, Reason.UNCHANGED})
MEASURED = frozenset({Reason.RECONFIG_OFF, Reason.NOT_DURABLE, Reason.FOREIGN_OBSERVER, Reason.STRANGERS})


@dataclass(frozen=True)
class Evidence:
    """The answer to a question: the verdict, its reason, and the run with a finding.

    `runs` are the runs that the answer shows, `subjects` the servers or keys that the reason is about, `conditions`
    those that the operator keeps before later steps.
    """

    outcome: SafetyVerdict
    reason: Reason
    finding: RunResult | None = None
    runs: tuple[RunResult, ...] = ()
    subjects: tuple[Sid | str, ...] = ()
    conditions: tuple[StageCondition, ...] = ()

    @property
    def kind(self) -> EvidenceKind:
        """The kind of the evidence; missing where the question has no answer."""
        if self.outcome is SafetyVerdict.OPEN:
            return EvidenceKind.MISSING
        if self.reason in MEASURED:
            return EvidenceKind.MEASURED
        if self.outcome is not SafetyVerdict.SAFE:
            return EvidenceKind.COUNTEREXAMPLE
        return EvidenceKind.PROOF if self.reason in PROOFS else EvidenceKind.EXHAUSTED


def evidence_of(results: Iterable[RunResult], *, whole: bool = True) -> Evidence:
    """The evidence of some runs; without `whole` some were left out, so that they are not enough to call it SAFE."""
    runs = tuple(results)
    worst = worst_result(runs)
    outcome = SafetyVerdict.OPEN if worst is None else worst.outcome
    if outcome is SafetyVerdict.UNSAFE:
        return Evidence(outcome, Reason.FOUND, worst)
    if not any(result.begun for result in runs):
        return Evidence(SafetyVerdict.OPEN, Reason.NO_WORK_LEFT)
    if outcome is SafetyVerdict.SAFE and not whole:
        return Evidence(SafetyVerdict.OPEN, Reason.UNSAFE_ALREADY, runs=runs)
    return Evidence(outcome, Reason.EXPLORED, runs=runs)


@dataclass(frozen=True)
class Claim:
    """A question about a route, asked under a number of faults. `counts`: in the verdict."""

    question: Question
    faults: int
    evidence: Evidence
    counts: bool = True


def verdict_of(claims: Iterable[Claim]) -> SafetyVerdict:
    """The worst verdict of the claims that count; undecided without any."""
    return worst_verdict(claim.evidence.outcome for claim in claims if claim.counts)


def worst_of(claims: Iterable[Claim]) -> Evidence:
    """The evidence of the worst claim; of equal ones that of the first."""
    return min((claim.evidence for claim in claims), key=lambda evidence: evidence.outcome)
