"""The logs that a validation knows of servers whose process has ended: what their disks hold, and what may be left out.

The servers are written by hand. Their values follow from the rules of a disk: operations complete in order, a process
may end before it reports them, and nothing but a TRUNC or a SNAP removes a transaction from a log.
"""

from msgspec.structs import replace

from checker.validate.global_history import STRIDE, GlobalHistory
from checker.validate.happens_before import NONE
from checker.validate.replay import finished
from spec.durable import Durable
from spec.effects import Observe, Send
from spec.quorum import majority_view
from spec.server import Server
from spec.txn import Txn, make_zxid
from spec.zab.events import Delivered, EpochEstablished, Receive, Synced
from spec.zab.packets import Snap
from spec.zab.state import Append, EnterEpoch, Leader, LeaderPhase, Learner, LearnerPhase, SyncMode, TakeSnapshot

THREE = majority_view([1, 2, 3])
SNAPSHOT = make_zxid(2, 1)


def txn(epoch: int, counter: int) -> Txn:
    """A transaction whose value is its zxid."""
    return Txn(make_zxid(epoch, counter), f"{make_zxid(epoch, counter):016x}")


COMMITTED, UNCOMMITTED, LATER = txn(1, 1), txn(1, 2), txn(2, 1)
OLD = Durable(2, 1, log=(COMMITTED, UNCOMMITTED))
"""The disk of a server with a transaction that the leader of epoch 2 does not have."""
SYNCHRONISING = Learner(
    2, LearnerPhase.SYNCHRONIZATION, 2, SyncMode.SNAP, (), SNAPSHOT, queue=(TakeSnapshot((), SNAPSHOT), EnterEpoch(2))
)
"""A follower that has got SNAP and NEWLEADER, and whose disk has reported nothing."""


def ended_in_synchronisation() -> GlobalHistory:
    """Server 3 was sent a snapshot of server 2, and its process ended before its disk reported."""
    servers = {
        1: Server(1, THREE),
        2: Server(2, THREE, Durable(2, 2, log=(COMMITTED, LATER))),
        3: Server(3, THREE, OLD, zab=Learner(2, LearnerPhase.SYNCHRONIZATION, 2)),
    }
    past, snap = GlobalHistory(servers), Snap(SNAPSHOT, None)
    past.stepped(7, servers[2], servers[2], Synced(), (Send(3, snap),), NONE, first=True)
    after = replace(servers[3], zab=SYNCHRONISING)
    past.stepped(7, servers[3], after, Receive(2, snap), (), 7, first=True)
    past.crashed(3)
    return past


def test_a_disk_that_has_finished_the_snapshot_of_the_leader_has_the_log_of_the_leader() -> None:
    past = ended_in_synchronisation()

    past.restarted(Server(3, THREE, Durable(2, 1, snapshot=SNAPSHOT)))

    assert past.log_of(past.images[3]) == (COMMITTED, LATER)


def test_a_disk_that_has_not_finished_the_snapshot_of_the_leader_has_its_old_log() -> None:
    past = ended_in_synchronisation()

    past.restarted(Server(3, THREE, OLD))

    assert past.log_of(past.images[3]) == (COMMITTED, UNCOMMITTED)


def test_the_snapshot_of_a_leader_has_what_the_leader_applied_before_its_own_disk_had_it() -> None:
    logged, asked = (COMMITTED,), LATER
    leader = Server(
        2, THREE, Durable(2, 2, log=logged), zab=Leader(LeaderPhase.BROADCAST, 2, (), queue=(Append(asked),))
    )
    follower = Server(3, THREE, OLD, zab=Learner(2, LearnerPhase.SYNCHRONIZATION, 2))
    past, snap = GlobalHistory({1: Server(1, THREE), 2: leader, 3: follower}), Snap(asked.zxid, None)
    past.stepped(7, leader, leader, Synced(), (Send(3, snap),), NONE, first=True)

    past.stepped(7, follower, replace(follower, zab=SYNCHRONISING), Receive(2, snap), (), 7, first=True)

    tree = past.images[3].tree
    assert tree is not None
    assert tree.txns == (*logged, asked)


