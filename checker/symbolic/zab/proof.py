"""The proofs of all theorems under each premise, in two processes, and their answer as lines of text; and runs.

A task of the proof is one premise, one place and one solver; a place is an action, "first state" or "theorems". The
exit code is 0 if every solver that is asked has proved every condition, 12 if one has a counterexample or failed, and
20 if a solver gave no answer in time and none failed.

Runs of abstract Zab in a small world are found by z3: witnesses, attacks by a mutant, and counterexamples to induction.
A **script** is a sequence of action names. z3 chooses the parameters, the epochs and the zxids. A run begins in the
first state, so a run that breaks a theorem is a reachable counterexample. A counterexample to induction is one step
from a state of the invariant, which may not be reachable.
"""

import itertools
import multiprocessing
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec
import z3

from checker.symbolic.premise import Premise
from checker.symbolic.solvers import MILLISECONDS, ProofFinding, Solver
from checker.symbolic.zab import premises
from checker.symbolic.zab.actions import ZabAction
from checker.symbolic.zab.conditions import (
    ELECTION,
    FIRST_STATE,
    IMPLICATION,
    CheckedCondition,
    VerificationCondition,
    checked,
    conditions,
    parameters,
    taken,
)
from checker.symbolic.zab.invariant import THEOREMS, clauses
from checker.symbolic.zab.system import SIGNATURES, AbstractZab, Formula, Symbol, Term, Universe, ZabState

Goal: TypeAlias = Callable[[AbstractZab, ZabState], Formula]

SMALL_WORLD = {"node": 3, "reign": 4, "quorum": 2, "txn": 2}
"""Enough for each counterexample to induction that is known."""
THREE_SERVERS = {"node": 3, "quorum": 3, "reign": 3, "txn": 2}
_labels = itertools.count()


class ScriptedRun(NamedTuple):
    """The answer for a script: whether such a run exists (None if z3 gave no answer), and the run as lines."""

    exists: bool | None
    story: tuple[str, ...]


def majorities(z: AbstractZab) -> list[Formula]:
    """Three servers, with majorities as the quorums of every reign."""
    elements = z.universe.elements
    pairs = ((0, 1), (1, 2), (0, 2))
    members = [
        z.member(n, q) == z3.BoolVal(i in pairs[j])
        for i, n in enumerate(elements["node"])
        for j, q in enumerate(elements["quorum"])
    ]
    return members + [
        z3.And(z.commits(r, q), z.establishes(r, q)) for r in elements["reign"] for q in elements["quorum"]
    ]


def run(
    script: Sequence[str],
    actions: Mapping[str, ZabAction],
    goal: Goal,
    *,
    premise: Premise = Premise.VIEWS,
    dropped: Collection[str] = (),
    sizes: Mapping[str, int] = THREE_SERVERS,
    world: Callable[[AbstractZab], list[Formula]] = majorities,
    seconds: float = 60,
) -> ScriptedRun:
    """Look for a run of the script whose last state satisfies the goal. Axioms that are `dropped` are not assumed."""
    z = AbstractZab(Universe(sizes))
    solver = _solver(seconds)
    solver.add(*z.axioms().values(), *_small_numbers(z), *world(z))
    solver.add(*(formula for name, formula in premises.axioms(premise, z).items() if name not in dropped))
    label = f"@{next(_labels)}."
    state = z.state(f"{label}0")
    solver.add(z.initial(state))
    steps: list[tuple[str, dict[str, Term]]] = []
    for number, name in enumerate(script, start=1):
        action = actions[name]
        chosen = parameters(z, action, f"{label}{number}")
        step = action.step(z, state, **chosen)
        solver.add(*step.conditions.values())
        steps.append((name, chosen))
        state = _named(z, solver, state, step.after, f"{label}{number}")
    solver.add(goal(z, state))
    answer = solver.check()
    if answer != z3.sat:
        return ScriptedRun(None if answer == z3.unknown else False, ())
    return ScriptedRun(True, tuple(_Narrator(z, solver.model()).run(steps, state)))


