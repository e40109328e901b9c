"""Tests of a serving learner, follower or observer: proposals, commits, and requests of its clients.

Expected values: `Follower.processPacket`, `Observer.processPacket`, `FollowerZooKeeperServer`,
`ObserverZooKeeperServer` and `SendAckRequestProcessor` of 3.9.4, and ZooKeeper's Zab1_0Test.
"""

import pytest
from msgspec.structs import replace

from spec.effects import Apply, Observe, Persist
from spec.election import Peer
from spec.txn import Txn, make_zxid
from spec.zab import learner
from spec.zab.events import Applied, ClientSync, ClientWrite, Delivered, MessageKind, SyncAnswered, Synced, ZabEvent
from spec.zab.packets import (
    Ack,
    Commit,
    Inform,
    Proposal,
    QuorumPacket,
    QuorumPing,
    QuorumRequest,
    QuorumSync,
    Snap,
    SyncRequest,
)
from spec.zab.state import Append, EnterEpoch, ZabRules
from tests.support.zab_learner import (
    AT_ONCE,
    DIFF,
    DISK,
    EPOCH,
    IN_EPOCH,
    LATER,
    NEWLEADER,
    OLD,
    SERVED,
    UPTODATE,
    VIEW,
    A,
    B,
    committed,
    facts,
    run,
    sent,
    state,
    unexpected,
)

X, Y = Txn(make_zxid(2, 1), "x"), Txn(make_zxid(2, 2), "y")


# Followers.


def test_a_proposal_is_acknowledged_when_it_is_on_disk() -> None:
    """SyncRequestProcessor, then SendAckRequestProcessor."""
    asked = run(*SERVED, Proposal(X), rules=LATER)
    written = run(*SERVED, Proposal(X), Synced(), rules=LATER)

    assert (asked.durable.txns, asked.effects) == ((OLD,), (Persist(Append(X)),))
    assert (written.durable.txns, sent(written.effects)) == ((OLD, X), [Ack(X.zxid)])


def test_a_commit_applies_the_oldest_pending_proposal() -> None:
    """FollowerZooKeeperServer.commit; it need not be on this server's disk."""
    done = run(*SERVED, Proposal(X), Commit(X.zxid), rules=LATER)

    assert done.effects == (Apply(X.zxid), Observe(Delivered(1, 2, (X,))))


def test_a_commit_may_be_applied_later() -> None:
    rules = ZabRules(asynchronous_disk=False, asynchronous_commits=True)

    assert facts(run(*SERVED, *committed(X), rules=rules)) == []
    assert facts(run(*SERVED, *committed(X), Applied(), rules=rules)) == [Delivered(1, 2, (X,))]


@pytest.mark.parametrize(
    ("pending", "goes_on"), [((), True), ((Proposal(X),), False)], ids=["nothing is pending", "another is"]
)
def test_a_commit_of_another_than_the_oldest_proposal(pending: tuple[QuorumPacket, ...], goes_on: bool) -> None:
    """FollowerZooKeeperServer.commit: a warning if nothing is pending, else the end of the server."""
    done = run(*SERVED, *pending, Commit(Y.zxid))

    assert unexpected(done) == [MessageKind.COMMIT]
    assert (done.state is not None) is goes_on


def test_a_gap_between_proposals_is_only_warned_of_while_serving() -> None:
    """Follower.processPacket logs every proposal that arrives."""
    done = run(*SERVED, Proposal(X), Proposal(Txn(make_zxid(2, 9))))

    assert unexpected(done) == [MessageKind.PROPOSAL]
    assert Ack(make_zxid(2, 9)) in sent(done.effects)


def test_a_second_uptodate_is_ignored() -> None:
    """Follower.processPacket logs an error."""
    done = run(*SERVED, UPTODATE)

    assert (unexpected(done), state(done)) == ([MessageKind.STATE], state(run(*SERVED)))


def test_clients_of_a_learner_write_through_the_leader() -> None:
    assert sent(run(*SERVED, ClientWrite("x")).effects) == [QuorumRequest("x")]


def test_a_sync_is_answered_by_the_leader_and_then_to_the_client() -> None:
    """FollowerZooKeeperServer.sync: after every earlier COMMIT."""
    done = run(*SERVED, ClientSync(), *committed(X), QuorumSync())

    assert sent(run(*SERVED, ClientSync()).effects) == [SyncRequest()]
    assert facts(done) == [SyncAnswered(1, X.zxid)]


def test_a_sync_that_nobody_asked_for_is_only_warned_of() -> None:
    assert unexpected(run(*SERVED, QuorumSync())) == [MessageKind.STATE]


