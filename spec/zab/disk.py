"""The disk of a server: the operations requested from it, in order, and their results.

Rules of this module:

- Operations complete in the order of their requests. A crash loses an incomplete operation, and all operations after
  it.
- With a synchronous disk an operation completes in the step that requests it; there is no other difference.
- Writing currentEpoch waits for the operations requested before it; if there are none, it completes in the same step.

Source: `SyncRequestProcessor`, `Learner.syncWithLeader` (its handling of NEWLEADER), `QuorumPeer.setCurrentEpoch`.
"""

from collections import deque
from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from spec.durable import Durable, Snapshot
from spec.effects import Apply, DiskOperation, Effects, Observe, Persist, WriteEpochs
from spec.quorum import Sid
from spec.txn import Txn, epoch_of, rolls_over
from spec.variants import Variant
from spec.zab.events import Delivered
from spec.zab.state import Append, EnterEpoch, TakeSnapshot, ZabRules, last_logged, logged


class Completion(msgspec.Struct, frozen=True):
    """A completed operation: the disk after it, and the remaining queue."""

    operation: DiskOperation
    durable: Durable
    queue: tuple[DiskOperation, ...]


def request(
    queue: tuple[DiskOperation, ...], operations: Iterable[DiskOperation]
) -> tuple[tuple[DiskOperation, ...], Effects]:
    """The queue with these operations at its end, and the effects that request them."""
    added = tuple(operations)
    return (*queue, *added), tuple(Persist(operation) for operation in added)


def next_written(durable: Durable, queue: tuple[DiskOperation, ...], rules: ZabRules) -> Completion | None:
    """Complete the next operation; None if the queue is empty."""
    if not queue:
        return None
    place = _next(queue, rules)
    operation = queue[place]
    return Completion(operation, done(durable, operation), (*queue[:place], *queue[place + 1 :]))


class SyncThread:
    """The disk of a leader or a learner that serves, while it handles events (`SyncRequestProcessor`).

    Everything in its queue is a transaction: a snapshot and currentEpoch are written before a part serves.
    """

    __slots__ = ("_durable", "_rules", "_written", "queue")

    def __init__(self, durable: Durable, queue: Iterable[DiskOperation], rules: ZabRules) -> None:
        self.queue = deque(queue)
        self._durable, self._rules = durable, rules
        self._written: list[Txn] = []

    @property
    def durable(self) -> Durable:
        """The disk after the completed operations."""
        if self._written:
            self._durable = replace(self._durable, log=self._durable.log + tuple(self._written))
            self._written = []
        return self._durable

    @property
    def is_due(self) -> bool:
        """Whether an operation ends in the step that requested it."""
        return bool(self.queue) and not self._rules.asynchronous_disk

    @property
    def last_zxid(self) -> int:
        """The zxid of the last transaction on disk or in the queue (`last_logged`)."""
        return last_logged(self.durable, self.queue)

    def append(self, txn: Txn, *, ack: bool = True) -> Append:
        """Add an operation to the queue, and return it."""
        operation = Append(txn, ack)
        self.queue.append(operation)
        return operation

    def write(self) -> Append:
        """Complete the next operation of the queue, which is not empty, and return it."""
        place = _next(self.queue, self._rules)
        operation = self.queue[place]
        assert isinstance(operation, Append)
        del self.queue[place]
        self._written.append(operation.txn)
        if operation.ack and rolls_over(operation.txn.zxid):
            self._durable = _fenced(self.durable, operation.txn)
        return operation

    def logged(self, zxid: int) -> Txn | None:
        """The transaction of this zxid, on disk or queued."""
        # A server alone commits what it has just written, and would make another disk for each look.
        if self._written and self._written[-1].zxid == zxid:
            return self._written[-1]
        return logged(self.durable, self.queue, zxid)


def _next(queue: Sequence[DiskOperation], rules: ZabRules) -> int:
    """The place of the operation that completes next."""
    if Variant.LOG_OUT_OF_ORDER not in rules.variants:
        return 0
    return max((place for place, operation in enumerate(queue) if isinstance(operation, Append)), default=0)


def done(durable: Durable, operation: DiskOperation) -> Durable:
    """The disk after an operation. Raises ValueError for an operation that this module does not define."""
    match operation:
        case Append(txn=txn, ack=ack):
            return _fenced(durable.appended(txn), txn) if ack else durable.appended(txn)
        case TakeSnapshot(txns=txns, snapshot=snapshot, covered=covered):
            return replace(_with_snapshot(durable, txns, snapshot), covered=covered)
        case EnterEpoch(epoch=epoch):
            return replace(durable, current_epoch=epoch)
    raise ValueError(f"a disk does not know {operation!r}")


