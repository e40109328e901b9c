"""The reader of transaction logs: it returns each record that was written, or an error with the place of the damage.

Rules this module keeps:

- A record counts only if it is whole: its length, its checksum and its end mark are right, its transaction header is
  present, and its zxid is higher than the previous one. The first record of `log.<zxid>` has that zxid.
- **End of the log.** In the last file the first bad record ends the log if nothing valid follows it: a crash during a
  write leaves that (a record cut short, zeros, a checksum that does not match).
- **Damage.** A bad record followed by a valid one in the same file is refused: a record that was written is lost. One
  case is no damage: records of one write, of at most `GROUP` bytes, may be on the disk without a sector between them if
  the power fails before the fsync. Then the first bad record ends the log if a whole sector of it was never written,
  or if the part of its header before the end of a sector is zero and the rest is as it was written.
- **Not the last file.** ZooKeeper leaves the torn record of a crash in place and continues in a new file, so this
  must be readable. The end of such a file is accepted in three cases. The next file begins with the very next zxid,
  which proves that nothing is missing. Or only zeros follow the records. Or the beginning of a record follows, and then
  as many zeros as a server makes before it writes: the end of that record was never written. Anything else is refused.
- **Gaps.** Within an epoch zxids increase by one, and a new epoch starts with 1. Any other step is refused. No reader
  can detect a loss at the very end of an epoch that leaves no trace in the file.
- Everything that is skipped is recorded in `notes`.

ZooKeeper differs (`FileTxnIterator.next`): a wrong checksum always stops it, at the end of the log too. After a
length of zero, a record that is too short or a wrong end mark it continues silently with the **next file**, so the
rest of a damaged file is lost unnoticed. It checks neither gaps nor the order of zxids (one message in its own log). A
last file without a whole header stops it. And it decodes the whole payload, which here is the caller's task.

Source: `FileTxnLog`, `FileTxnLog.FileTxnIterator`, `Util.readTxnBytes`, `FileHeader`.
"""

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple
from zlib import adler32

from refimpl.disk.files import DataError, follows, numbered
from refimpl.disk.remedies import Damage
from refimpl.system import system
from spec.txn import epoch_of

PREFIX = "log"
FILE_HEADER = struct.pack(">4siq", b"ZKLG", 2, 0)
RECORD_HEADER = struct.Struct(">qi")
END_MARK = b"B"
PADDING = 4096
"""A file is extended before a record is written with less room than this after it."""
GROUP = 1 << 20
"""The most bytes of records in one write with one fsync, unless it is one record."""
MAX_RECORD = 1 << 27
"""The longest record that is read, in bytes: a server's own limit (`jute.maxbuffer`) is 1 MiB unless it is raised."""
MOST_SEGMENTS = 64
"""The number of damaged places in a file behind which its rest is not read, since each of them is searched."""
ALWAYS_ZERO = 4
"""The first bytes of a record: a checksum has 32 of the 64 bits. Whether they were written cannot be seen."""
SECTOR = 512
"""The bytes that a disk writes as a whole."""
TXN_HEADER_SIZE = 32
"""Session, cxid, zxid, time, type."""
ZXID_OFFSET = 12
_ZXID = struct.Struct(">q")
_READ = 1 << 20

_CANDIDATE = re.compile(rb"(?=\0{4}.{4}(?!\0{4})[\0-\x7f])", re.DOTALL)
"""A possible start of a record: a checksum below 2^32, and a length above zero."""


class DamagedLogError(DataError):
    """A log that lacks records that were written to it, or has other content."""


class Record(NamedTuple):
    """A record of a log: its payload, and the offset of its end in the file."""

    zxid: int
    payload: bytes
    end: int


class LogEnd(NamedTuple):
    """The end of the good records of a file: the last zxid (0 if there is none), the offset, and the fault there.

    `fault` is None if only zeros follow. `torn`: the beginning of a record and zeros follow, as a crash leaves them.
    `recovers`: the offset of a valid record after the fault, None if there is none. `foreign`: a whole record or header
    follows that does not belong there, which no crash explains.
    """

    zxid: int
    offset: int
    fault: str | None = None
    torn: bool = False
    recovers: int | None = None
    foreign: bool = False


