"""Broadcast: proposals, acknowledgements, commits in order, forwarded requests, sync and ping.

Expected values: `Leader.propose`, `processAck`, `tryToCommit`, `processSync` and `LearnerHandler.run` of 3.9.4, and
ZooKeeper's QuorumMajorityTest.
"""

import pytest
from msgspec.structs import replace

from spec.durable import Durable
from spec.effects import Apply, Disconnect, Observe, Persist, Send
from spec.election import Peer
from spec.quorum import View, majority_view
from spec.txn import Txn, make_zxid
from spec.zab import leader
from spec.zab.events import (
    Applied,
    Broadcast,
    ClientSync,
    ClientWrite,
    Committed,
    Delivered,
    LearnerGone,
    MessageKind,
    Receive,
    SyncAnswered,
    Synced,
    Tick,
    Unexpected,
    ZabEvent,
)
from spec.zab.packets import (
    Ack,
    AckEpoch,
    Commit,
    FollowerInfo,
    Inform,
    Proposal,
    QuorumPacket,
    QuorumPing,
    QuorumRequest,
    QuorumSync,
    SyncRequest,
    UpToDate,
)
from spec.zab.state import Append, Leader, LeaderPhase, Outstanding, Stage, ZabResult, ZabRules

AT_ONCE = ZabRules(asynchronous_disk=False)
LATER = ZabRules(asynchronous_disk=True)
THREE = majority_view({1, 2, 3}, observers={7})
FIVE = majority_view({1, 2, 3, 4, 5}, observers={7})
FIRST, SECOND = Txn(make_zxid(1, 1), "a"), Txn(make_zxid(1, 2), "b")
WRITE, WRITE_AGAIN = ClientWrite("a"), ClientWrite("b")


def joins(sid: int, *, observer: bool = False) -> tuple[ZabEvent, ...]:
    packets = (FollowerInfo(0, observer), AckEpoch(0, 0), Ack(make_zxid(1)))
    return tuple(Receive(sid, packet) for packet in packets)


def run(*events: ZabEvent, view: View = THREE, rules: ZabRules = AT_ONCE) -> ZabResult:
    """Return the result of the last of these events, for the leader 3."""
    me = Peer(3, view, Durable())
    done = leader.begin(me, rules)
    for event in events:
        assert isinstance(done.state, Leader)
        after = leader.step(replace(me, durable=done.durable), done.state, event, rules)
        assert after is not None, f"impossible: {event}"
        done = after
    return done


def run_five(*events: ZabEvent) -> ZabResult:
    """Return the same in an ensemble of five, after 1, 2, the observer 7 and the stranger 9 have joined."""
    opening = [Receive(sid, FollowerInfo(0, sid > 5)) for sid in (1, 2, 7, 9)]
    opening += [Receive(sid, AckEpoch(0, 0)) for sid in (1, 2, 7, 9)]
    opening += [Receive(sid, Ack(make_zxid(1))) for sid in (1, 2, 7, 9)]
    return run(*opening, *events, view=FIVE)


def ack(sid: int, txn: Txn) -> Receive:
    return Receive(sid, Ack(txn.zxid))


def sent(done: ZabResult) -> list[tuple[int, object]]:
    return [(each.peer, each.message) for each in done.effects if isinstance(each, Send)]


def facts(done: ZabResult) -> list[object]:
    return [each.fact for each in done.effects if isinstance(each, Observe)]


def state(done: ZabResult) -> Leader:
    assert isinstance(done.state, Leader)
    return done.state


# Proposals.


def test_the_first_zxid_of_an_epoch_is_one_and_the_next_one_more() -> None:
    assert Observe(Broadcast(3, 1, FIRST)) in run(*joins(1), WRITE).effects
    assert Observe(Broadcast(3, 1, SECOND)) in run(*joins(1), WRITE, WRITE_AGAIN).effects


def test_a_proposal_goes_to_every_follower_and_to_the_leaders_own_log_and_not_to_observers() -> None:
    """Leader.propose sends to forwardingFollowers; ProposalRequestProcessor then asks the sync thread."""
    done = run(*joins(1), *joins(2), *joins(7, observer=True), WRITE, rules=LATER)

    assert sent(done) == [(1, Proposal(FIRST)), (2, Proposal(FIRST))]
    assert done.effects[-1] == Persist(Append(FIRST))