def _fenced(durable: Durable, txn: Txn) -> Durable:
    """The disk after the sync thread has logged a transaction: the last one of an epoch makes it accept the next.

    Source: `SyncRequestProcessor.handover` of the pull request 2208. Released servers log no such transaction.
    """
    if not rolls_over(txn.zxid):
        return durable
    epoch = epoch_of(txn.zxid) + 1
    return replace(durable, accepted_epoch=epoch, current_epoch=epoch)


def _with_snapshot(durable: Durable, txns: tuple[Txn, ...], snapshot: int) -> Durable:
    """The disk with a snapshot of the tree that a SNAP (`snapshot` is its zxid) or a TRUNC left in memory.

    After a TRUNC, the transactions that the tree has beyond the log count as logged. A tree that was restored from a
    dirty snapshot makes another one.
    """
    dirty = durable.dirty
    if snapshot:
        return replace(durable, log=txns, snapshot=snapshot, dirty=dirty if dirty and dirty.zxid > snapshot else None)
    if dirty is None:
        return replace(durable, log=txns)
    unlogged = {txn for txn in dirty.txns if txn not in durable.log}
    log = tuple(txn for txn in txns if txn not in unlogged)
    return replace(durable, log=log, dirty=Snapshot(max(dirty.zxid, txns[-1].zxid), txns))


def covered(durable: Durable, snapshot: int, rules: ZabRules) -> int:
    """The last record that a snapshot covers, once it is written; 0 without `trunc-after-snap`.

    The log files keep the records that a SNAP replaces (`Learner.syncWithLeader`).
    """
    if Variant.TRUNC_AFTER_SNAP not in rules.variants or not snapshot:
        return durable.covered
    return max([durable.covered, *(txn.zxid for txn in durable.records)])


def can_truncate(durable: Durable, zxid: int, rules: ZabRules) -> bool:
    """Whether a TRUNC to this zxid succeeds: not in 3.9.5 where every record in the log files is before it.

    `FileTxnLog.truncate` cuts behind the first record that is not before the zxid, and fails without one. The server
    then ends its process (`Learner.syncWithLeader`).
    """
    if Variant.TRUNC_AFTER_SNAP not in rules.variants:
        return True
    return 0 < zxid <= durable.covered or any(txn.zxid >= zxid for txn in durable.records)


def truncated(durable: Durable, zxid: int, rules: ZabRules) -> Durable:
    """The disk after a TRUNC to this zxid (`FileTxnSnapLog.truncateLog`).

    3.9.5 keeps the first record beyond a zxid that is not in the log: `FileTxnLog.truncate` cuts behind the first
    record that is not before the zxid (`trunc-after-snap`). It also keeps all snapshots (ZOOKEEPER-4837, 1549,
    `fuzzy-snapshot`).
    """
    variants, cut = rules.variants, replace(durable.truncated(zxid), covered=min(durable.covered, zxid))
    is_logged = 0 < zxid <= durable.covered or any(txn.zxid == zxid for txn in durable.records)
    if Variant.TRUNC_AFTER_SNAP in variants and not is_logged:
        following = next((txn for txn in durable.records if txn.zxid > zxid), None)
        cut = cut if following is None else cut.appended(following)
    dirty = durable.dirty
    if Variant.SNAPSHOT_SURVIVES_TRUNC in variants and dirty is None and durable.snapshot > zxid:
        dirty = Snapshot(durable.snapshot, tuple(txn for txn in durable.log if txn.zxid <= durable.snapshot))
    if dirty and (variants & _KEEP_SNAPSHOTS or (Variant.FUZZY_SNAPSHOT in variants and dirty.zxid <= zxid)):
        return replace(cut, dirty=dirty)
    return cut


_KEEP_SNAPSHOTS = frozenset({Variant.SNAPSHOT_SURVIVES_TRUNC, Variant.SNAPSHOT_OF_UNCOMMITTED})
"""The variants in which a TRUNC keeps snapshots whose names are beyond it."""


def applied(sid: Sid, epoch: int, zxid: int, txn: Txn | None) -> Effects:
    """The effects of applying a transaction, which is None where it is not in the log (`FinalRequestProcessor`)."""
    return Apply(zxid), Observe(Delivered(sid, epoch, () if txn is None else (txn,)))


def flushed(durable: Durable, queue: Iterable[DiskOperation]) -> Durable:
    """The disk after an orderly shutdown of the server: its sync thread completes the whole queue."""
    for operation in queue:
        durable = done(durable, operation)
    return durable


def torn(durable: Durable, queue: tuple[DiskOperation, ...]) -> Durable:
    """The disk after a crash that leaves half a record, which the reader takes for a complete one."""
    if queue and isinstance(queue[0], Append):
        return durable.appended(Txn(queue[0].txn.zxid, "torn"))
    return durable


def epochs_written(durable: Durable) -> WriteEpochs:
    """The effect that writes the epochs of `durable` to both epoch files."""
    return WriteEpochs(durable.accepted_epoch, durable.current_epoch)
