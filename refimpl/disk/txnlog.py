"""The transaction log of a node: appending with group commit, recovery after a crash, truncation.

Rules this module keeps:

- Transactions from `append` are on the disk when `commit` returns, all of them with one write and one fdatasync per
  file. Before that nothing is guaranteed.
- When writing or syncing fails the log is poisoned: every later call raises. The state of the file is then unknown
  (Linux reports a failed sync once), so the only way out is to end the process and to recover.
- A log begins with a new file, named after its first record, as in ZooKeeper; `roll` lets the next record begin
  one. A new file's name is synced with its first records.
- Opening recovers: the bytes that a crash left after the last good record are cut off, and a file without any record is
  removed. So every file that this server leaves behind ends with a whole record, and ZooKeeper can read the
  directory.
- Files grow in steps of the preallocation, as holes: the length changes rarely, so that fdatasync seldom has to write
  it. Allocated blocks made no difference here (0.11 ms a sync either way, 0.18 ms without preallocation).
- Truncating removes the later files first, the latest one first, then cuts: a crash in between leaves a prefix.

A log must be used by one thread at a time.

Source: `FileTxnLog.append`, `.commit`, `.rollLog`, `.truncate`; `FilePadding`.
"""

import os
import struct
from pathlib import Path
from zlib import adler32

from refimpl.disk.files import numbered, sync_directory
from refimpl.disk.logreader import (
    END_MARK,
    FILE_HEADER,
    GROUP,
    PADDING,
    PREFIX,
    RECORD_HEADER,
    TXN_HEADER_SIZE,
    ZXID_OFFSET,
    DamagedLogError,
    FileScan,
)
from refimpl.disk.remedies import Damage
from refimpl.system import system

PREALLOCATION = 64 << 20
"""Bytes in one step of growth of a log file (`zookeeper.preAllocSize`)."""
_ZXID = struct.Struct(">q")


class LogUnusableError(OSError):
    """An earlier write or sync of this log failed; it must be opened again."""


class Batch:
    """Records of one write: the zxid of the first one, and their bytes; `begins`: they start a new file.

    They have at most `GROUP` bytes, or are one record: the reader needs this to tell a torn write from damage.
    """

    __slots__ = ("begins", "chunks", "first", "size")

    def __init__(self, first: int, begins: bool) -> None:
        self.first = first
        self.begins = begins
        self.chunks: list[bytes] = []
        self.size = 0


