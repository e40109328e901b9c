"""Our model of Apache's Zab.tla has the counts that TLC printed for the file, and each of its ten invariants can fail.

The file is that of ZooKeeper's repository in November 2026 (last modified 2023-01-31 by its own history). TLC is that
of the TLA+ tools at commit cc6b616cf of 2026-04-29, and searched with all ten invariants and `CHECK_DEADLOCK FALSE`.
`python -m benchmarks tlc --jar JAR --zab FILE` repeats such a search.
"""

from typing import Any

import pytest

from benchmarks.page.text import ZAB_COUNTS
from benchmarks.search_alone import model_of
from benchmarks.tlc.official import Instance
from benchmarks.tlc.zab import Proposal, Server, Txn, delivered, model
from checker.engine import TRIVIAL, Finding, plain, search
from checker.engine.symmetric_search import SYMMETRIC

TXN_1, TXN_2, LATER = ((1, 1), 0), ((1, 2), 1), ((2, 1), 2)


def test_two_servers_have_the_states_of_tlc() -> None:
    """TLC: "1723 states generated, 1451 distinct states found", depth 24, for 2 servers, one of all, any epochs."""
    result = plain.explore(model(2, 1, 1, None, 1))

    assert (1 + result.transitions, result.states, 1 + result.depth) == (1_723, 1_451, 24)
    assert not result.found


def test_three_servers_have_the_states_of_tlc_with_symmetry() -> None:
    """TLC: "9019 states generated, 3656 distinct states found", depth 32, for 3 servers and 2 transactions."""
    result = search.explore(model(3, 0, 2), frontier=SYMMETRIC)

    assert (1 + result.transitions, result.states, 1 + result.depth) == (9_019, 3_656, 32)
    assert not result.found
    assert all(evaluated.premise for evaluated in result.evaluations.values())


SMALL = 30_000  # states; the others take more than a second


@pytest.mark.parametrize(
    ("instance", "symmetric", "distinct", "generated", "depth"),
    [pytest.param(*row, marks=[] if row[2] < SMALL and row[0] < "4" else pytest.mark.slow) for row in ZAB_COUNTS],
)
def test_the_counts_of_the_page_are_those_of_tlc(
    instance: str, symmetric: str, distinct: int, generated: int, depth: int
) -> None:
    frontier = SYMMETRIC if symmetric == "yes" else search.BREADTH_FIRST
    result = search.explore(model(*Instance.of(instance)), frontier=frontier)

    assert (result.states, 1 + result.transitions, 1 + result.depth) == (distinct, generated, depth)
    assert not result.found


@pytest.mark.parametrize(
    ("name", "holds", "fails"),
    [
        ("ShouldNotBeTriggered", (frozenset(),), (frozenset({"ackInconsistent"}),)),
        ("Leadership1", (1, -1, 2), (1, -1, 1)),
        ("Leadership2", (frozenset({(1, "s1"), (2, "s1")}),), (frozenset({(1, "s1"), (1, "s2")}),)),
        ("PrefixConsistency", ((TXN_1,), (TXN_1, TXN_2), ()), ((TXN_1,), (TXN_2,), ())),
        ("Integrity", (frozenset({TXN_1}), (TXN_1,), (), ()), (frozenset({TXN_1}), (TXN_1,), (TXN_2,), ())),
        ("Agreement", ((TXN_1,), (TXN_1, TXN_2), ()), ((TXN_1,), (TXN_2,), ())),
        ("TotalOrder", ((TXN_1, TXN_2), (TXN_1, TXN_2), ()), ((TXN_1, TXN_2), (TXN_2, TXN_1), ())),
        ("GlobalPrimaryOrder", ((TXN_1, LATER), (), ()), ((LATER, TXN_1), (), ())),
        (
            "PrimaryIntegrity",
            ((2, None, (TXN_1,)), (0, "s1", (TXN_1,)), (0, None, ())),
            ((2, None, ()), (0, "s1", (TXN_1,)), (0, None, ())),
        ),
    ],
)
def test_an_invariant_holds_and_fails(name: str, holds: tuple[Any, ...], fails: tuple[Any, ...]) -> None:
    check = next(prop.check for prop in model().properties if prop.name == name)

    assert check(*holds) is None
    assert isinstance(check(*fails), Finding)


def test_the_order_of_a_primary_is_that_of_all_its_pairs() -> None:
    """The file asks for some pair; a transaction paired with itself is one, so that this state would pass there."""
    check = next(prop.check for prop in model().properties if prop.name == "LocalPrimaryOrder")
    proposals = frozenset(Proposal("s1", 1, zxid, value) for zxid, value in (TXN_1, TXN_2))

    assert check(proposals, (TXN_1, TXN_2), (), ()) is None
    assert isinstance(check(proposals, (TXN_2, LATER), (), ()), Finding)
    assert check(proposals, (TXN_1,), (), ()) is TRIVIAL
    assert check(frozenset({Proposal("s1", 1, *TXN_1), Proposal("s2", 1, *TXN_2)}), (TXN_2, LATER), (), ()) is TRIVIAL


def test_a_commit_beyond_the_history_is_an_error() -> None:
    with pytest.raises(IndexError):
        delivered(Server(history=(Txn((1, 1), 0, frozenset(), 1),), committed=2))


def test_the_measured_model_is_that_of_an_instance() -> None:
    assert len([column for column in model_of("zab_tla", "2,1,1,-,1").columns if "->" not in column.name]) == 2 + 8
