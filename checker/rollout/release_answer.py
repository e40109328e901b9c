"""The answer about the releases of a roll-out.

The other answers of a plan are about the protocol as it is specified. A release has known defects, and some of them
lose acknowledged writes when a server restarts. So a plan for a release has one more answer: whether its steps lose a
write by a defect, while clients write and while nothing is written.
"""

from __future__ import annotations

from dataclasses import dataclass

from checker.rollout.claims import Claim, evidence_of, verdict_of
from checker.rollout.releases import ReleaseChange
from checker.rollout.runs import RunResult, SafetyVerdict
from checker.rollout.scenarios import Question
from spec.variants import Variant


@dataclass(frozen=True)
class SoftwareAnswer:
    """Whether the steps of a plan lose an acknowledged write by a known defect of their releases.

    `writing` are the runs where a client writes during the steps, `quiet` those where nothing is written after
    the first step has begun. `culprits` are the defects that lose a write in the run of `finding` if every server has
    that defect and no other. `staying` is the run of `finding` where the old release stays.
    """

    releases: ReleaseChange
    writing: tuple[RunResult, ...] = ()
    quiet: tuple[RunResult, ...] = ()
    culprits: tuple[Variant, ...] = ()
    staying: RunResult | None = None

    def claims(self, question: Question, *, faulty: bool = True) -> tuple[Claim, ...]:
        """The claims about clients that write (DEFECTS), or that are quiet: without faults, and under them."""
        runs = self.writing if question is Question.DEFECTS else self.quiet
        groups = ([each for each in runs if bool(each.spec.faults) == under] for under in (False, True)[: 1 + faulty])
        return tuple(
            Claim(question, sum(group[0].spec.faults.values()), evidence_of(group)) for group in groups if group
        )

    @property
    def outcome(self) -> SafetyVerdict:
        """The verdict while clients write."""
        return verdict_of(self.claims(Question.DEFECTS))

    @property
    def outcome_without_faults(self) -> SafetyVerdict:
        """The verdict while clients write, without faults."""
        return verdict_of(self.claims(Question.DEFECTS, faulty=False))

    @property
    def quiet_outcome(self) -> SafetyVerdict:
        """The verdict while nothing is written."""
        return verdict_of(self.claims(Question.QUIET_DEFECTS))

    @property
    def quiet_outcome_without_faults(self) -> SafetyVerdict:
        """The same without faults."""
        return verdict_of(self.claims(Question.QUIET_DEFECTS, faulty=False))

    @property
    def finding(self) -> RunResult | None:
        """The first run that loses a write while a client writes."""
        return next((each for each in self.writing if each.outcome is SafetyVerdict.UNSAFE), None)

    @property
    def runs(self) -> tuple[RunResult, ...]:
        """All runs."""
        return (*self.writing, *self.quiet, *([self.staying] if self.staying else []))