class TxnLog:
    """The log in a directory, open for appending; `last_zxid` is that of the last record, 0 in an empty log.

    Opening raises DamagedLogError if the last file is damaged (the reader checks older files), and OSError. `notes`
    lists the parts that recovery has cut off.
    """

    def __init__(self, directory: Path, preallocation: int = PREALLOCATION) -> None:
        self.directory = directory
        self.notes: list[str] = []
        self.last_zxid = recover(directory, self.notes)
        self._preallocation = preallocation
        self._pending: list[Batch] = []
        self._begins = True
        self._failed: str | None = None
        self._file: int | None = None
        self._offset = self._size = 0

    def append(self, zxid: int, payload: bytes) -> None:
        """Add a transaction (TxnHeader and record) to the next commit; zxids must rise."""
        self._check_usable()
        if len(payload) < TXN_HEADER_SIZE or _ZXID.unpack_from(payload, ZXID_OFFSET)[0] != zxid:
            raise ValueError(f"a payload of {len(payload)} bytes whose header does not have zxid 0x{zxid:x}")
        if zxid <= self.last_zxid:
            raise ValueError(f"zxid 0x{zxid:x} after 0x{self.last_zxid:x}: zxids of a log must rise")
        if self._begins or not self._pending or self._pending[-1].size + len(payload) > GROUP - RECORD_HEADER.size - 1:
            self._pending.append(Batch(zxid, self._begins))
            self._begins = False
        self._pending[-1].size += RECORD_HEADER.size + len(payload) + 1
        self._pending[-1].chunks += (RECORD_HEADER.pack(adler32(payload), len(payload)), payload, END_MARK)
        self.last_zxid = zxid

    def roll(self) -> None:
        """Let the next record begin a new file."""
        self._begins = True

    def commit(self) -> None:
        """Make all appended transactions durable. Raises OSError; the log is then unusable."""
        self._check_usable()
        try:
            for batch in self._pending:
                if batch.begins:
                    self._close_file()
                    path = self.directory / f"{PREFIX}.{batch.first:x}"
                    self._file = system().open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
                    self._offset = self._size = 0
                    self._put(FILE_HEADER)
                    system().fsync(self._file)
                    sync_directory(self.directory)
                self._write(b"".join(batch.chunks))
        except OSError as error:
            self._failed = f"{self.directory}: writing the log failed ({error.strerror or error})"
            raise
        self._pending.clear()

    def close(self) -> None:
        """Commit the pending transactions and close the file; after a failure, only close it."""
        try:
            if self._failed is None:
                self.commit()
        finally:
            self._close_file()

    def truncate(self, zxid: int) -> None:
        """Drop every record above this zxid, durably, including appended but uncommitted ones."""
        self.commit()
        self._close_file()
        truncate(self.directory, zxid)
        self.last_zxid = min(self.last_zxid, zxid)
        self._begins = True

    def _check_usable(self) -> None:
        if self._failed is not None:
            raise LogUnusableError(f"{self._failed}; the log must be opened again")

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        needed = self._offset + len(data) + PADDING
        if self._preallocation and needed > self._size:
            self._size = (needed // self._preallocation + 1) * self._preallocation
            system().ftruncate(self._file, self._size)
        self._put(data)
        system().fdatasync(self._file)

    def _put(self, data: bytes) -> None:
        assert self._file is not None
        view = memoryview(data)
        while view:
            count = system().pwrite(self._file, view, self._offset)
            self._offset += count
            view = view[count:]

    def _close_file(self) -> None:
        """Close the file without the zeros behind its last record, so that it takes only the space it needs."""
        if self._file is None:
            return
        descriptor, self._file = self._file, None
        try:
            if self._failed is None:
                system().ftruncate(descriptor, self._offset)
                system().fsync(descriptor)
        finally:
            system().close(descriptor)


def recover(directory: Path, notes: list[str]) -> int:
    """Cut off the bytes that a crash left after the last good record; return the last zxid, 0 for an empty log.

    Only the end of the log is examined. It is synced in any case: the process that wrote it may have been killed before
    its sync, and its records, which this server will vouch for, would be lost in a failure of the power.

    Raises DamagedLogError if a valid record follows the bad one.
    """
    for first, path in reversed(numbered(directory, PREFIX)):
        scan = FileScan(path, first)
        for _ in scan:
            pass
        end = scan.end
        if end.recovers is not None:
            raise DamagedLogError(
                f"{path}, offset {end.offset}: {end.fault}, and a valid record follows at offset {end.recovers}: "
                "the record here is lost",
                Damage.RECORDS,
            )
        if end.fault is not None:
            notes.append(f"{path}: cut off at offset {end.offset}: {end.fault}")
        if end.zxid:
            _cut(path, end.offset)
            return end.zxid
        path.unlink()
        sync_directory(directory)
    return 0


def truncate(directory: Path, zxid: int) -> None:
    """Drop every record above this zxid, durably. Raises DamagedLogError if a record to keep is unreadable.

    ZooKeeper cuts after the first record that is not *below* the zxid, so it keeps a later record if this one is not
    in the log. It also does not check whether a snapshot and the log still lead to the zxid.
    `refimpl.disk.database.truncate` checks that before it removes anything.
    """
    for first, path in reversed(numbered(directory, PREFIX)):
        if first <= zxid:
            end = 0
            for record in FileScan(path, first):
                if record.zxid > zxid:
                    break
                end = record.end
            _cut(path, end)
            return
        path.unlink()
        sync_directory(directory)


def _cut(path: Path, size: int) -> None:
    descriptor = system().open(path, os.O_RDWR)
    try:
        system().ftruncate(descriptor, size)
        system().fsync(descriptor)
    finally:
        system().close(descriptor)
