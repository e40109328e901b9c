"""A checkpoint folder: files that grow, one file that each save writes anew, and a head with sizes and checksums.

Rules:

- A save never destroys the previous one. Growing files are written only after their valid bytes, and the new save
  becomes valid by renaming the head, after everything is on disk.
- Every file is checked before it is used: the head by its own checksum and by `head`, the others by the head.
- Data is never executed: files hold numbers, the head is JSON.
- Only regular files inside the folder are opened: no symbolic link, hard link, FIFO or device is followed.
- One process uses a folder, if the file system supports locks.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import msgspec
import numpy as np

from checker.engine.checkpoint import CheckpointError
from checker.engine.checkpoint.head import LARGEST, FileRecord, Head, SavedSearch, decoded

FORMAT = 2
HEAD, NEW, PREFIX = "checkpoint.json", ".new", "checkpoint-"
CHUNK = 1 << 22  # bytes read or hashed at a time
AGAIN = "name another folder, or remove this one to begin anew"

Array = np.ndarray[Any, Any]
Source = Callable[[int], Iterable[Array]]  # the arrays after this number of bytes


class _ValidBytes(NamedTuple):
    """The number of valid bytes of a file, and their running hash."""

    size: int
    hash: Any

    def stored(self) -> FileRecord:
        return FileRecord(self.size, self.hash.hexdigest())


class CheckpointStore:
    """One folder: `open` it, `load` the last save, then `save` any number of times, and `close` it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._grown: dict[str, _ValidBytes] = {}  # the valid parts of the growing files, by name
        self._names: set[str] = set()  # all files that were written, including failed writes
        self._number = 0  # the number of the last head, complete or not
        self._lock: int | None = None

    def open(self) -> None:
        """Create the folder if necessary, and lock it. Raises CheckpointError."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            if not os.access(self.folder, os.W_OK):
                raise PermissionError("nothing may be written there")
        except (OSError, ValueError) as error:
            self.close()
            if self.folder.is_symlink():
                raise CheckpointError(
                    f"{self.folder}: it is a symbolic link; name the folder that it leads to"
                ) from None
            raise CheckpointError(f"{self.folder}: no checkpoint can be kept there ({error})") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CheckpointError(f"{self.folder}: another search is kept there; name another folder") from None
        except OSError:
            pass  # a file system that cannot lock

    def close(self) -> None:
        """Release the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # -- writing ---------------------------------------------------------------------------------------------

    def save(self, saved: SavedSearch, growing: Mapping[str, Source], now: Iterable[Array]) -> None:
        """Write new data, the arrays `now` and the counts. After an OSError the previous save is still valid.

        `growing` has for each name a function from a number of bytes to the arrays after them.
        """
        self._number += 1
        name = f"now-{self._number}"
        nothing = _ValidBytes(0, hashlib.sha256())
        grown = {each: self._write(each, self._grown.get(each, nothing), more) for each, more in growing.items()}
        files = {**grown, name: self._write(name, nothing, lambda _: now)}
        stored = {each: kept.stored() for each, kept in files.items()}
        self._put_head(msgspec.json.encode(Head(FORMAT, self._number, name, stored, saved)))
        self._grown = grown
        for other in self.folder.glob(f"{PREFIX}now-*"):
            if other != self._path(name):
                with suppress(OSError):  # it only takes room
                    other.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self.folder / f"{PREFIX}{name}"

    def _open(self, name: str, flags: int) -> IO[bytes]:
        """Open a file of the folder, which must be a regular one with a single name. Raises OSError."""
        if self._lock is None:
            raise OSError("the folder is not open")
        number = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644, dir_fd=self._lock)
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            os.close(number)
            raise OSError("it must be a regular file without other links")
        return cast("IO[bytes]", os.fdopen(number, "r+b" if flags & os.O_RDWR else "rb"))

    def _create(self, name: str) -> IO[bytes]:
        """Create a file of the folder; a file or link of that name is removed first. Raises OSError."""
        if self._lock is not None:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self._lock)
        return self._open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def _write(self, name: str, before: _ValidBytes, more: Source) -> _ValidBytes:
        size, digest = before.size, before.hash.copy()
        self._names.add(name)
        own = PREFIX + name
        with self._open(own, os.O_RDWR) if size else self._create(own) as file:
            file.seek(size)
            for part in more(size):
                data = np.ascontiguousarray(part).reshape(-1).view(np.uint8).data
                file.write(data)
                digest.update(data)
                size += len(data)
            _to_disk(file)
        return _ValidBytes(size, digest)

    def _put_head(self, text: bytes) -> None:
        path = self.folder / HEAD
        new = path.with_suffix(NEW)
        with self._create(new.name) as file:
            file.write(f"{_hash_of(text)}\n".encode() + text)
            _to_disk(file)
        new.replace(path)
        with suppress(OSError):  # the save is valid from here on, even if the system cannot sync a folder
            folder = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def remove(self) -> None:
        """Remove the checkpoint; the folder stays. Raises OSError."""
        head = self.folder / HEAD
        head.unlink(missing_ok=True)
        head.with_suffix(NEW).unlink(missing_ok=True)
        for path in [self._path(name) for name in self._names] + list(self.folder.glob(f"{PREFIX}now-*")):
            path.unlink(missing_ok=True)

    # -- reading ---------------------------------------------------------------------------------------------

    def load(self) -> SavedSearch | None:
        """The counts of the last save, or None without a save. Raises CheckpointError.

        It checks that all files are complete.
        """
        path = self.folder / HEAD
        try:
            with self._open(HEAD, os.O_RDONLY) as file:
                data = file.read(LARGEST + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CheckpointError(f"{path}: it cannot be read ({error.strerror or error}); {AGAIN}") from None
        checksum, _, text = data.partition(b"\n")
        if len(data) > LARGEST or checksum != _hash_of(text).encode():
            raise CheckpointError(f"{path}: it is damaged, or no checkpoint: its checksum is wrong; {AGAIN}")
        head = decoded(text, str(path), FORMAT, AGAIN)
        self._number, self._now = head.number, head.now
        for name, stored in head.files.items():
            self._grown[name] = self._checked(name, stored)
            self._names.add(name)
        self._now_size = self._grown.pop(self._now).size
        return head.search

    def _checked(self, name: str, stored: FileRecord) -> _ValidBytes:
        path, left, digest = self._path(name), stored.size, hashlib.sha256()
        try:
            with self._open(path.name, os.O_RDONLY) as file:
                while left and (data := file.read(min(left, CHUNK))):
                    digest.update(data)
                    left -= len(data)
        except OSError as error:
            raise CheckpointError(
                f"{path}: it belongs to the checkpoint and cannot be read ({error.strerror or error}); {AGAIN}"
            ) from None
        if left:
            raise CheckpointError(f"{path}: {left:,} bytes are missing at its end; {AGAIN}")
        if digest.hexdigest() != stored.sha256:
            raise CheckpointError(f"{path}: it is damaged: its checksum is wrong; {AGAIN}")
        return _ValidBytes(stored.size, digest)

    def sized(self, sizes: Mapping[str, int], now: int) -> None:
        """Check the bytes of all files against these. Raises CheckpointError."""
        found = {**{name: each.size for name, each in self._grown.items()}, self._now: self._now_size}
        for name, size in {**sizes, self._now: now}.items():
            if found.pop(name, None) != size:
                raise CheckpointError(f"{self._path(name)}: it must have {size:,} bytes by the counts; {AGAIN}")
        for name in found:
            raise CheckpointError(f"{self._path(name)}: a search of this model has no such file; {AGAIN}")

    def size(self, name: str) -> int:
        """The valid bytes of a growing file; 0 without one."""
        return self._grown[name].size if name in self._grown else 0

    def grown(self, name: str, kind: Any) -> Iterator[Array]:
        """The contents of a growing file, as arrays of a kind, at most CHUNK bytes each."""
        return self._read(name, self._grown[name].size, np.dtype(kind))

    @property
    def now_name(self) -> str:
        """The name of the file that each save writes anew."""
        return self._now

    def now(self) -> IO[bytes]:
        """The file that each save writes anew, open at its beginning."""
        return self._open(PREFIX + self._now, os.O_RDONLY)

    def _read(self, name: str, size: int, kind: np.dtype[Any]) -> Iterator[Array]:
        most = CHUNK // kind.itemsize
        with self._open(PREFIX + name, os.O_RDONLY) as file:
            left = size // kind.itemsize
            while left:
                yield np.fromfile(file, kind, min(left, most))
                left -= min(left, most)


def _to_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _hash_of(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
