"""The votes of decided servers, and the conditions under which a LOOKING server accepts them.

The count among decided servers follows FLEOutOfElectionTest. The round in which other servers may make a server the
leader follows FLEBackwardElectionRoundTest.
"""

import pytest

from spec.durable import Durable
from spec.effects import Observe, Send, ServerStep, Timer
from spec.election import (
    Deliver,
    Election,
    ElectionRules,
    Fired,
    Followed,
    LeaderLost,
    Led,
    Notification,
    Peer,
    QuorumLost,
    ServerState,
    Start,
    Variant,
    Vote,
    step,
)
from spec.election.messages import ElectionEvent
from spec.quorum import View, majority_view

LOOKING, FOLLOWING, LEADING, OBSERVING = ServerState
PLAIN = ElectionRules()
THREE = majority_view({1, 2, 3})
FIVE = majority_view({0, 1, 2, 3, 4})


def says(source: int, leader: int, state: ServerState, *, round_: int = 1, zxid: int = 0, epoch: int = 0) -> Deliver:
    return Deliver(source, Notification(state, Vote(leader, zxid, epoch), round_))


def peer(sid: int, view: View = THREE) -> Peer:
    return Peer(sid, view, Durable())


def run(me: Peer, *events: ElectionEvent, rules: ElectionRules = PLAIN) -> ServerStep[Election]:
    done = step(me, None, Start(me.view), rules)
    for event in events:
        assert done is not None
        done = step(me, done.state, event, rules)
    assert done is not None
    return done


def decisions(done: ServerStep[Election]) -> list[object]:
    facts = [each.fact for each in done.effects if isinstance(each, Observe)]
    return [fact for fact in facts if isinstance(fact, Led | Followed)]


def answers(done: ServerStep[Election]) -> list[tuple[int, Notification]]:
    return [
        (each.peer, each.message)
        for each in done.effects
        if isinstance(each, Send) and isinstance(each.message, Notification)
    ]


def test_a_decided_server_answers_who_is_looking_with_its_decided_vote() -> None:
    done = run(peer(1), says(3, 3, LOOKING), Fired(Timer.FINALIZE_WAIT), says(2, 2, LOOKING))

    assert answers(done) == [(2, Notification(FOLLOWING, Vote(3, 0, 0), 1))]


def test_a_decided_server_is_not_moved_by_a_better_vote_or_a_higher_round() -> None:
    before = run(peer(1), says(2, 2, LOOKING), Fired(Timer.FINALIZE_WAIT))
    after = run(peer(1), says(2, 2, LOOKING), Fired(Timer.FINALIZE_WAIT), says(3, 3, LOOKING, round_=5, zxid=9))

    assert after.state == before.state


def test_a_decided_server_says_nothing_to_decided_ones() -> None:
    done = run(peer(1), says(3, 3, LOOKING), Fired(Timer.FINALIZE_WAIT), says(2, 3, FOLLOWING))

    assert answers(done) == []


def test_a_latecomer_joins_an_established_leader_in_the_round_of_that_leader() -> None:
    """Its own data and round have no effect: here it would have won, and is in a later round."""
    done = run(peer(3), says(1, 2, FOLLOWING, round_=4), says(2, 2, LEADING, round_=4))

    assert decisions(done) == [Followed(server=3, leader=2, round=4)]
    assert done.state == Election(FOLLOWING, 4, Vote(2, 0, 0))


def test_a_leader_is_not_believed_until_it_says_itself_that_it_leads() -> None:
    """Otherwise a crashed leader would be elected repeatedly by the servers that still follow it."""
    five = peer(0, FIVE)
    three_follow = [says(sid, 4, FOLLOWING) for sid in (1, 2, 3)]

    assert decisions(run(five, *three_follow)) == []
    assert decisions(run(five, *three_follow, says(4, 4, LEADING))) == [Followed(server=0, leader=4, round=1)]


def test_a_leader_without_a_quorum_of_my_view_is_not_joined() -> None:
    done = run(peer(2, FIVE), says(3, 3, LEADING), says(1, 3, FOLLOWING))

    assert decisions(done) == []


