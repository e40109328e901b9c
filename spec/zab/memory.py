"""The memory of a process that outlives a leader or a learner: the tree, `committedLog`, and a sync thread.

Rules of this module:

- A server that ends its part in order completes its disk queue. The next part begins with the restored tree, and with a
  `committedLog` that has all records. `StaleMemory` is then empty.
- Each variant that leaves something else in memory does so here. A crash forgets all of it.

Source: `ZooKeeperServer.shutdown`, `ZKDatabase.fastForwardDataBase`, `Learner.shutdown`, `ZooKeeperServer.loadData`,
`LearnerZooKeeperServer.shutdownComponents`, `ZooKeeperServer.restoreFromSnapshot`.
"""

from msgspec.structs import replace

from spec.durable import Durable, Snapshot
from spec.txn import Txn
from spec.variants import Variant
from spec.zab import disk
from spec.zab.leader_sync import history_of
from spec.zab.state import Append, Leader, Learner, LearnerPhase, StaleMemory, SyncMode, TakeSnapshot, ZabRules, merged


def shut_down(
    durable: Durable, part: Leader | Learner, remains: StaleMemory, rules: ZabRules
) -> tuple[Durable, StaleMemory]:
    """The disk and the memory after an orderly end of this part; `remains` is the memory before it."""
    variants = rules.variants
    survives = isinstance(part, Learner) and Variant.QUEUE_SURVIVES_SHUTDOWN in variants
    flushed = durable if survives else disk.flushed(durable, part.queue)
    if survives:
        queued = tuple(operation.txn for operation in part.queue if isinstance(operation, Append))
        remains = replace(_with_applied(part, remains), queue=(*remains.queue, *queued))
    if Variant.FUZZY_SNAPSHOT in variants and part.serves:
        applied = _applied(durable, part)
        if applied < flushed.last_zxid:
            flushed = replace(flushed, dirty=Snapshot(applied, tuple(flushed.txns)))
    if isinstance(part, Learner) and part.mode in _kept_trees(variants):
        remains = replace(remains, unlogged=tuple(txn for txn in part.tree or () if txn not in flushed.txns))
    if isinstance(part, Learner) and part.unlisted:
        remains = replace(remains, unlisted=tuple(sorted({*remains.unlisted, *part.unlisted})))
    if Variant.TREE_BEHIND_LOG in variants:
        tree = _applied(durable, part) if part.serves else remains.tree
        remains = replace(remains, tree=None if tree is None or tree >= flushed.last_zxid else tree)
    elif remains.tree is not None:
        remains = replace(remains, tree=None)  # the log is read up to its end (`fastForwardDataBase`)
    if remains.database is not None:
        flushed = _with_epochs_of(flushed, remains.database)
        remains = replace(remains, database=None)
    return flushed, remains


def _kept_trees(variants: frozenset[Variant]) -> tuple[SyncMode, ...]:
    """The synchronisations whose tree stays in memory if they are interrupted (`Learner.shutdown`).

    ZOOKEEPER-5094 is that of a TRUNC, and ZOOKEEPER-3642 that of a SNAP. Omitted: the zxid of a tree that lacks
    transactions of the disk.
    """
    kept = ((Variant.TREE_AHEAD_OF_LOG, SyncMode.TRUNC), (Variant.PARTIAL_SNAPSHOT_KEPT, SyncMode.SNAP))
    return tuple(mode for variant, mode in kept if variant in variants)


def restored(
    durable: Durable, txns: tuple[Txn, ...], remains: StaleMemory, rules: ZabRules
) -> tuple[Durable, StaleMemory]:
    """The disk and the memory after a snapshot with these transactions was restored; the earlier files are gone.

    The correction of `ZooKeeperServer.restoreFromSnapshot`: before a client is served, the snapshot becomes the
    database of the `QuorumPeer`, and a file with the last zxid before the restore, so that the zxids continue.
    `setZKDatabase` of 3.9.5 replaces the database of the running server alone. The next part is made from
    `QuorumPeer.zkDb`, and nothing is written (`restore-undone`). There the zxid of the new database is that of the
    snapshot until the next write. This is omitted: it matters only to a learner that joins between the two.
    """
    after = replace(durable, snapshot=durable.last_zxid, log=txns, dirty=None)
    if Variant.RESTORE_UNDONE not in rules.variants:
        return after, remains
    return after, replace(remains, database=durable, unfiled=True)


