"""Snapshot files: a tree on disk, protected by checksums.

    ZKSN, i32 2, i64 -1 · body (`refimpl.disk.body`)   · seal
    i64 zxid, i32 version, i64 digest                  · seal    optional; ZooKeeper 3.6 and later
    i64 lastProcessedZxid                              · seal    optional; ZooKeeper 3.9 and later

A seal is the i64 adler32 of all bytes before it and the string "/".

- A snapshot is fuzzy: the tree changes while it is written, so it may hold changes of transactions beyond the zxid in
  its name. Both optional sections name the last transaction at the end of the writing. A reader needs it to tell
  whether a truncated log still covers the snapshot (`Snapshot.recorded`, `newest_in`).
- A new snapshot has the second section, with a digest version that no ZooKeeper has: servers from 3.6 on compare
  digests of equal versions only, and older ones ignore what follows the first seal.
- A new snapshot gets its name when it is complete and durable. ZooKeeper gives most of its snapshots their names at the
  start, so a reader must expect incomplete ones.
- Header, lengths, seals and the end of the file are checked. ZooKeeper accepts a shortened second section, and
  trailing bytes.
- Compressed snapshots (`snapshot.<zxid>.gz`, `.snappy`; off by default) are not read; `compressed` lists them.

Source: `FileSnap`, `SnapStream`, `DataTree.serializeZxidDigest`, `DataTree.serializeLastProcessedZxid`,
`AtomicFileOutputStream`.
"""

import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from zlib import adler32

from refimpl.disk.body import BodyReader, DamagedSnapshotError, body_chunks
from refimpl.disk.files import TEMPORARY, numbered, sync_directory
from refimpl.system import system
from refimpl.tree import Tree
from spec.text import required_integer

PREFIX = "snapshot"
HEADER = struct.pack(">4siq", b"ZKSN", 2, -1)
COMPRESSED = re.compile(PREFIX + r"\.([0-9a-f]{1,16})\.(?:gz|snappy)")
_CHECKSUM = struct.Struct(">q")
_SEAL_MARK = b"\x00\x00\x00\x01/"
_SEAL_SIZE = _CHECKSUM.size + len(_SEAL_MARK)
_DIGEST = struct.Struct(">qi")
_LAST_PROCESSED = struct.Struct(">q")
_RECORD = struct.Struct(">qiq")
_OWN_DIGEST_VERSION = (1 << 31) - 1
"""Not a version of ZooKeeper's `DigestCalculator`, and above the versions whose digest is text."""
_READ = 1 << 20


class Snapshot(NamedTuple):
    """A tree, and the zxid of the last transaction applied before the end of the writing; None if not recorded."""

    tree: Tree
    recorded: int | None


class SnapshotFile:
    """A snapshot in progress: `write` its body in pieces, then `seal` and `publish`, or `abort`.

    All methods block; `seal` may be called from a thread. They raise OSError, and then the file has been removed.
    """

    def __init__(self, directory: Path, zxid: int) -> None:
        self.path = directory / f"{PREFIX}.{zxid:x}"
        self._temporary = self.path.with_name(self.path.name + TEMPORARY)
        self._checksum = 1
        self._file = self._temporary.open("wb")
        self.write(HEADER)

    def write(self, piece: bytes) -> None:
        """Add a piece of the body."""
        try:
            self._file.write(piece)
        except BaseException:
            self.abort()
            raise
        self._checksum = adler32(piece, self._checksum)

    def seal(self, last: int) -> None:
        """End the body and make the file durable; `last` is the last transaction applied to the tree by now."""
        try:
            self._add_seal()
            self.write(_RECORD.pack(last, _OWN_DIGEST_VERSION, 0))
            self._add_seal()
            self._file.flush()
            system().fsync(self._file.fileno())
            self._file.close()
        except BaseException:
            self.abort()
            raise

    def _add_seal(self) -> None:
        self.write(_CHECKSUM.pack(self._checksum) + _SEAL_MARK)

    def publish(self) -> Path:
        """Give a sealed file its name, durably."""
        try:
            self._temporary.replace(self.path)
        except BaseException:
            self.abort()
            raise
        sync_directory(self.path.parent)
        return self.path

    def abort(self) -> None:
        """Remove the file."""
        try:
            self._file.close()
        finally:
            self._temporary.unlink(missing_ok=True)


def save(directory: Path, tree: Tree, zxid: int) -> Path:
    """Write a snapshot of a tree that does not change meanwhile; `zxid` is its last transaction. Raises OSError."""
    file = SnapshotFile(directory, zxid)
    for piece in body_chunks(tree, zxid):
        file.write(piece)
    file.seal(zxid)
    return file.publish()


def read(path: Path, zxid: int) -> Snapshot:
    """Read a snapshot. Raises DamagedSnapshotError, with the file and the fault, and OSError."""
    try:
        return _read(path, zxid)
    except DamagedSnapshotError as error:
        raise DamagedSnapshotError(f"{path}: {error}") from None


