"""Synchronisation, the leader's part: DIFF, TRUNC or SNAP, the packets after it, and the time when each side serves.

Expected values: the tables of ZooKeeper's LearnerHandlerTest, and `LearnerHandler.syncFollower`,
`queueCommittedProposals`, `Leader.startForwarding` and `waitForNewLeaderAck` of 3.9.4.
"""

import pytest
from msgspec.structs import replace

from spec.durable import Durable
from spec.effects import Disconnect, Observe, Send
from spec.election import Peer
from spec.quorum import View, majority_view
from spec.txn import Txn, make_zxid
from spec.zab import leader
from spec.zab.events import ClientWrite, Receive, Unexpected, ZabEvent
from spec.zab.leader_sync import History, plan_for, stream
from spec.zab.packets import (
    Ack,
    AckEpoch,
    Commit,
    Diff,
    FollowerInfo,
    NewLeader,
    Proposal,
    QuorumPacket,
    QuorumPing,
    QuorumRequest,
    Snap,
    Trunc,
    UpToDate,
)
from spec.zab.state import Leader, LeaderPhase, Outstanding, Stage, ZabResult, ZabRules

RULES = ZabRules(asynchronous_disk=False)
FIVE = majority_view({1, 2, 3, 4, 5}, observers={7})
THREE = majority_view({1, 2, 3}, observers={7})
BEFORE_SERVING = Leader(LeaderPhase.NEWLEADER_ACK, 9, ())
E = make_zxid
"""In tables: epoch and counter."""


def history(last_processed: int, *log: int, snapshot: int = 0) -> History:
    """Return a leader's history: a snapshot, and these transactions after it."""
    return History(last_processed, snapshot, tuple(Txn(zxid) for zxid in log))


def packets(leaders: History, peer_last: int) -> list[QuorumPacket]:
    """Return the packets to a follower with this last zxid, without the NEWLEADER at the end."""
    plan = plan_for(leaders, peer_last)
    *sent, last = stream(plan, leaders, BEFORE_SERVING, Durable(), observer=False)
    assert last == NewLeader(9)
    return sent


def told(leaders: History, peer_last: int) -> tuple[str, int, list[int]]:
    first, *others = packets(leaders, peer_last)
    assert isinstance(first, Diff | Trunc | Snap)
    return type(first).__name__.upper(), first.zxid, [each.txn.zxid for each in others if isinstance(each, Proposal)]


def lead(view: View, *events: ZabEvent, durable: Durable = Durable()) -> ZabResult:
    """Return the result of the last of these events, for the leader 3."""
    me = Peer(3, view, durable)
    done = leader.begin(me, RULES)
    for event in events:
        assert isinstance(done.state, Leader)
        after = leader.step(replace(me, durable=done.durable), done.state, event, RULES)
        assert after is not None, f"impossible: {event}"
        done = after
    return done


def joins(sid: int, last_zxid: int = 0, *, observer: bool = False) -> tuple[Receive, Receive]:
    return Receive(sid, FollowerInfo(0, observer)), Receive(sid, AckEpoch(last_zxid, 0))


def acks(sid: int, epoch: int = 1) -> Receive:
    return Receive(sid, Ack(make_zxid(epoch)))


def sent(done: ZabResult) -> list[tuple[int, object]]:
    return [(each.peer, each.message) for each in done.effects if isinstance(each, Send)]


def serves(done: ZabResult) -> bool:
    return isinstance(done.state, Leader) and done.state.phase is LeaderPhase.BROADCAST


def reports(done: ZabResult) -> list[Unexpected]:
    facts = [each.fact for each in done.effects if isinstance(each, Observe)]
    return [fact for fact in facts if isinstance(fact, Unexpected)]


# DIFF, TRUNC or SNAP.

EMPTY = history(1, snapshot=1)
LOG = history(6, 2, 3, 5, snapshot=1)
LONGER = history(9, 2, 3, 5, 6, 7, 8, snapshot=1)
LOG_ONLY = history(7, 2, 3, 5, 6, 7, snapshot=1)
NEW_EPOCH = history(E(2, 0), E(0, 1), E(1, 1), E(1, 2))
CROSS_EPOCH = history(E(6, 0), E(1, 1), E(2, 1), E(2, 2), E(4, 1))


