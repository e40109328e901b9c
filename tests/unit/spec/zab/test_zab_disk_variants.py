"""The variants of Zab in which log, snapshots and tree in memory differ, compared with the specification without them.

The expected values are those of ZooKeeper 3.9.5 and of its history. `FileTxnLog.truncate` leaves the log [1:1, 1:2,
1:3, 2:6] unchanged by truncate(2:5), measured on the class alone. `FileTxnSnapLog.truncateLog` and `.restore`,
`Learner.shutdown`, `ZooKeeperServer.loadData` and `.shutdown` were read. The commit that fixed ZOOKEEPER-4925 describes
it, and so does the commit that proposes a correction of ZOOKEEPER-4882.
"""

import pytest
from msgspec.structs import replace

from spec.durable import Durable, Snapshot
from spec.election import Elected, LeaderLost, Vote
from spec.server import Event, Server, crash, step
from spec.txn import Txn, make_zxid
from spec.variants import Variant
from spec.zab import disk
from spec.zab.events import LogFailed, Receive, Synced, SyncedLate
from spec.zab.packets import (
    AckEpoch,
    Commit,
    Diff,
    FollowerInfo,
    LeaderInfo,
    NewLeader,
    Proposal,
    QuorumPacket,
    Snap,
    Trunc,
    UpToDate,
)
from spec.zab.state import StaleMemory, TakeSnapshot, ZabRules
from tests.support.zab_servers import DISK, JOINED, OLD, A, X, Y, follow, rules, run, sent


def log(*zxids: tuple[int, int]) -> tuple[Txn, ...]:
    return tuple(Txn(make_zxid(*zxid)) for zxid in zxids)


def after(done_by: Server, zab: ZabRules, *happens: QuorumPacket | Event) -> Server:
    """Return a server after these events; packets arrive from server 3."""
    server = done_by
    for each in happens:
        done = step(server, Receive(3, each) if isinstance(each, QuorumPacket) else each, zab=zab)
        assert done is not None, f"impossible: {each}"
        server = done.state
    return server


FOLLOWS_AGAIN = Elected(Vote(3, OLD.zxid, 2), 2)

# The disk.


def test_a_restart_reads_the_newest_snapshot_and_the_records_beyond_it() -> None:
    """FileTxnSnapLog.restore: a snapshot may hold transactions beyond its zxid, and their records are applied once."""
    records = log((1, 1), (1, 2), (1, 3), (2, 1))
    clean, dirty = Durable(1, 1, log=records), Durable(1, 1, log=records, dirty=Snapshot(records[1].zxid, records[:3]))
    missing = replace(dirty, log=records[:2])

    assert clean.txns == dirty.txns == records
    assert (missing.txns, missing.last_zxid) == (records[:3], records[1].zxid)


def test_a_snapshot_beyond_the_log_is_the_last_zxid() -> None:
    records = log((1, 1), (2, 1))
    assert Durable(2, 2, log=records[:1], dirty=Snapshot(records[1].zxid, records)).last_zxid == records[1].zxid


@pytest.mark.parametrize("name", [OLD.zxid, X.zxid])
def test_a_truncation_without_a_variant_removes_a_snapshot_with_later_transactions(name: int) -> None:
    dirty = Durable(2, 2, log=(OLD, X), dirty=Snapshot(name, (OLD, X)))
    assert disk.truncated(dirty, OLD.zxid, rules()) == Durable(2, 2, log=(OLD,))


def test_a_snapshot_without_later_transactions_survives_a_truncation() -> None:
    snapshot = Snapshot(OLD.zxid, (OLD, A))
    assert disk.truncated(Durable(2, 2, log=(OLD, X), dirty=snapshot), A.zxid, rules()).dirty == snapshot


def test_the_snapshot_of_a_snap_replaces_an_older_one() -> None:
    dirty = Durable(2, 2, log=(OLD,), dirty=Snapshot(A.zxid, (OLD, A)))

    assert disk.done(dirty, TakeSnapshot((OLD, X), X.zxid)) == Durable(2, 2, X.zxid, (OLD, X))
    assert disk.done(dirty, TakeSnapshot((OLD, A, X), 0)).dirty == Snapshot(X.zxid, (OLD, A, X))