def _solver(seconds: float) -> z3.Solver:
    solver = z3.Solver()
    # The older arithmetic finds most runs in half the time.
    solver.set("timeout", int(seconds * MILLISECONDS), "arith.solver", 2)
    return solver


def _named(z: AbstractZab, solver: z3.Solver, before: ZabState, after: ZabState, label: str) -> ZabState:
    """The state after a step, with a symbol for each thing that changed, so that terms do not grow along a run."""
    changed = {}
    for name, (sorts, _) in SIGNATURES.items():
        new = getattr(after, name)
        if new is getattr(before, name):
            continue
        changed[name] = z.symbol(name, label)
        solver.add([changed[name](*elements) == new(*elements) for elements in z.universe.tuples(sorts)])
    return after._replace(**changed)


def _small_numbers(z: AbstractZab) -> list[Formula]:
    """Bounds that make a story easy to read, and the first element for the zero reign."""
    elements = z.universe.elements
    epochs = [z3.And(z.epoch(r) >= 0, z.epoch(r) <= 9) for r in elements["reign"]]
    zxids = [z3.And(z.zxid(t) > 0, z.zxid(t) < 20) for t in elements["txn"]]
    return [z.zero == elements["reign"][0], *epochs, *zxids]


def is_possible(premise: Premise, action: ZabAction) -> bool:
    """Whether the action can be taken in some state of the invariant of a small world."""
    _, solver, _ = _induction_step(premise, action)
    return bool(solver.check() == z3.sat)


def broken_clause(premise: Premise, action: ZabAction, *, dropped: Collection[str] = ()) -> str | None:
    """The first clause that the action breaks in a small world. Axioms that are `dropped` are not assumed."""
    z, solver, after = _induction_step(premise, action, dropped)
    for clause in clauses(premise):
        solver.push()
        solver.add(z3.Not(clause.formula(z, after)))
        if solver.check() == z3.sat:
            return clause.name
        solver.pop()
    return None


def induction_story(premise: Premise, place: str, goal: str, action: ZabAction | None = None) -> tuple[str, ...]:
    """A step from a state of the invariant to one that breaks the clause `goal`; one line if there is none."""
    taken_action = action or premises.actions(premise)[place]
    z, solver, after = _induction_step(premise, taken_action)
    clause = next(candidate for candidate in clauses(premise) if candidate.name == goal)
    solver.add(*_small_numbers(z), z3.Not(clause.formula(z, after)))
    if solver.check() != z3.sat:
        return ("no counterexample was found with three servers",)
    narrator = _Narrator(z, solver.model())
    chosen = parameters(z, taken_action)
    return (
        *narrator.reigns(),
        *narrator.state(z.state()),
        narrator.action(taken_action.name, chosen),
        *narrator.state(after),
        f"this breaks {goal}: {clause.sentence}",
    )


def _induction_step(
    premise: Premise, action: ZabAction, dropped: Collection[str] = ()
) -> tuple[AbstractZab, z3.Solver, ZabState]:
    z, invariant = _small_world(premise)
    step = taken(z, z.state(), action)
    solver = _solver(20)
    assumed = [formula for name, formula in premises.axioms(premise, z).items() if name not in dropped]
    solver.add(*z.axioms().values(), *assumed, *step.conditions.values(), *invariant)
    return z, solver, step.after


@cache
def _small_world(premise: Premise) -> tuple[AbstractZab, tuple[Formula, ...]]:
    z = AbstractZab(Universe(SMALL_WORLD))
    return z, tuple(clause.formula(z, z.state()) for clause in clauses(premise))