def _read(path: Path, zxid: int) -> Snapshot:
    tree = Tree(())
    reader = BodyReader(tree, zxid)
    with path.open("rb") as file:
        header = file.read(len(HEADER))
        if header[:8] != HEADER[:8] or len(header) < len(HEADER):
            raise DamagedSnapshotError(f"the header is {header.hex()}, expected {HEADER.hex()} (ZKSN, version 2)")
        checksum, rest = adler32(header), None
        while rest is None:
            piece = file.read(_READ)
            if not piece:
                raise DamagedSnapshotError(f"the file ends at offset {file.tell()}, inside of the body")
            rest = reader.feed(piece)
            whole = len(piece) - len(rest or b"")
            checksum = adler32(piece[:whole] if rest else piece, checksum)
        rest += file.read(_READ)
    recorded = _check_tail(rest, checksum)
    # A digest may be older than the snapshot, or missing and then 0 (`DataTree.deserializeZxidDigest`).
    return Snapshot(tree, recorded if recorded >= zxid else None)


def _check_tail(tail: bytes, checksum: int) -> int:
    """Check the bytes after the body; return the highest zxid in them, -1 if they name none."""
    end, recorded = _check_seal(tail, 0, checksum, "seal"), -1
    last_size = _LAST_PROCESSED.size + _SEAL_SIZE
    if len(tail) not in (end, end + last_size):
        recorded, end = _check_digest(tail, end, checksum)
    if len(tail) == end:
        return recorded
    if len(tail) != end + last_size:
        raise DamagedSnapshotError(
            f"{len(tail) - end} bytes follow the last seal, expected 0, or {last_size} with a lastProcessedZxid"
        )
    last_end = end + _LAST_PROCESSED.size
    _check_seal(tail, last_end, adler32(tail[:last_end], checksum), "seal of lastProcessedZxid")
    last: int = _LAST_PROCESSED.unpack_from(tail, end)[0]
    return max(recorded, last)


def _check_digest(tail: bytes, start: int, checksum: int) -> tuple[int, int]:
    end = start + _DIGEST.size
    if len(tail) < end:
        raise DamagedSnapshotError(f"{len(tail) - start} bytes follow the seal, too few for a digest")
    zxid, version = _DIGEST.unpack_from(tail, start)
    # Before version 2 a digest was a text.
    end += 8 if version >= 2 else 4 + int.from_bytes(tail[end : end + 4])
    return zxid, _check_seal(tail, end, adler32(tail[:end], checksum), "second seal")


def _check_seal(tail: bytes, offset: int, checksum: int, name: str) -> int:
    end = offset + _SEAL_SIZE
    if len(tail) < end:
        raise DamagedSnapshotError(f"the {name} is cut short: {max(0, len(tail) - offset)} bytes of {end - offset}")
    sealed = _CHECKSUM.unpack_from(tail, offset)[0]
    if sealed != checksum:
        raise DamagedSnapshotError(f"the {name} has checksum {sealed:x}, the bytes before it have {checksum:x}")
    if tail[end - len(_SEAL_MARK) : end] != _SEAL_MARK:
        raise DamagedSnapshotError(f'the {name} does not end with the text "/"')
    return end


def newest_in(found: Snapshot, zxid: int) -> int | None:
    """The zxid of the newest transaction that a snapshot with this zxid in its name may hold; None if unknown.

    Every change of a znode leaves its zxid in the tree, a deletion in the pzxid of the parent, except setACL, which
    only changes aversion. So a snapshot without a recorded zxid is known only if no ACL was ever changed.
    """
    newest, changed_acl = zxid, False
    for _, znode in found.tree.preorder():
        newest = max(newest, znode.czxid, znode.mzxid, znode.pzxid)
        changed_acl = changed_acl or znode.aversion > 0
    if found.recorded is not None:
        return max(newest, found.recorded)
    return None if changed_acl else newest


def looks_whole(path: Path) -> bool:
    """Whether a snapshot ends with a seal mark; other damage is not detected (`SnapStream.isValidCheckedStream`)."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size < len(HEADER) + len(_SEAL_MARK):
            return False
        file.seek(-len(_SEAL_MARK), os.SEEK_END)
        return file.read() == _SEAL_MARK


def newest_first(directory: Path) -> Iterator[tuple[int, Path]]:
    """Return the snapshots of a directory with their zxids, the newest one first."""
    return reversed(numbered(directory, PREFIX))


def compressed(directory: Path) -> list[tuple[int, Path]]:
    """Return the compressed snapshots of a directory, oldest first; this server does not read them."""
    files = []
    for path in directory.glob(f"{PREFIX}.*"):
        match = COMPRESSED.fullmatch(path.name)
        if match:
            files.append((required_integer(match[1], base=16), path))
    return sorted(files)


def remove_unfinished(directory: Path) -> None:
    """Remove the incomplete snapshots that a crash has left."""
    for path in directory.glob(f"{PREFIX}.*{TEMPORARY}"):
        path.unlink()
