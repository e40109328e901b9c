"""Two views and their disjoint quorums: a growing ensemble, and brute force compared with the solver."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.symbolic.disjoint import DisjointQuorums, disjoint_quorums
from spec.quorum import View, hierarchical_view, majority_view
from tests.support.quorums import minimal_quorums


def of(size: int) -> View:
    return majority_view(range(1, size + 1))


def test_growing_three_to_five_splits_two_against_three() -> None:
    # As observed on real servers: two leaders, one with 2 of 3 and one with 3 of 5.
    assert disjoint_quorums(of(3), of(5)) == DisjointQuorums(frozenset({1, 2}), frozenset({3, 4, 5}))


@pytest.mark.parametrize(("old", "new"), [(3, 4), (4, 5), (5, 6), (2, 3), (1, 2)])
def test_growing_by_one_never_splits(old: int, new: int) -> None:
    assert disjoint_quorums(of(old), of(new)) is None


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 51])
def test_two_majorities_of_one_view_always_meet(size: int) -> None:
    assert disjoint_quorums(of(size), of(size)) is None


def test_observers_belong_to_no_quorum() -> None:
    watched = majority_view({1, 2, 3}, observers={4, 5})
    assert disjoint_quorums(of(3), watched) is None


def test_making_two_observers_voters_is_growing_three_to_five() -> None:
    watched = majority_view({1, 2, 3}, observers={4, 5})
    found = disjoint_quorums(watched, of(5))
    assert found is not None
    assert found.b == {3, 4, 5}


def test_the_three_groups_of_three_of_the_documentation_always_meet() -> None:
    nine = hierarchical_view({1: (1, 2, 3), 2: (4, 5, 6), 3: (7, 8, 9)})
    assert disjoint_quorums(nine, nine) is None


def test_giving_up_groups_for_a_majority_of_the_same_servers_splits() -> None:
    # Four servers win two groups; five others are a majority of nine.
    nine = hierarchical_view({1: (1, 2, 3), 2: (4, 5, 6), 3: (7, 8, 9)})
    found = disjoint_quorums(nine, of(9))
    assert found == DisjointQuorums(frozenset({1, 2, 4, 5}), frozenset({3, 6, 7, 8, 9}))


def test_negative_weights_split_a_view_from_itself() -> None:
    view = hierarchical_view({1: (1, 2, 3)}, weights={3: -1})
    assert disjoint_quorums(view, view) == DisjointQuorums(frozenset({1}), frozenset({2}))


def test_of_many_pairs_the_smallest_is_given() -> None:
    # Server 4 alone wins the first group, and 2 the second; 1 and 3 may be members and are not needed.
    heavy = hierarchical_view({1: (1, 3, 4), 2: (2, 5)}, weights={1: 1, 3: 1, 4: 3, 2: 5, 5: 2})
    found = disjoint_quorums(heavy, majority_view({4, 5, 6, 7}))
    assert found == DisjointQuorums(frozenset({2, 4}), frozenset({5, 6, 7}))


def test_strangers_share_nothing() -> None:
    found = disjoint_quorums(majority_view({1, 2, 3}), majority_view({4, 5}))
    assert found == DisjointQuorums(frozenset({1, 2}), frozenset({4, 5}))


def test_a_view_without_quorums_has_none_to_be_disjoint() -> None:
    assert disjoint_quorums(majority_view(()), of(3)) is None


@st.composite
def small_views(draw: st.DrawFn) -> View:
    """Draw up to five voters of six servers, in a majority or in groups whose weights may be negative."""
    servers = draw(st.lists(st.integers(1, 6), unique=True, max_size=5))
    if draw(st.booleans()):
        return majority_view(servers)
    groups: dict[int, list[int]] = {}
    for sid in servers:
        groups.setdefault(draw(st.integers(1, 3)), []).append(sid)
    weights = {sid: draw(st.integers(-2, 3)) for sid in servers}
    return hierarchical_view(groups, weights, draw(st.sets(st.sampled_from(servers))) if servers else ())


@settings(deadline=None, max_examples=150)
@given(small_views(), small_views())
def test_the_solver_finds_what_enumeration_finds(a: View, b: View) -> None:
    pairs = product(minimal_quorums(a), minimal_quorums(b))
    sizes = [len(left) + len(right) for left, right in pairs if not left & right]
    found = disjoint_quorums(a, b)
    assert (found.size if found else None) == min(sizes, default=None)
    if found is not None:
        assert not found.a & found.b
        assert a.contains_quorum(found.a)
        assert b.contains_quorum(found.b)
