"""The loader of a data directory: the newest snapshot, and the log after it.

- The newest usable snapshot is read, and every transaction of the log above its zxid is applied.
- A damaged snapshot is skipped with a warning. The log must then hold the transaction in the name of the damaged one,
  and lead there without a gap: a snapshot from the leader has transactions that no log of this server has. ZooKeeper
  does not check this.
- A fuzzy snapshot may hold changes beyond the end of the log, after a truncation by ZooKeeper or a crash. It is skipped
  if the log leads from an older snapshot to the same zxid, and used with a warning if none does: without a truncation
  its changes were committed, and the leader sends them again.
- The first transaction after the snapshot must be the next one. ZooKeeper does not check this.
- Transactions without any snapshot are refused, as in 3.8 ("No snapshot found, but there are log entries"): every
  server since 3.5 writes `snapshot.0` when it starts for the first time, so one is lost. A server of 3.4 did not. With
  `snapshot.trust.empty` such a log begins with the empty tree, whose `snapshot.0` is written then. An empty directory
  becomes that of a new server. (`zookeeper.db.autocreate` and the file `initialize` have no effect.)
- A truncation to Z also removes, first, the snapshots that may hold anything beyond Z. ZooKeeper keeps them, and may
  load the truncated changes again.

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
from refimpl.disk.files import DataError, TruncationError, follows, make_directories, numbered, sync_directory
from refimpl.disk.logreader import PREFIX as LOG
from refimpl.disk.logreader import DamagedLogError, read
from refimpl.disk.remedies import Damage
from refimpl.disk.txn_buffer import BYTES, LEAST, LogBytes
from refimpl.disk.txnlog import TxnLog
from refimpl.jute import JuteError
from refimpl.tree import Tree
from refimpl.wire.txn import decode_txn
from spec.tree.apply import apply
from spec.tree.txns import Change
from spec.txn import counter_of

COMMITTED_LOG = 500
"""The number of last transactions kept in memory (`ZKDatabase.commitLogCount`)."""


class LoadedDatabase(NamedTuple):
    """The initial state of a server.

    `recent` are the last transactions after the snapshot, oldest first, and `sizes` their sizes in the log.
    """

    tree: Tree
    snapshot_zxid: int
    last_zxid: int
    recent: deque[tuple[int, Change]]
    sizes: LogBytes
    warnings: list[str]


def load(data_dir: Path, log_dir: Path, keep: int = COMMITTED_LOG, *, trusts_empty: bool = False) -> LoadedDatabase:
    """Read a data directory; if it is missing or empty, create that of a new server.

    `trusts_empty` is `snapshot.trust.empty`: a log without a snapshot is the whole history.

    Raises DataError (including DamagedLogError and DamagedSnapshotError) and OSError. It disables the garbage collector
    while it works, and freezes the tree so that the collector does not scan it again.
    """
    snapshots, logs = make_directories(data_dir, log_dir)
    with _no_collections():
        return _load(snapshots, logs, keep, trusts_empty)


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


def _load(snapshots: Path, logs: Path, keep: int, trusts_empty: bool) -> LoadedDatabase:
    newest = next(snapshot.newest_first(snapshots), (-1, snapshots))[0]
    warnings = [
        f"{path}: a compressed snapshot, which is not read; write it without zookeeper.snapshot.compression.method"
        for zxid, path in snapshot.compressed(snapshots)
        if zxid > newest
    ]
    passed_over: set[int] = set()
    uncovered: LoadedDatabase | None = None
    for zxid, path in snapshot.newest_first(snapshots):
        try:
            start = snapshot.read(path, zxid)
        except DamagedSnapshotError as error:
            warnings.append(str(error))
            passed_over.add(zxid)
            continue
        if uncovered is None:
            loaded = _replayed(logs, zxid, start.tree, keep, warnings, passed_over)
            # The snapshot of a new leader is named after its epoch, and no transaction has that zxid.
            missing = [number for number in passed_over if number & 0xFFFFFFFF]
            if missing:
                raise DataError(
                    f"{snapshots}: {snapshot.PREFIX}.{max(missing):x} cannot be read, and the log does not lead "
                    f"from {snapshot.PREFIX}.{zxid:x} to it ({'; '.join(warnings)})",
                    Damage.SNAPSHOT,
                )
        else:
            try:
                loaded = _replayed(logs, zxid, start.tree, keep, warnings=[], awaited=set())
            except DataError:
                continue
        if start.recorded is None or start.recorded <= max(loaded.last_zxid, zxid):
            if uncovered is None or loaded.last_zxid == uncovered.last_zxid:
                return loaded._replace(warnings=warnings)
        elif uncovered is None:
            uncovered = loaded
            warnings.append(
                f"{path}: holds changes up to 0x{start.recorded:x}, and the log ends at 0x{loaded.last_zxid:x}"
            )
    if uncovered is None and warnings:
        raise DataError(f"{snapshots}: no snapshot can be read ({'; '.join(warnings)})", Damage.SNAPSHOT)
    return uncovered or _new_server(snapshots, logs, keep, trusts_empty)


def _replayed(logs: Path, zxid: int, tree: Tree, keep: int, warnings: list[str], awaited: set[int]) -> LoadedDatabase:
    """Apply the transactions of the log to the tree of the snapshot with this zxid; drop their zxids from `awaited`.

    Raises DataError.
    """
    recent: deque[tuple[int, Change]] = deque(maxlen=keep)
    sizes = LogBytes()
    last = zxid
    for number, payload in read(logs, zxid + 1, notes=warnings):
        if last == zxid and not follows(number, zxid):
            raise DamagedLogError(
                f"{logs}: the first transaction behind {snapshot.PREFIX}.{zxid:x} is 0x{number:x}, "
                f"expected 0x{zxid + 1:x} or the first of a later epoch: transactions are missing",
                Damage.RECORDS,
            )
        change = _decode(logs, number, payload)
        tree.carry_out(apply(tree, number, change).operations)
        recent.append((number, change))
        sizes.add(number, len(payload))
        sizes.forget_before(recent[0][0])
        while len(recent) > LEAST and sizes.total > BYTES:
            recent.popleft()
            sizes.forget_before(recent[0][0])
        awaited.discard(number)
        last = number
    return LoadedDatabase(tree, zxid, last, recent, sizes, warnings)


def _new_server(snapshots: Path, logs: Path, keep: int, trusts_empty: bool) -> LoadedDatabase:
    files = numbered(logs, LOG)
    if files and not trusts_empty:
        fault = f"{files[0][1]}: there are transactions, but {snapshots} has no snapshot"
        raise DataError(fault, Damage.NO_SNAPSHOT)
    text = f"{snapshots}: no snapshot was found, and the log is taken for the whole history; this is for upgrades only"
    warnings = [text] if files else []
    loaded = _replayed(logs, 0, Tree(), keep, warnings, set())
    snapshot.save(snapshots, Tree(), 0)  # not before the log is known to begin there
    return loaded._replace(warnings=warnings)


def _decode(logs: Path, zxid: int, payload: bytes) -> Change:
    try:
        return decode_txn(payload)[1]
    except JuteError as error:
        fault = f"{logs}: transaction 0x{zxid:x} cannot be understood: {error}"
        raise DamagedLogError(fault, Damage.RECORDS) from None


def truncate(data_dir: Path, log: TxnLog, zxid: int) -> None:
    """Drop every transaction above `zxid` from the disk, durably; `load` then gives the state of that zxid.

    No transaction has the zxid epoch:0, that of a leader which has proposed nothing in its epoch. A log with later
    transactions has the whole history with which that epoch began, so what is older is the state of that zxid.

    Raises TruncationError, and changes nothing, unless the log leads to the zxid from a snapshot without later changes.
    """
    snapshots, _ = make_directories(data_dir, log.directory.parent)
    log.commit()
    saves = list(snapshot.newest_first(snapshots))
    older = [save for save in saves if save[0] <= zxid]
    is_below = bool(saves) and saves[0][0] > zxid

    def impossible(place: Path, why: str) -> TruncationError:
        fault = f"{place}: cannot truncate to 0x{zxid:x}: {why}"
        return TruncationError(fault, Damage.RECORDS, below_snapshot=is_below)

    if not older:
        raise impossible(snapshots, "no snapshot is that old")
    numbers = [number for number, _ in older]
    if zxid not in numbers and not _reaches(zxid, next(read(log.directory, zxid), (None,))[0]):
        raise impossible(log.directory, "the log has no such transaction")
    too_new = _holding_more(older, zxid)
    usable = [number for number, path in older if path not in too_new]
    if not usable or not _leads(log.directory, usable[0], zxid):
        names = ", ".join(path.name for path in too_new)
        raise impossible(snapshots, f"{names} may hold later changes, and no older snapshot and the log lead to it")
    for number, path in snapshot.newest_first(snapshots):
        if number > zxid or path in too_new:
            path.unlink()
    sync_directory(snapshots)
    log.truncate(zxid)


def _reaches(zxid: int, following: int | None) -> bool:
    """Whether a log has this zxid, or for epoch:0 later ones; `following` is the first one that is not older."""
    return following == zxid or (following is not None and not counter_of(zxid))


def _holding_more(older: list[tuple[int, Path]], zxid: int) -> list[Path]:
    """Return the newest of these snapshots, up to the first one that is known to have no changes after the zxid."""
    paths = []
    for number, path in older:
        try:
            newest = snapshot.newest_in(snapshot.read(path, number), number)
        except DamagedSnapshotError:
            continue  # `load` handles it
        if newest is not None and newest <= zxid:
            break
        paths.append(path)
    return paths


def _leads(logs: Path, start: int, zxid: int) -> bool:
    """Whether the log leads from a snapshot to this zxid without a gap.

    No transaction has the zxid epoch:0. Then those behind it are read too, which shows a gap there.
    """
    if start == zxid:
        return True
    last = start
    for number, _ in read(logs, start + 1, zxid):
        if not follows(number, last):
            return False
        last = number
    return last == zxid or not counter_of(zxid)
