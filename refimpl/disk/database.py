"""A data directory: the newest snapshot, and the log after it.

Rules this module keeps:

- The newest snapshot that is whole is read, and every transaction of the log above its zxid is applied.
- A damaged snapshot is passed over with a warning. Then the log must hold the transaction that the damaged one is
  named after, and lead there without a gap: a snapshot from the leader has transactions that no log of ours has, and
  without it they are missing. The real one goes on with whatever it has.
- The first transaction after the snapshot must be the next one. The real one does not check.
- Transactions without any snapshot are refused, as 3.8 does ("No snapshot found, but there are log entries"): every
  server writes `snapshot.0` when it starts for the first time, so one is lost. An empty directory becomes that of a
  new server. (`zookeeper.snapshot.trust.empty`, `zookeeper.db.autocreate` and the file `initialize` mean nothing here.)
- Truncating also removes snapshots above the zxid, first. The real one keeps them, and would load what it truncated.

Source: `FileTxnSnapLog.restore`, `.fastForwardFromEdits`, `.truncateLog`; `ZKDatabase.loadDataBase`, `.truncateLog`;
`FileSnap.deserialize`.
"""

import gc
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from refimpl.disk import snapshot
from refimpl.disk.body import DamagedSnapshotError
from refimpl.disk.files import REMEDY, DataError, follows, make_directories, numbered, sync_directory
from refimpl.disk.logreader import PREFIX as LOG
from refimpl.disk.logreader import DamagedLogError, read
from refimpl.disk.txnlog import TxnLog
from refimpl.jute import JuteError
from refimpl.store import Tree
from refimpl.wire.txn import decode_txn
from spec.tree.apply import apply
from spec.tree.txns import Change

COMMITTED_LOG = 500
"""How many of the last transactions are kept in memory (`ZKDatabase.commitLogCount`)."""


class Loaded(NamedTuple):
    """What a server starts with: `recent` are the last transactions after the snapshot, oldest first."""

    tree: Tree
    snapshot_zxid: int
    last_zxid: int
    recent: deque[tuple[int, Change]]
    warnings: list[str]


def load(data_dir: Path, log_dir: Path, keep: int = COMMITTED_LOG) -> Loaded:
    """Read a data directory; one that is missing or empty is made that of a new server.

    Raises DataError (which DamagedLogError and DamagedSnapshotError are) and OSError. It takes the collector of garbage
    out of the way while it works, and leaves the tree where the collector does not look at it again.
    """
    snapshots, logs = make_directories(data_dir, log_dir)
    with _no_collections():
        return _load(snapshots, logs, keep)


@contextmanager
def _no_collections() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if enabled:
            gc.enable()


def _load(snapshots: Path, logs: Path, keep: int) -> Loaded:
    warnings = _warn_of_compressed(snapshots)
    start = _newest_snapshot(snapshots, warnings)
    if start is None:
        return _new_server(snapshots, logs, warnings, keep)
    zxid, tree, passed_over = start
    recent: deque[tuple[int, Change]] = deque(maxlen=keep)
    last = zxid
    for number, payload in read(logs, zxid + 1, notes=warnings):
        if last == zxid and not follows(number, zxid):
            raise DamagedLogError(
                f"{logs}: the first transaction behind {snapshot.PREFIX}.{zxid:x} is 0x{number:x}, "
                f"expected 0x{zxid + 1:x} or the first of a later epoch: transactions are missing; "
                f"{REMEDY}"
            )
        change = _decode(logs, number, payload)
        tree.carry_out(apply(tree, number, change).operations)
        recent.append((number, change))
        passed_over.discard(number)
        last = number
    # The snapshot of a new leader is named after its epoch, and no transaction has that zxid.
    missing = [number for number in passed_over if number & 0xFFFFFFFF]
    if missing:
        raise DataError(
            f"{snapshots}: {snapshot.PREFIX}.{max(missing):x} cannot be read, and the log does not lead "
            f"from {snapshot.PREFIX}.{zxid:x} to it ({'; '.join(warnings)}); {REMEDY}"
        )
    return Loaded(tree, zxid, last, recent, warnings)


def _newest_snapshot(directory: Path, warnings: list[str]) -> tuple[int, Tree, set[int]] | None:
    """Zxid and tree of the newest whole snapshot, and the zxids of the newer ones; None if there is none at all."""
    passed_over: set[int] = set()
    for zxid, path in snapshot.newest_first(directory):
        try:
            return zxid, snapshot.read(path, zxid), passed_over
        except DamagedSnapshotError as error:
            warnings.append(str(error))
            passed_over.add(zxid)
    if warnings:
        raise DataError(f"{directory}: no snapshot can be read ({'; '.join(warnings)}); {REMEDY}")
    return None


def _warn_of_compressed(directory: Path) -> list[str]:
    newest = next(snapshot.newest_first(directory), (-1, directory))[0]
    return [
        f"{path}: a compressed snapshot, which is not read; write it without zookeeper.snapshot.compression.method"
        for zxid, path in snapshot.compressed(directory)
        if zxid > newest
    ]


def _new_server(snapshots: Path, logs: Path, warnings: list[str], keep: int) -> Loaded:
    found = numbered(logs, LOG)
    if found:
        raise DataError(
            f"{found[0][1]}: there are transactions, but {snapshots} has no snapshot, and every server "
            f"writes {snapshot.PREFIX}.0 when it first starts; {REMEDY}"
        )
    tree = Tree()
    snapshot.save(snapshots, tree, 0)
    return Loaded(tree, 0, 0, deque(maxlen=keep), warnings)


def _decode(logs: Path, zxid: int, payload: bytes) -> Change:
    try:
        return decode_txn(payload)[1]
    except JuteError as error:
        raise DamagedLogError(f"{logs}: transaction 0x{zxid:x} cannot be understood: {error}; {REMEDY}") from None


def truncate(data_dir: Path, log: TxnLog, zxid: int) -> None:
    """Drop every transaction above `zxid` from the disk, durably; `load` then gives the state of that zxid.

    Raises DataError if a snapshot at or below the zxid and the log do not lead to it; then nothing is changed.
    """
    snapshots, _ = make_directories(data_dir, log.directory.parent)
    log.commit()
    older = [number for number, _ in snapshot.newest_first(snapshots) if number <= zxid]
    if not older:
        raise DataError(f"{snapshots}: cannot truncate to 0x{zxid:x}: no snapshot is that old; {REMEDY}")
    if zxid not in older and next(read(log.directory, zxid, zxid), (None,))[0] != zxid:
        raise DataError(f"{log.directory}: cannot truncate to 0x{zxid:x}: the log has no such transaction; {REMEDY}")
    for number, path in snapshot.newest_first(snapshots):
        if number > zxid:
            path.unlink()
    sync_directory(snapshots)
    log.truncate(zxid)