def test_a_snapshot_is_finished_if_a_later_operation_is() -> None:
    queue = (TakeSnapshot((), SNAPSHOT), EnterEpoch(2), Append(txn(2, 2)))
    ended = Server(3, THREE, OLD, zab=replace(SYNCHRONISING, queue=queue))

    assert finished(ended, Durable(2, 2, snapshot=SNAPSHOT, log=(txn(2, 2),))) == queue
    assert finished(ended, Durable(2, 2, snapshot=SNAPSHOT)) == queue[:2]
    assert finished(ended, Durable(2, 1, snapshot=SNAPSHOT)) == queue[:1]
    assert finished(ended, OLD) == ()


def test_a_snapshot_of_the_tree_shows_transactions_whose_logging_was_not_reported() -> None:
    """A leader has applied two transactions before they were in its log, and a snapshot of them survives the power."""
    logged, asked = (txn(2, 1),), (txn(2, 2), txn(2, 3))
    leader = Server(2, THREE, Durable(2, 2, log=logged), zab=Leader(LeaderPhase.BROADCAST, 2, ()))
    past = GlobalHistory({1: Server(1, THREE), 2: leader, 3: Server(3, THREE)})
    queue = tuple(Append(each) for each in asked)
    asking = replace(leader, zab=Leader(LeaderPhase.BROADCAST, 2, (), queue=queue))
    past.stepped(0, leader, asking, Synced(), (), NONE, first=True)
    past.crashed(2)

    past.restarted(Server(2, THREE, Durable(2, 2, snapshot=asked[0].zxid)))

    assert past.log_of(past.images[2]) == (*logged, asked[0])


def test_a_transaction_that_was_never_committed_stays_in_the_log_of_a_server_that_is_down() -> None:
    """Epoch 2 begins with it and ends at once; epoch 3 begins without it, and commits enough to settle some."""
    both = (COMMITTED, UNCOMMITTED)
    established = Server(2, THREE, Durable(2, 2, log=both))
    serving = Server(1, THREE, Durable(3, 3, log=(COMMITTED,)), zab=Learner(3, LearnerPhase.BROADCAST, 3))
    past = GlobalHistory({1: serving, 2: established, 3: Server(3, THREE)})
    fact = EpochEstablished(2, 2, both)
    past.stepped(0, established, established, Synced(), (Observe(fact),), NONE, first=True)
    past.crashed(2)

    log = (COMMITTED, *(txn(3, counter) for counter in range(1, STRIDE + 4)))
    learner = Learner(3, LearnerPhase.BROADCAST, 3, delivered=log[-1].zxid)
    after = replace(serving, durable=replace(serving.durable, log=log), zab=learner)
    past.stepped(0, serving, after, Synced(), (Observe(Delivered(1, 3, log)),), NONE, first=True)
    past.settle()

    assert past.floor > UNCOMMITTED.zxid
    assert past.history.established[0].initial == past.log_of(past.images[2]) == (UNCOMMITTED,)


def test_a_leader_whose_whole_log_came_in_a_snapshot_delivers_that_log_before_its_own_transactions() -> None:
    """The snapshot has a transaction that nobody has committed. It is part of the history of epoch 3."""
    past = ended_in_synchronisation()
    past.restarted(Server(3, THREE, Durable(3, 3, snapshot=SNAPSHOT)))
    waiting = Server(3, THREE, Durable(3, 3, snapshot=SNAPSHOT), zab=Leader(LeaderPhase.NEWLEADER_ACK, 3, (1, 3)))
    serving = replace(waiting, zab=Leader(LeaderPhase.BROADCAST, 3, (), committed=make_zxid(3)))
    past.stepped(9, waiting, serving, Synced(), (), NONE, first=True)
    fact = Delivered(3, 3, (txn(3, 1),))
    past.stepped(10, serving, serving, Synced(), (Observe(fact),), NONE, first=True)

    assert [each.txn for each in past.history.committed] == [COMMITTED, LATER, txn(3, 1)]


def test_a_snapshot_that_ends_where_the_old_log_ends_is_told_apart_by_the_epoch_after_it() -> None:
    """The leader's history has another transaction with the last zxid of the old log."""
    snapshot = TakeSnapshot((), UNCOMMITTED.zxid)
    ended = Server(3, THREE, OLD, zab=replace(SYNCHRONISING, queue=(snapshot, EnterEpoch(2))))

    assert finished(ended, Durable(2, 2, snapshot=UNCOMMITTED.zxid)) == (snapshot, EnterEpoch(2))
