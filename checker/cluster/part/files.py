"""The saved data of one part: files that grow, and one file that each save writes anew.

The driver keeps the record of a save: sizes and checksums. A file is read only up to the size in the record, so that a
save that did not end has no effect. Files hold numbers; nothing in them is ever executed.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from checker.engine.checkpoint import CheckpointError
from checker.engine.checkpoint.head import FileRecord

CHUNK = 1 << 22  # bytes
SEEN, ORIGINS, QUESTIONS = "seen", "origins", "questions"
GROWING = (SEEN, ORIGINS, QUESTIONS)

Array = np.ndarray[Any, Any]


class PartFiles:
    """The folder of one part."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sizes = dict.fromkeys(GROWING, 0)
        self._hashes = {name: hashlib.sha256() for name in GROWING}

    def clear(self) -> None:
        """Create the folder, and remove all files there. Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in self.folder.iterdir():
            path.unlink(missing_ok=True)
        self._sizes = dict.fromkeys(GROWING, 0)
        self._hashes = {name: hashlib.sha256() for name in GROWING}

    def size(self, name: str) -> int:
        """The bytes of a growing file."""
        return self._sizes[name]

    def append(self, name: str, parts: Iterable[Array]) -> None:
        """Append arrays to a growing file. Raises OSError."""
        with self._open(name, os.O_RDWR | os.O_CREAT) as file:
            file.seek(self._sizes[name])
            for part in parts:
                data = np.ascontiguousarray(part).reshape(-1).view(np.uint8).data
                file.write(data)
                self._hashes[name].update(data)
                self._sizes[name] += len(data)

    def record(self, number: int, now: Iterable[Array]) -> dict[str, FileRecord]:
        """Write the file of this save, and all others to disk; remove the files of saves before the last one."""
        name, digest, size = f"now-{number}", hashlib.sha256(), 0
        with self._open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC) as file:
            for part in now:
                data = np.ascontiguousarray(part).reshape(-1).view(np.uint8).data
                file.write(data)
                digest.update(data)
                size += len(data)
            _to_disk(file)
        for each in GROWING:
            with self._open(each, os.O_RDWR | os.O_CREAT) as file:
                _to_disk(file)
        for path in self.folder.glob("now-*"):
            if path.name not in {name, f"now-{number - 1}"}:
                path.unlink(missing_ok=True)
        grown = {each: FileRecord(self._sizes[each], self._hashes[each].hexdigest()) for each in GROWING}
        return {**grown, "now": FileRecord(size, digest.hexdigest())}

    def restore(self, number: int, files: dict[str, FileRecord]) -> IO[bytes]:
        """Go back to a save, and return its own file, open at the beginning. Raises CheckpointError."""
        for name in GROWING:
            self._hashes[name] = self._checked(name, files[name])
            self._sizes[name] = files[name].size
        self._checked(f"now-{number}", files["now"])
        return self._open(f"now-{number}", os.O_RDONLY)

    def read(self, name: str, kind: Any) -> Iterator[Array]:
        """The contents of a growing file, as arrays of at most CHUNK bytes."""
        item = np.dtype(kind).itemsize
        left = self._sizes[name] // item
        if not left:
            return
        with self._open(name, os.O_RDONLY) as file:
            while left:
                yield np.fromfile(file, kind, min(left, CHUNK // item))
                left -= min(left, CHUNK // item)

    def _checked(self, name: str, saved: FileRecord) -> Any:
        path, left, digest = self.folder / name, saved.size, hashlib.sha256()
        try:
            with self._open(name, os.O_RDONLY | (os.O_CREAT if not left else 0)) as file:
                while left and (data := file.read(min(left, CHUNK))):
                    digest.update(data)
                    left -= len(data)
        except OSError as error:
            raise CheckpointError(f"{path}: it belongs to the search and cannot be read ({error.strerror})") from None
        if left or digest.hexdigest() != saved.sha256:
            raise CheckpointError(f"{path}: it is damaged: its size or its checksum is wrong")
        return digest

    def _open(self, name: str, flags: int) -> IO[bytes]:
        """Open a file, which must be a regular one with a single name. Raises OSError."""
        number = os.open(self.folder / name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            os.close(number)
            raise OSError(0, "it must be a regular file without other links")
        return cast("IO[bytes]", os.fdopen(number, "r+b" if flags & os.O_RDWR else "rb"))


def _to_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())
