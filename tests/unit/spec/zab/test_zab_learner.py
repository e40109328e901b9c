"""Synchronisation, the learner's part: from DIFF, TRUNC or SNAP to UPTODATE.

Expected values: ZooKeeper's Zab1_0Test, and `Learner.syncWithLeader` and `enforceContinuousProposal` of 3.9.4. Separate
files cover discovery and serving.
"""

import pytest
from msgspec.structs import replace

from spec.durable import Durable
from spec.effects import Observe, Persist, Send, Truncate, WriteEpochs
from spec.election import Peer
from spec.txn import Txn, make_zxid
from spec.zab import learner
from spec.zab.events import (
    Delivered,
    MessageKind,
    Receive,
    Synced,
    Truncated,
)
from spec.zab.packets import (
    Ack,
    Commit,
    Proposal,
    QuorumPacket,
    QuorumPing,
    Snap,
    Trunc,
)
from spec.zab.state import Append, EnterEpoch, LearnerPhase, TakeSnapshot
from tests.support.zab_learner import (
    AT_ONCE,
    BEGUN,
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

C = Txn(make_zxid(1, 4), "c")


# DIFF.


def test_on_newleader_what_was_committed_is_on_disk_then_the_epoch_and_then_the_ack() -> None:
    """testNormalFollowerRunWithDiff; the order of ZOOKEEPER-4643 and 4646: append, commit, setCurrentEpoch, ACK."""
    done = run(DIFF, *committed(A), NEWLEADER)

    assert done.durable == Durable(2, 2, log=(OLD, A))
    assert done.effects == (
        Persist(Append(A, ack=False)),
        Persist(EnterEpoch(2)),
        WriteEpochs(2, 2),
        Send(3, Ack(EPOCH)),
    )


def test_committed_proposals_of_the_synchronisation_are_not_acknowledged_one_by_one() -> None:
    """syncWithLeader appends them directly, so that no sync thread acknowledges them (ZOOKEEPER-4685)."""
    assert sent(run(DIFF, *committed(A), *committed(B), NEWLEADER).effects) == [Ack(EPOCH)]


def test_while_the_disk_works_for_newleader_nothing_else_is_read() -> None:
    """The thread that reads packets waits for the disk."""
    waiting = run(DIFF, *committed(A), NEWLEADER, rules=LATER)

    assert sent(waiting.effects) == []
    assert waiting.durable == DISK
    assert learner.step(Peer(1, VIEW, DISK), state(waiting), Receive(3, UPTODATE), LATER) is None
    assert not learner.may_leave(state(waiting))


def test_the_ack_of_newleader_follows_the_last_operation_of_the_disk() -> None:
    one_left = run(DIFF, *committed(A), *committed(B), NEWLEADER, Synced(), rules=LATER)
    none_left = run(DIFF, *committed(A), NEWLEADER, Synced(), Synced(), rules=LATER)

    assert (one_left.durable.txns, one_left.durable.current_epoch, one_left.effects) == ((OLD, A), 1, ())
    assert (none_left.durable, sent(none_left.effects)) == (Durable(2, 2, log=(OLD, A)), [Ack(EPOCH)])


def test_an_outstanding_proposal_is_kept_for_uptodate() -> None:
    """testNormalFollowerRun_ProcessCommitInSyncAfterAckNewLeader: at the ACK of NEWLEADER it is not persisted."""
    before = run(DIFF, Proposal(A), NEWLEADER)
    done = run(DIFF, Proposal(A), NEWLEADER, Commit(A.zxid), UPTODATE)

    assert before.durable == IN_EPOCH
    assert sent(done.effects) == [Ack(EPOCH), Ack(A.zxid)]
    assert facts(done) == [Delivered(1, 2, (OLD,)), Delivered(1, 2, (A,))]


def test_an_outstanding_proposal_that_is_not_committed_by_uptodate_is_logged_and_not_applied() -> None:
    """syncWithLeader: logRequest for each remaining proposal, commit for those whose COMMIT arrived."""
    done = run(DIFF, Proposal(A), NEWLEADER, UPTODATE)

    assert done.durable.txns == (OLD, A)
    assert state(done).pending == (A.zxid,)
    assert facts(done) == [Delivered(1, 2, (OLD,))]


def test_uptodate_is_acknowledged_with_the_zxid_of_newleader() -> None:
    """testNormalFollowerRunWithDiff: the second ACK names the epoch too."""
    done = run(*SERVED)

    assert sent(done.effects) == [Ack(EPOCH)]
    assert state(done).phase is LearnerPhase.BROADCAST


# SNAP and TRUNC.


def test_a_snapshot_is_in_memory_until_newleader() -> None:
    """testNormalFollowerRun: no snapshot is taken before, and one is taken then."""
    assert run(Snap(B.zxid, (OLD, A, B))).durable == DISK
    assert run(Snap(B.zxid, (OLD, A, B)), NEWLEADER).durable == Durable(2, 2, B.zxid, (OLD, A, B))


def test_what_is_committed_after_a_snapshot_is_applied_to_it() -> None:
    """syncWithLeader: without writeToTxnLog a COMMIT goes to the tree, and the snapshot of NEWLEADER contains it."""
    done = run(Snap(A.zxid, (OLD, A)), *committed(B), NEWLEADER, rules=LATER)

    assert state(done).queue == (TakeSnapshot((OLD, A, B), A.zxid), EnterEpoch(2))


def test_a_truncation_is_on_disk_at_once() -> None:
    """ZKDatabase.truncateLog changes the files before the next packet is read."""
    done = run(Trunc(OLD.zxid), durable=Durable(2, 1, log=(OLD, A, B)))

    assert done.durable == DISK
    assert done.effects == (Truncate(OLD.zxid), Observe(Truncated(1, 2, (A, B))))


def test_what_follows_a_truncation_is_on_disk_when_newleader_is_acknowledged() -> None:
    mine = Durable(2, 1, log=(OLD, replace(A, value="another")))
    done = run(Trunc(OLD.zxid), *committed(A), NEWLEADER, durable=mine)

    assert (done.durable.txns, done.durable.current_epoch) == ((OLD, A), 2)


def test_a_mismatched_commit_after_a_snapshot_is_only_warned_of() -> None:
    """syncWithLeader: "Committing ..., but next proposal is ..."."""
    done = run(Snap(OLD.zxid, (OLD,)), Proposal(A), Commit(B.zxid))

    assert unexpected(done) == [MessageKind.COMMIT]
    assert state(done).not_logged == (A,)


# Packets that must not arrive during synchronisation.


@pytest.mark.parametrize(
    ("second", "goes_on"),
    [
        pytest.param(B, True, id="the next one"),
        pytest.param(C, False, id="a gap"),
        pytest.param(A, False, id="the same again"),
        pytest.param(Txn(make_zxid(2, 7)), True, id="a later epoch"),
    ],
)
def test_proposals_of_one_epoch_must_follow_each_other(second: Txn, goes_on: bool) -> None:
    """enforceContinuousProposal throws for a gap; a new epoch may begin anywhere."""
    done = run(DIFF, Proposal(A), Proposal(second))

    assert (done.state is not None) is goes_on
    assert unexpected(done) == ([] if goes_on else [MessageKind.PROPOSAL])


@pytest.mark.parametrize("first", [DIFF, Snap(OLD.zxid, (OLD,))], ids=["DIFF", "SNAP"])
def test_the_first_proposal_of_a_synchronisation_may_have_any_zxid(first: QuorumPacket) -> None:
    """enforceContinuousProposal begins with lastQueued 0. Zab1_0Test sends 1:1000 to a follower that has 1:1."""
    assert run(first, Proposal(Txn(make_zxid(1, 1000)))).state is not None


@pytest.mark.parametrize("already", [(DIFF,), (DIFF, NEWLEADER)], ids=["before NEWLEADER", "after it"])
def test_a_commit_without_a_proposal_ends_the_connection(already: tuple[QuorumPacket, ...]) -> None:
    """syncWithLeader: packetsNotLogged.peekFirst is null (ZOOKEEPER-4394)."""
    done = run(*already, Commit(A.zxid))

    assert done.state is None
    assert unexpected(done) == [MessageKind.COMMIT]


@pytest.mark.parametrize("already", [(DIFF,), (DIFF, NEWLEADER)], ids=["before NEWLEADER", "after it"])
def test_a_ping_is_not_answered_while_synchronising(already: tuple[QuorumPacket, ...]) -> None:
    """The switch of syncWithLeader has no case for it; LearnerHandler would take the answer for a wrong ACK."""
    done = run(*already, QuorumPing())

    assert sent(done.effects) == []
    assert done.state is not None


def test_only_the_leader_is_listened_to() -> None:
    assert learner.step(Peer(1, VIEW, DISK), BEGUN, Receive(2, DIFF), AT_ONCE) is None
