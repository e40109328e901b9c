"""The quorums of one server's view: facts from ZooKeeper's own tests and documentation."""

from itertools import permutations

import pytest

from spec.quorum import Hierarchical, Majority, hierarchical, hierarchical_view, majority_view
from tests.support.quorums import minimal_quorums


class TestMajority:
    """QuorumMajorityTest, and the definition in QuorumMaj: more than floor(n / 2) of the voters."""

    five = majority_view({1, 2, 3, 4, 5})

    def test_two_of_five_are_no_quorum(self) -> None:
        assert not self.five.contains_quorum({1, 2})

    def test_three_of_five_are_a_quorum(self) -> None:
        assert self.five.contains_quorum({1, 2, 3})

    def test_the_ack_of_an_outsider_does_not_count(self) -> None:
        assert not self.five.contains_quorum({1, 2, 6})

    def test_the_acks_of_observers_do_not_count(self) -> None:
        view = majority_view({1, 2, 3, 4, 5}, observers={6, 7})
        assert not view.contains_quorum({1, 2, 6, 7})
        assert view.contains_quorum({1, 2, 3, 6, 7})

    def test_half_of_an_even_ensemble_is_no_quorum(self) -> None:
        assert not majority_view({1, 2, 3, 4}).contains_quorum({1, 2})

    def test_an_ensemble_without_voters_has_no_quorum(self) -> None:
        assert not majority_view((), observers={1}).contains_quorum({1})

    @pytest.mark.parametrize(("voters", "size"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4), (7, 4)])
    def test_the_smallest_quorums_by_size_of_the_ensemble(self, voters: int, size: int) -> None:
        minimal = minimal_quorums(majority_view(range(voters)))
        assert {len(quorum) for quorum in minimal} == {size}


class TestHierarchical:
    """The example of ZooKeeper's documentation: three groups of three servers, all of weight 1."""

    nine = hierarchical_view({1: (1, 2, 3), 2: (4, 5, 6), 3: (7, 8, 9)})

    def test_two_of_three_in_two_groups_are_a_quorum_of_four(self) -> None:
        assert self.nine.contains_quorum({1, 2, 4, 5})

    def test_one_whole_group_and_one_of_each_other_are_none(self) -> None:
        assert not self.nine.contains_quorum({1, 2, 3, 4, 7})

    def test_no_quorum_has_fewer_than_four_servers(self) -> None:
        # Choose 2 of 3 groups, then 2 of 3 servers in each: 3 * 3 * 3 smallest quorums.
        minimal = minimal_quorums(self.nine)
        assert [len(quorum) for quorum in minimal] == [4] * 27

    def test_a_heavy_server_wins_its_group_alone(self) -> None:
        view = hierarchical_view({1: (1, 2, 3)}, weights={1: 3})
        assert minimal_quorums(view) == (frozenset({1}),)

    def test_half_of_a_groups_weight_does_not_win_it(self) -> None:
        view = hierarchical_view({1: (1, 2, 3)}, weights={1: 2})
        assert not view.contains_quorum({1})
        assert not view.contains_quorum({2, 3})

    def test_a_group_that_weighs_nothing_is_not_counted_among_the_groups(self) -> None:
        # computeGroupWeight removes group 3; otherwise one of three groups would have the effect of one of two.
        view = hierarchical_view({1: (1,), 2: (2,), 3: (3,)}, weights={3: 0})
        assert view.contains_quorum({1, 2})
        assert not view.contains_quorum({1, 3})

    def test_an_observer_in_a_group_weighs_in_the_total_and_never_for_a_quorum(self) -> None:
        view = hierarchical_view({1: (1, 2, 3)}, observers={3})
        assert not view.contains_quorum({1, 3})
        assert view.contains_quorum({1, 2})

    def test_with_a_negative_weight_two_single_servers_are_quorums(self) -> None:
        # 1 + 1 - 1 = 1, whose half is 0 in Java, so a weight of 1 exceeds it.
        view = hierarchical_view({1: (1, 2, 3)}, weights={3: -1})
        assert view.contains_quorum({1})
        assert view.contains_quorum({2})

    def test_a_negative_total_is_halved_towards_zero(self) -> None:
        # -3 / 2 is -1 in Java and -2 rounded down: a weight of -1 exceeds the second only.
        view = hierarchical_view({1: (1, 2)}, weights={1: -1, 2: -2})
        assert not view.contains_quorum({1})

    def test_the_empty_set_is_no_quorum_even_of_negative_weights(self) -> None:
        view = hierarchical_view({1: (1,)}, weights={1: -4})
        assert not view.contains_quorum(set())


