"""The disk of a server: requests complete in order; a crash or an orderly shutdown leaves a defined remainder.

Expected values: `SyncRequestProcessor` (`run`, `flush`, `shutdown`), `Learner.syncWithLeader` on NEWLEADER, and the
rules at the top of `spec/zab/disk.py`.
"""

import pytest
from msgspec.structs import replace

from spec.durable import Durable
from spec.effects import DiskOperation, Persist, WriteEpochs
from spec.election import Peer
from spec.quorum import majority_view
from spec.txn import Txn, make_zxid
from spec.zab import disk, leader, learner
from spec.zab.events import ClientWrite, Receive, Synced, ZabEvent
from spec.zab.packets import Ack, AckEpoch, Commit, Diff, FollowerInfo, LeaderInfo, NewLeader, Proposal, UpToDate
from spec.zab.state import Append, EnterEpoch, Leader, Learner, TakeSnapshot, ZabResult, ZabRules, logged_and_queued

RULES = ZabRules()
THREE = majority_view({1, 2, 3})
OLD, A, B = (Txn(make_zxid(1, counter)) for counter in (1, 2, 3))
DISK = Durable(accepted_epoch=2, current_epoch=1, log=(OLD,))
QUEUE = (Append(A), Append(B), EnterEpoch(2))


def leads(done: ZabResult, event: ZabEvent, rules: ZabRules) -> ZabResult:
    assert isinstance(done.state, Leader)
    after = leader.step(Peer(3, THREE, done.durable), done.state, event, rules)
    assert after is not None
    return after


def follows(done: ZabResult, event: ZabEvent, rules: ZabRules) -> ZabResult:
    assert isinstance(done.state, Learner)
    after = learner.step(Peer(1, THREE, done.durable), done.state, event, rules)
    assert after is not None
    return after


# Operations.


def test_what_is_asked_for_goes_to_the_end_of_the_queue() -> None:
    queue, effects = disk.request((Append(A),), [Append(B), EnterEpoch(2)])

    assert queue == QUEUE
    assert effects == (Persist(Append(B)), Persist(EnterEpoch(2)))


def test_operations_end_in_the_order_in_which_they_were_asked_for() -> None:
    first = disk.next_written(DISK, QUEUE, RULES)
    assert first is not None
    second = disk.next_written(first.durable, first.queue, RULES)
    assert second is not None

    assert (first.operation, second.operation) == (Append(A), Append(B))
    assert second.durable.txns == (OLD, A, B)
    assert second.queue == (EnterEpoch(2),)


def test_with_nothing_asked_for_nothing_ends() -> None:
    assert disk.next_written(DISK, (), RULES) is None


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        pytest.param(Append(A), replace(DISK, log=(OLD, A)), id="a transaction is logged"),
        pytest.param(EnterEpoch(2), replace(DISK, current_epoch=2), id="currentEpoch is written"),
        pytest.param(
            TakeSnapshot((A, B), B.zxid), replace(DISK, snapshot=B.zxid, log=(A, B)), id="the snapshot of a SNAP"
        ),
        pytest.param(TakeSnapshot((OLD, A), 0), replace(DISK, log=(OLD, A)), id="the tree after a TRUNC"),
    ],
)
def test_what_an_operation_makes_durable(operation: DiskOperation, expected: Durable) -> None:
    assert disk.done(DISK, operation) == expected


def test_an_operation_of_somebody_else_is_an_error() -> None:
    with pytest.raises(ValueError, match="a disk does not know"):
        disk.done(DISK, DiskOperation())


def test_epochs_are_written_as_the_disk_has_them() -> None:
    assert disk.epochs_written(DISK) == WriteEpochs(2, 1)


def test_a_shut_down_in_order_ends_everything_that_was_asked_for() -> None:
    """SyncRequestProcessor.shutdown joins its thread, which empties its queue and flushes."""
    assert disk.flushed(DISK, QUEUE) == Durable(2, 2, log=(OLD, A, B))


def test_the_last_zxid_is_that_of_the_log_or_of_the_snapshot() -> None:
    """QuorumPeer.getLastLoggedZxid: the zxid of the tree, which results from a snapshot and the log after it."""
    assert Durable(snapshot=A.zxid).last_zxid == A.zxid
    assert Durable(snapshot=OLD.zxid, log=(OLD, A)).last_zxid == A.zxid
    assert Durable().last_zxid == 0


def test_a_truncation_keeps_what_is_not_beyond_its_zxid() -> None:
    """ZKDatabase.truncateLog."""
    assert Durable(log=(OLD, A, B)).truncated(A.zxid).txns == (OLD, A)


# Synchronous and asynchronous.

JOIN = (
    Receive(1, FollowerInfo(0)),
    Receive(1, AckEpoch(0, 0)),
    Receive(1, Ack(make_zxid(1))),
    ClientWrite("a"),
    ClientWrite("b"),
)
FOLLOW = (
    Receive(3, LeaderInfo(1)),
    Receive(3, Diff(make_zxid(1, 1))),
    Receive(3, Proposal(OLD)),
    Receive(3, Commit(OLD.zxid)),
    Receive(3, NewLeader(1)),
    Receive(3, UpToDate()),
    Receive(3, Proposal(A)),
    Receive(3, Proposal(B)),
)


@pytest.mark.parametrize("role", ["leader", "learner"])
def test_a_synchronous_disk_is_an_asynchronous_one_that_is_always_done(role: str) -> None:
    """The only difference is the step that completes an operation."""
    ends = []
    for asynchronous in (False, True):
        rules = ZabRules(asynchronous_disk=asynchronous)
        me = Peer(3 if role == "leader" else 1, THREE, Durable())
        done = leader.begin(me, rules) if role == "leader" else learner.begin(me, 3)
        take = leads if role == "leader" else follows
        for event in JOIN if role == "leader" else FOLLOW:
            done = take(done, event, rules)
            while done.state is not None and done.state.queue:
                done = take(done, Synced(), rules)
        ends.append((done.durable, done.state))

    assert ends[0] == ends[1]


def test_what_a_disk_has_not_ended_is_known_and_not_durable() -> None:
    rules = ZabRules(asynchronous_disk=True)
    done = leader.begin(Peer(3, THREE, Durable()), rules)
    for event in JOIN:
        done = leads(done, event, rules)

    assert isinstance(done.state, Leader)
    assert done.durable.txns == ()
    assert [txn.value for txn in logged_and_queued(done.durable, done.state.queue)] == ["a", "b"]


def test_an_epoch_with_nothing_before_it_is_written_in_the_step_that_asks_for_it() -> None:
    """On NEWLEADER without transactions to log, no sync thread takes part in writing currentEpoch."""
    rules = ZabRules(asynchronous_disk=True)
    done = learner.begin(Peer(1, THREE, Durable()), 3)
    for event in (Receive(3, LeaderInfo(1)), Receive(3, Diff(0)), Receive(3, NewLeader(1))):
        done = follows(done, event, rules)

    assert done.durable.current_epoch == 1


def test_a_server_that_waits_for_no_disk_ends_no_operation() -> None:
    done = learner.begin(Peer(1, THREE, Durable()), 3)
    assert isinstance(done.state, Learner)

    assert learner.step(Peer(1, THREE, Durable()), done.state, Synced(), RULES) is None