@pytest.mark.parametrize(
    ("leaders", "peer", "expected"),
    [
        pytest.param(EMPTY, 3, ("TRUNC", 1, []), id="testEmptyCommittedLog: newer"),
        pytest.param(EMPTY, 1, ("DIFF", 1, []), id="testEmptyCommittedLog: the same"),
        pytest.param(EMPTY, 0, ("SNAP", 1, []), id="testEmptyCommittedLog: a new machine"),
        pytest.param(LOG, 4, ("TRUNC", 3, [5]), id="testCommittedLog: a zxid never seen"),
        pytest.param(LOG, 2, ("DIFF", 5, [3, 5]), id="testCommittedLog: within the log"),
        pytest.param(LOG, 1, ("SNAP", 6, []), id="testCommittedLog: before the log"),
        pytest.param(LONGER, 4, ("TRUNC", 3, [5, 6, 7, 8]), id="testTxnLog: a zxid never seen"),
        pytest.param(LONGER, 3, ("DIFF", 8, [5, 6, 7, 8]), id="testTxnLog: within the log"),
        pytest.param(LOG_ONLY, 4, ("TRUNC", 3, [5, 6, 7]), id="testTxnLogOnly: a zxid never seen"),
        pytest.param(LOG_ONLY, 2, ("DIFF", 7, [3, 5, 6, 7]), id="testTxnLogOnly: within the log"),
        pytest.param(LOG_ONLY, 1, ("SNAP", 7, []), id="testTxnLogOnly: before the log"),
        pytest.param(NEW_EPOCH, E(0, 0), ("SNAP", E(2, 0), []), id="testNewEpochZxid: 0:0, before the log"),
        pytest.param(NEW_EPOCH, E(1, 0), ("DIFF", E(1, 2), [E(1, 1), E(1, 2)]), id="testNewEpochZxid: 1:0"),
        pytest.param(NEW_EPOCH, E(2, 0), ("DIFF", E(2, 0), []), id="testNewEpochZxid: 2:0, the leader's own"),
        pytest.param(CROSS_EPOCH, E(3, 1), ("SNAP", E(6, 0), []), id="testCrossEpochTrunc"),
    ],
)
def test_the_table_of_learner_handler_test(leaders: History, peer: int, expected: tuple[str, int, list[int]]) -> None:
    """LearnerHandlerTest, case by case; its log contains the transactions after the snapshot here."""
    assert told(leaders, peer) == expected


@pytest.mark.parametrize(
    ("leaders", "peer", "expected"),
    [
        pytest.param(history(E(1, 2), E(1, 1), E(1, 2)), E(1, 3), ("TRUNC", E(1, 2), []), id="beyond maxCommittedLog"),
        pytest.param(history(E(2, 0), E(1, 1)), E(1, 9), ("TRUNC", E(1, 1), []), id="between the log and 2:0"),
        pytest.param(history(E(6, 0), E(1, 1)), E(5, 0), ("SNAP", E(6, 0), []), id="beyond, but begins an epoch"),
        pytest.param(history(E(2, 0), snapshot=E(1, 2)), E(1, 2), ("SNAP", E(2, 0), []), id="no log, and 2:0 begun"),
        pytest.param(history(0), 0, ("DIFF", 0, []), id="nothing at all on either side"),
        pytest.param(
            history(E(1, 5), E(1, 4), E(1, 5), snapshot=E(1, 3)), E(1, 2), ("SNAP", E(1, 5), []), id="in the snapshot"
        ),
    ],
)
def test_other_cases_of_sync_follower(leaders: History, peer: int, expected: tuple[str, int, list[int]]) -> None:
    """LearnerHandler.syncFollower. With no log and 2:0 begun a follower with equal data gets SNAP: seen (facts, 3)."""
    assert told(leaders, peer) == expected


def test_a_learner_at_the_leaders_snapshot_is_never_told_to_drop_what_both_have() -> None:
    """A TRUNC goes to a proposal that precedes the learner's zxid in the log, and such a proposal exists: in
    syncFollower minCommittedLog is not beyond it, and getProposalsFromTxnLog fails if the log begins beyond it.
    """
    leaders = history(E(1, 5), E(1, 4), E(1, 5), snapshot=E(1, 3))

    assert told(leaders, E(1, 3))[0] != "TRUNC"


def test_an_old_leaders_uncommitted_transaction_is_truncated() -> None:
    """Observed on a real ensemble (facts, 3): 3 alone had 1:3, 1 and 2 had formed epoch 2 and had 1:2."""
    leaders = history(E(2, 0), E(1, 1), E(1, 2))

    assert packets(leaders, E(1, 3)) == [Trunc(E(1, 2))]


def test_each_transaction_is_followed_by_its_commit() -> None:
    """queueCommittedProposals."""
    leaders = history(E(1, 2), E(1, 1), E(1, 2))

    assert packets(leaders, E(1, 1)) == [Diff(E(1, 2)), Proposal(Txn(E(1, 2))), Commit(E(1, 2))]


def test_a_snapshot_holds_all_that_was_applied_and_nothing_is_sent_twice() -> None:
    """LearnerHandler.run: the zxid of SNAP is that of the tree."""
    leaders = history(E(1, 2), E(1, 1), E(1, 2), snapshot=E(1, 1))

    assert packets(leaders, 0) == [Snap(E(1, 2), (Txn(E(1, 1)), Txn(E(1, 2))))]


# Transactions in flight while a learner joins.