# The variants.


@pytest.mark.parametrize(
    ("records", "cut", "right", "wrong"),
    [
        pytest.param([(1, 1), (1, 2), (1, 3), (2, 6)], (2, 5), 3, 4, id="not in the log"),
        pytest.param([(1, 1), (1, 2), (1, 3), (2, 6), (2, 7)], (2, 5), 3, 4, id="only the next one stays"),
        pytest.param([(1, 1), (1, 2), (1, 3)], (1, 2), 2, 2, id="in the log"),
        pytest.param([(1, 1), (1, 2)], (2, 5), 2, 2, id="beyond the log"),
        pytest.param([(1, 1), (1, 2)], (0, 0), 0, 1, id="before the first transaction of an ensemble"),
    ],
)
def test_variant_trunc_after_snap(records: list[tuple[int, int]], cut: tuple[int, int], right: int, wrong: int) -> None:
    """FileTxnLog.truncate: it cuts behind the first record that is not before the zxid."""
    whole = Durable(2, 2, log=log(*records))
    variant = rules(Variant.TRUNC_AFTER_SNAP)

    assert disk.truncated(whole, make_zxid(*cut), rules()).log == whole.log[:right]
    assert disk.truncated(whole, make_zxid(*cut), variant).log == whole.log[:wrong]


def test_a_transaction_that_came_by_snap_is_not_in_the_log() -> None:
    variant = rules(Variant.TRUNC_AFTER_SNAP)
    mine = Durable(2, 2, OLD.zxid, (OLD, X))

    assert disk.truncated(mine, OLD.zxid, rules()).txns == (OLD,)
    assert disk.truncated(mine, OLD.zxid, variant).txns == (OLD, X)


def test_a_server_whose_records_are_all_before_a_trunc_ends_and_keeps_its_files() -> None:
    """`FileTxnLog.truncate` fails, and `Learner.syncWithLeader` exits: seen on 3.9.5, where X came by SNAP."""
    synchronised = (LeaderInfo(2), Snap(X.zxid, (OLD, X)), NewLeader(2), Synced(), Synced())
    happens = (*synchronised, LeaderLost(), FOLLOWS_AGAIN, LeaderInfo(3), Trunc(A.zxid))
    right, wrong = (follow(rules(*v), *happens).state for v in ((), (Variant.TRUNC_AFTER_SNAP,)))

    assert (right.zab is not None, right.durable.snapshot) == (True, A.zxid)
    assert (wrong.zab, wrong.remains) == (None, StaleMemory())
    assert (wrong.durable.snapshot, wrong.durable.log) == (X.zxid, (OLD, X))


def test_records_that_a_snapshot_covers_are_in_the_log_files() -> None:
    """The DISK of the test has a record of OLD, so a TRUNC to OLD cuts behind it."""
    synchronised = (LeaderInfo(2), Snap(X.zxid, (OLD, X)), NewLeader(2), Synced(), Synced())
    happens = (*synchronised, LeaderLost(), FOLLOWS_AGAIN, LeaderInfo(3), Trunc(OLD.zxid))
    done = follow(rules(Variant.TRUNC_AFTER_SNAP), *happens).state

    assert done.zab is not None and (done.durable.log, done.durable.covered) == ((OLD,), OLD.zxid)


def test_variant_snapshot_survives_trunc() -> None:
    """ZOOKEEPER-4837: `truncateLog` leaves all snapshots, and `loadDataBase` reads the newest."""
    synchronised = (LeaderInfo(2), Snap(X.zxid, (OLD, X)), NewLeader(2), Synced(), Synced())
    happens = (*synchronised, LeaderLost(), FOLLOWS_AGAIN, LeaderInfo(3), Trunc(OLD.zxid))
    right, wrong = (follow(rules(*v), *happens).state for v in ((), (Variant.SNAPSHOT_SURVIVES_TRUNC,)))

    assert right.durable.txns == (OLD,)
    assert wrong.durable.txns == (OLD, X)
    assert wrong.durable.log == (OLD,)


