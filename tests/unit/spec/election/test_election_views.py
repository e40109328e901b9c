"""Tests of elections with different views: observers, strangers, and configurations in notifications."""

import pytest

from spec.durable import Durable
from spec.effects import Configure, Observe, ResetConnections, Send, ServerStep, Timer
from spec.election import (
    LONG_MIN,
    Deliver,
    Election,
    ElectionRules,
    Fired,
    Followed,
    LeaderLost,
    Led,
    Notification,
    Peer,
    ServerState,
    Start,
    Vote,
    VoteReceived,
    step,
)
from spec.election.messages import ElectionEvent
from spec.quorum import View, majority_view

LOOKING, FOLLOWING, LEADING, OBSERVING = ServerState
PLAIN = ElectionRules()
THREE = majority_view({1, 2, 3})
LOWEST = Vote(LONG_MIN, LONG_MIN, LONG_MIN)


def vote(leader: int, zxid: int = 0) -> Vote:
    return Vote(leader, zxid, 0)


def says(
    source: int, leader: int, state: ServerState = LOOKING, round_: int = 1, config: View | None = None
) -> Deliver:
    return Deliver(source, Notification(state, vote(leader), round_, config))


def run(me: Peer, *events: ElectionEvent, rules: ElectionRules = PLAIN) -> ServerStep[Election]:
    done = step(me, None, Start(me.view), rules)
    for event in events:
        assert done is not None
        done = step(me, done.state, event, rules)
    assert done is not None
    return done


def answers(done: ServerStep[Election]) -> list[tuple[int, Notification]]:
    return [
        (each.peer, each.message)
        for each in done.effects
        if isinstance(each, Send) and isinstance(each.message, Notification)
    ]


def facts(done: ServerStep[Election]) -> list[object]:
    return [each.fact for each in done.effects if isinstance(each, Observe)]


class TestStrangers:
    """Server 1 of {1, 2, 3} hears from 4, which its view does not name."""

    me = Peer(1, THREE, Durable())

    def test_a_stranger_is_answered_at_once_and_otherwise_ignored(self) -> None:
        before = run(self.me)
        done = run(self.me, says(4, leader=4, round_=9))

        assert answers(done) == [(4, Notification(LOOKING, vote(1), 1))]
        assert done.state == before.state
        assert facts(done) == []

    def test_a_looking_server_tells_it_its_last_decision_and_not_its_proposal(self) -> None:
        done = run(self.me, says(2, leader=2), says(4, leader=4))

        assert done.state.vote == vote(2)
        assert answers(done) == [(4, Notification(LOOKING, vote(1), 1))]

    def test_after_an_election_the_last_decision_is_the_leader_it_lost(self) -> None:
        done = run(self.me, says(2, leader=2), Fired(Timer.FINALIZE_WAIT), LeaderLost(), says(4, leader=4))

        assert answers(done) == [(4, Notification(LOOKING, vote(2), 2))]

    @pytest.mark.parametrize("state", list(ServerState))
    def test_a_decided_server_answers_it_whatever_it_does(self, state: ServerState) -> None:
        done = run(self.me, says(2, leader=2), Fired(Timer.FINALIZE_WAIT), says(4, leader=4, state=state))

        assert answers(done) == [(4, Notification(FOLLOWING, vote(2), 1))]

    def test_a_vote_for_a_stranger_is_ignored(self) -> None:
        before = run(self.me)
        done = run(self.me, says(2, leader=5))

        assert done.state == before.state
        assert facts(done) == []

    def test_a_stranger_that_leads_is_not_followed(self) -> None:
        done = run(self.me, says(2, leader=5, state=FOLLOWING), says(3, leader=5, state=FOLLOWING))

        assert done.state.state is LOOKING

    def test_a_run_that_excludes_strangers_says_so_when_one_speaks(self) -> None:
        rules = ElectionRules(outsiders=False)

        assert run(self.me, rules=rules).state.announced is None
        with pytest.raises(ValueError, match="outside its view"):
            run(self.me, says(4, leader=4), rules=rules)


