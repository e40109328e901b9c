"""The disk of a server: what was asked for, in order, and what becomes of it.

Rules this module keeps:

- Operations end in the order in which they were asked for. Until one ends a crash loses it, with all behind it.
- With a synchronous disk an operation ends in the step that asks for it; nothing else differs.
- Writing currentEpoch waits for what was asked for before it; if that was nothing, it is done in the same step.

Source: `SyncRequestProcessor`, `Learner.syncWithLeader` (what it does on NEWLEADER), `QuorumPeer.setCurrentEpoch`.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from spec.durable import Durable
from spec.effects import Apply, DiskOperation, Effects, Observe, Persist, WriteEpochs
from spec.election.state import Peer
from spec.txn import Txn
from spec.variants import Variant
from spec.zab.events import Delivered
from spec.zab.state import Append, Done, EnterEpoch, Leader, Learner, TakeSnapshot, ZabRules, logged


class Written(msgspec.Struct, frozen=True):
    """One operation that ended: the disk after it, and what is still to be done."""

    operation: DiskOperation
    durable: Durable
    queue: tuple[DiskOperation, ...]


def asked(
    queue: tuple[DiskOperation, ...], operations: Iterable[DiskOperation]
) -> tuple[tuple[DiskOperation, ...], Effects]:
    """The queue with these at its end, and the effects that ask for them."""
    added = tuple(operations)
    return (*queue, *added), tuple(Persist(each) for each in added)


def next_written(durable: Durable, queue: tuple[DiskOperation, ...], rules: ZabRules) -> Written | None:
    """The operation that ends next; None if there is none."""
    if not queue:
        return None
    place = _last_append(queue) if Variant.LOG_OUT_OF_ORDER in rules.variants else 0
    operation = queue[place]
    return Written(operation, done(durable, operation), (*queue[:place], *queue[place + 1 :]))


def _last_append(queue: tuple[DiskOperation, ...]) -> int:
    return max((place for place, each in enumerate(queue) if isinstance(each, Append)), default=0)


def done(durable: Durable, operation: DiskOperation) -> Durable:
    """The disk after an operation. Raises ValueError for one that is none of this module's."""
    match operation:
        case Append(txn=txn):
            return durable.appended(txn)
        case TakeSnapshot(txns=txns, snapshot=snapshot):
            return replace(durable, txns=txns, snapshot=snapshot or durable.snapshot)
        case EnterEpoch(epoch=epoch):
            return replace(durable, current_epoch=epoch)
    raise ValueError(f"a disk does not know {operation!r}")


def settled(peer: Peer, asked_for: Done, end: Callable[[Peer, Any, ZabRules], Done | None], rules: ZabRules) -> Done:
    """What follows when the disk was asked for something: with a synchronous one all of it ends now.

    An operation that waits for nothing else, as writing an epoch with no transaction before it, ends at once too. `end`
    is what a leader, or a learner, makes of the end of one operation.
    """
    settling = asked_for
    while settling.state is not None and settling.state.queue:
        if rules.asynchronous_disk and not isinstance(settling.state.queue[0], EnterEpoch):
            break
        ended = end(replace(peer, durable=settling.durable), settling.state, rules)
        assert ended is not None  # the queue is not empty
        settling = ended.after(settling.effects)
    return settling


def applied(peer: Peer, durable: Durable, part: Leader | Learner, zxid: int) -> Effects:
    """The effects of applying the transaction of this zxid (`FinalRequestProcessor`)."""
    txn = logged(durable, part.queue, zxid)
    return Apply(zxid), Observe(Delivered(peer.sid, part.epoch, () if txn is None else (txn,)))


def flushed(durable: Durable, queue: Iterable[DiskOperation]) -> Durable:
    """The disk when a server has shut down in order: its sync thread ends what it has begun."""
    for operation in queue:
        durable = done(durable, operation)
    return durable


def torn(durable: Durable, queue: tuple[DiskOperation, ...]) -> Durable:
    """The disk after a crash that leaves half a record, and a reader that takes it for a whole one."""
    if queue and isinstance(queue[0], Append):
        return durable.appended(Txn(queue[0].txn.zxid, "torn"))
    return durable


def epochs_written(durable: Durable) -> WriteEpochs:
    """The effect by which both epoch files come to say what `durable` says."""
    return WriteEpochs(durable.accepted_epoch, durable.current_epoch)