def test_variant_fuzzy_snapshot() -> None:
    """`ZooKeeperServer.shutdown` applies logged transactions to the tree that a snapshot thread may still read."""
    happens = (*JOINED, Proposal(X), LeaderLost())
    right, wrong = (follow(rules(*v), *happens).state for v in ((), (Variant.FUZZY_SNAPSHOT,)))

    assert right.durable == Durable(2, 2, log=(OLD, X))
    assert wrong.durable == Durable(2, 2, log=(OLD, X), dirty=Snapshot(OLD.zxid, (OLD, X)))
    assert disk.truncated(right.durable, OLD.zxid, rules()).txns == (OLD,)
    assert disk.truncated(wrong.durable, OLD.zxid, rules(Variant.FUZZY_SNAPSHOT)).txns == (OLD, X)


def test_a_snapshot_of_what_is_applied_is_not_fuzzy() -> None:
    happens = (*JOINED, Proposal(X), Synced(), Commit(X.zxid), LeaderLost())
    assert follow(rules(Variant.FUZZY_SNAPSHOT), *happens).state.durable.dirty is None


def test_variant_snapshot_of_uncommitted() -> None:
    """ZOOKEEPER-1549: `Leader.lead` begins with `loadData`, which takes a snapshot of the tree."""
    mine = replace(DISK, log=(OLD, A))
    right, wrong = (run(3, rules(*v), durable=mine).state for v in ((), (Variant.SNAPSHOT_OF_UNCOMMITTED,)))

    assert right.durable.dirty is None
    assert wrong.durable.dirty == Snapshot(A.zxid, (OLD, A))
    assert disk.truncated(right.durable, OLD.zxid, rules()).txns == (OLD,)
    assert disk.truncated(wrong.durable, OLD.zxid, rules(Variant.SNAPSHOT_OF_UNCOMMITTED)).txns == (OLD, A)


def test_variant_tree_ahead_of_log() -> None:
    """ZOOKEEPER-5094: `Learner.shutdown` clears the tree after an unfinished SNAP, and not after a TRUNC."""
    interrupted = (LeaderInfo(2), Trunc(OLD.zxid), Proposal(A), Commit(A.zxid), LeaderLost())
    right, wrong = (follow(rules(*v), *interrupted).state for v in ((), (Variant.TREE_AHEAD_OF_LOG,)))

    assert right.durable == wrong.durable == Durable(2, 1, log=(OLD,))
    assert (right.peer.last_zxid, wrong.peer.last_zxid) == (OLD.zxid, A.zxid)
    crashed = crash(wrong)
    assert crashed is not None
    assert crashed.peer.last_zxid == OLD.zxid


def test_variant_partial_snapshot_kept() -> None:
    """ZOOKEEPER-3642: 3.6.2 votes with the zxid of the snapshot after an unfinished SNAP, and 3.6.4 does not."""
    interrupted = (LeaderInfo(2), Snap(A.zxid, (OLD, A)), LeaderLost())
    right, wrong = (follow(rules(*v), *interrupted).state for v in ((), (Variant.PARTIAL_SNAPSHOT_KEPT,)))

    assert right.durable == wrong.durable == Durable(2, 1, log=(OLD,))
    assert (right.peer.last_zxid, wrong.peer.last_zxid) == (OLD.zxid, A.zxid)
    crashed = crash(wrong)
    assert crashed is not None
    assert crashed.peer.last_zxid == OLD.zxid


def test_a_tree_ahead_of_the_log_ends_with_the_next_trunc_or_snap() -> None:
    variant = rules(Variant.TREE_AHEAD_OF_LOG)
    ahead = follow(variant, LeaderInfo(2), Trunc(OLD.zxid), Proposal(A), Commit(A.zxid), LeaderLost()).state

    for first in (Trunc(OLD.zxid), Snap(OLD.zxid, (OLD,))):
        again = after(ahead, variant, FOLLOWS_AGAIN, LeaderInfo(3), first)
        assert again.remains.unlogged == ()
    assert after(ahead, variant, FOLLOWS_AGAIN, LeaderInfo(3), Diff(A.zxid)).remains.unlogged == (A,)