class _Narrator:
    """Tells a model of z3: servers are S1, S2 ..., reigns R1, R2 ..., transactions T1, T2 ..."""

    LETTERS = {"node": "S", "reign": "R", "txn": "T", "quorum": "Q"}  # noqa: RUF012

    def __init__(self, z: AbstractZab, model: z3.ModelRef) -> None:
        self._z, self._model = z, model
        self._elements = z.universe.elements
        # The first reign is the zero reign, so the numbers of reigns begin with 0.
        self._names = {
            str(element): f"{self.LETTERS[sort]}{i + (sort != 'reign')}"
            for sort, elements in self._elements.items()
            for i, element in enumerate(elements)
        }

    def run(self, told: Sequence[tuple[str, Mapping[str, Term]]], last: ZabState) -> list[str]:
        """The reigns, one line for each action, and the last state."""
        return [*self.reigns(), *(self.action(name, chosen) for name, chosen in told), *self.state(last)]

    def reigns(self) -> list[str]:
        """One line for each reign, and one for the transactions."""
        z = self._z
        lines = [
            f"{self._name(r)} is epoch {self._name(z.epoch(r))}, led by {self._name(z.server(r))}; quorums "
            + self._quorums(r)
            for r in self._elements["reign"]
            if not self._holds(r == z.zero)
        ]
        txns = (f"{self._name(t)} has zxid {self._name(z.zxid(t))}" for t in self._elements["txn"])
        return [*lines, "; ".join(txns)]

    def action(self, name: str, chosen: Mapping[str, Term]) -> str:
        values = {key: self._name(value) for key, value in chosen.items() if key not in {"base", "served_by"}}
        for key, value in values.items():
            if value.startswith("Q"):
                values[key] = self._servers(chosen[key])
        return f"{name} " + ", ".join(f"{key}={value}" for key, value in values.items())

    def state(self, s: ZabState) -> list[str]:
        servers = [
            f"  {self._name(n)}: acceptedEpoch {self._name(s.accepted(n))}, current reign "
            f"{self._name(s.current(n))}, log {self._txns(s.log, n)}"
            for n in self._elements["node"]
        ]
        reigns = [r for r in self._elements["reign"] if self._holds(z3.And(s.begun(r), r != self._z.zero))]
        return [*servers, *(self._reign(s, r) for r in reigns)]

    def _reign(self, s: ZabState, r: Term) -> str:
        established = "established" if self._holds(s.established(r)) else "not established"
        quorums = self._elements["quorum"]

        def committed(reign: Term, t: Term) -> Formula:
            return z3.Or([s.committed(reign, t, q) for q in quorums])

        began = self._txns(s.initial, r)
        return f"  {self._name(r)}: {established}, began with {began}, committed {self._txns(committed, r)}"

    def _txns(self, has: Symbol, whose: Term) -> str:
        return "{" + ", ".join(self._name(t) for t in self._elements["txn"] if self._holds(has(whose, t))) + "}"

    def _servers(self, q: Term) -> str:
        members = (n for n in self._elements["node"] if self._holds(self._z.member(n, q)))
        return "{" + ", ".join(map(self._name, members)) + "}"

    def _quorums(self, r: Term) -> str:
        z = self._z
        quorums = [q for q in self._elements["quorum"] if self._holds(z3.Or(z.commits(r, q), z.establishes(r, q)))]
        return " ".join(sorted({self._servers(q) for q in quorums})) or "none"

    def _holds(self, formula: Formula) -> bool:
        return bool(z3.is_true(self._model.eval(formula, model_completion=True)))

    def _name(self, term: Term) -> str:
        value = str(self._model.eval(term, model_completion=True))
        return self._names.get(value, value)


PROVED, REFUTED, UNDECIDED = 0, 12, 20
MOST_PROCESSES = 2
SCOPE = "The abstract system is proved. That the specification refines it is checked, not proved."
ANY_LEADER = "It holds for any choice of leaders, so safety needs no guarantee of the election."


TaskT = TypeVar("TaskT")
AnswerT = TypeVar("AnswerT")


class ProofTask(NamedTuple):
    """The conditions of one premise at one place, for one solver."""

    premise: Premise
    place: str
    solver: Solver
    seed: int
    seconds: float


class PremiseProof(msgspec.Struct, frozen=True):
    """The opinions on the conditions under one premise."""

    premise: Premise
    checked: tuple[CheckedCondition, ...]

    def of(self, solver: Solver) -> tuple[CheckedCondition, ...]:
        """The opinions of one solver."""
        return tuple(condition for condition in self.checked if condition.solver is solver)

    @property
    def unproved(self) -> tuple[CheckedCondition, ...]:
        """The conditions that a solver has not proved."""
        return tuple(condition for condition in self.checked if condition.opinion.finding is not ProofFinding.PROVED)


