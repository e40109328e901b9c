"""The disk of a node: log, snapshots and epochs behind one interface, and the removal of old files (autopurge).

Rules this module keeps:

- A folder belongs to one process at a time; ZooKeeper has no such lock.
- The log is written in the order of the requests: by the sync thread, or by the event loop while the disk is fast. A
  replacement or cut of the log happens while neither writes.
- Snapshots that are taken while the server serves are written a piece at a time, between other work. They are fuzzy;
  the log from their zxid on makes them whole, and begins a new file there.
- Where epochs and log disagree after a crash, the server starts with both as they are (see `spec.durable`).
- The newest `keep` snapshots that look whole are kept, and each of them can be restored: the logs are kept from the
  last file that starts at or below the oldest of these snapshots.
- `keep` is at least 3. If there are fewer snapshots, all of them are kept, with the logs that they need.

Source: `FileTxnSnapLog`, `SyncRequestProcessor` (snapCount), `QuorumPeer.loadDataBase`, `DatadirCleanupManager`;
`PurgeTxnLog.purge`, `.purgeOlderSnapshots`; `autopurge.snapRetainCount`.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from refimpl.disk import database, epochs, snapshot
from refimpl.disk.body import body_chunks
from refimpl.disk.files import VERSION_DIRECTORY, DataError, make_directories, numbered
from refimpl.disk.logreader import PREFIX as LOG
from refimpl.disk.logreader import files_from
from refimpl.disk.remedies import Damage, Others
from refimpl.disk.sync_thread import SyncThread
from refimpl.disk.txn_buffer import LIMIT, LogBytes, TxnBuffer
from refimpl.disk.txnlog import TxnLog
from refimpl.jute import JuteError
from refimpl.settings import Settings
from refimpl.system import system
from refimpl.tree import Tree
from refimpl.wire.txn import TxnEncoder, txn_of
from spec.durable import Durable
from spec.quorum import change_of
from spec.tree.txns import Change
from spec.txn import Txn

LEAST = 3
"""`autopurge.snapRetainCount` is never below this (`DatadirCleanupManager`, `PurgeTxnLog.purge`)."""


def purge(data_dir: Path, log_dir: Path, keep: int) -> list[Path]:
    """Remove the files that the newest `keep` snapshots do not need; return them. Raises OSError, ValueError."""
    if keep < LEAST:
        raise ValueError(f"autopurge.snapRetainCount is {keep}, expected {LEAST} or more")
    snapshots, logs = data_dir / VERSION_DIRECTORY, log_dir / VERSION_DIRECTORY
    whole = (zxid for zxid, path in snapshot.newest_first(snapshots) if snapshot.looks_whole(path))
    retained = list(islice(whole, keep))
    if not retained:
        return []
    oldest = retained[-1]
    needed = files_from(logs, oldest)
    removed = [path for zxid, path in numbered(snapshots, snapshot.PREFIX) if zxid < oldest]
    removed += [path for zxid, path in numbered(logs, LOG) if zxid < oldest and (zxid, path) not in needed]
    for path in removed:
        path.unlink()
    return removed


logger = logging.getLogger("quorate.disk")

BUSY = 0.002
"""Seconds after which the writing of a snapshot yields to other work."""


class Storage:
    """The disk of a server. Opening it raises `DataError` and `OSError`.

    `record_sizes` are those of the last, the smallest and the largest transaction logged, -1 before the first.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings, self._snap_count = settings, settings.snap_count
        self._loop = asyncio.get_running_loop()
        self._snapshots, logs = make_directories(settings.data_dir, settings.log_dir)
        self._locks = [_locked(directory) for directory in dict.fromkeys((self._snapshots, logs))]
        snapshot.remove_unfinished(self._snapshots)
        with _advice(settings):
            self._log = TxnLog(logs, settings.preallocation)
        for note in self._log.notes:
            logger.warning("%s", note)
        self._thread: SyncThread | None = None
        self.record_sizes = (-1, -1, -1)
        self.encoder, self.log_bytes = TxnEncoder(), LogBytes()
        self._gathered: list[tuple[int, bytes]] = []
        self._logged = 0
        self._writing: asyncio.Task[None] | None = None

    # Reading.

    def load(self) -> database.LoadedDatabase:
        """The tree, and the end of the log. Raises DataError and OSError."""
        with _advice(self._settings):
            loaded = database.load(
                self._settings.data_dir, self._settings.log_dir, LIMIT, trusts_empty=self._settings.trusts_empty
            )
        for warning in loaded.warnings:
            logger.warning("%s", warning)
        return loaded

    def durable(self, loaded: database.LoadedDatabase) -> Durable:
        """The state of this disk as `spec` represents it. Raises DataError.

        A standalone server neither reads nor writes epochs, so those of an earlier life in an ensemble remain.
        """
        recent = TxnBuffer(self._txn(zxid, change) for zxid, change in loaded.recent)
        self.log_bytes = loaded.sizes
        if not self._settings.distributed:
            return Durable(snapshot=loaded.snapshot_zxid, log=recent)
        epoch_files = epochs.load(self._snapshots, loaded.last_zxid)
        return Durable(epoch_files.accepted, epoch_files.current, loaded.snapshot_zxid, recent)

    def _txn(self, zxid: int, change: Change) -> Txn:
        """A transaction of the log. Without `reconfigEnabled` a reconfiguration is a change of one znode."""
        if not self._settings.reconfigurable:
            return Txn(zxid, change)
        try:
            return txn_of(zxid, change)
        except JuteError as error:
            raise DataError(f"{self._log.directory}: transaction 0x{zxid:x}: {error}", Damage.RECORDS) from None

    def sizes(self) -> tuple[int, int]:
        """The sizes in bytes of the snapshots and of the logs."""
        return _size_of(self._snapshots), _size_of(self._log.directory)

    # Writing.

    def start(self, done: Callable[[int], None], failed: Callable[[OSError], None]) -> None:
        """Begin to write; see `SyncThread`."""
        self._thread = SyncThread(self._log, self._loop, done, failed)
        self._thread.start()

    def stop(self) -> None:
        """Complete the pending work, then end."""
        self._cancel_snapshot()
        if self._thread is not None:
            self._thread.stop()
        self._log.close()
        for lock in self._locks:
            system().close(lock)

    def append(self, txn: Txn) -> None:
        """Queue a transaction for the log."""
        payload = self.encoder.taken(txn.zxid, change_of(txn.value))
        size, (_, smallest, largest) = len(payload), self.record_sizes
        if not smallest <= size <= largest:
            smallest, largest = size if smallest < 0 else min(size, smallest), max(size, largest)
        self.record_sizes = (size, smallest, largest)
        self.log_bytes.add(txn.zxid, size)
        self._logged += 1
        self._gathered.append((txn.zxid, payload))

    def release(self) -> None:
        """Hand the gathered records to the log; the journal has them already."""
        if self._gathered:
            self._started_thread().append(*self._gathered)
            self._gathered.clear()

    def flush(self) -> None:
        """Wait until all requested work is durable. Raises OSError."""
        self.release()
        self._started_thread().flush()

    def take_snapshot(self, tree: Tree, zxid: int) -> None:
        """Queue the replacement of the disk contents by a tree, which must not change meanwhile."""

        def replace() -> None:
            snapshot.save(self._snapshots, tree, zxid)
            for number, path in snapshot.newest_first(self._snapshots):
                if number > zxid:
                    path.unlink()
            self._log.truncate(zxid)

        self._cancel_snapshot()
        self.release()
        self._started_thread().call(replace)

    def truncate(self, zxid: int) -> None:
        """Drop everything beyond a zxid, before it returns. Raises TruncationError and OSError."""
        self._cancel_snapshot()
        self.flush()
        database.truncate(self._settings.data_dir, self._log, zxid)

    def write_epochs(self, accepted: int, current: int) -> None:
        """Make both epochs durable before it returns. Raises OSError."""
        epochs.save_accepted(self._snapshots, accepted)
        epochs.save_current(self._snapshots, current)

    # Background snapshots.

    @property
    def is_writing_snapshot(self) -> bool:
        """Whether a background snapshot still reads its tree."""
        return self._writing is not None and not self._writing.done()

    @property
    def is_snapshot_due(self) -> bool:
        """Whether snapCount transactions have been logged since the last snapshot, and none is being written."""
        return self._logged >= self._snap_count and not self.is_writing_snapshot

    def snapshot(self, tree: Tree, zxid: int, last: Callable[[], int]) -> None:
        """Begin a new log file, and a snapshot in the background.

        `last` returns the zxid of the last transaction applied to the tree.
        """
        self._logged = 0
        self.release()
        self._started_thread().aside(self._log.roll)
        self._started_thread().expect_slow_commits()  # the sync of the snapshot will take the disk
        self._writing = self._loop.create_task(self._write_snapshot(tree, zxid, last))

    async def _write_snapshot(self, tree: Tree, zxid: int, last: Callable[[], int]) -> None:
        file: snapshot.SnapshotFile | None = None
        try:
            file = snapshot.SnapshotFile(self._snapshots, zxid)
            rest = self._loop.time() + BUSY
            for chunk in body_chunks(tree, zxid):
                file.write(chunk)
                if self._loop.time() > rest:
                    await asyncio.sleep(0)
                    rest = self._loop.time() + BUSY
            self._started_thread().expect_slow_commits()
            await asyncio.to_thread(file.seal, last())
            file.publish()
        except OSError as error:
            logger.warning("snapshot %x is not written: %s", zxid, error)
        except asyncio.CancelledError:
            if file is not None:
                file.abort()
            raise

    def _cancel_snapshot(self) -> None:
        """Cancel a background snapshot, whose tree is about to be replaced; it does not get its name."""
        if self._writing is not None:
            self._writing.cancel()

    def purge(self) -> None:
        """Remove old snapshots and logs (`autopurge`)."""
        try:
            removed = purge(self._settings.data_dir, self._settings.log_dir, self._settings.snapshots_kept)
        except OSError as error:
            logger.warning("autopurge: %s", error)
            return
        if removed:
            logger.info("autopurge: removed %d files", len(removed))

    def _started_thread(self) -> SyncThread:
        assert self._thread is not None  # started with the node
        return self._thread


@contextmanager
def _advice(settings: Settings) -> Iterator[None]:
    """A context in which the remedies in errors of a standalone server name no other servers."""
    try:
        yield
    except DataError as error:
        if settings.distributed or error.damage is None:
            raise
        raise DataError(error.fault, error.damage, Others.NONE) from None


def _locked(directory: Path) -> int:
    descriptor = system().open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        system().lock(descriptor)
    except BlockingIOError:
        system().close(descriptor)
        raise DataError(f"{directory}: another server runs on it; stop that one, or name another dataDir") from None
    return descriptor


def _size_of(directory: Path) -> int:
    """The bytes of the files in a folder; a file that disappears meanwhile does not count."""
    total = 0
    for path in directory.iterdir():
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total
