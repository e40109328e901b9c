"""The state of the ensemble after a step that fails, with the verdicts on both directions: on and back.

A step fails if its server does not serve afterwards. The steps before it are done, the steps after it are not. To go
on, the server starts with its new file, and the plan continues. To go back, it starts with its old file, and the steps
before are undone in reverse order.

Rules of this module: it explores nothing, and it claims nothing that was not computed.

- A proof about quorums holds for every mixture of old and new files and for any faults. So it covers both directions.
- Runs with a crash cover the way on: the server crashes at any time and starts again with its old or its new file. Such
  runs do not cover the way back.
- Where addresses change neither direction is SAFE: two machines may have a disk with one id.
- Both are statements about leaders and commits. No run about healing starts in such a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from checker.rollout.assess import Assessed, Cell, Order
from checker.rollout.runs import Outcome
from checker.rollout.scenarios import CRASHES, Question
from checker.rollout.steps import RESTART, START, STOP, Step, Steps, has_quorum
from spec.quorum import Sid

SAFETY = (Question.ELECTION, Question.COMMITS)


class Basis(Enum):
    """The basis of an answer about a failed step. `checker.rollout.sentences` has the sentence for each."""

    PROVED = "proved"  # by z3, for every mixture of files
    PLAN = "plan"  # the answer about the whole plan
    CRASH_EXPLORED = "crash explored"  # of any server at any time
    NO_CRASH_EXPLORED = "no crash explored"
    TWO_DISKS = "two disks"  # addresses change, so a failed server may have two
    BACK_NOT_EXPLORED = "back not explored"


@dataclass(frozen=True)
class Answer:
    """The verdict on one direction, with its basis, and the cell where that is the plan."""

    outcome: Outcome
    basis: Basis
    cell: Cell | None = None


@dataclass(frozen=True)
class Failure:
    """The state after a failed step. The server of the step is in neither `new` nor `old`, and does not serve.

    `new` and `old` are the other running servers by their files. `serves`: whether they have a quorum without it.
    `undo` are the steps that lead back, the failed server first.
    """

    number: int
    step: Step
    new: tuple[Sid, ...]
    old: tuple[Sid, ...]
    serves: bool
    going_on: Answer
    going_back: Answer
    undo: Steps


def failures(assessed: Assessed, order: Order, down: frozenset[Sid] = frozenset()) -> tuple[Failure, ...]:
    """The state after each step of an order, if that step fails."""
    stage, going_on, going_back = assessed.stage, _going_on(assessed, order), _going_back(assessed)
    found = []
    for number, step in enumerate(order.steps):
        done = order.steps[:number]
        new = (stage.renewed | {each.sid for each in done if each.action != STOP}) - {step.sid} - down
        old = stage.running - stage.renewed - {each.sid for each in done} - {step.sid} - down
        serves = has_quorum(stage, new | old, new)
        undo = _undone((*done, step))
        failed = Failure(number + 1, step, tuple(sorted(new)), tuple(sorted(old)), serves, going_on, going_back, undo)
        found.append(failed)
    return tuple(found)


def _undone(steps: Sequence[Step]) -> Steps:
    """The opposite of each step, the last one first."""
    opposite = {START: STOP, STOP: START, RESTART: RESTART}
    return tuple(Step(opposite[step.action], step.sid) for step in reversed(steps))


def _proved(assessed: Assessed) -> bool:
    """Whether the proof answers both safety questions for every mixture of files."""
    stage = assessed.stage
    if not assessed.proved or stage.gossips or stage.readdressed:
        return False
    return all(assessed.cell(q, faulty=faulty).outcome is Outcome.SAFE for q in SAFETY for faulty in (False, True))


def _not_safe(assessed: Assessed) -> Answer | None:
    """The answer where the plan itself is unsafe, or has no verdict on a safety question."""
    asked = (False, True) if assessed.faults else (False,)
    cells = [assessed.cell(question, faulty=faulty) for question in SAFETY for faulty in asked]
    return next(
        (Answer(cell.outcome, Basis.PLAN, cell) for outcome in (Outcome.UNSAFE, Outcome.OPEN) for cell in cells
         if cell.outcome is outcome),
        None,
    )  # fmt: skip


def _going_on(assessed: Assessed, order: Order) -> Answer:
    if _proved(assessed):
        return Answer(Outcome.SAFE, Basis.PROVED)
    if (answer := _not_safe(assessed)) is not None:
        return answer
    if assessed.stage.readdressed:
        return Answer(Outcome.OPEN, Basis.TWO_DISKS)
    crashed = {
        ran.asked.question
        for ran in assessed.runs
        if (ran.asked.leader, ran.asked.steps) == (order.leader, order.steps)
        and ran.asked.faults.get(CRASHES)
        and ran.outcome is Outcome.SAFE
    }
    covered = crashed.issuperset(SAFETY)
    if covered:
        return Answer(Outcome.SAFE, Basis.CRASH_EXPLORED)
    return Answer(Outcome.OPEN, Basis.NO_CRASH_EXPLORED)


def _going_back(assessed: Assessed) -> Answer:
    if _proved(assessed):
        return Answer(Outcome.SAFE, Basis.PROVED)
    return Answer(Outcome.OPEN, Basis.TWO_DISKS if assessed.stage.readdressed else Basis.BACK_NOT_EXPLORED)