def lost_files(durable: Durable, remains: StaleMemory) -> Durable:
    """The disk that a process finds when it starts again: without log and snapshots after `restore-undone`.

    The files of the epochs were not moved. Omitted: a snapshot that a later part of the same process writes.
    """
    return _with_epochs_of(durable, Durable()) if remains.unfiled else durable


def _with_epochs_of(durable: Durable, other: Durable) -> Durable:
    """The second disk, with the epochs of the first."""
    return replace(other, accepted_epoch=durable.accepted_epoch, current_epoch=durable.current_epoch)


def _applied(durable: Durable, part: Leader | Learner) -> int:
    """The last zxid that a serving part has applied: that of a transaction, or of the snapshot."""
    if isinstance(part, Learner):
        return part.delivered
    applied = history_of(durable, part).applied
    return applied[-1].zxid if applied else durable.snapshot


def after_disk_error(part: Leader | Learner, remains: StaleMemory, rules: ZabRules) -> StaleMemory:
    """ZOOKEEPER-4882: the memory after a write failed, with the transactions that are applied and not written.

    A learner applies the committed transactions of its synchronisation while NEWLEADER writes them, since 3.9.3. A
    snapshot that cannot be written ends the process (`takeSnapshot`), which here begins again at once.
    """
    if isinstance(part.queue[0], TakeSnapshot):
        return StaleMemory()
    applies = Variant.COMMITS_AFTER_UPTODATE not in rules.variants
    if isinstance(part, Learner) and part.phase is LearnerPhase.SYNCHRONIZATION and applies:
        queued = tuple(operation.txn for operation in part.queue if isinstance(operation, Append))
        return replace(remains, unlogged=merged(remains.unlogged, queued))
    return _with_applied(part, remains)


def tree_after_late_write(tree: int | None, last_zxid: int, part: Leader | Learner | None, txn: Txn) -> int | None:
    """ZOOKEEPER-4712: the zxid of the tree, which lags behind the log from an old thread's write on.

    The end of the last part read the log before (`fastForwardDataBase`), so a server that looks votes without the
    transaction, and a new part is synchronised without it.
    """
    synced = part is not None and (part.serves or (isinstance(part, Learner) and part.phase is LearnerPhase.SYNCED))
    return tree if synced or txn.zxid <= last_zxid else last_zxid


def _with_applied(part: Leader | Learner, remains: StaleMemory) -> StaleMemory:
    """The memory with the transactions that a serving part has applied before they are on its disk."""
    last = part.applied if isinstance(part, Leader) else part.delivered
    queued = (operation.txn for operation in part.queue if isinstance(operation, Append))
    applied = tuple(txn for txn in queued if part.serves and txn.zxid <= last)
    return replace(remains, unlogged=merged(remains.unlogged, applied))


def saved(durable: Durable, remains: StaleMemory) -> tuple[Durable, StaleMemory]:
    """The disk and the memory of a new leader: it takes a snapshot of its tree, which may be ahead of its log.

    Its `committedLog` has these transactions, so they count as logged.
    """
    return replace(durable, log=merged(durable.log, remains.unlogged)), replace(remains, unlogged=())


def after_step(remains: StaleMemory, part: Leader | Learner | None) -> StaleMemory:
    """The memory after a step: a tree that is behind its log catches up, and TRUNC and SNAP replace the tree."""
    if remains.tree is None and not (remains.unlogged or remains.unlisted):
        return remains
    synced = isinstance(part, Learner) and part.phase is LearnerPhase.SYNCED
    if part is not None and (part.serves or synced):
        remains = replace(remains, tree=None)
    replaced = isinstance(part, Learner) and part.mode in (SyncMode.TRUNC, SyncMode.SNAP)
    return replace(remains, unlogged=(), unlisted=()) if replaced else remains