def test_a_leader_writes_a_tree_ahead_of_the_log_to_a_snapshot() -> None:
    """`loadData` takes a snapshot of the tree that the process has."""
    variant = rules(Variant.TREE_AHEAD_OF_LOG)
    ahead = follow(variant, LeaderInfo(2), Trunc(OLD.zxid), Proposal(A), Commit(A.zxid), LeaderLost()).state
    leads = after(ahead, variant, Elected(Vote(1, A.zxid, 2), 2))

    assert (leads.durable.txns, leads.remains.unlogged) == ((OLD, A), ())


def test_variant_disk_error_keeps_tree() -> None:
    """ZOOKEEPER-4882: a quorum of others commits a transaction that the follower then cannot write."""
    right, wrong = (applied_unwritten(rules(*v)) for v in ((), (Variant.DISK_ERROR_KEEPS_TREE,)))

    assert right.durable.txns == wrong.durable.txns == (OLD,)
    assert (right.disk_full, right.peer.last_zxid) == (True, OLD.zxid)
    assert (wrong.disk_full, wrong.peer.last_zxid) == (False, X.zxid)


def applied_unwritten(zab: ZabRules) -> Server:
    """Return follower 1 after it has applied a transaction that its disk then cannot write."""
    return follow(zab, *JOINED, Proposal(X), Commit(X.zxid), LogFailed()).state


def test_an_unwritten_transaction_that_is_not_applied_is_forgotten() -> None:
    failed = follow(rules(Variant.DISK_ERROR_KEEPS_TREE), *JOINED, Proposal(X), LogFailed()).state
    assert failed.peer.last_zxid == OLD.zxid


def test_before_3_9_3_a_disk_error_on_newleader_leaves_nothing_in_the_tree() -> None:
    """With ZOOKEEPER-3023 what a DIFF commits is applied after UPTODATE, so the tree is not ahead of the log."""
    happens = (LeaderInfo(2), Diff(A.zxid), Proposal(A), Commit(A.zxid), NewLeader(2), LogFailed())
    since, before = ((Variant.DISK_ERROR_KEEPS_TREE, *v) for v in ((), (Variant.COMMITS_AFTER_UPTODATE,)))

    assert follow(rules(*since), *happens).state.peer.last_zxid == A.zxid
    assert follow(rules(*before), *happens).state.peer.last_zxid == OLD.zxid


def test_a_snapshot_that_cannot_be_written_leaves_nothing_in_memory() -> None:
    """`ZooKeeperServer.takeSnapshot` ends the process."""
    happens = (LeaderInfo(2), Trunc(OLD.zxid), Proposal(A), Commit(A.zxid), Proposal(X), NewLeader(2), LogFailed())
    forgets = (Variant.DISK_ERROR_KEEPS_TREE, Variant.NEWLEADER_FORGETS_PROPOSALS)
    assert follow(rules(*forgets), *happens).state.peer.last_zxid == OLD.zxid


def test_a_transaction_that_is_applied_and_queued_stays_in_the_tree() -> None:
    """ZOOKEEPER-4712: `getLastLoggedZxid` is the zxid of the tree, and `CommitProcessor` does not wait for the disk."""
    variant = rules(Variant.QUEUE_SURVIVES_SHUTDOWN)
    left = follow(variant, *JOINED, Proposal(X), Commit(X.zxid), Proposal(Y), LeaderLost()).state

    assert (left.durable.txns, left.peer.last_zxid, left.remains.queue) == ((OLD,), X.zxid, (X, Y))
    written = after(left, variant, SyncedLate())
    assert (written.durable.txns, written.remains.unlogged, written.remains.queue) == ((OLD, X), (), (Y,))


def test_what_a_sync_thread_writes_late_is_in_no_vote_before_the_next_part_ends() -> None:
    """ZOOKEEPER-4712: `ZKDatabase.fastForwardDataBase` has read the log before, and reads it again at the next end."""
    variant = rules(Variant.QUEUE_SURVIVES_SHUTDOWN)
    written = after(follow(variant, *JOINED, Proposal(X), LeaderLost()).state, variant, SyncedLate())
    assert (written.durable.last_zxid, written.peer.last_zxid) == (X.zxid, OLD.zxid)

    again = after(written, variant, FOLLOWS_AGAIN)
    assert again.peer.last_zxid == OLD.zxid
    assert after(again, variant, LeaderLost()).peer.last_zxid == X.zxid