def test_in_one_round_the_votes_of_looking_servers_count_for_the_leader_too() -> None:
    """Its own vote is one of them: in an ensemble of five, one follower and the leader are then enough."""
    adopted = says(3, 3, LOOKING)
    done = run(peer(1, FIVE), adopted, says(4, 3, FOLLOWING), says(3, 3, LEADING))

    assert decisions(done) == [Followed(server=1, leader=3, round=1)]


def test_in_another_round_they_do_not() -> None:
    done = run(
        peer(1, FIVE), says(3, 3, LOOKING, round_=2), says(4, 3, FOLLOWING, round_=1), says(3, 3, LEADING, round_=1)
    )

    assert decisions(done) == []


@pytest.mark.parametrize(
    ("heard", "joins"),
    [
        pytest.param(
            [
                says(0, 4, FOLLOWING, round_=1, zxid=1, epoch=2),
                says(1, 4, FOLLOWING, round_=1, zxid=2, epoch=2),
                says(4, 4, LEADING, round_=2, zxid=3, epoch=2),
            ],
            True,
            id="zxids and rounds of decided servers may differ",
        ),
        pytest.param(
            [
                says(0, 4, FOLLOWING, round_=2, epoch=1),
                says(1, 4, FOLLOWING, round_=2, epoch=1),
                says(4, 4, LEADING, round_=2, epoch=2),
            ],
            False,
            id="their epochs may not",
        ),
    ],
)
def test_the_votes_of_decided_servers_agree_if_leader_and_epoch_do(heard: list[Deliver], joins: bool) -> None:
    five = Peer(2, FIVE, Durable(snapshot=9))
    in_a_later_round = says(3, 3, LOOKING, round_=7)

    assert bool(decisions(run(five, in_a_later_round, *heard))) is joins


def test_in_the_record_of_the_round_decided_votes_agree_if_the_leader_does() -> None:
    """Entries of recvset have no format version, so Vote.equals skips the epoch there."""
    heard = [says(0, 4, FOLLOWING, epoch=1), says(1, 4, FOLLOWING, epoch=1), says(4, 4, LEADING, epoch=2)]

    assert decisions(run(peer(2, FIVE), *heard)) == [Followed(server=2, leader=4, round=1)]


def test_looking_votes_of_the_same_leader_agree_only_if_the_data_does() -> None:
    five = Peer(3, FIVE, Durable())
    done = run(five, says(4, 4, LOOKING, zxid=7), says(0, 4, LOOKING, zxid=6), says(1, 4, LOOKING, zxid=6))

    assert not done.state.finalizing


class TestBackwardElectionRound:
    """Server 0 of {0, 1, 2}, and two peers that claim, for ever, to follow 0 in round 1."""

    three = majority_view({0, 1, 2})
    both_follow_me = (says(1, 0, FOLLOWING, round_=1), says(2, 0, FOLLOWING, round_=1))

    def test_in_the_same_round_they_make_it_the_leader(self) -> None:
        """The first vote is enough, because with its own vote that is two of three."""
        done = run(peer(0, self.three), self.both_follow_me[0])

        assert decisions(done) == [Led(server=0, round=1)]

    def test_in_the_next_round_the_same_messages_do_not(self) -> None:
        done = run(peer(0, self.three), *self.both_follow_me, QuorumLost(), *self.both_follow_me)

        assert decisions(done) == []
        assert done.state.state is LOOKING

    def test_with_zookeeper_1514_they_do(self) -> None:
        rules = ElectionRules(variants=frozenset({Variant.LEADER_OF_AN_OLD_ROUND}))
        done = run(peer(0, self.three), *self.both_follow_me, QuorumLost(), *self.both_follow_me, rules=rules)

        assert decisions(done) == [Led(server=0, round=1)]


def test_a_follower_that_lost_its_leader_can_find_it_again() -> None:
    joined = (says(1, 2, FOLLOWING), says(2, 2, LEADING))
    done = run(peer(3), *joined, LeaderLost(), *joined)

    assert decisions(done) == [Followed(server=3, leader=2, round=1)]
