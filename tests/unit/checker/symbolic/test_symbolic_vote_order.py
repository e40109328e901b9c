"""The order of votes is proved to be a total order for all integers; before ZOOKEEPER-1419 it had a cycle."""

import subprocess
import sys
from itertools import combinations

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from checker import symbolic
from checker.symbolic import vote_order
from checker.symbolic.proofs import Proof, Refutation, Sizes, Theorem
from checker.symbolic.vote_order import BEFORE_1419, Cycle, Ranked, Variants, better, smallest_cycle
from spec.election import Vote, is_better
from spec.quorum import majority_view

VIEW = majority_view(range(1, 6))
NOW: Variants = frozenset()

near = st.integers(-2, 3)
numbers = st.one_of(near, st.integers(-(2**63), 2**63 - 1), near.map(lambda n: n << 32))
votes = st.builds(Vote, leader=numbers, zxid=numbers, peer_epoch=numbers)


def beat_each_other(one: Vote, other: Vote) -> bool:
    return is_better(VIEW, one, other, BEFORE_1419) and is_better(VIEW, other, one, BEFORE_1419)


@pytest.mark.parametrize("proof", vote_order.all_proofs(), ids=lambda proof: proof.statement)
def test_every_statement_holds_of_all_integers(proof: Proof) -> None:
    assert isinstance(proof, Theorem)


def test_of_the_order_before_1419_two_statements_of_four_are_refuted() -> None:
    irreflexive, asymmetric, transitive, total = vote_order.order_of_votes(BEFORE_1419)

    assert isinstance(irreflexive, Theorem)
    assert isinstance(asymmetric, Refutation)
    assert isinstance(transitive, Refutation)
    assert isinstance(total, Theorem)


def test_what_refutes_the_order_before_1419_refutes_it_before_the_specification_too() -> None:
    _, refuted, _, _ = vote_order.order_of_votes(BEFORE_1419)
    assert isinstance(refuted, Refutation)
    assert isinstance(refuted.counterexample, Sizes)
    case = refuted.counterexample
    one, other = (Vote(case[f"server{n}"], case[f"zxid{n}"], case[f"epoch{n}"]) for n in (1, 2))

    assert beat_each_other(one, other)


# -- The cycle -----------------------------------------------------------------------------------------------


def test_the_smallest_cycle_is_of_two_servers_without_a_transaction_of_which_one_has_seen_an_epoch_more() -> None:
    found = smallest_cycle(2, BEFORE_1419)

    assert found == Cycle((Vote(2, 0, 0), Vote(1, 0, 1)))


def test_the_smallest_cycle_of_three_takes_one_transaction_more() -> None:
    """1 has joined the later epoch, 3 has the newer data, and 2 has a higher id than 1."""
    found = smallest_cycle(3, BEFORE_1419)

    assert found == Cycle((Vote(2, 0, 0), Vote(1, 0, 1), Vote(3, 1, 0)))


@pytest.mark.parametrize("length", [2, 3, 4])
def test_each_vote_of_a_cycle_beats_the_next_by_the_specification_itself(length: int) -> None:
    found = smallest_cycle(length, BEFORE_1419)

    assert found is not None
    assert len({vote.leader for vote in found.votes}) == length
    assert all(is_better(VIEW, one, other, BEFORE_1419) for one, other in found.steps)


@pytest.mark.parametrize("length", [2, 3, 4])
def test_a_cycle_holds_one_pair_that_beat_each_other_since_none_can_do_without(length: int) -> None:
    """For cycles of any length, `every_cycle_has_a_pair` proves that such a pair is necessary."""
    found = smallest_cycle(length, BEFORE_1419)

    assert found is not None
    assert sum(beat_each_other(one, other) for one, other in combinations(found.votes, 2)) == 1


@pytest.mark.parametrize("length", [2, 3, 4])
def test_the_order_of_today_has_no_cycle(length: int) -> None:
    assert smallest_cycle(length, NOW) is None


def test_a_step_of_the_cycle_goes_against_the_order_of_today_and_the_others_with_it() -> None:
    found = smallest_cycle(3, BEFORE_1419)

    assert found is not None
    assert [is_better(VIEW, one, other) for one, other in found.steps] == [False, True, True]


def test_the_cycle_is_printed_step_by_step_with_the_clause_that_decides() -> None:
    found = smallest_cycle(3, BEFORE_1419)

    assert found is not None
    assert found.lines() == (
        "server 2 (epoch 0, zxid 0:0) beats server 1 (epoch 1, zxid 0:0): "
        "its zxid is the same and its id is higher, whatever the epochs are",
        "server 1 (epoch 1, zxid 0:0) beats server 3 (epoch 0, zxid 0:1): its epoch is higher",
        "server 3 (epoch 0, zxid 0:1) beats server 2 (epoch 0, zxid 0:0): its epoch is the same and its zxid is higher",
    )


def test_one_vote_alone_is_no_cycle() -> None:
    with pytest.raises(ValueError, match="two votes or more, not 1"):
        smallest_cycle(1)


# -- The formula is the specification ------------------------------------------------------------------------


@pytest.mark.parametrize("variants", [NOW, BEFORE_1419], ids=["now", "before 1419"])
@given(one=votes, other=votes)
@settings(max_examples=300, deadline=None)
def test_the_formula_says_what_the_specification_says(variants: Variants, one: Vote, other: Vote) -> None:
    """The formula is evaluated for numbers, as the solver reads them: values are substituted for its own variables."""
    new, old = Ranked(*z3.Ints("e1 z1 s1")), Ranked(*z3.Ints("e2 z2 s2"))
    given_numbers = zip((*new, *old), (*Ranked.of(one), *Ranked.of(other)), strict=True)
    formula = z3.substitute(better(new, old, variants), *((v, z3.IntVal(n)) for v, n in given_numbers))

    assert z3.is_true(z3.simplify(formula)) == is_better(VIEW, one, other, variants)


@given(one=votes, other=votes)
@settings(max_examples=300)
def test_no_two_clauses_of_the_order_of_today_apply_at_once(one: Vote, other: Vote) -> None:
    """So the words printed with a step are the complete reason."""
    applying = [clause for clause in vote_order.CLAUSES if clause.holds(Ranked.of(one), Ranked.of(other))]

    assert len(applying) == is_better(VIEW, one, other)


# -- Statements and printed lines ----------------------------------------------------------------------------


def test_the_statements_stand_beside_those_of_quorums() -> None:
    statements = [proof.statement for proof in symbolic.every_proof()]

    assert len(set(statements)) == len(statements)
    assert "the order of votes is transitive" in statements
    assert any("of n voters meet" in statement for statement in statements)


def test_all_of_it_in_lines() -> None:
    lines = symbolic.vote_order_lines()

    assert lines[0] == "proved: the order of votes is irreflexive"
    assert "the smallest cycle of 3 votes before ZOOKEEPER-1419:" in lines
    assert sum("beats" in line for line in lines) == 2 + 3


def test_naming_the_package_does_not_load_the_solver() -> None:
    code = "import sys, checker.symbolic; sys.exit('z3' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
