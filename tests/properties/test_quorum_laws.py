"""Laws of quorums, on random views."""

from hypothesis import given
from hypothesis import strategies as st

from spec.quorum import View, hierarchical_view, majority_view
from tests.support.quorums import minimal_quorums


@st.composite
def views(draw: st.DrawFn, least_weight: int = 0) -> View:
    """Draw up to seven servers: a majority, or up to three groups with weights; some of them observers."""
    servers = draw(st.lists(st.integers(1, 9), unique=True, max_size=7))
    observers = frozenset(draw(st.sets(st.sampled_from(servers)))) if servers else frozenset()
    if draw(st.booleans()):
        return majority_view(set(servers) - observers, observers)
    groups: dict[int, list[int]] = {}
    for sid in servers:
        groups.setdefault(draw(st.integers(1, 3)), []).append(sid)
    weights = {sid: draw(st.integers(least_weight, 4)) for sid in servers}
    return hierarchical_view(groups, weights, observers)


any_servers = st.frozensets(st.integers(1, 12))


@given(views(), any_servers, any_servers)
def test_two_quorums_of_one_view_meet(view: View, a: frozenset[int], b: frozenset[int]) -> None:
    if view.contains_quorum(a) and view.contains_quorum(b):
        assert a & b


@given(views(), any_servers, any_servers)
def test_more_servers_are_no_less_a_quorum(view: View, some: frozenset[int], others: frozenset[int]) -> None:
    if view.contains_quorum(some):
        assert view.contains_quorum(some | others)


@given(views(least_weight=-3), any_servers)
def test_only_voters_decide(view: View, servers: frozenset[int]) -> None:
    assert view.contains_quorum(servers) == view.contains_quorum(servers & view.voters)


@given(views(), any_servers)
def test_a_quorum_is_what_holds_a_minimal_one(view: View, servers: frozenset[int]) -> None:
    assert view.contains_quorum(servers) == any(quorum <= servers for quorum in minimal_quorums(view))


@given(views())
def test_a_minimal_quorum_can_spare_nobody(view: View) -> None:
    for quorum in minimal_quorums(view):
        assert not any(view.contains_quorum(quorum - {sid}) for sid in quorum)


@given(st.frozensets(st.integers(1, 9), min_size=1))
def test_one_group_of_equal_weights_is_a_majority(voters: frozenset[int]) -> None:
    group, majority = hierarchical_view({1: voters}), majority_view(voters)
    assert minimal_quorums(group) == minimal_quorums(majority)
