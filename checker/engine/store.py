"""A folder in which a search is kept: files that grow, a file of what is so now, and a head that says what counts.

Rules:
- what was kept stays until the newer is whole: files that grow are only written behind what counts of them, what is so
  now goes to a file of its own, and one renaming of the head, after all is on the disk, makes the newer one count;
- everything that is read was checked before: the head by its own checksum, each file by the one that stands there;
- nothing that is read is ever executed: files hold numbers, the head is JSON;
- one process at a time uses a folder, as long as the system can lock one.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from checker.engine.checkpoint import CheckpointError, Json

FORMAT = 1
HEAD, NEW, PREFIX = "checkpoint.json", ".new", "checkpoint-"  # of all names in the folder that are ours
CHUNK = 1 << 22  # bytes read or hashed at a time
AGAIN = "name another folder, or remove this one to begin anew"

Array = np.ndarray[Any, Any]
Source = Callable[[int], Iterable[Array]]  # what is there from so many bytes on


class _Kept(NamedTuple):
    """What counts of a file: so many bytes, and their hash."""

    size: int
    hash: Any

    def stored(self) -> Json:
        return {"size": self.size, "sha256": self.hash.hexdigest()}


class Store:
    """One folder: `open` it, `load` what is there, then `save` as often as wanted, and `close` it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._grown: dict[str, _Kept] = {}  # what counts, by name
        self._names: set[str] = set()  # of all files that were written, also where that failed
        self._number = 0  # of the last head, whole or not
        self._lock: int | None = None

    def open(self) -> None:
        """Make the folder if need be, and have it for us alone. Raises CheckpointError."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.folder, os.O_RDONLY)
            if not os.access(self.folder, os.W_OK):
                raise PermissionError("nothing may be written there")
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{self.folder}: no checkpoint can be kept there ({error})") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CheckpointError(f"{self.folder}: another search is kept there; name another folder") from None
        except OSError:
            pass  # a file system that cannot lock

    def close(self) -> None:
        """Leave the folder to others."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # -- writing ---------------------------------------------------------------------------------------------

    def save(self, said: Json, growing: Mapping[str, Source], now: Iterable[Array]) -> None:
        """Keep what grew, what is so now, and what is `said` of it. Raises OSError; what was kept before then still is.

        `growing` gives for each name what comes after so many bytes, `now` any arrays.
        """
        self._number += 1
        name = f"now-{self._number}"
        nothing = _Kept(0, hashlib.sha256())
        grown = {each: self._write(each, self._grown.get(each, nothing), more) for each, more in growing.items()}
        files = {**grown, name: self._write(name, nothing, lambda _: now)}
        head = {
            "format": FORMAT,
            "number": self._number,
            "now": name,
            "files": {each: kept.stored() for each, kept in files.items()},
            "search": said,
        }
        self._put_head(json.dumps(head) + "\n")
        self._grown = grown
        for other in self.folder.glob(f"{PREFIX}now-*"):
            if other != self._path(name):
                with suppress(OSError):  # it takes room, and does no other harm
                    other.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self.folder / f"{PREFIX}{name}"

    def _write(self, name: str, before: _Kept, more: Source) -> _Kept:
        """Write behind what counts of a file."""
        size, digest = before.size, before.hash.copy()
        self._names.add(name)
        path = self._path(name)
        with path.open("r+b" if size else "wb") as file:
            file.seek(size)
            for part in more(size):
                data = np.ascontiguousarray(part).reshape(-1).view(np.uint8).data
                file.write(data)
                digest.update(data)
                size += len(data)
            _to_disk(file)
        return _Kept(size, digest)

    def _put_head(self, text: str) -> None:
        path = self.folder / HEAD
        new = path.with_suffix(NEW)
        with new.open("wb") as file:
            file.write(f"{_hash_of(text)}\n{text}".encode())
            _to_disk(file)
        new.replace(path)
        with suppress(OSError):  # it counts from here on, also where the system cannot write out a folder
            folder = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def remove(self) -> None:
        """Remove what is kept; the folder stays. Raises OSError."""
        head = self.folder / HEAD
        head.unlink(missing_ok=True)
        head.with_suffix(NEW).unlink(missing_ok=True)
        for path in [self._path(name) for name in self._names] + list(self.folder.glob(f"{PREFIX}now-*")):
            path.unlink(missing_ok=True)

    # -- reading ---------------------------------------------------------------------------------------------

    def load(self) -> Json:
        """What was said when the folder was last written; None if nothing is kept. Raises CheckpointError.

        All files are whole when this returns.
        """
        path = self.folder / HEAD
        try:
            text = path.read_text("utf-8")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{path}: it cannot be read ({error})") from None
        checksum, _, text = text.partition("\n")
        if checksum != _hash_of(text):
            raise CheckpointError(f"{path}: it is damaged, or no checkpoint: its checksum is wrong; {AGAIN}")
        head = json.loads(text)
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise CheckpointError(f"{path}: it is not in format {FORMAT}, which this version reads; {AGAIN}")
        self._number, self._now = head["number"], head["now"]
        for name, stored in head["files"].items():
            self._grown[name] = self._checked(name, stored)
            self._names.add(name)
        del self._grown[self._now]
        return head["search"]

    def _checked(self, name: str, stored: Json) -> _Kept:
        path, left, digest = self._path(name), stored["size"], hashlib.sha256()
        try:
            with path.open("rb") as file:
                while left and (data := file.read(min(left, CHUNK))):
                    digest.update(data)
                    left -= len(data)
        except OSError as error:
            raise CheckpointError(f"{path}: it belongs to the checkpoint and cannot be read ({error})") from None
        if left:
            raise CheckpointError(f"{path}: {left:,} bytes are missing at its end; {AGAIN}")
        if digest.hexdigest() != stored["sha256"]:
            raise CheckpointError(f"{path}: it is damaged: its checksum is wrong; {AGAIN}")
        return _Kept(stored["size"], digest)

    def grown(self, name: str, kind: Any) -> Iterator[Array]:
        """What is kept in a file that grows, as arrays of a kind, some millions of bytes at a time."""
        return self._read(name, self._grown[name].size, np.dtype(kind))

    def now(self) -> IO[bytes]:
        """The file of what is so now, to be read from its beginning."""
        return self._path(self._now).open("rb")

    def _read(self, name: str, size: int, kind: np.dtype[Any]) -> Iterator[Array]:
        most = CHUNK // kind.itemsize
        with self._path(name).open("rb") as file:
            left = size // kind.itemsize
            while left:
                yield np.fromfile(file, kind, min(left, most))
                left -= min(left, most)


def _to_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
