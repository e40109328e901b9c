"""How one LOOKING server treats the votes of others: rounds, better votes, and the wait before it decides.

The server under test is 1 of {1, 2, 3} unless a test says otherwise, and all data is equal.
"""

from spec.durable import Durable
from spec.effects import Arm, Disarm, Effect, Observe, Send, ServerStep, Timer
from spec.election import (
    Deliver,
    Election,
    ElectionRules,
    EpochBegun,
    Fired,
    Followed,
    LeaderLost,
    Led,
    Notification,
    Peer,
    QuorumLost,
    ServerState,
    Start,
    Vote,
    step,
)
from spec.election.messages import ElectionEvent
from spec.quorum import View, majority_view

LOOKING, FOLLOWING, LEADING, OBSERVING = ServerState
PLAIN = ElectionRules()
THREE = majority_view({1, 2, 3})
FINALIZE, TIMEOUT = Timer.FINALIZE_WAIT, Timer.NOTIFICATION_TIMEOUT


def vote(leader: int, zxid: int = 0, epoch: int = 0) -> Vote:
    return Vote(leader, zxid, epoch)


def says(source: int, leader: int, round_: int = 1, state: ServerState = LOOKING, zxid: int = 0) -> Deliver:
    return Deliver(source, Notification(state, vote(leader, zxid), round_))


def peer(sid: int = 1, view: View = THREE, zxid: int = 0) -> Peer:
    return Peer(sid, view, Durable(snapshot=zxid))


def run(me: Peer, *events: ElectionEvent, rules: ElectionRules = PLAIN) -> ServerStep[Election]:
    """Return the last step of a server that starts and then receives these events, which must be possible."""
    done = step(me, None, Start(me.view), rules)
    for event in events:
        assert done is not None
        done = step(me, done.state, event, rules)
    assert done is not None, f"{events[-1]} is impossible here"
    return done


def sent(done: ServerStep[Election]) -> list[tuple[int, ServerState, Vote, int]]:
    return [
        (each.peer, each.message.state, each.message.vote, each.message.election_epoch)
        for each in done.effects
        if isinstance(each, Send) and isinstance(each.message, Notification)
    ]


def decisions(done: ServerStep[Election]) -> list[object]:
    facts = [each.fact for each in done.effects if isinstance(each, Observe)]
    return [fact for fact in facts if isinstance(fact, Led | Followed)]


def timers(done: ServerStep[Election]) -> list[Effect]:
    return [each for each in done.effects if isinstance(each, Arm | Disarm)]


def test_a_server_boots_in_round_one_and_tells_the_other_voters_its_own_vote() -> None:
    done = run(peer())

    assert sent(done) == [(2, LOOKING, vote(1), 1), (3, LOOKING, vote(1), 1)]
    assert timers(done) == [Arm(TIMEOUT)]


def test_a_better_vote_of_the_same_round_is_adopted_and_sent_to_all() -> None:
    done = run(peer(), says(3, leader=3))

    assert done.state.vote == vote(3)
    assert sent(done) == [(2, LOOKING, vote(3), 1), (3, LOOKING, vote(3), 1)]


def test_a_worse_vote_of_the_same_round_is_recorded_and_nothing_is_sent() -> None:
    done = run(peer(2), says(1, leader=1))

    assert done.state.vote == vote(2)
    assert dict(done.state.recvset)[1].vote == vote(1)
    assert sent(done) == []


def test_the_record_keeps_only_the_last_vote_of_each_sender() -> None:
    done = run(peer(3), says(1, leader=1), says(1, leader=2))

    assert dict(done.state.recvset)[1].vote == vote(2)


def test_a_higher_round_is_adopted_and_the_record_starts_anew() -> None:
    done = run(peer(3), says(1, leader=1), says(2, leader=2, round_=4))

    assert done.state.round == 4
    assert [sid for sid, _ in done.state.recvset] == [2, 3]
    assert sent(done) == [(1, LOOKING, vote(3), 4), (2, LOOKING, vote(3), 4)]


def test_in_a_higher_round_a_server_goes_back_to_its_own_vote() -> None:
    """The vote adopted in the old round has no value in the new one."""
    five = majority_view({1, 2, 3, 4, 5})
    done = run(peer(2, five), says(3, leader=3), says(1, leader=1, round_=2))

    assert done.state.vote == vote(2)


def test_a_lower_round_is_answered_and_not_counted() -> None:
    done = run(peer(2), says(3, leader=2, round_=2), says(1, leader=2, round_=1))

    assert sent(done) == [(1, LOOKING, vote(2), 2)]
    assert 1 not in dict(done.state.recvset)


def test_a_quorum_starts_the_wait_and_only_its_end_decides() -> None:
    agreed = run(peer(), says(3, leader=3))
    decided = run(peer(), says(3, leader=3), Fired(FINALIZE))

    assert timers(agreed) == [Disarm(TIMEOUT), Arm(FINALIZE)]
    assert decisions(agreed) == []
    assert decisions(decided) == [Followed(server=1, leader=3, round=1)]
    assert decided.state == Election(FOLLOWING, 1, vote(3))


def test_the_server_that_is_voted_for_leads() -> None:
    done = run(peer(3), says(1, leader=3), Fired(FINALIZE))

    assert decisions(done) == [Led(server=3, round=1)]


def test_during_the_wait_a_vote_that_is_not_better_is_dropped_unrecorded() -> None:
    done = run(peer(), says(3, leader=3), says(2, leader=2))

    assert 2 not in dict(done.state.recvset)
    assert done.state.finalizing


def test_during_the_wait_even_a_higher_round_is_dropped_if_the_vote_is_not_better() -> None:
    done = run(peer(), says(3, leader=3), says(2, leader=2, round_=7))

    assert done.state.round == 1


