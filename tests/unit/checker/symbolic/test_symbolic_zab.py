"""The proofs of abstract Zab: every condition is proved, mistakes break conditions, and each attack is a run."""

import subprocess
import sys
from pathlib import Path

import pytest
import z3

from checker.symbolic.solvers import Opinion, ProofFinding, Solver, ask
from checker.symbolic.zab import premises
from checker.symbolic.zab.conditions import (
    HINTS,
    CheckedCondition,
    VerificationCondition,
    checked,
    conditions,
)
from checker.symbolic.zab.invariant import THEOREMS, clauses
from checker.symbolic.zab.premises import Premise
from checker.symbolic.zab.proof import (
    PremiseProof,
    answer_lines,
    broken_clause,
    exit_code,
    export,
    induction_story,
    is_possible,
    prove,
)
from checker.symbolic.zab.system import SIGNATURES, AbstractZab, Universe, ZabState
from tests.support.zab_attacks import ATTACKS, WITNESSES, WitnessScript
from tests.support.zab_mutants import MUTANTS, without


@pytest.fixture(scope="module")
def proofs() -> tuple[PremiseProof, ...]:
    return prove()


def test_every_condition_is_proved_under_every_premise(proofs: tuple[PremiseProof, ...]) -> None:
    assert [condition for proof in proofs for condition in proof.unproved] == []
    assert exit_code(proofs) == 0


def test_every_premise_has_a_condition_for_each_action_and_clause(proofs: tuple[PremiseProof, ...]) -> None:
    for proof in proofs:
        actions, invariant = premises.actions(proof.premise), clauses(proof.premise)
        # The first state and each action for each clause, each theorem, and three conditions on elections.
        assert len(proof.checked) == (1 + len(actions)) * len(invariant) + len(THEOREMS) + 3


@pytest.mark.parametrize("goal", ["any_leader", "may_promise", "may_establish"])
def test_each_condition_on_elections_needs_its_last_hypothesis(goal: str) -> None:
    """Without it, the epoch is not new, the server is ahead of the leader, or a quorum has not promised."""
    (condition,) = (candidate for candidate in conditions(Premise.VIEWS) if candidate.goal == goal)
    assert checked(condition).opinion.finding is ProofFinding.PROVED
    weaker = condition._replace(hypotheses=condition.hypotheses[:-1])
    assert checked(weaker).opinion.finding is ProofFinding.FAILED


def test_no_condition_takes_ten_seconds(proofs: tuple[PremiseProof, ...]) -> None:
    assert max(condition.opinion.seconds for proof in proofs for condition in proof.checked) < 10


def test_the_answer_says_that_refinement_is_not_checked(proofs: tuple[PremiseProof, ...]) -> None:
    lines = answer_lines(proofs)

    assert lines[-1] == "The abstract system is proved. That the specification refines it is checked, not proved."
    assert all(theorem.sentence in "\n".join(lines) for theorem in THEOREMS)
    assert sum(line.startswith("proved: ") for line in lines) == len(Premise)


@pytest.mark.parametrize("solver", Solver)
def test_a_condition_that_does_not_hold_is_no_proof(solver: Solver) -> None:
    x = z3.Int("x")
    condition = VerificationCondition("place", "goal", "x is positive", (x >= 0,), x > 0)

    assert checked(condition, solver).opinion.finding is ProofFinding.FAILED


@pytest.mark.parametrize("solver", Solver)
def test_a_condition_without_an_answer_is_no_proof(solver: Solver) -> None:
    # Fermat's theorem for cubes has no counterexample, and no solver proves it in a hundredth of a second.
    a, b, c = z3.Ints("a b c")
    positive = (a > 0, b > 0, c > 0)
    condition = VerificationCondition("place", "goal", "no cubes", positive, a * a * a + b * b * b != c * c * c)

    assert checked(condition, solver, seconds=0.01).opinion.finding is ProofFinding.OPEN


@pytest.mark.parametrize(
    ("findings", "code"),
    [
        ([ProofFinding.PROVED], 0),
        ([ProofFinding.PROVED, ProofFinding.OPEN], 20),
        ([ProofFinding.OPEN, ProofFinding.FAILED], 12),
    ],
)
def test_the_exit_code_tells_a_failure_from_no_answer(findings: list[ProofFinding], code: int) -> None:
    conditions = tuple(
        CheckedCondition("begin", "one_leader", "a sentence", Solver.Z3, Opinion(finding, 0.1)) for finding in findings
    )

    assert exit_code([PremiseProof(Premise.VIEWS, conditions)]) == code


def test_a_condition_without_an_answer_is_told_as_open() -> None:
    proved = CheckedCondition("begin", "one_leader", "Two are one.", Solver.Z3, Opinion(ProofFinding.PROVED, 0.1))
    open_one = proved._replace(solver=Solver.CVC5, opinion=Opinion(ProofFinding.OPEN, 60.0))
    lines = answer_lines([PremiseProof(Premise.VIEWS, (proved, open_one))])

    assert "  z3: 1 of 1 conditions proved, 0.1 s, slowest 0.10 s" in lines
    assert "  cvc5: 0 of 1 conditions proved, 60.0 s, slowest 60.00 s" in lines
    assert "  open (cvc5): one_leader after begin: Two are one." in lines
    assert not any(line.startswith("proved") for line in lines)