class FileScan:
    """The good records of one file, in order; after the last one `end` describes the end of the file.

    With `resumed`, the end of an earlier scan, it begins with the valid record behind the fault there.
    """

    def __init__(self, path: Path, first: int, resumed: LogEnd | None = None) -> None:
        self.path = path
        self.first = first
        self.end = LogEnd(0, 0)
        self._resumed = resumed

    def __iter__(self) -> Iterator[Record]:
        """Yield the records. Raises DamagedLogError after the last one if the end is foreign."""
        yield from self.good_records()
        if self.end.foreign:
            raise DamagedLogError(f"{self.path}, offset {self.end.offset}: {self.end.fault}", Damage.RECORDS)

    def good_records(self) -> Iterator[Record]:
        """Yield the records, whatever follows the last one; `end` says it."""
        with self.path.open("rb") as file:
            size = system().size(file.fileno())
            header = file.read(len(FILE_HEADER))
            if header[:8] != FILE_HEADER[:8]:
                self.end = self._bad_header(header, size)
            elif self._resumed is None or self._resumed.recovers is None:
                yield from self._records(file, size, len(FILE_HEADER), 0)
            else:
                file.seek(self._resumed.recovers)
                yield from self._records(file, size, self._resumed.recovers, self._resumed.zxid or self.first)

    def _records(self, file: BinaryIO, size: int, offset: int, last: int) -> Iterator[Record]:
        buffer, start = b"", 0
        unpack, head = RECORD_HEADER.unpack_from, RECORD_HEADER.size
        while True:
            if len(buffer) - start < head:
                buffer, start = buffer[start:] + file.read(_READ), 0
            if len(buffer) < head:
                break
            checksum, length = unpack(buffer, start)
            whole = head + length + 1
            if not TXN_HEADER_SIZE <= length <= MAX_RECORD or offset + whole > size:
                break
            if len(buffer) - start < whole:
                buffer, start = buffer[start:] + file.read(max(whole, _READ)), 0
                if len(buffer) < whole:
                    break
            payload = buffer[start + head : start + whole - 1]
            if buffer[start + whole - 1] != END_MARK[0] or adler32(payload) != checksum:
                break
            zxid: int = _ZXID.unpack_from(payload, ZXID_OFFSET)[0]
            if zxid <= last or (last == 0 and zxid != self.first):
                right = f"a zxid above 0x{last:x}" if last else f"zxid 0x{self.first:x}, as in the file's name"
                self.end = LogEnd(last, offset, f"the record has zxid 0x{zxid:x}, expected {right}", foreign=True)
                return
            start, offset, last = start + whole, offset + whole, zxid
            yield Record(zxid, payload, offset)
        self.end = _judge(file, size, offset, last)

    def _bad_header(self, header: bytes, size: int) -> LogEnd:
        """Handle a bad header: a file whose creation a crash interrupted has none yet; any other one is not a log."""
        unborn = not header.strip(b"\0") or (len(header) == size and FILE_HEADER.startswith(header))
        if unborn and _rest_is_zero(self.path):
            return LogEnd(0, 0, "the file has no header")
        fault = (
            f"the header is {header[:8].hex()}, expected {FILE_HEADER[:8].hex()} (ZKLG, version 2): "
            "not a transaction log, or damaged"
        )
        return LogEnd(0, 0, fault, foreign=True)