def test_a_follower_outside_the_view_is_proposed_to() -> None:
    """Its own message presents it as a participant, and startForwarding checks nothing else."""
    assert (9, Proposal(FIRST)) in sent(run(*joins(1), *joins(9), WRITE))


def test_a_follower_that_still_synchronises_is_forwarded_to() -> None:
    """startForwarding adds it before NEWLEADER is acknowledged."""
    almost = joins(2)[:-1]

    assert (2, Proposal(FIRST)) in sent(run(*joins(1), *almost, WRITE))


def test_a_request_of_a_learner_is_proposed_like_one_of_the_leaders_own_client() -> None:
    """LearnerHandler.run: submitLearnerRequest."""
    assert run(*joins(1), Receive(1, QuorumRequest("a"))) == run(*joins(1), WRITE)


# Acknowledgements.


def test_a_quorum_of_acknowledgements_commits() -> None:
    """tryToCommit: COMMIT to followers, INFORM to observers, then the leader applies it."""
    done = run(*joins(1), *joins(2), *joins(7, observer=True), WRITE, ack(1, FIRST))

    assert sent(done) == [(1, Commit(FIRST.zxid)), (2, Commit(FIRST.zxid)), (7, Inform(FIRST))]
    assert facts(done) == [Committed(3, 1, FIRST), Delivered(3, 1, (FIRST,))]
    assert Apply(FIRST.zxid) in done.effects


def test_a_leader_acknowledges_its_own_proposal_when_it_is_on_disk() -> None:
    """AckRequestProcessor follows SyncRequestProcessor."""
    written = (*joins(1), WRITE, ack(1, FIRST))

    assert facts(run(*written, rules=LATER)) == []
    assert Committed(3, 1, FIRST) in facts(run(*written, Synced(), rules=LATER))


def test_a_quorum_without_the_leaders_own_disk_is_enough() -> None:
    """tryToCommit requires a quorum, not the leader."""
    done = run(*joins(1), *joins(2), WRITE, ack(1, FIRST), ack(2, FIRST), rules=LATER)

    assert Committed(3, 1, FIRST) in facts(done)


@pytest.mark.parametrize(
    ("others", "commits"),
    [
        pytest.param((1,), False, id="two of five"),
        pytest.param((1, 7), False, id="two of five and an observer"),
        pytest.param((1, 9), False, id="two of five and a stranger"),
        pytest.param((1, 1), False, id="one of them twice"),
        pytest.param((1, 2), True, id="three of five"),
    ],
)
def test_only_voters_of_the_leaders_view_are_counted(others: tuple[int, ...], commits: bool) -> None:
    """QuorumMajorityTest, and on a real ensemble (facts, 2): a follower outside the view is served, not counted."""
    done = run_five(WRITE, *(ack(sid, FIRST) for sid in others))

    assert (state(done).committed == FIRST.zxid) is commits


def test_transactions_are_committed_in_their_order() -> None:
    """tryToCommit does nothing while the previous proposal is outstanding, with any quorum."""
    done = run(*joins(1), WRITE, WRITE_AGAIN, ack(1, SECOND))

    assert sent(done) == []
    assert [each.zxid for each in state(done).outstanding] == [FIRST.zxid, SECOND.zxid]


def test_an_acknowledgement_after_the_commit_changes_nothing() -> None:
    """processAck returns if lastCommitted has reached it, or nothing is outstanding."""
    nothing_left = (*joins(1), *joins(2), WRITE, ack(1, FIRST))
    another_waits = (*nothing_left, WRITE_AGAIN)

    for before in (nothing_left, another_waits):
        done = run(*before, ack(2, FIRST))
        assert (done.state, done.effects) == (run(*before).state, ())