def test_during_the_wait_a_lagging_voter_is_still_answered() -> None:
    done = run(peer(), says(3, leader=3, round_=2), says(2, leader=2, round_=1))

    assert sent(done) == [(2, LOOKING, vote(3), 2)]


def test_a_better_vote_ends_the_wait_and_is_adopted() -> None:
    done = run(peer(), says(2, leader=2), says(3, leader=3, zxid=5))

    assert done.state.vote == vote(3, 5)
    assert done.state.finalizing, "3 and 1 agree now, so the next wait begins"


def test_a_better_vote_of_a_decided_server_ends_the_wait_too() -> None:
    done = run(peer(), says(2, leader=2), says(3, leader=3, state=FOLLOWING, round_=9))

    assert done.state.vote == vote(2)
    assert timers(done) == [Disarm(FINALIZE), Arm(TIMEOUT)]


def test_a_better_vote_for_a_stranger_ends_the_wait_and_is_then_ignored() -> None:
    done = run(peer(), says(2, leader=2), says(2, leader=5))

    assert not done.state.finalizing
    assert dict(done.state.recvset)[2].vote == vote(2)


def test_after_a_cancelled_wait_the_next_round_of_votes_notices_the_quorum_again() -> None:
    """The vote that a server sends to itself is counted like any other."""
    done = run(peer(), says(2, leader=2), says(2, leader=5), Fired(TIMEOUT))

    assert done.state.finalizing
    assert sent(done) == [(2, LOOKING, vote(2), 1), (3, LOOKING, vote(2), 1)]


def test_only_the_timer_that_runs_can_fire() -> None:
    looking = run(peer()).state
    waiting = run(peer(), says(2, leader=2)).state

    assert step(peer(), looking, Fired(FINALIZE)) is None
    assert step(peer(), waiting, Fired(TIMEOUT)) is None


def test_a_lone_voter_needs_nobody() -> None:
    lone = peer(1, majority_view({1}))

    assert timers(run(lone)) == [Arm(FINALIZE)]
    assert decisions(run(lone, Fired(FINALIZE))) == [Led(server=1, round=1)]


def test_a_server_without_a_database_neither_votes_nor_counts() -> None:
    done = run(peer(1, zxid=-1), says(2, leader=2), says(3, leader=2))

    assert done.state.recvset == ()


def test_loss_of_the_leader_begins_the_next_round_with_the_own_vote() -> None:
    done = run(peer(), says(3, leader=3), Fired(FINALIZE), LeaderLost())

    assert sent(done) == [(2, LOOKING, vote(1), 2), (3, LOOKING, vote(1), 2)]


def test_the_last_round_is_followed_by_the_first() -> None:
    """logicalclock is an AtomicLong, and incrementAndGet overflows to the lowest number."""
    raised = run(peer(), says(3, leader=3, round_=2**63 - 1), Fired(FINALIZE), LeaderLost())

    assert sent(raised) == [(2, LOOKING, vote(1), -(2**63)), (3, LOOKING, vote(1), -(2**63))]


def test_servers_meet_again_after_the_last_round() -> None:
    """One has overflowed, another is still in the last round, and a third has just booted: all adopt the highest."""
    overflowed = [says(3, leader=3, round_=2**63 - 1), Fired(FINALIZE), LeaderLost()]

    assert run(peer(), *overflowed, says(2, leader=2, round_=1)).state.round == 1
    assert run(peer(), *overflowed, says(2, leader=2, round_=2**63 - 1)).state.round == 2**63 - 1
    met = run(peer(), *overflowed, says(2, leader=2, round_=-(2**63)), Fired(FINALIZE))
    assert decisions(met) == [Followed(1, 2, -(2**63))]


def test_no_election_begins_beyond_the_limit() -> None:
    rules = ElectionRules(round_limit=1)
    leading = run(peer(3), says(1, leader=3), Fired(FINALIZE), rules=rules)

    assert step(peer(3), leading.state, QuorumLost(), rules) is None
    assert step(peer(3), leading.state, QuorumLost(), ElectionRules(round_limit=2)) is not None


def test_a_server_that_does_not_run_does_nothing_and_starts_only_if_its_file_names_it() -> None:
    assert step(peer(), None, says(2, leader=2)) is None
    assert step(peer(), None, Fired(TIMEOUT)) is None
    assert step(peer(9), None, Start(THREE)) is None
    assert step(peer(), run(peer()).state, Start(THREE)) is None


def test_a_decided_server_reports_the_epoch_once_it_is_established() -> None:
    done = run(peer(3), says(1, leader=3), Fired(FINALIZE), EpochBegun(1), says(1, leader=1))

    assert sent(done) == [(1, LEADING, vote(3, epoch=1), 1)]


def test_each_poll_starts_the_notification_timeout_again() -> None:
    """Each recvqueue.poll has a new time-out, whether or not it returned a notification."""
    assert timers(run(peer(), Fired(TIMEOUT))) == [Arm(TIMEOUT)]
    assert timers(run(peer(), Fired(TIMEOUT), Fired(TIMEOUT))) == [Arm(TIMEOUT)]
    assert timers(run(peer(3), says(1, leader=1))) == [Arm(TIMEOUT)]
    assert timers(run(peer(), says(3, leader=3), Fired(FINALIZE), LeaderLost())) == [Arm(TIMEOUT)]


def test_a_decision_without_a_wait_stops_the_notification_timeout() -> None:
    """A latecomer joins an established leader as soon as a quorum and the leader have reported it."""
    joined = run(peer(1), says(2, leader=3, state=FOLLOWING), says(3, leader=3, state=LEADING))

    assert decisions(joined) == [Followed(server=1, leader=3, round=1)]
    assert timers(joined) == [Disarm(TIMEOUT)]