def _rest_is_zero(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(len(FILE_HEADER))
        return _last_written(file, len(FILE_HEADER)) == len(FILE_HEADER)


def _last_written(file: BinaryIO, start: int) -> int:
    """Return the offset after the last byte from `start` on that is not zero; `start` if there is none."""
    file.seek(start)
    last, offset = start, start
    while chunk := file.read(_READ):
        stripped = len(chunk.rstrip(b"\0"))
        if stripped:
            last = offset + stripped
        offset += len(chunk)
    return last


def _judge(file: BinaryIO, size: int, offset: int, zxid: int) -> LogEnd:
    end = _last_written(file, offset)
    if end == offset:
        return LogEnd(zxid, offset, None if zxid or _is_padded(size, offset) else "the file has no record")
    recovers = _next_record(file, offset + 1, end, size, zxid)
    if recovers is not None and not (end - offset <= GROUP and _is_partly_written(file, offset, recovers)):
        return LogEnd(zxid, offset, _fault(file, offset, size), recovers=recovers)
    return LogEnd(zxid, offset, _fault(file, offset, size), torn=_is_torn(file, offset, end, size))


def _fault(file: BinaryIO, offset: int, size: int) -> str:
    file.seek(offset)
    head = file.read(RECORD_HEADER.size)
    if len(head) < RECORD_HEADER.size:
        return "the record is cut short"
    checksum, length = RECORD_HEADER.unpack(head)
    if length < TXN_HEADER_SIZE:
        return f"the record's length is {length}, expected {TXN_HEADER_SIZE} or more"
    if length > MAX_RECORD:
        return f"the record's length is {length}, expected at most {MAX_RECORD}"
    if offset + len(head) + length + 1 > size:
        return f"the record's length is {length}, but only {size - offset - len(head)} bytes follow"
    payload, mark = file.read(length), file.read(1)
    if mark != END_MARK:
        return f"the record of {length} bytes ends with {mark.hex()}, expected {END_MARK.hex()}"
    return f"the record's checksum is {checksum:x}, its bytes have {adler32(payload):x}"


def _is_padded(size: int, offset: int) -> bool:
    """Whether the room after an offset is as large as a server makes it before it writes there (`FilePadding`)."""
    return size > offset + PADDING


def _is_torn(file: BinaryIO, offset: int, written: int, size: int) -> bool:
    """Whether this is a record without its end, followed by zeros up to the end of the file, as a server pads it.

    A whole record with a wrong length looks similar, but then its bytes up to the last one have the checksum.
    """
    file.seek(offset)
    checksum, length = RECORD_HEADER.unpack(file.read(RECORD_HEADER.size).ljust(RECORD_HEADER.size, b"\0"))
    if written == size or not _is_padded(size, offset):
        return False
    body = offset + RECORD_HEADER.size
    if written <= body:
        return True
    if written > body + length:
        return False
    payload = file.read(written - body)
    return not (payload.endswith(END_MARK) and adler32(payload[:-1]) == checksum)


def _is_partly_written(file: BinaryIO, offset: int, end: int) -> bool:
    """Whether the bytes from a bad record to the next good one have the trace of a sector that was never written.

    That is a part of a sector that is zero up to the end of the sector. In the first part this counts if it would have
    the length of a record, which is never zero. If it would have less of the header, the rest must be whole.
    """
    file.seek(offset)
    data = file.read(end - offset)
    first = -offset % SECTOR
    if first < RECORD_HEADER.size and _lacks_only(data, first):
        return True
    data += bytes(ALWAYS_ZERO)
    ends = range((offset + RECORD_HEADER.size - 1) // SECTOR * SECTOR + SECTOR, end + ALWAYS_ZERO + 1, SECTOR)
    return any(not data[max(0, stop - SECTOR - offset) : stop - offset].strip(b"\0") for stop in ends)


def _lacks_only(data: bytes, first: int) -> bool:
    """Whether these bytes are a record whose first ones are zero, and that has no other fault."""
    payload = data[RECORD_HEADER.size : -len(END_MARK)]
    header = RECORD_HEADER.pack(adler32(payload), len(payload))
    return data == bytes(first) + header[first:] + payload + END_MARK


def _next_record(file: BinaryIO, start: int, stop: int, size: int, after: int) -> int | None:
    overlap = RECORD_HEADER.size
    for base in range(start, stop, _READ):
        file.seek(base)
        window = file.read(min(_READ, stop - base) + overlap)
        for match in _CANDIDATE.finditer(window):
            if _is_record(file, base + match.start(), size, after):
                return base + match.start()
    return None


def _is_record(file: BinaryIO, offset: int, size: int, after: int) -> bool:
    file.seek(offset)
    head = file.read(RECORD_HEADER.size)
    if len(head) < RECORD_HEADER.size:
        return False
    checksum, length = RECORD_HEADER.unpack(head)
    if not TXN_HEADER_SIZE <= length <= MAX_RECORD or offset + RECORD_HEADER.size + length + 1 > size:
        return False
    file.seek(offset + RECORD_HEADER.size + length)
    if file.read(1) != END_MARK:
        return False
    file.seek(offset + RECORD_HEADER.size)
    payload = file.read(length)
    return adler32(payload) == checksum and int(_ZXID.unpack_from(payload, ZXID_OFFSET)[0]) > after


def segments(path: Path, first: int) -> Iterator[FileScan]:
    """Return the scans of a file from its beginning, and from each valid record behind a fault; none of them raises.

    The caller reads the `good_records` of one before it asks for the next.
    """
    scan = FileScan(path, first)
    yield scan
    for _ in range(MOST_SEGMENTS):
        if scan.end.recovers is None:
            return
        scan = FileScan(path, first, scan.end)
        yield scan


def files_from(directory: Path, zxid: int) -> list[tuple[int, Path]]:
    """Return the logs that may hold this zxid or later ones: the last that starts at or below it, and all after it."""
    files = numbered(directory, PREFIX)
    start = max((place for place, (first, _) in enumerate(files) if first <= zxid), default=0)
    return files[start:]


def read(
    directory: Path, from_zxid: int, to_zxid: int | None = None, notes: list[str] | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield the transactions with this zxid and above, in order, as zxid and payload.

    Everything that is skipped (the rest of a record that a crash cut short) is added to `notes`. Raises DamagedLogError
    at the place of the damage, and OSError. The caller must check that the first transaction follows its own state.
    With `to_zxid` reading stops after that one, which is safe while the log is being written.
    """
    last, open_end = 0, None
    for first, path in files_from(directory, from_zxid):
        if open_end is not None:
            _check_step(open_end, last, (first, path), from_zxid)
        scan = FileScan(path, first)
        for zxid, payload, _ in scan:
            if zxid >= from_zxid:
                yield zxid, payload
            if zxid == to_zxid:
                return
        open_end, last = scan, max(last, scan.end.zxid)
        _check_end(scan, [] if notes is None else notes)


def _check_end(scan: FileScan, notes: list[str]) -> None:
    """Check that the bytes after the last good record of a file never were a whole record."""
    end, where = scan.end, f"{scan.path}, offset {scan.end.offset}"
    if end.recovers is not None:
        raise DamagedLogError(
            f"{where}: {end.fault}, and a valid record follows at offset {end.recovers}: the record here is lost",
            Damage.RECORDS,
        )
    if end.fault is not None:
        notes.append(f"{where}: {end.fault}; the good records of this file end before it")


def _check_step(scan: FileScan, last: int, following: tuple[int, Path], from_zxid: int) -> None:
    """Check that nothing is missing between a file and the next one."""
    first, path = following
    end, where = scan.end, f"{scan.path}, offset {scan.end.offset}"
    if first == last + 1:
        return
    if last >= from_zxid and not follows(first, last):
        raise DamagedLogError(
            f"{where}: {end.fault or 'the file ends'} after 0x{last:x}, and {path.name} starts "
            f"with 0x{first:x}, expected 0x{last + 1:x} or the first of an epoch above {epoch_of(last)}",
            Damage.RECORDS,
        )
    if end.fault is not None and not end.torn:
        fault = f"{where}: {end.fault}, in a file that is not the last ({path.name} follows)"
        raise DamagedLogError(fault, Damage.RECORDS)