def test_an_acknowledgement_of_what_was_not_proposed_is_reported_and_not_counted() -> None:
    """processAck: "Trying to commit future proposal" is a warning."""
    done = run(*joins(1), WRITE, ack(1, SECOND))

    assert [type(fact) for fact in facts(done)] == [Unexpected]
    assert state(done).outstanding == (Outstanding(FIRST.zxid, (3,)),)


def test_the_ack_of_uptodate_is_no_acknowledgement_of_a_transaction() -> None:
    """processAck ignores the counter 0; here the handler learns from it that its learner serves."""
    done = run(*joins(1), Receive(1, Ack(make_zxid(1))))

    assert done.effects == ()
    assert [handler.stage for handler in state(done).handlers] == [Stage.SERVING]


def test_what_a_learner_acknowledged_counts_after_its_connection_is_gone() -> None:
    """removeLearnerHandler does not touch the ack sets of outstanding proposals."""
    done = run_five(WRITE, ack(1, FIRST), LearnerGone(1), ack(2, FIRST))

    assert state(done).committed == FIRST.zxid


def test_a_commit_may_be_applied_later() -> None:
    """The commit processor has a separate thread."""
    rules = ZabRules(asynchronous_disk=False, asynchronous_commits=True)
    committed = (*joins(1), WRITE, ack(1, FIRST))

    assert facts(run(*committed, rules=rules)) == [Committed(3, 1, FIRST)]
    assert facts(run(*committed, Applied(), rules=rules)) == [Delivered(3, 1, (FIRST,))]


# Sync.


def test_a_sync_is_answered_at_once_when_nothing_is_outstanding() -> None:
    """processSync."""
    assert sent(run(*joins(1), Receive(1, SyncRequest()))) == [(1, QuorumSync())]


def test_a_sync_is_answered_behind_the_commit_of_what_was_proposed_last() -> None:
    """processSync stores it with lastProposed; tryToCommit answers after the COMMIT."""
    asked = (*joins(1), WRITE, WRITE_AGAIN, Receive(1, SyncRequest()))

    assert sent(run(*asked)) == []
    assert sent(run(*asked, ack(1, FIRST))) == [(1, Commit(FIRST.zxid))]
    assert sent(run(*asked, ack(1, FIRST), ack(1, SECOND))) == [(1, Commit(SECOND.zxid)), (1, QuorumSync())]


def test_a_sync_of_a_learner_that_is_gone_is_answered_to_nobody() -> None:
    """The answer goes to the handler that requested it, and that handler has ended."""
    asked = (*joins(1), *joins(2), WRITE, Receive(2, SyncRequest()), LearnerGone(2), *joins(2))

    assert sent(run(*asked, ack(1, FIRST))) == [(1, Commit(FIRST.zxid)), (2, Commit(FIRST.zxid))]


def test_a_sync_of_the_leaders_own_client_waits_for_nobody() -> None:
    """Only a LearnerSyncRequest reaches processSync (ProposalRequestProcessor), and the leader's CommitProcessor has
    matchSyncs false: the request goes straight to FinalRequestProcessor, with the transactions applied by then.
    """
    assert facts(run(*joins(1), ClientSync())) == [SyncAnswered(3, make_zxid(1))]
    assert facts(run(*joins(1), WRITE, ClientSync())) == [SyncAnswered(3, make_zxid(1))]


# Ping, and packets out of place.


def test_a_serving_leader_pings_whoever_it_has_sent_newleader_to() -> None:
    """LearnerHandler.ping: not before the sending thread has started."""
    done = run(*joins(1), *joins(2)[:-1], Receive(7, FollowerInfo(0, True)), Tick())

    assert sent(done) == [(1, QuorumPing()), (2, QuorumPing())]


def test_a_leader_pings_nobody_before_it_serves() -> None:
    """Leader.lead: pings are sent by the loop that begins after startZkServer."""
    waiting = state(run(*joins(1)[:-1]))
    done = leader.step(Peer(3, THREE, Durable(1, 1)), waiting, Tick(), AT_ONCE)

    assert done is None or done.effects == ()


def test_an_answer_to_a_ping_changes_nothing() -> None:
    done = run(*joins(1), Receive(1, QuorumPing()))

    assert (done.state, done.effects) == (run(*joins(1)).state, ())


