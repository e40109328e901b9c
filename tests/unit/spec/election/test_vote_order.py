"""The order of votes: FLEPredicateTest's four cases, weights, and the first vote of servers that do not vote."""

import pytest

from spec.election import LONG_MIN, Variant, Vote, initial_vote, is_better
from spec.quorum import hierarchical_view, majority_view

THREE = majority_view({0, 1, 2})


@pytest.mark.parametrize(
    ("new", "current", "wins"),
    [
        pytest.param(Vote(4, 0, 0), Vote(3, 0, 2), False, id="lower epoch loses, whatever the id"),
        pytest.param(Vote(0, 0, 1), Vote(1, 0, 0), True, id="later epoch wins"),
        pytest.param(Vote(0, 1, 0), Vote(1, 0, 0), True, id="same epoch, higher zxid wins"),
        pytest.param(Vote(1, 1, 0), Vote(0, 1, 0), True, id="same epoch and zxid, higher id wins"),
    ],
)
def test_the_four_cases_of_fle_predicate_test(new: Vote, current: Vote, wins: bool) -> None:
    assert is_better(THREE, new, current) is wins


def test_a_leader_of_weight_zero_never_wins() -> None:
    view = hierarchical_view({1: {1, 2, 3}}, weights={3: 0})

    assert not is_better(view, Vote(3, 9, 9), Vote(1, 0, 0))
    assert is_better(view, Vote(2, 0, 0), Vote(1, 0, 0))


def test_with_plain_majorities_a_stranger_has_weight() -> None:
    """QuorumMaj.getWeight is 1 for every server, so a vote for a stranger ends FinalizeWait."""
    assert is_better(THREE, Vote(5, 0, 0), Vote(2, 0, 0))


def test_in_a_hierarchy_a_stranger_has_none() -> None:
    assert not is_better(hierarchical_view({1: {1, 2, 3}}), Vote(5, 0, 0), Vote(2, 0, 0))


def test_a_voter_enters_with_itself() -> None:
    assert initial_vote(2, THREE, last_zxid=7, current_epoch=1) == Vote(2, 7, 1)


def test_an_observer_enters_with_the_lowest_vote_there_is() -> None:
    view = majority_view({1, 2}, observers={3})

    assert initial_vote(3, view, last_zxid=7, current_epoch=1) == Vote(LONG_MIN, LONG_MIN, LONG_MIN)


def test_a_server_left_out_of_its_view_keeps_its_data_but_names_nobody() -> None:
    assert initial_vote(9, THREE, last_zxid=7, current_epoch=1) == Vote(LONG_MIN, 7, 1)


def test_zookeeper_1419_makes_the_order_a_cycle() -> None:
    """With the old third clause, each of three votes beats another, and the servers never settle."""
    old = frozenset({Variant.VOTE_ORDER_CYCLES})
    later_epoch, more_data, higher_id = Vote(1, 5, 2), Vote(2, 6, 1), Vote(3, 5, 1)

    assert is_better(THREE, later_epoch, more_data, old)
    assert is_better(THREE, more_data, higher_id, old)
    assert is_better(THREE, higher_id, later_epoch, old)
    assert not is_better(THREE, higher_id, later_epoch)