class TestView:
    """Views are values: canonical, hashable, and explicit about the voters."""

    def test_the_order_in_which_a_view_is_written_does_not_matter(self) -> None:
        views = {hierarchical_view({1: order}, {2: 5}) for order in permutations((1, 2, 3))}
        assert len(views) == 1

    def test_the_order_of_the_groups_does_not_matter(self) -> None:
        assert hierarchical({2: (3,), 1: (1, 2)}) == hierarchical({1: (2, 1), 2: (3,)})

    def test_another_version_is_another_view(self) -> None:
        assert majority_view({1}, version=1) != majority_view({1}, version=2)

    def test_members_are_voters_and_observers(self) -> None:
        view = majority_view({1, 2}, observers={3})
        assert view.voters == {1, 2}
        assert view.members == {1, 2, 3}
        assert view.is_voter(2)
        assert not view.is_voter(3)

    @pytest.mark.parametrize(("sid", "weight"), [(1, 1), (3, 0), (9, 0)])
    def test_a_voter_weighs_one_observers_and_outsiders_nothing(self, sid: int, weight: int) -> None:
        assert majority_view({1, 2}, observers={3}).weight(sid) == weight

    @pytest.mark.parametrize(("sid", "weight"), [(1, 4), (2, 1), (3, 0), (9, 0)])
    def test_in_groups_a_voter_weighs_what_its_line_says(self, sid: int, weight: int) -> None:
        view = hierarchical_view({1: (1, 2, 3)}, weights={1: 4, 3: 2}, observers={3})
        assert view.weight(sid) == weight

    def test_nobody_is_voter_and_observer(self) -> None:
        with pytest.raises(ValueError, match=r"\[2\] are both voters and observers"):
            majority_view({1, 2}, observers={2})

    def test_no_server_stands_in_two_groups(self) -> None:
        with pytest.raises(ValueError, match="two groups"):
            hierarchical({1: (1, 2), 2: (2, 3)})

    @pytest.mark.parametrize(
        ("groups", "weights", "silent"),
        [
            (((2, (1,)), (1, (2,))), ((1, 1), (2, 1)), ()),
            (((1, (2, 1)),), ((1, 1), (2, 1)), ()),
            (((1, (1, 2)),), ((1, 1),), ()),
            (((1, (1,)),), ((1, 1),), (7,)),
        ],
        ids=["groups out of order", "servers out of order", "a weight missing", "silent and in no group"],
    )
    def test_a_hierarchy_that_is_not_canonical_is_refused(
        self,
        groups: tuple[tuple[int, tuple[int, ...]], ...],
        weights: tuple[tuple[int, int], ...],
        silent: tuple[int, ...],
    ) -> None:
        with pytest.raises(ValueError, match=r"order|no group"):
            Hierarchical(groups, weights, frozenset(silent))

    def test_no_value_has_weights_whose_sum_java_cannot_hold(self) -> None:
        with pytest.raises(ValueError, match="less than"):
            hierarchical_view({1: (1, 2, 3)}, weights=dict.fromkeys((1, 2, 3), 1 << 62))

    def test_a_majority_says_how_many_it_takes(self) -> None:
        assert Majority(frozenset({1, 2, 3, 4})).quorum_size == 3