class TestObservers:
    """1 and 2 vote, 3 observes."""

    view = majority_view({1, 2}, observers={3})
    observer = Peer(3, view, Durable(snapshot=9))

    def test_an_observer_tells_the_voters_the_lowest_vote_and_counts_none_of_its_own(self) -> None:
        done = run(self.observer)

        assert answers(done) == [(1, Notification(LOOKING, LOWEST, 1)), (2, Notification(LOOKING, LOWEST, 1))]
        assert done.state.recvset == ()

    def test_a_voter_answers_it_and_never_counts_it(self) -> None:
        before = run(Peer(1, self.view, Durable()))
        done = run(Peer(1, self.view, Durable()), says(3, leader=2))

        assert done.state == before.state

    def test_it_observes_a_leader_that_a_quorum_follows(self) -> None:
        done = run(self.observer, says(1, leader=2, state=FOLLOWING), says(2, leader=2, state=LEADING))

        assert facts(done)[-1] == Followed(server=3, leader=2, round=1)
        assert done.state == Election(OBSERVING, 1, vote(2))

    def test_what_an_observer_says_of_its_leader_is_not_counted_by_those_who_think_it_votes(self) -> None:
        me = Peer(1, THREE, Durable())
        done = run(me, says(3, leader=2, state=OBSERVING), says(2, leader=2, state=LEADING))

        assert 3 not in dict(done.state.outofelection)


class TestGossip:
    """Configurations above version 0 travel in notifications (reconfigEnabled=true)."""

    old = majority_view({1, 2, 3, 4, 5}, version=1)
    new = majority_view({1, 2, 3}, version=2)
    me = Peer(4, old, Durable())

    def test_a_versioned_view_is_sent_along(self) -> None:
        assert answers(run(self.me))[0] == (1, Notification(LOOKING, vote(4), 1, self.old))

    def test_a_looking_server_adopts_a_newer_view_and_begins_again(self) -> None:
        """It is not in that view: it repeats its request, proposes no server, and learns the leader."""
        done = run(self.me, says(1, leader=3, round_=6, config=self.new))

        assert done.effects[:2] == (Configure(self.new), ResetConnections())
        assert done.state.round == 1
        assert done.state.vote == Vote(LONG_MIN, 0, 0)
        assert [peer for peer, _ in answers(done)] == [1, 2, 3]

    def test_an_older_or_equal_view_changes_nothing(self) -> None:
        newer = Peer(1, self.new, Durable())
        done = run(newer, says(2, leader=2, config=self.old), says(2, leader=2, config=self.new))

        assert not any(isinstance(each, Configure) for each in done.effects)

    def test_a_decided_server_keeps_its_view(self) -> None:
        done = run(
            Peer(1, majority_view({1}, version=1), Durable()),
            Fired(Timer.FINALIZE_WAIT),
            says(2, leader=2, config=self.new),
        )

        assert not any(isinstance(each, Configure) for each in done.effects)

    def test_the_same_members_under_a_higher_version_restart_nothing(self) -> None:
        same = majority_view({1, 2, 3, 4, 5}, version=7)
        done = run(self.me, says(5, leader=5, config=same))

        assert done.effects[0] == Configure(same)
        assert ResetConnections() not in done.effects
        assert done.state.vote == vote(5)


class TestFacts:
    """A table of receive buckets is a fold over VoteReceived facts."""

    me = Peer(1, THREE, Durable())

    def test_own_and_received_votes_are_reported(self) -> None:
        done = run(self.me, says(3, leader=3))

        assert set(facts(done)) == {VoteReceived(1, 3, vote(3), 1, LOOKING), VoteReceived(1, 1, vote(3), 1, LOOKING)}

    def test_a_decided_server_reports_them_too(self) -> None:
        done = run(self.me, says(3, leader=3), Fired(Timer.FINALIZE_WAIT), says(2, leader=2))

        assert facts(done) == [VoteReceived(1, 2, vote(2), 1, LOOKING)]

    def test_a_vote_of_a_lower_round_is_not_taken_in(self) -> None:
        done = run(self.me, says(3, leader=1, round_=2), says(2, leader=2, round_=1))

        assert facts(done) == []

    def test_a_decision_reports_whom_the_server_votes_for_now(self) -> None:
        done = run(Peer(3, THREE, Durable()), says(1, leader=3), Fired(Timer.FINALIZE_WAIT))

        assert facts(done) == [VoteReceived(3, 3, vote(3), 1, LEADING), Led(3, 1)]

    def test_an_observer_has_no_vote_of_its_own_to_report(self) -> None:
        """Only voters are in a receive bucket; an observer proposes, and its proposal reaches voters only."""
        view = majority_view({1, 2, 3}, observers={4})
        observer = Peer(4, view, Durable())
        heard = run(observer, says(2, leader=3), says(3, leader=3))
        decided = run(observer, says(2, leader=3, state=FOLLOWING), says(3, leader=3, state=LEADING))

        assert facts(heard) == [VoteReceived(4, 3, vote(3), 1, LOOKING)]
        assert [each for each in facts(run(observer)) if isinstance(each, VoteReceived)] == []
        assert [each for each in facts(decided) if isinstance(each, VoteReceived) and each.sender == 4] == []
