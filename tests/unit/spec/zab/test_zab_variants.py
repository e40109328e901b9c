"""Each variant of Zab, at the place where it differs, compared with the specification without it.

Section 6 of the facts file describes the known defects of ZooKeeper; `spec/variants.py` describes the other variants.
The tests in `tests/quality` show that a checker finds the consequences.
"""

import re
from itertools import combinations
from pathlib import Path

import pytest
from msgspec.structs import replace

from spec.durable import Durable
from spec.effects import Persist
from spec.election import LeaderLost
from spec.server import Event, crash, step
from spec.txn import make_zxid
from spec.variants import DESCRIBED, Area, Variant, of_area
from spec.zab.events import (
    Applied,
    ClientWrite,
    Committed,
    Delivered,
    LearnerGone,
    Receive,
    Resumed,
    Synced,
    SyncedLate,
)
from spec.zab.packets import (
    Ack,
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
from spec.zab.state import Append, EnterEpoch, LeaderPhase, LearnerPhase, Outstanding
from tests.support.zab_servers import (
    ACK_OF_NEWLEADER,
    DIFF_OF_A,
    DISK,
    FIVE,
    FOUR,
    JOINED,
    OLD,
    A,
    X,
    Y,
    facts,
    follow,
    lead,
    leader,
    learner,
    rules,
    run,
    sent,
)


def test_every_variant_is_described_and_those_of_zab_have_their_test_here() -> None:
    """The tests of variants of the disk and of a restore are in files beside this one."""
    files = Path(__file__).parents[2].rglob("test_zab_*.py")
    tested = {name for file in files for name in re.findall(r"def test_variant_(\w+)\(", file.read_text("utf-8"))}

    assert set(DESCRIBED) == set(Variant)
    assert tested == {variant.name.lower() for variant in of_area(Area.ZAB)}


# Known defects of ZooKeeper.


def test_variant_tree_behind_log() -> None:
    """ZOOKEEPER-2845: an orderly shutdown leaves only applied transactions in the tree; the election uses its zxid."""
    logged = (*JOINED, Proposal(X), LeaderLost())

    assert follow(rules(), *logged).state.peer.last_zxid == X.zxid
    assert follow(rules(Variant.TREE_BEHIND_LOG), *logged).state.peer.last_zxid == OLD.zxid


def test_variant_commits_after_uptodate() -> None:
    """ZOOKEEPER-3023: transactions that NEWLEADER made durable are applied some time after the ACK of UPTODATE."""
    happens = (*DIFF_OF_A, UpToDate())
    right = follow(rules(disk=False, commits=True), *happens)
    wrong = follow(rules(Variant.COMMITS_AFTER_UPTODATE, disk=False, commits=True), *happens)
    later = follow(rules(Variant.COMMITS_AFTER_UPTODATE, disk=False, commits=True), *happens, Applied())

    assert facts(right) == [Delivered(1, 2, (OLD, A))]
    assert facts(wrong) == [Delivered(1, 2, (OLD,))]
    assert facts(later) == [Delivered(1, 2, (A,))]


def test_variant_logged_after_uptodate() -> None:
    """ZOOKEEPER-3911: NEWLEADER is acknowledged with the proposals of the DIFF in memory."""
    right, wrong = (
        follow(rules(*variants, disk=False), *DIFF_OF_A) for variants in ((), (Variant.LOGGED_AFTER_UPTODATE,))
    )

    assert sent(right) == sent(wrong) == [ACK_OF_NEWLEADER]
    assert right.state.durable.txns == (OLD, A)
    assert wrong.state.durable.txns == (OLD,)


def test_variant_newleader_forgets_proposals() -> None:
    """ZOOKEEPER-4394: a COMMIT between NEWLEADER and UPTODATE finds no proposal, and the learner gives up."""
    happens = (LeaderInfo(2), Diff(OLD.zxid), Proposal(X), NewLeader(2), Commit(X.zxid))

    assert follow(rules(disk=False), *happens).state.zab is not None
    assert follow(rules(Variant.NEWLEADER_FORGETS_PROPOSALS, disk=False), *happens).state.zab is None


def test_3_8_5_logs_a_forgotten_proposal_before_newleader_and_acknowledges_it_after_uptodate() -> None:
    """`syncWithLeader` of 3.8.5 and 3.9.2: `fzk.appendRequest`, `commit`, `setCurrentEpoch`; then `requestsToAck`."""
    variant = rules(Variant.NEWLEADER_FORGETS_PROPOSALS, Variant.COMMITS_AFTER_UPTODATE)
    happens = (LeaderInfo(2), Diff(A.zxid), Proposal(A), Commit(A.zxid), Proposal(X), NewLeader(2))
    acknowledged = follow(variant, *happens, Synced(), Synced(), Synced())

    assert sent(follow(variant, *happens, Synced(), Synced())) == []
    assert (sent(acknowledged), acknowledged.state.durable.txns) == ([ACK_OF_NEWLEADER], (OLD, A, X))
    served = follow(variant, *happens, Synced(), Synced(), Synced(), UpToDate())
    assert sent(served) == [ACK_OF_NEWLEADER, Ack(A.zxid), Ack(X.zxid)]


def test_an_observer_forgets_no_proposal() -> None:
    """`zk instanceof FollowerZooKeeperServer` is the condition of the loop that logs and clears."""
    variant = rules(Variant.NEWLEADER_FORGETS_PROPOSALS, Variant.NEWLEADER_ACK_BEFORE_SYNC)
    packets = (LeaderInfo(2), Diff(A.zxid), Proposal(A), Commit(A.zxid), NewLeader(2))
    done = run(7, variant, *(Receive(3, each) for each in packets))

    assert learner(done).not_logged == (A,)
    assert (sent(done), learner(done).queue) == ([ACK_OF_NEWLEADER], ())


def test_variant_epoch_before_log() -> None:
    """ZOOKEEPER-4643: a crash on NEWLEADER leaves the new epoch and the old log."""
    right, wrong = (crash(follow(rules(*v), *DIFF_OF_A).state) for v in ((), (Variant.EPOCH_BEFORE_LOG,)))

    assert right is not None
    assert wrong is not None
    assert (right.durable.current_epoch, right.durable.txns) == (1, (OLD,))
    assert (wrong.durable.current_epoch, wrong.durable.txns) == (2, (OLD,))


def test_variant_newleader_ack_before_sync() -> None:
    """ZOOKEEPER-4646: NEWLEADER is acknowledged while the transactions wait for the disk."""
    right, wrong = (follow(rules(*v), *DIFF_OF_A) for v in ((), (Variant.NEWLEADER_ACK_BEFORE_SYNC,)))

    assert sent(right) == []
    assert sent(wrong) == [ACK_OF_NEWLEADER]
    assert wrong.state.durable.txns == (OLD,)
    assert learner(wrong).queue == (Append(A),)


def test_variant_proposal_ack_before_newleader_ack() -> None:
    """ZOOKEEPER-4685: there are two threads, so the ACK of a proposal may overtake that of NEWLEADER."""
    variant = rules(Variant.PROPOSAL_ACK_BEFORE_NEWLEADER_ACK)

    assert sent(follow(rules(), *DIFF_OF_A, Synced())) == []
    assert sent(follow(variant, *DIFF_OF_A, Synced())) == [Ack(A.zxid)]
    assert sent(follow(variant, *DIFF_OF_A, Synced(), Resumed())) == [ACK_OF_NEWLEADER]
    assert sent(follow(variant, *DIFF_OF_A, Resumed())) == [ACK_OF_NEWLEADER]


OF_NEWLEADER = (
    Variant.EPOCH_BEFORE_LOG,
    Variant.NEWLEADER_ACK_BEFORE_SYNC,
    Variant.PROPOSAL_ACK_BEFORE_NEWLEADER_ACK,
    Variant.NEWLEADER_FORGETS_PROPOSALS,
    Variant.COMMITS_AFTER_UPTODATE,
    Variant.LOGGED_AFTER_UPTODATE,
    Variant.COMMITTED_LOG_WITH_GAP,
)
"""The variants that change what a learner does on NEWLEADER, or until UPTODATE."""


@pytest.mark.parametrize("variants", [c for n in range(8) for c in combinations(OF_NEWLEADER, n)])
@pytest.mark.parametrize("first", [Snap(OLD.zxid, (OLD,)), Trunc(OLD.zxid)], ids=["SNAP", "TRUNC"])
def test_a_snapshot_is_on_disk_before_newleader_is_acknowledged(
    first: QuorumPacket, variants: tuple[Variant, ...]
) -> None:
    """`syncWithLeader` of 3.8.0, 3.8.4, 3.9.2 and 3.9.5: `takeSnapshot`, then `setCurrentEpoch`, then the ACK."""
    mine = Durable(1, 1, log=(OLD, replace(A, value="another")))
    packets = (LeaderInfo(2), first, Proposal(A), Commit(A.zxid), NewLeader(2))
    happens: list[Event] = [Receive(3, each) for each in packets]
    asked = run(1, rules(*variants), *happens, durable=mine)
    assert (sent(asked), asked.state.durable.current_epoch) == ([], 1)
    assert step(asked.state, Resumed(), zab=rules(*variants)) is None

    messages: list[object] = []
    done = asked
    while learner(done).phase is LearnerPhase.SYNCHRONIZATION:
        happens.append(Synced() if learner(done).queue else Resumed())
        done = run(1, rules(*variants), *happens, durable=mine)
        messages += sent(done)
        assert done.state.durable.txns == (OLD, A), "the snapshot is the first that is written"
    assert messages == [ACK_OF_NEWLEADER]
    assert Delivered(1, 2, (OLD, A)) in facts(run(1, rules(*variants), *happens, Receive(3, UpToDate()), durable=mine))


def test_variant_queue_survives_shutdown() -> None:
    """ZOOKEEPER-4712: the next election begins with the earlier zxid, and the sync thread continues to write."""
    queued = (*JOINED, Proposal(X), LeaderLost())
    variant = rules(Variant.QUEUE_SURVIVES_SHUTDOWN)

    assert follow(rules(), *queued).state.durable.txns == (OLD, X)
    assert follow(variant, *queued).state.durable.txns == (OLD,)
    assert follow(variant, *queued, SyncedLate()).state.durable.txns == (OLD, X)


# Defects of 3.9.4 that this specification repairs.


def test_variant_acks_survive_truncation() -> None:
    """`syncFollower` truncates beyond the last commit, and no ack set of `outstandingProposals` forgets a server."""
    back = (FollowerInfo(2), AckEpoch(X.zxid, 2))
    happens: list[Event] = [
        ClientWrite("x"),
        Receive(1, Ack(X.zxid)),
        LearnerGone(1),
        *(Receive(1, packet) for packet in back),
    ]
    right, wrong = (lead(rules(*v), *happens) for v in ((), (Variant.ACKS_SURVIVE_TRUNCATION,)))

    assert sent(right) == sent(wrong) == [Trunc(OLD.zxid), Proposal(X), NewLeader(2)]
    assert leader(right).outstanding == (Outstanding(X.zxid, ()),)
    assert leader(wrong).outstanding == (Outstanding(X.zxid, (1,)),)


def test_variant_sync_from_applied() -> None:
    """`syncFollower` reads lastProcessedZxid and committedLog, which contain a transaction only after it is applied."""
    back = (Receive(2, FollowerInfo(2)), Receive(2, AckEpoch(X.zxid, 2)))
    happens: list[Event] = [ClientWrite("x"), Receive(1, Ack(X.zxid)), *back]
    right, wrong = (lead(rules(*v, disk=False, commits=True), *happens) for v in ((), (Variant.SYNC_FROM_APPLIED,)))

    assert sent(right) == [Diff(X.zxid), NewLeader(2)]
    assert sent(wrong) == [Trunc(OLD.zxid), Proposal(X), Commit(X.zxid), NewLeader(2)]


# Mutants.


def test_variant_half_is_a_quorum() -> None:
    """Two of four."""
    right, wrong = (
        run(3, rules(*v), Receive(1, FollowerInfo(1)), view=FOUR) for v in ((), (Variant.HALF_IS_A_QUORUM,))
    )

    assert leader(right).phase is LeaderPhase.FOLLOWERINFO
    assert leader(wrong).phase is LeaderPhase.ACKEPOCH


def test_variant_observer_counted() -> None:
    happens = (Receive(7, FollowerInfo(1, True)),)

    assert leader(run(3, rules(), *happens)).phase is LeaderPhase.FOLLOWERINFO
    assert leader(run(3, rules(Variant.OBSERVER_COUNTED), *happens)).phase is LeaderPhase.ACKEPOCH


def test_variant_promises_of_observers() -> None:
    """ZOOKEEPER-2959: `getEpochToPropose` and `waitForEpochAck` of 3.4.12 add any learner; NEWLEADER needs voters."""
    wrong = rules(Variant.PROMISES_OF_OBSERVERS)
    promised = (Receive(7, FollowerInfo(1, True)), Receive(7, AckEpoch(OLD.zxid, 1)))

    assert leader(run(3, rules(), *promised[:1])).phase is LeaderPhase.FOLLOWERINFO
    assert leader(run(3, wrong, *promised[:1])).phase is LeaderPhase.ACKEPOCH
    assert leader(run(3, wrong, *promised)).phase is LeaderPhase.NEWLEADER_ACK
    acked = (*promised, Receive(7, Ack(make_zxid(2))))
    assert leader(run(3, wrong, *acked)).phase is LeaderPhase.NEWLEADER_ACK


def test_the_two_variants_of_a_quorum_still_need_half_of_the_voters() -> None:
    for variant, votes in ((Variant.HALF_IS_A_QUORUM, 1), (Variant.OBSERVER_COUNTED, 2)):
        epochs = [Receive(sid, FollowerInfo(1)) for sid in range(1, votes)]
        done = run(3, rules(variant), *epochs, view=FIVE)
        assert leader(done).phase is LeaderPhase.FOLLOWERINFO, variant


def test_variant_ack_before_log() -> None:
    right, wrong = (follow(rules(*v), *JOINED, Proposal(X)) for v in ((), (Variant.ACK_BEFORE_LOG,)))

    assert sent(right) == []
    assert sent(wrong) == [Ack(X.zxid)]
    assert wrong.state.durable.txns == (OLD,)


def test_variant_no_truncation() -> None:
    """Follower 1 has a transaction that its leader never had."""
    happens = (Receive(1, FollowerInfo(1)), Receive(1, AckEpoch(A.zxid, 0)))

    assert sent(run(3, rules(), *happens)) == [Trunc(OLD.zxid), NewLeader(2)]
    assert sent(run(3, rules(Variant.NO_TRUNCATION), *happens)) == [Diff(OLD.zxid), NewLeader(2)]


def test_variant_log_out_of_order() -> None:
    queued = (*JOINED, Proposal(X), Proposal(Y), Synced())

    assert follow(rules(), *queued).state.durable.txns == (OLD, X)
    assert follow(rules(Variant.LOG_OUT_OF_ORDER), *queued).state.durable.txns == (OLD, Y)


def test_variant_torn_record() -> None:
    """The zxid is that of the transaction, the value is not."""
    writing = follow(rules(), *JOINED, Proposal(X)).state
    right, wrong = crash(writing, rules()), crash(writing, rules(Variant.TORN_RECORD))

    assert right is not None
    assert wrong is not None
    assert right.durable.txns == (OLD,)
    assert [txn.zxid for txn in wrong.durable.txns] == [OLD.zxid, X.zxid]
    assert wrong.durable.txns != (OLD, X)


def test_variant_commit_before_quorum() -> None:
    logged = (ClientWrite("x"), Synced())

    assert facts(lead(rules(), *logged)) == []
    assert Committed(3, 2, X) in facts(lead(rules(Variant.COMMIT_BEFORE_QUORUM), *logged))


def test_variant_sync_without_tail() -> None:
    """The leader has 1:1 and 1:2, follower 1 has 1:1."""
    me = replace(DISK, log=(OLD, A))
    happens = (Receive(1, FollowerInfo(1)), Receive(1, AckEpoch(OLD.zxid, 1)))
    right, wrong = (run(3, rules(*v), *happens, durable=me) for v in ((), (Variant.SYNC_WITHOUT_TAIL,)))

    assert sent(right) == [Diff(A.zxid), Proposal(A), Commit(A.zxid), NewLeader(2)]
    assert sent(wrong) == [Diff(A.zxid), NewLeader(2)]


def test_without_a_variant_newleader_is_one_order_of_operations() -> None:
    """The order that all fixes of 3.9.3 together established: log, epoch, acknowledgement."""
    done = follow(rules(), *DIFF_OF_A)

    assert learner(done).phase is LearnerPhase.SYNCHRONIZATION
    assert done.effects == (Persist(Append(A, ack=False)), Persist(EnterEpoch(2)))
