"""The state of the ensemble after a step that fails, with the verdicts on both directions: on and back.

A step fails if its server does not serve afterwards. The steps before it are done, the steps after it are not. To go
on, the server starts with its new file, and the plan continues. To go back, it starts with its old file, and the steps
before are undone in reverse order.

Rules of this module: it explores nothing, and it claims nothing that was not computed.

- A proof about quorums holds for every mixture of old and new files and for any faults. So it covers both directions.
- The proof of an order covers the way on. It covers the way back until the order begins another stage of the theorem:
  until then every server may have either file.
- Runs with a crash cover the way on: the server crashes at any time and starts again with its old or its new file. Such
  runs do not cover the way back.
- Where addresses change neither direction is SAFE: two machines may have a disk with one id.
- Both are statements about leaders and commits. No run about healing starts in such a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from checker.rollout.assessment import Order, QuestionAnswer, Reason, StageAssessment
from checker.rollout.order_proof import OrderProof
from checker.rollout.runs import SafetyVerdict
from checker.rollout.scenarios import CRASHES, Question
from checker.rollout.steps import RESTART, START, STOP, ServerStep, Steps, has_quorum
from spec.quorum import Sid

SAFETY = (Question.ELECTION, Question.COMMITS)


class Basis(Enum):
    """The basis of an answer about a failed step. `checker.rollout.output.sentences` has the sentence for each."""

    PROVED = "proved"  # by z3, for every mixture of files
    PROVED_IN_ORDER = "proved in order"  # for this order, if the operator keeps its conditions
    PLAN = "plan"  # the answer about the whole plan
    CRASH_EXPLORED = "crash explored"  # of any server at any time
    NO_CRASH_EXPLORED = "no crash explored"
    TWO_DISKS = "two disks"  # addresses change, so a failed server may have two
    BACK_NOT_EXPLORED = "back not explored"


@dataclass(frozen=True)
class DirectionAnswer:
    """The verdict on one direction, with its basis, and the answer of the plan where that is the basis."""

    outcome: SafetyVerdict
    basis: Basis
    answer: QuestionAnswer | None = None


@dataclass(frozen=True)
class Failure:
    """The state after a failed step. The server of the step is in neither `new` nor `old`, and does not serve.

    `new` and `old` are the other running servers by their files. `serves`: whether they have a quorum without it.
    `undo` are the steps that lead back, the failed server first.
    """

    number: int
    step: ServerStep
    new: tuple[Sid, ...]
    old: tuple[Sid, ...]
    serves: bool
    going_on: DirectionAnswer
    going_back: DirectionAnswer
    undo: Steps


def failures(assessment: StageAssessment, order: Order, down: frozenset[Sid] = frozenset()) -> tuple[Failure, ...]:
    """The state after each step of an order, if that step fails."""
    stage, going_on = assessment.stage, _going_on(assessment, order)
    found = []
    for number, step in enumerate(order.steps):
        done = order.steps[:number]
        new = (stage.renewed | {each.sid for each in done if each.action != STOP}) - {step.sid} - down
        old = stage.running - stage.renewed - {each.sid for each in done} - {step.sid} - down
        serves = has_quorum(stage, new | old, new)
        undo, going_back = _undone((*done, step)), _going_back(assessment, order, number + 1)
        found.append(
            Failure(number + 1, step, tuple(sorted(new)), tuple(sorted(old)), serves, going_on, going_back, undo)
        )
    return tuple(found)


def _undone(steps: Sequence[ServerStep]) -> Steps:
    """The opposite of each step, the last one first."""
    opposite = {START: STOP, STOP: START, RESTART: RESTART}
    return tuple(ServerStep(opposite[step.action], step.sid) for step in reversed(steps))


def _proved(assessment: StageAssessment) -> bool:
    """Whether the proof answers both safety questions for every mixture of files."""
    stage = assessment.stage
    safe = all(answer.outcome is SafetyVerdict.SAFE for question, _, answer in assessment.answers if question in SAFETY)
    return assessment.proved and safe and not stage.gossips and not stage.readdressed


def _proof(assessment: StageAssessment, order: Order) -> OrderProof | None:
    """The proof of an order, where proofs answer both safety questions."""
    answers = {answer.reason for question, _, answer in assessment.answers if question in SAFETY}
    if answers != {Reason.PROVED_IN_ORDER} or assessment.stage.readdressed:
        return None
    return assessment.order_proof(order)


def _not_safe(assessment: StageAssessment) -> DirectionAnswer | None:
    """The answer where the plan itself is unsafe, or has no verdict on a safety question."""
    asked = [(q, answer) for q, faulty, answer in assessment.answers if assessment.faults or not faulty]
    answers = [answer for question, answer in asked if question in SAFETY]
    for outcome in (SafetyVerdict.UNSAFE, SafetyVerdict.OPEN):
        for answer in answers:
            if answer.outcome is outcome:
                return DirectionAnswer(outcome, Basis.PLAN, answer)
    return None


def _going_on(assessment: StageAssessment, order: Order) -> DirectionAnswer:
    if _proved(assessment):
        return DirectionAnswer(SafetyVerdict.SAFE, Basis.PROVED)
    if _proof(assessment, order) is not None:
        return DirectionAnswer(SafetyVerdict.SAFE, Basis.PROVED_IN_ORDER)
    if (direction := _not_safe(assessment)) is not None:
        return direction
    if assessment.stage.readdressed:
        return DirectionAnswer(SafetyVerdict.OPEN, Basis.TWO_DISKS)
    crashed = {
        result.spec.question
        for result in assessment.runs
        if (result.spec.leader, result.spec.steps) == (order.leader, order.steps)
        and result.spec.faults.get(CRASHES)
        and result.outcome is SafetyVerdict.SAFE
    }
    if crashed.issuperset(SAFETY):
        return DirectionAnswer(SafetyVerdict.SAFE, Basis.CRASH_EXPLORED)
    return DirectionAnswer(SafetyVerdict.OPEN, Basis.NO_CRASH_EXPLORED)


def _going_back(assessment: StageAssessment, order: Order, number: int) -> DirectionAnswer:
    """The way back after a step, by its number."""
    if _proved(assessment):
        return DirectionAnswer(SafetyVerdict.SAFE, Basis.PROVED)
    proof = _proof(assessment, order)
    if proof is not None and not any(1 < condition.step <= number for condition in proof.conditions):
        return DirectionAnswer(SafetyVerdict.SAFE, Basis.PROVED_IN_ORDER)
    basis = Basis.TWO_DISKS if assessment.stage.readdressed else Basis.BACK_NOT_EXPLORED
    return DirectionAnswer(SafetyVerdict.OPEN, basis)