def test_another_solver_proves_the_same_conditions(proofs: tuple[PremiseProof, ...]) -> None:
    """All 2,909 conditions by both solvers take minutes: `quorate proofs --solver both`."""
    (seconded,) = prove([Premise.SERVED], solvers=[Solver.CVC5])
    assert seconded.unproved == ()
    (first,) = (proof for proof in proofs if proof.premise is Premise.SERVED)
    assert [(c.place, c.goal) for c in seconded.checked] == [(c.place, c.goal) for c in first.checked]


def test_an_exported_condition_is_a_script_whose_answer_is_unsat(tmp_path: Path) -> None:
    count = export(tmp_path, [Premise.VIEWS])
    scripts = sorted(tmp_path.rglob("*.smt2"))
    assert len(scripts) == count == len(list(conditions(Premise.VIEWS)))
    for solver in Solver:
        assert ask(solver, scripts[0].read_text(encoding="utf-8")).finding is ProofFinding.PROVED


def test_the_signatures_are_those_of_the_state() -> None:
    assert tuple(SIGNATURES) == ZabState._fields


def test_every_hint_names_actions_and_clauses_that_exist() -> None:
    places = {*premises.actions(Premise.ONE_GO), "theorems"}
    names = {clause.name for clause in clauses(Premise.ONE_GO)} | {theorem.name for theorem in THEOREMS}

    assert {place for place, _ in HINTS} <= places
    assert {name for (_, goal), hint in HINTS.items() for name in (goal, *hint.split())} <= names


def test_every_clause_and_every_action_has_a_sentence() -> None:
    for premise in Premise:
        assert all(clause.sentence.endswith(".") for clause in clauses(premise))
        assert all(action.sentence.endswith(".") for action in premises.actions(premise).values())


@pytest.mark.parametrize("name", premises.actions(Premise.ONE_GO))
def test_each_action_is_possible_in_a_state_of_the_invariant(name: str) -> None:
    """A proof about an action that no such state permits would say nothing."""
    assert is_possible(Premise.ONE_GO, premises.actions(Premise.ONE_GO)[name])


@pytest.mark.parametrize("name", MUTANTS)
def test_each_mutant_breaks_a_clause(name: str) -> None:
    mutant = MUTANTS[name]
    assert broken_clause(mutant.premise, mutant.actions()[mutant.action], dropped=mutant.dropped)


@pytest.mark.parametrize("witness", WITNESSES, ids=lambda witness: witness.sentence)
def test_each_witness_is_a_run_that_exists(witness: WitnessScript) -> None:
    assert witness.look().exists


@pytest.mark.parametrize("name", ATTACKS)
def test_each_attack_is_a_run_that_breaks_a_theorem(name: str) -> None:
    found = ATTACKS[name].look()

    assert found.exists
    actions = [line.split()[0] for line in found.story if line.split()[0] in ATTACKS[name].actions]
    assert tuple(actions) == ATTACKS[name].actions


@pytest.mark.parametrize(
    "name", ["ahead-is-counted", "ack-without-log", "acks-survive-truncation", "minus-one-counted"]
)
def test_the_same_script_without_the_mistake_has_no_such_run(name: str) -> None:
    assert ATTACKS[name].look(mistaken=False).exists is False


def test_every_mutant_has_an_attack() -> None:
    assert set(MUTANTS) == set(ATTACKS)


@pytest.mark.parametrize("premise", Premise)
def test_every_premise_on_quorums_is_needed(premise: Premise) -> None:
    z = AbstractZab(Universe())
    definitions = {"a view has one kind of quorum", "the zero reign precedes the first stage"}
    dropped = {axiom for mutant in MUTANTS.values() if mutant.premise is premise for axiom in mutant.dropped}

    assert set(premises.axioms(premise, z)) - definitions == dropped


def test_a_failed_condition_is_told_as_a_step_from_state_to_state() -> None:
    mutant = MUTANTS["commit-before-quorum"]
    story = induction_story(mutant.premise, mutant.action, "committed_acked", mutant.actions()["commit"])

    assert any(line.startswith("commit r=R") for line in story)
    assert (
        story[-1] == "this breaks committed_acked: A committed transaction was acknowledged by all servers of a quorum."
    )


def test_a_mutant_of_a_condition_that_does_not_exist_is_an_error() -> None:
    action = without("no such condition")(premises.actions(Premise.VIEWS)["accept"])
    with pytest.raises(KeyError, match="no such condition"):
        broken_clause(Premise.VIEWS, action)


def test_z3_is_not_loaded_with_the_package() -> None:
    code = "import sys, checker.symbolic.zab; sys.exit('z3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
