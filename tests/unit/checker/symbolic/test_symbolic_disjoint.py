"""Two views and their disjoint quorums: a growing ensemble, and brute force and z3 compared with the search."""

from itertools import product

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.symbolic import disjoint
from checker.symbolic.disjoint import DisjointQuorums, UndecidedError, disjoint_quorums
from spec.quorum import Sid, View, hierarchical_view, majority_view
from spec.quorum.systems import Majority, java_half
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
def test_the_search_finds_what_enumeration_finds(a: View, b: View) -> None:
    pairs = product(minimal_quorums(a), minimal_quorums(b))
    sizes = [len(left) + len(right) for left, right in pairs if not left & right]
    found = disjoint_quorums(a, b)
    assert (found.size if found else None) == min(sizes, default=None)
    if found is not None:
        assert not found.a & found.b
        assert a.contains_quorum(found.a)
        assert b.contains_quorum(found.b)


@st.composite
def larger_views(draw: st.DrawFn) -> View:
    """Draw up to nine voters of twelve servers; most weights are 1."""
    servers = draw(st.lists(st.integers(1, 12), unique=True, max_size=9))
    if draw(st.booleans()):
        return majority_view(servers)
    groups: dict[int, list[int]] = {}
    for sid in servers:
        groups.setdefault(draw(st.integers(1, 4)), []).append(sid)
    return hierarchical_view(groups, {sid: draw(st.sampled_from((1, 1, 1, 2, 3, 0, -1))) for sid in servers})


def members_by_z3(a: View, b: View, running: frozenset[Sid]) -> list[frozenset[Sid]] | None:
    """The smallest pair of disjoint quorums, with the lowest ids in the first, by a solver for linear arithmetic."""
    sides = [{sid: z3.Int(f"{name}{sid}") for sid in sorted(view.voters)} for name, view in (("a", a), ("b", b))]
    solver = z3.SimpleSolver()
    for view, side in zip((a, b), sides, strict=True):
        solver.add(*(z3.And(joins >= 0, joins <= int(sid in running)) for sid, joins in side.items()))
        quorums = view.quorums
        if isinstance(quorums, Majority):
            solver.add(z3.Sum(list(side.values())) >= quorums.quorum_size)
            continue
        won = []
        for servers, total in quorums.totals():
            present = [sid for sid in servers if sid in side]
            weight = z3.Sum([quorums.weight(sid) * side[sid] for sid in present])
            wins = z3.And(z3.Sum([side[sid] for sid in present]) >= 1, weight > java_half(total))
            won.append(z3.If(wins, 1, 0))
        solver.add(z3.Sum(won) > quorums.groups_to_exceed())
    solver.add(*(sides[0][sid] + sides[1][sid] <= 1 for sid in a.voters & b.voters))
    joining = [joins for side in sides for joins in side.values()]
    size = next((n for n in range(len(joining) + 1) if solver.check(z3.Sum(joining) == n) == z3.sat), None)
    if size is None:
        return None
    solver.add(z3.Sum(joining) == size)
    for joins in joining:
        solver.add(joins == int(solver.check(joins == 1) == z3.sat))
    solver.check()
    model = solver.model()
    return [frozenset(sid for sid, joins in side.items() if model[joins].as_long()) for side in sides]


@settings(deadline=None, max_examples=60)
@given(larger_views(), larger_views(), st.sets(st.integers(1, 12), min_size=6))
def test_the_search_finds_the_very_pair_that_z3_finds(a: View, b: View, running: set[int]) -> None:
    found = disjoint_quorums(a, b, frozenset(running))
    assert (None if found is None else [found.a, found.b]) == members_by_z3(a, b, frozenset(running))


@pytest.mark.parametrize(("size", "first"), [(255, 86), (51, 2), (9, 2)])
def test_large_majorities_follow_arithmetic(size: int, first: int) -> None:
    """Quorums of n voters each, of which n - first + 1 are shared, can be disjoint iff both fit in all the servers."""
    other = majority_view(range(first, first + size))
    found = disjoint_quorums(of(size), other)
    assert (found is not None) == (2 * (size // 2 + 1) <= size + first - 1)
    assert found is None or (len(found.a), len(found.b)) == (size // 2 + 1, size // 2 + 1)


def test_groups_that_cross_those_of_the_other_view_are_compared_too() -> None:
    rows = {row: tuple(range(4 * row + 1, 4 * row + 5)) for row in range(4)}
    columns = {column: tuple(range(column + 1, 17, 4)) for column in range(4)}
    found = disjoint_quorums(hierarchical_view(rows), hierarchical_view(columns))
    assert found is None  # three rows and three columns of three servers each need 18 servers, and there are 16


def test_a_search_with_too_many_cases_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disjoint, "MOST_STATES", 3)
    rows = hierarchical_view({row: tuple(range(4 * row + 101, 4 * row + 105)) for row in range(4)})
    with pytest.raises(UndecidedError, match="not decided whether the quorums meet"):
        disjoint_quorums(rows, of(116))