@pytest.mark.parametrize(
    "packet", [FollowerInfo(0), AckEpoch(0, 0), Commit(FIRST.zxid)], ids=lambda p: type(p).__name__
)
def test_an_unknown_packet_of_a_served_learner_is_only_warned_of(packet: QuorumPacket) -> None:
    """LearnerHandler.run, the default of its switch: a warning, and the next packet is read."""
    done = run(*joins(1), Receive(1, packet))

    assert [fact.family for fact in facts(done) if isinstance(fact, Unexpected)] == [MessageKind.STATE]
    assert Disconnect(1) not in done.effects
    assert state(done).handler(1) is not None


def test_a_lone_voter_commits_what_it_has_logged_itself() -> None:
    alone = majority_view({3})

    assert state(run(view=alone)).phase is LeaderPhase.BROADCAST
    assert Committed(3, 1, FIRST) in facts(run(WRITE, view=alone))


@pytest.mark.parametrize("request_", [ClientWrite("c"), Receive(1, QuorumRequest("c"))])
def test_a_request_beyond_the_epoch_ends_the_leader_before_anything_is_sent_or_logged(request_: ZabEvent) -> None:
    """Leader.propose: the exception is thrown before the packet and the record are made."""
    two_left = ZabRules(asynchronous_disk=False, zxids=2)
    writes = run(*joins(1), WRITE, WRITE_AGAIN, rules=two_left)

    assert [fact.txn.zxid for fact in facts(writes) if isinstance(fact, Broadcast)] == [make_zxid(1, 0xFFFFFFFE)]
    peer = Peer(3, THREE, writes.durable)
    over = leader.step(peer, state(writes), request_, two_left)

    assert over == ZabResult(writes.durable, None)


# Commits between NEWLEADER and UPTODATE.

HOLDING = ZabRules(asynchronous_disk=False, hold_commits=True)
JOINING = (Receive(2, FollowerInfo(0)), Receive(2, AckEpoch(0, 0)))
"""Server 2 is sent everything up to NEWLEADER, and has not acknowledged it."""


def test_a_commit_between_newleader_and_uptodate_is_sent_as_zookeeper_does() -> None:
    """tryToCommit sends to every forwarding follower, and a 3.8.0 follower may fail (ZOOKEEPER-4394)."""
    done = run(*joins(1), WRITE, *JOINING, ack(1, FIRST))

    assert {Send(1, Commit(FIRST.zxid)), Send(2, Commit(FIRST.zxid))} <= set(done.effects)


def test_a_held_commit_follows_uptodate() -> None:
    committing = run(*joins(1), WRITE, WRITE_AGAIN, *JOINING, ack(1, FIRST), rules=HOLDING)
    joined = run(
        *joins(1), WRITE, WRITE_AGAIN, *JOINING, ack(1, FIRST), ack(1, SECOND), Receive(2, Ack(make_zxid(1))),
        rules=HOLDING,
    )  # fmt: skip

    assert [each.peer for each in committing.effects if isinstance(each, Send)] == [1]
    assert joined.effects == (Send(2, UpToDate()), Send(2, Commit(FIRST.zxid)), Send(2, Commit(SECOND.zxid)))
    assert isinstance(joined.state, Leader)
    assert [each.held for each in joined.state.handlers] == [(), ()]


def test_an_observer_is_informed_without_delay() -> None:
    """INFORM brings its transaction along, so nothing can be missing."""
    joining = (Receive(7, FollowerInfo(0, True)), Receive(7, AckEpoch(0, 0)))
    done = run(*joins(1), WRITE, *joining, ack(1, FIRST), rules=HOLDING)

    assert Send(7, Inform(FIRST)) in done.effects


def test_commits_that_were_held_for_a_lost_learner_are_forgotten() -> None:
    again = (*JOINING, Receive(2, Ack(make_zxid(1))))
    done = run(*joins(1), WRITE, *JOINING, ack(1, FIRST), LearnerGone(2), *again, rules=HOLDING)

    assert done.effects == (Send(2, UpToDate()),), "the commit is a part of the second synchronisation"
