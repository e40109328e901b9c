"""Paths and files of a simulated disk, with the methods of `pathlib.Path` and of file objects that the node uses.

A path is on the disk of the server whose code runs, since its system has it (`refimpl.system`).
"""

from __future__ import annotations

import fnmatch
import io
import os
from collections.abc import Iterator
from pathlib import PosixPath
from typing import IO, Any, Protocol, cast

from refimpl.system import system
from simulation.world.disk import Directory, Inode, SimulatedDisk
from simulation.world.loop import Process


class DiskSystem(Protocol):
    """The system of a simulated process, as its files see it."""

    disk: SimulatedDisk
    process: Process

    def descriptor(self, path: str, entry: Inode) -> int:
        """Make a descriptor of a file."""

    def forget(self, descriptor: int) -> None:
        """Close a descriptor."""

    def written(self, path: str, inode: Inode, offset: int, data: bytes) -> None:
        """Write bytes."""


def _here() -> DiskSystem:
    return cast(DiskSystem, system())


class SimulatedFile(io.RawIOBase):
    """An open file."""

    def __init__(self, path: str, inode: Inode, mode: str) -> None:
        super().__init__()
        self.name, self.mode = path, mode
        self._inode, self._system = inode, _here()
        self._descriptor = self._system.descriptor(path, inode)
        self._offset = 0

    def fileno(self) -> int:
        """The descriptor of the file in its simulated system."""
        return self._descriptor

    def readable(self) -> bool:
        """Whether the file was opened for reading."""
        return "r" in self.mode or "+" in self.mode

    def writable(self) -> bool:
        """Whether the file was opened for writing."""
        return self.mode not in ("rb", "r")

    def seekable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Reads into a buffer."""
        piece = self._inode.data[self._offset : self._offset + len(buffer)]
        buffer[: len(piece)] = piece
        self._offset += len(piece)
        return len(piece)

    def write(self, data: Any) -> int:
        """Writes bytes; a dead process writes none."""
        data = bytes(data)
        if self._system.process.alive:
            if "a" in self.mode:
                self._offset = len(self._inode.data)
            self._system.written(self.name, self._inode, self._offset, data)
            self._offset += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Moves to an offset."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._offset, os.SEEK_END: len(self._inode.data)}[whence]
        self._offset = start + offset
        return self._offset

    def tell(self) -> int:
        """The offset."""
        return self._offset

    def close(self) -> None:
        """Closes the file."""
        if not self.closed:
            self._system.forget(self._descriptor)
        super().close()


class SimulatedPath(PosixPath):
    """A path on the disk of the server whose code runs."""

    __slots__ = ()

    def open(self, mode: str = "r", buffering: int = -1, encoding: str | None = None, *_: Any, **__: Any) -> IO[Any]:  # type: ignore[override]
        """Opens a file, as the function `open` does. Raises OSError."""
        disk, name = _here().disk, str(self)
        if "x" in mode and disk.find(name) is not None:
            raise FileExistsError(17, os.strerror(17), name)
        missing = disk.find(name) is None
        if mode.startswith("r") or not missing:
            inode = disk.file(name)
            if mode.startswith("w"):
                disk.truncate(inode, 0)
        else:
            inode = disk.make_file(name)
        raw: Any = SimulatedFile(name, inode, mode)
        if buffering != 0:
            raw = io.BufferedReader(raw) if mode in ("r", "rb") else io.BufferedWriter(raw)
        return raw if "b" in mode else io.TextIOWrapper(raw, encoding or "utf-8")

    def exists(self, **_: Any) -> bool:
        """Whether there is a file or directory."""
        return _here().disk.find(str(self)) is not None

    def is_dir(self, **_: Any) -> bool:
        """Whether there is a directory."""
        return isinstance(_here().disk.find(str(self)), Directory)

    def is_file(self, **_: Any) -> bool:
        """Whether there is a file."""
        return isinstance(_here().disk.find(str(self)), Inode)

    def iterdir(self) -> Iterator[SimulatedPath]:  # type: ignore[override]
        """The entries of a directory."""
        return iter([self / name for name in _here().disk.directory(str(self)).names])

    def glob(self, pattern: str, **_: Any) -> Iterator[SimulatedPath]:  # type: ignore[override]
        """The entries of a directory whose names match."""
        return (path for path in self.iterdir() if fnmatch.fnmatchcase(path.name, pattern))

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:  # noqa: ARG002
        """Makes a directory."""
        if self.is_dir() and exist_ok:
            return
        if parents and not self.parent.is_dir():
            self.parent.mkdir(parents=True, exist_ok=True)
        _here().disk.make_directory(str(self))

    def unlink(self, missing_ok: bool = False) -> None:
        """Removes a file."""
        if not (missing_ok and not self.exists()):
            _here().disk.unlink(str(self))

    def replace(self, target: Any) -> SimulatedPath:
        """Renames a file."""
        _here().disk.rename(str(self), str(target))
        return SimulatedPath(target)

    def stat(self, **_: Any) -> os.stat_result:
        """The size of a file; everything else is constant."""
        entry = _here().disk.find(str(self))
        if entry is None:
            raise FileNotFoundError(2, os.strerror(2), str(self))
        size = len(entry.data) if isinstance(entry, Inode) else 0
        return os.stat_result((0o100644 if isinstance(entry, Inode) else 0o40755, 0, 0, 1, 0, 0, size, 0, 0, 0))

    def absolute(self) -> SimulatedPath:
        """The path itself: all simulated paths are absolute."""
        return self