@pytest.mark.parametrize("observer", [False, True], ids=["follower", "observer"])
def test_what_is_outstanding_goes_to_followers_without_its_commit(observer: bool) -> None:
    """startForwarding: only a participant gets outstanding proposals."""
    durable = Durable(1, 1, log=(Txn(E(1, 1)), Txn(E(1, 2))))
    serving = Leader(LeaderPhase.BROADCAST, 1, (), outstanding=(Outstanding(E(1, 2)),), committed=E(1, 1))
    leaders = history(E(1, 1), E(1, 1))
    sent_now = stream(plan_for(leaders, E(1, 1)), leaders, serving, durable, observer=observer)

    outstanding = () if observer else (Proposal(Txn(E(1, 2))),)
    assert sent_now == (Diff(E(1, 1)), *outstanding, NewLeader(1))


def test_before_it_serves_a_leader_counts_all_that_it_logged_as_applied() -> None:
    """Leader.lead begins with zk.loadData: the log is in the tree, committed or not."""
    mine = Durable(log=(Txn(E(0, 1)), Txn(E(0, 2))))
    done = lead(THREE, *joins(1, E(0, 1)), durable=mine)

    assert sent(done) == [(1, Diff(E(0, 2))), (1, Proposal(Txn(E(0, 2)))), (1, Commit(E(0, 2))), (1, NewLeader(1))]


# NEWLEADER and UPTODATE.


def test_uptodate_comes_after_the_ack_of_newleader() -> None:
    """Zab1_0Test.testNormalRun: LEADERINFO, DIFF, NEWLEADER, and after the ACK UPTODATE."""
    assert sent(lead(THREE, *joins(1))) == [(1, Diff(0)), (1, NewLeader(1))]
    assert sent(lead(THREE, *joins(1), acks(1))) == [(1, UpToDate())]


def test_a_leader_serves_when_a_quorum_has_acknowledged_newleader() -> None:
    """waitForNewLeaderAck counts the leader as well; all servers that acknowledged are then notified immediately."""
    joined = (Receive(1, FollowerInfo(0)), *joins(2), Receive(1, AckEpoch(0, 0)))
    one = lead(FIVE, *joined, acks(1))
    two = lead(FIVE, *joined, acks(1), acks(2))

    assert not serves(one)
    assert sent(one) == []
    assert serves(two)
    assert sent(two) == [(1, UpToDate()), (2, UpToDate())]


@pytest.mark.parametrize("stranger", [7, 9], ids=["an observer", "a server outside the view"])
def test_who_does_not_vote_is_synchronised_and_not_counted(stranger: int) -> None:
    """Proposal.addAck counts voting members only; a real leader served servers outside its view (facts, 2)."""
    joined = (*joins(1), *joins(stranger, observer=True))
    waiting = lead(THREE, *joined, acks(stranger))
    served = lead(THREE, *joined, acks(stranger), acks(1))

    assert not serves(waiting)
    assert sent(served) == [(1, UpToDate()), (stranger, UpToDate())]


def test_a_latecomer_is_up_to_date_as_soon_as_it_has_acknowledged() -> None:
    """waitForNewLeaderAck and waitForStartup return immediately."""
    assert sent(lead(THREE, *joins(1), acks(1), *joins(2), acks(2))) == [(2, UpToDate())]


def test_an_ack_of_something_else_does_not_count_as_that_of_newleader() -> None:
    """waitForNewLeaderAck logs an error, and the handler continues to wait for the leader to serve."""
    done = lead(THREE, *joins(1), Receive(1, Ack(E(1, 1))))

    assert not serves(done)
    assert len(reports(done)) == 1
    assert isinstance(done.state, Leader)
    assert done.state.handlers[0].stage is Stage.SYNCED


def test_with_a_quorum_formed_the_first_ack_is_not_looked_at() -> None:
    """waitForNewLeaderAck returns for quorumFormed before it compares zxids; UPTODATE is sent without an error."""
    done = lead(THREE, *joins(1), acks(1), *joins(2), Receive(2, Ack(E(1, 1))))

    assert sent(done) == [(2, UpToDate())]
    assert reports(done) == []


@pytest.mark.parametrize("packet", [QuorumRequest("x"), QuorumPing()], ids=["REQUEST", "PING"])
def test_the_first_packet_after_newleader_must_be_an_ack(packet: QuorumPacket) -> None:
    """LearnerHandler.run ends the connection at any other packet."""
    assert Disconnect(1) in lead(THREE, *joins(1), Receive(1, packet)).effects


def test_nothing_is_read_from_a_learner_that_has_acknowledged_before_the_leader_serves() -> None:
    """Its handler's thread waits in waitForNewLeaderAck or waitForStartup."""
    joined = (Receive(1, FollowerInfo(0)), *joins(2), Receive(1, AckEpoch(0, 0)), acks(1))
    done = lead(FIVE, *joined)
    assert isinstance(done.state, Leader)

    assert leader.step(Peer(3, FIVE, done.durable), done.state, Receive(1, QuorumRequest("x")), RULES) is None


def test_a_leader_takes_no_writes_before_it_serves() -> None:
    """Its request processors start in startZkServer."""
    done = lead(THREE, *joins(1))
    assert isinstance(done.state, Leader)

    assert leader.step(Peer(3, THREE, done.durable), done.state, ClientWrite("x"), RULES) is None
