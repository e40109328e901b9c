"""The proofs of all theorems under each premise, in two processes, and their answer as lines of text.

A task is one premise and one place: an action, "first state" or "theorems". The exit code is 0 if every condition is
proved, 12 if one has a counterexample or failed, and 20 if z3 gave no answer in time and none failed.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import NamedTuple

import msgspec

from checker.symbolic.zab import premises
from checker.symbolic.zab.conditions import (
    ELECTION,
    FIRST_STATE,
    IMPLICATION,
    CheckedCondition,
    ProofFinding,
    checked,
    conditions,
)
from checker.symbolic.zab.invariant import THEOREMS, clauses
from checker.symbolic.zab.premises import Premise
from checker.symbolic.zab.runs import induction_story

PROVED, REFUTED, UNDECIDED = 0, 12, 20
MOST_PROCESSES = 2
SCOPE = "The abstract system is proved. That the specification refines it is checked, not proved."
ANY_LEADER = "It holds for any choice of leaders, so safety needs no guarantee of the election."


class ProofTask(NamedTuple):
    """The conditions of one premise at one place."""

    premise: Premise
    place: str
    seed: int
    seconds: float


class PremiseProof(msgspec.Struct, frozen=True):
    """The conditions that were checked under one premise; `seconds` is the time of z3."""

    premise: Premise
    checked: tuple[CheckedCondition, ...]

    @property
    def seconds(self) -> float:
        """The time that z3 took for all conditions."""
        return sum(each.seconds for each in self.checked)

    @property
    def unproved(self) -> tuple[CheckedCondition, ...]:
        """The conditions with no proof."""
        return tuple(each for each in self.checked if each.finding is not ProofFinding.PROVED)


def prove(
    chosen: Sequence[Premise] = tuple(Premise),
    *,
    seed: int = 0,
    seconds: float = 60,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> tuple[PremiseProof, ...]:
    """Check every condition under these premises, each for at most `seconds`.

    `progress` is called with the number of finished tasks and of all tasks.
    """
    tasks = [
        ProofTask(premise, place, seed, seconds)
        for premise in chosen
        for place in (FIRST_STATE, *premises.actions(premise), ELECTION, IMPLICATION)
    ]
    answers: dict[ProofTask, tuple[CheckedCondition, ...]] = {}
    processes = min(MOST_PROCESSES, os.cpu_count() or 1, len(tasks))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        running = {pool.submit(check_task, task): task for task in tasks}
        for done, future in enumerate(as_completed(running), start=1):
            answers[running[future]] = future.result()
            progress(done, len(tasks))
    return tuple(
        PremiseProof(premise, tuple(answer for task in tasks if task.premise is premise for answer in answers[task]))
        for premise in chosen
    )


def check_task(task: ProofTask) -> tuple[CheckedCondition, ...]:
    """Check the conditions of one task."""
    return tuple(
        checked(condition, seed=task.seed, seconds=task.seconds)
        for condition in conditions(task.premise, (task.place,))
    )


def answer_lines(proofs: Iterable[PremiseProof]) -> tuple[str, ...]:
    """The answer for a terminal: the theorems, each premise with its figures, and a story for each failure."""
    lines = ["Zab, for any number of servers, views, reigns, transactions, crashes, restarts and lost messages:"]
    lines += [f"  {theorem.sentence}" for theorem in THEOREMS]
    lines += [f"  {ANY_LEADER}"]
    for proof in proofs:
        lines += _premise_lines(proof)
    return (*lines, SCOPE)


def _premise_lines(proof: PremiseProof) -> list[str]:
    slowest = max(each.seconds for each in proof.checked)
    count = len(proof.checked)
    name = proof.premise.name.lower().replace("_", "-")
    lines = [
        f"{'unproved' if proof.unproved else 'proved'}: {name}, if {proof.premise.value}",
        f"  {len(clauses(proof.premise))} clauses, {count - len(proof.unproved)} of {count} conditions proved, "
        f"{proof.seconds:.1f} s, slowest {slowest:.2f} s",
    ]
    for each in proof.unproved:
        lines.append(f"  {each.finding.value}: {each.goal} after {each.place}: {each.sentence}")
        if each.finding is ProofFinding.FAILED and each.place in premises.actions(proof.premise):
            lines += [f"    {line}" for line in induction_story(proof.premise, each.place, each.goal)]
    return lines


def exit_code(proofs: Iterable[PremiseProof]) -> int:
    """The exit code: a failed condition is worse than one without an answer."""
    findings = {each.finding for proof in proofs for each in proof.checked}
    if ProofFinding.FAILED in findings:
        return REFUTED
    return UNDECIDED if ProofFinding.OPEN in findings else PROVED