def prove(
    chosen: Sequence[Premise] = tuple(Premise),
    *,
    solvers: Sequence[Solver] = (Solver.Z3,),
    seed: int = 0,
    seconds: float = 60,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> tuple[PremiseProof, ...]:
    """Ask each solver about every condition under these premises, for at most `seconds` each.

    `progress` is called with the number of finished tasks and of all tasks.
    """
    tasks = [
        ProofTask(premise, place, solver, seed, seconds)
        for solver in solvers
        for premise in chosen
        for place in places(premise)
    ]
    answers = in_processes(check_task, tasks, progress)
    return tuple(
        PremiseProof(premise, tuple(answer for task in tasks if task.premise is premise for answer in answers[task]))
        for premise in chosen
    )


def places(premise: Premise) -> tuple[str, ...]:
    """The places of the conditions under a premise."""
    return (FIRST_STATE, *premises.actions(premise), ELECTION, IMPLICATION)


def in_processes(
    work: Callable[[TaskT], AnswerT], tasks: Sequence[TaskT], progress: Callable[[int, int], None]
) -> dict[TaskT, AnswerT]:
    """The answers to tasks, in two processes. `progress` is called with the number of finished tasks and of all."""
    answers: dict[TaskT, AnswerT] = {}
    processes = min(MOST_PROCESSES, os.cpu_count() or 1, len(tasks))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        running = {pool.submit(work, task): task for task in tasks}
        for count, future in enumerate(as_completed(running), start=1):
            answers[running[future]] = future.result()
            progress(count, len(tasks))
    return answers


def check_task(task: ProofTask) -> tuple[CheckedCondition, ...]:
    """Check the conditions of one task."""
    return tuple(
        checked(condition, task.solver, seed=task.seed, seconds=task.seconds)
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
    lines = [
        f"{'unproved' if proof.unproved else 'proved'}: {proof.premise.label}, if {proof.premise.value}",
        f"  {len(clauses(proof.premise))} clauses",
    ]
    for solver in dict.fromkeys(condition.solver for condition in proof.checked):
        opinions = [condition.opinion for condition in proof.of(solver)]
        proved = sum(opinion.finding is ProofFinding.PROVED for opinion in opinions)
        seconds = [opinion.seconds for opinion in opinions]
        lines.append(
            f"  {solver.value}: {proved} of {len(opinions)} conditions proved, {sum(seconds):.1f} s, "
            f"slowest {max(seconds):.2f} s"
        )
    for condition in proof.unproved:
        finding = condition.opinion.finding
        lines.append(
            f"  {finding.value} ({condition.solver.value}): {condition.goal} after {condition.place}: "
            f"{condition.sentence}"
        )
        if finding is ProofFinding.FAILED and condition.place in premises.actions(proof.premise):
            lines += [f"    {line}" for line in induction_story(proof.premise, condition.place, condition.goal)]
    return lines


def export(folder: Path, chosen: Sequence[Premise] = tuple(Premise)) -> int:
    """Write each condition as an SMT-LIB script, below `folder` by premise; return their number. Raises OSError.

    A condition is proved if the answer to its script is "unsat".
    """
    count = 0
    for premise in chosen:
        directory = folder / premise.label
        directory.mkdir(parents=True, exist_ok=True)
        for condition in conditions(premise):
            file = folder / f"{script_name(premise, condition)}.smt2"
            file.write_text(condition.script, encoding="utf-8")
            count += 1
    return count


def script_name(premise: Premise, condition: VerificationCondition) -> str:
    """The name of the script of a condition, below a folder: `views/first-state.one_leader`."""
    return f"{premise.label}/{condition.place.replace(' ', '-')}.{condition.goal}"


def exit_code(proofs: Iterable[PremiseProof]) -> int:
    """The exit code: a failed condition is worse than one without an answer."""
    findings = {condition.opinion.finding for proof in proofs for condition in proof.checked}
    if ProofFinding.FAILED in findings:
        return REFUTED
    return UNDECIDED if ProofFinding.OPEN in findings else PROVED