def test_a_ping_is_answered() -> None:
    assert sent(run(*SERVED, QuorumPing()).effects) == [QuorumPing()]


@pytest.mark.parametrize("event", [ClientWrite("x"), ClientSync()], ids=["write", "sync"])
def test_nobody_is_served_before_uptodate(event: ZabEvent) -> None:
    synced = run(DIFF, NEWLEADER)

    assert learner.step(Peer(1, VIEW, synced.durable), state(synced), event, AT_ONCE) is None


# Observers.


def test_an_observer_logs_and_applies_an_inform_and_acknowledges_nothing() -> None:
    """ObserverZooKeeperServer.commitRequest; its sync thread sends no ACK."""
    done = run(*SERVED, Inform(X), sid=4)

    assert done.durable.txns == (OLD, X)
    assert sent(done.effects) == []
    assert Observe(Delivered(4, 2, (X,))) in done.effects


def test_an_observer_logs_its_diff_after_uptodate() -> None:
    """syncWithLeader persists on NEWLEADER for a FollowerZooKeeperServer only."""
    assert run(DIFF, *committed(A), NEWLEADER, sid=4).durable == IN_EPOCH
    assert run(DIFF, *committed(A), NEWLEADER, UPTODATE, sid=4).durable.txns == (OLD, A)


def test_an_observer_may_log_its_diff_before_it_acknowledges_newleader() -> None:
    """As a follower does: the log, then currentEpoch, then the ACK."""
    first = run(DIFF, *committed(A), NEWLEADER, sid=4, rules=replace(LATER, observers_log_first=True))
    assert state(first).queue == (Append(A, ack=False), EnterEpoch(2))
    assert sent(first.effects) == []


def test_what_an_observer_hears_between_newleader_and_uptodate() -> None:
    """testNormalObserverRun: PROPOSAL and COMMIT, INFORM, UPTODATE; one ACK, and both are applied."""
    done = run(Snap(OLD.zxid, (OLD,)), NEWLEADER, *committed(A), Inform(B), UPTODATE, sid=4)

    assert sent(done.effects) == [Ack(EPOCH)]
    assert done.durable.txns == (OLD, A, B)
    assert state(done).delivered == B.zxid


@pytest.mark.parametrize(
    ("sid", "packet"),
    [(4, Proposal(X)), (4, Commit(X.zxid)), (1, Inform(X))],
    ids=["PROPOSAL at an observer", "COMMIT at an observer", "INFORM at a follower"],
)
def test_a_packet_for_the_other_kind_of_learner_is_ignored(sid: int, packet: QuorumPacket) -> None:
    """Observer.processPacket ignores PROPOSAL and COMMIT; Follower.processPacket has no case for INFORM."""
    done = run(*SERVED, packet, sid=sid)

    assert (done.durable, sent(done.effects)) == (IN_EPOCH, [])
    assert state(done).pending == ()


# Commits that wait for the commit processor.


COMMITS_LATER = ZabRules(asynchronous_disk=False, asynchronous_commits=True)


def test_waiting_commits_are_applied_one_by_one_in_their_order() -> None:
    """CommitProcessor has a queue; a second COMMIT does not replace the first."""
    happens = (*SERVED, Proposal(X), Proposal(Y), Commit(X.zxid), Commit(Y.zxid))

    assert state(run(*happens, rules=COMMITS_LATER)).commits == (X.zxid, Y.zxid)
    assert Apply(X.zxid) in run(*happens, Applied(), rules=COMMITS_LATER).effects
    both = run(*happens, Applied(), Applied(), rules=COMMITS_LATER)
    assert Apply(Y.zxid) in both.effects
    assert (state(both).commits, state(both).delivered) == ((), Y.zxid)


def test_the_answer_to_a_sync_covers_the_commits_that_wait() -> None:
    """FollowerZooKeeperServer.sync passes through the same commit processor, after the last COMMIT."""
    happens = (*SERVED, ClientSync(), Proposal(X), Proposal(Y), Commit(X.zxid), Commit(Y.zxid), QuorumSync())

    assert facts(run(*happens, rules=COMMITS_LATER)) == [SyncAnswered(1, Y.zxid)]


# Packets before synchronisation.


@pytest.mark.parametrize(
    "packet", [Commit(OLD.zxid), Proposal(X), Inform(X), NEWLEADER, UPTODATE, QuorumPing()], ids=repr
)
def test_the_first_packet_of_a_synchronisation_is_diff_trunc_or_snap(packet: QuorumPacket) -> None:
    """Learner.syncWithLeader exits on any other first packet, before it reads the packet's content."""
    done = run(packet)

    assert (unexpected(done), done.state, done.durable) == ([MessageKind.STATE], None, DISK)
