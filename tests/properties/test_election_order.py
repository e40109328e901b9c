"""Laws of the order among votes, for any votes of any voters."""

from hypothesis import given
from hypothesis import strategies as st

from spec.election import Vote, is_better
from spec.quorum import majority_view

VIEW = majority_view(range(1, 6))
votes = st.builds(Vote, leader=st.integers(1, 5), zxid=st.integers(0, 4), peer_epoch=st.integers(0, 3))


@given(votes, votes)
def test_total_of_two_different_votes_exactly_one_is_better(one: Vote, other: Vote) -> None:
    assert (is_better(VIEW, one, other) + is_better(VIEW, other, one)) == (one != other)


@given(votes, votes, votes)
def test_transitive(one: Vote, two: Vote, three: Vote) -> None:
    if is_better(VIEW, one, two) and is_better(VIEW, two, three):
        assert is_better(VIEW, one, three)


@given(votes)
def test_irreflexive_so_that_an_equal_vote_is_not_sent_on(vote: Vote) -> None:
    assert not is_better(VIEW, vote, vote)


@given(st.lists(votes, min_size=1), st.randoms(use_true_random=False))
def test_the_best_of_many_does_not_depend_on_the_order_they_come_in(heard: list[Vote], random) -> None:  # type: ignore[no-untyped-def]
    def best(sequence: list[Vote]) -> Vote:
        held = sequence[0]
        for vote in sequence:
            held = vote if is_better(VIEW, vote, held) else held
        return held

    shuffled = list(heard)
    random.shuffle(shuffled)
    assert best(shuffled) == best(heard)
