"""The premises on quorums, for given stages: compared with an enumeration of all sets of running servers."""

from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.symbolic.disjoint import DisjointQuorums, FailedPremise, RunningView, failed_premise
from spec.quorum import Hierarchical, Majority, View

THREE = View(Majority(frozenset({1, 2, 3})))
FIVE = View(Majority(frozenset({1, 2, 3, 4, 5})))
SERVERS = frozenset({1, 2, 3, 4, 5})


@st.composite
def views(draw: st.DrawFn) -> View:
    """A view of some of the five servers: majorities, or weights in one or two groups; the others may be observers."""
    voters = draw(st.frozensets(st.sampled_from(sorted(SERVERS)), min_size=1))
    watching = draw(st.frozensets(st.sampled_from(sorted(SERVERS)))) - voters
    if draw(st.booleans()):
        return View(Majority(voters), observers=watching)
    weights = tuple((sid, draw(st.integers(0, 3))) for sid in sorted(voters))
    second = draw(st.frozensets(st.sampled_from(sorted(voters))))
    parts = [tuple(sorted(each)) for each in (voters - second, second) if each]
    return View(Hierarchical(groups=tuple(enumerate(parts, 1)), weights=weights), observers=watching)


@st.composite
def plans(draw: st.DrawFn) -> list[RunningView]:
    """Up to three stages; servers are started and never stopped."""
    stages, running = [], frozenset[int]()
    for view in draw(st.lists(views(), min_size=1, max_size=3)):
        running |= draw(st.frozensets(st.sampled_from(sorted(SERVERS))))
        stages.append(RunningView(view, running))
    return stages


def first_failure_by_enumeration(stages: list[RunningView]) -> tuple[int, int] | None:
    """The first pair of stages that fails, by looking at every two sets of running servers."""
    for i in range(len(stages)):
        running = stages[i + 1 if i + 1 < len(stages) else i].running
        sets = [frozenset(each) for each in chain(*(combinations(sorted(running), n) for n in range(6)))]
        for j in (i, i + 1):
            if j == len(stages):
                continue
            a, b = stages[i].view, stages[j].view
            apart = any(not p & q for p in sets if a.contains_quorum(p) for q in sets if b.contains_quorum(q))
            roles = any((a.is_voter(s) and s in b.observers) or (b.is_voter(s) and s in a.observers) for s in running)
            if apart or roles:
                return i, j
    return None


@settings(deadline=None)
@given(plans())
def test_the_first_failing_pair_is_that_of_the_enumeration(stages: list[RunningView]) -> None:
    found = failed_premise(stages)
    assert (found and (found.earlier, found.later)) == first_failure_by_enumeration(stages)


def test_three_grow_to_five_if_the_last_server_is_started_after_the_others_have_the_new_file() -> None:
    four = frozenset({1, 2, 3, 4})
    assert failed_premise([RunningView(THREE, four), RunningView(FIVE, four), RunningView(FIVE, SERVERS)]) is None


def test_three_and_five_do_not_meet_if_both_new_servers_run_beside_the_old_file() -> None:
    found = failed_premise([RunningView(THREE, SERVERS), RunningView(FIVE, SERVERS)])
    assert found is not None
    assert found.disjoint is not None
    assert (found.earlier, found.later) == (0, 1)
    assert (len(found.disjoint.a), len(found.disjoint.b)) == (2, 3)
    assert {4, 5} < found.disjoint.b


def test_two_quorums_by_groups_are_apart_if_their_weights_are_shared_out_anew() -> None:
    first = View(Hierarchical(groups=((1, (1, 2, 3)),), weights=((1, 3), (2, 1), (3, 1))))
    second = View(Hierarchical(groups=((1, (1, 2, 3)),), weights=((1, 1), (2, 3), (3, 1))))
    three = frozenset({1, 2, 3})
    found = failed_premise([RunningView(first, three), RunningView(second, three)])
    assert found == FailedPremise(0, 1, disjoint=DisjointQuorums(frozenset({1}), frozenset({2})))


def test_a_promoted_observer_fails_the_premise_though_all_quorums_meet() -> None:
    old = View(Majority(frozenset({1, 2})), observers=frozenset({3}))
    three = frozenset({1, 2, 3})
    assert failed_premise([RunningView(old, three), RunningView(THREE, three)]) == FailedPremise(0, 1, observer=3)


def test_servers_that_stop_are_refused() -> None:
    with pytest.raises(ValueError, match=r"servers \[3\] run in stage 0 and not in stage 1"):
        failed_premise([RunningView(THREE, frozenset({1, 2, 3})), RunningView(THREE, frozenset({1, 2}))])