def test_a_sync_thread_that_survives_hides_no_other_memory() -> None:
    """ZOOKEEPER-4712 and 5094 are both in 3.8.0 to 3.9.2."""
    interrupted = (LeaderInfo(2), Trunc(OLD.zxid), Proposal(A), Commit(A.zxid), LeaderLost())
    both = rules(Variant.QUEUE_SURVIVES_SHUTDOWN, Variant.TREE_AHEAD_OF_LOG)
    assert follow(both, *interrupted).state.peer.last_zxid == A.zxid


@pytest.mark.parametrize(
    ("first", "before", "since"),
    [(Diff(A.zxid), (), (A.zxid,)), (Trunc(OLD.zxid), (A.zxid,), (A.zxid,))],
    ids=["DIFF", "TRUNC"],
)
def test_the_committed_log_lacks_what_a_learner_applies_by_itself(
    first: QuorumPacket, before: tuple[int, ...], since: tuple[int, ...]
) -> None:
    """`syncWithLeader` up to 3.9.2 passes the commits of a DIFF to `fzk.commit`, and those after a TRUNC do not."""
    joined = (LeaderInfo(2), first, Proposal(A), Commit(A.zxid), NewLeader(2), Synced(), Synced(), UpToDate())
    gap = Variant.COMMITTED_LOG_WITH_GAP
    old, new = (follow(rules(gap, *v), *joined, LeaderLost()) for v in ((Variant.COMMITS_AFTER_UPTODATE,), ()))

    assert (old.state.peer.unlisted, new.state.peer.unlisted) == (before, since)


def test_variant_committed_log_with_gap() -> None:
    """ZOOKEEPER-4925: 3.9.3 applies the transactions of a DIFF without adding them to committedLog."""
    joined = (LeaderInfo(2), Diff(A.zxid), Proposal(A), Commit(A.zxid), NewLeader(2), Synced(), Synced(), UpToDate())
    lost = (*joined, Proposal(X), Synced(), Commit(X.zxid), LeaderLost())
    behind = (Receive(2, FollowerInfo(1)), Receive(2, AckEpoch(OLD.zxid, 1)))
    zab = {name: rules(*v) for name, v in (("right", ()), ("wrong", (Variant.COMMITTED_LOG_WITH_GAP,)))}
    told = {}
    for name, each in zab.items():
        leads = after(follow(each, *lost).state, each, Elected(Vote(1, X.zxid, 2), 2), behind[0])
        done = step(leads, behind[1], zab=each)
        assert done is not None
        told[name] = sent(done)

    first, last = Diff(X.zxid), NewLeader(3)
    assert told["right"] == [first, Proposal(A), Commit(A.zxid), Proposal(X), Commit(X.zxid), last]
    assert told["wrong"] == [first, Proposal(X), Commit(X.zxid), last]


def test_each_release_before_3_9_4_only_warns_of_a_gap_in_a_synchronisation() -> None:
    """`enforceContinuousProposal` came with the correction of ZOOKEEPER-4925."""
    gap = (LeaderInfo(2), Diff(Y.zxid), Proposal(OLD), Proposal(Txn(make_zxid(1, 3))))

    assert follow(rules(), *gap).state.zab is None
    assert follow(rules(Variant.COMMITTED_LOG_WITH_GAP), *gap).state.zab is not None


def test_a_crash_reads_the_committed_log_from_the_disk() -> None:
    variant = rules(Variant.COMMITTED_LOG_WITH_GAP)
    joined = (LeaderInfo(2), Diff(A.zxid), Proposal(A), Commit(A.zxid), NewLeader(2), Synced(), Synced(), LeaderLost())
    synchronised = follow(variant, *joined).state
    crashed = crash(synchronised, variant)

    assert synchronised.peer.unlisted == (A.zxid,)
    assert crashed is not None
    assert crashed.peer.unlisted == ()
