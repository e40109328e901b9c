"""Snapshot files: a tree on the disk, sealed with a checksum.

    ZKSN, i32 2, i64 -1 · body (`refimpl.disk.body`) · i64 adler32 of all before it, string "/"
    i64 zxid, i32 2, i64 digest · i64 adler32 of all before it, string "/"

Rules this module keeps:

- A snapshot appears under its name when it is whole and synced, not before. The real one writes most of its snapshots
  under their names from the start, so an unfinished one is an ordinary sight when reading.
- The second part (3.6 and later) is read and checked; the digest in it is not used. It is never written: a server that
  misses it reads the snapshot as one of an older version.
- A snapshot is taken whole or not at all: header, every length, both seals, nothing behind them. The real one also
  takes one whose second part is cut short, and more bytes behind the seals.
- Compressed snapshots (`snapshot.<zxid>.gz`, `.snappy`; off by default) are not read, and said to be there.

Source: `FileSnap`, `SnapStream`, `DataTree.serializeZxidDigest`, `AtomicFileOutputStream`.
"""

import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from zlib import adler32

from refimpl.disk.body import BodyReader, DamagedSnapshotError, body_chunks
from refimpl.disk.files import TEMPORARY, numbered, sync_directory
from refimpl.store import Tree

PREFIX = "snapshot"
HEADER = struct.pack(">4siq", b"ZKSN", 2, -1)
_COMPRESSED = re.compile(PREFIX + r"\.([0-9a-f]{1,16})\.(?:gz|snappy)")
_CHECKSUM = struct.Struct(">q")
_SEAL_MARK = b"\x00\x00\x00\x01/"
_DIGEST = struct.Struct(">qi")
_READ = 1 << 20


class SnapshotFile:
    """A snapshot that is being written: `write` its body in pieces, then `finish`, or `abort`.

    All of them block and may be called from a thread. Raises OSError; what was written so far is then removed.
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

    def finish(self) -> Path:
        """Seal the file, make it durable and give it its name."""
        try:
            self._file.write(_CHECKSUM.pack(self._checksum) + _SEAL_MARK)
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._temporary.replace(self.path)
        except BaseException:
            self.abort()
            raise
        sync_directory(self.path.parent)
        return self.path

    def abort(self) -> None:
        """Give it up."""
        try:
            self._file.close()
        finally:
            self._temporary.unlink(missing_ok=True)


def save(directory: Path, tree: Tree, zxid: int) -> Path:
    """Write a snapshot of a tree whose last transaction is `zxid`, at one go. Raises OSError."""
    file = SnapshotFile(directory, zxid)
    for piece in body_chunks(tree, zxid):
        file.write(piece)
    return file.finish()


def read(path: Path, zxid: int) -> Tree:
    """The tree of a snapshot. Raises DamagedSnapshotError, which names the file and what is wrong, and OSError."""
    try:
        return _read(path, zxid)
    except DamagedSnapshotError as error:
        raise DamagedSnapshotError(f"{path}: {error}") from None


def _read(path: Path, zxid: int) -> Tree:
    tree = Tree()
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
    _check_tail(rest, checksum)
    return tree


def _check_tail(tail: bytes, checksum: int) -> None:
    """What stands behind the body: a seal, or a seal, a digest and another seal."""
    end = _check_seal(tail, 0, checksum, "seal")
    if end == len(tail):
        return
    digest_end = end + _DIGEST.size
    if len(tail) < digest_end:
        raise DamagedSnapshotError(f"{len(tail) - end} bytes stand behind the seal, too few for a digest")
    _, version = _DIGEST.unpack_from(tail, end)
    # Before version 2 a digest was a text.
    digest_end += 8 if version >= 2 else 4 + int.from_bytes(tail[digest_end : digest_end + 4])
    whole = _check_seal(tail, digest_end, adler32(tail[:digest_end], checksum), "second seal")
    if whole != len(tail):
        raise DamagedSnapshotError(f"{len(tail) - whole} bytes stand behind the second seal, expected none")


def _check_seal(tail: bytes, offset: int, checksum: int, name: str) -> int:
    """Check the seal at this offset; where it ends."""
    end = offset + _CHECKSUM.size + len(_SEAL_MARK)
    if len(tail) < end:
        raise DamagedSnapshotError(f"the {name} is cut short: {max(0, len(tail) - offset)} bytes of {end - offset}")
    found = _CHECKSUM.unpack_from(tail, offset)[0]
    if found != checksum:
        raise DamagedSnapshotError(f"the {name} has checksum {found:x}, the bytes before it have {checksum:x}")
    if tail[end - len(_SEAL_MARK) : end] != _SEAL_MARK:
        raise DamagedSnapshotError(f'the {name} does not end with the text "/"')
    return end


def looks_whole(path: Path) -> bool:
    """Whether a snapshot ends as a whole one does; cheap, and wrong where bytes are damaged.

    `SnapStream.isValidCheckedStream`.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size < len(HEADER) + len(_SEAL_MARK):
            return False
        file.seek(-len(_SEAL_MARK), os.SEEK_END)
        return file.read() == _SEAL_MARK


def newest_first(directory: Path) -> Iterator[tuple[int, Path]]:
    """The snapshots of a directory with their zxids, the newest one first."""
    return reversed(numbered(directory, PREFIX))


def compressed(directory: Path) -> list[tuple[int, Path]]:
    """The compressed snapshots of a directory, which this server does not read."""
    found = []
    for path in directory.glob(f"{PREFIX}.*"):
        match = _COMPRESSED.fullmatch(path.name)
        if match:
            found.append((int(match[1], 16), path))
    return sorted(found)


def remove_unfinished(directory: Path) -> None:
    """Remove what a crash left of a snapshot that was being written."""
    for path in directory.glob(f"{PREFIX}.*{TEMPORARY}"):
        path.unlink()
