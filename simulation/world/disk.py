"""A disk in memory that distinguishes durable data from written data.

Rules this module keeps:

- A write, and a change of a file's size, is durable after a sync of the file. A name is durable after a sync of its
  directory.
- When the power fails, the seed decides about everything else: any of the writes that were not synced may be lost, and
  a write may be torn at the boundaries of sectors. The disk writes a sector whole, as it was at one time, so a later
  write is not there without an earlier one of the same sector. Of the changes of names in a directory a prefix
  remains, as a file system with a journal keeps it.
- When only the process ends, everything remains.
- Every changing operation is counted, so that a fault can be placed at any of them.
- A failed sync leaves the state of its file unknown until the power fails.
"""

from __future__ import annotations

import errno
import os
import random
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")

SECTOR = 512
"""Bytes that a disk writes entirely or not at all."""
_SHARES = (0.1, 0.5, 0.9)


class Entry(Generic[T], ABC):
    """A file or a directory: the operations on it that are not durable, oldest first, after `synced` that are."""

    __slots__ = ("pending", "synced")

    def __init__(self) -> None:
        self.pending: list[T] = []
        self.synced = 0

    @property
    def done(self) -> int:
        """The number of operations so far, durable or not."""
        return self.synced + len(self.pending)

    def sync(self, done: int) -> None:
        """Makes the first `done` operations durable."""
        count = max(0, done - self.synced)
        for operation in self.pending[:count]:
            self._make_durable(operation)
        del self.pending[:count]
        self.synced += count

    @abstractmethod
    def _make_durable(self, operation: T) -> None:
        """Carries an operation out on the durable state."""


class Inode(Entry[tuple[int, bytes | None]]):
    """The contents of a file, as written and as durable. Operations are (offset, bytes), or (size, None)."""

    __slots__ = ("data", "durable")

    def __init__(self) -> None:
        super().__init__()
        self.data = bytearray()
        self.durable = bytearray()

    def write(self, offset: int, data: bytes) -> None:
        """Writes bytes; none are no change."""
        if data:
            _put(self.data, offset, data)
            self.pending.append((offset, data))

    def truncate(self, size: int) -> None:
        """Changes the size."""
        _resize(self.data, size)
        self.pending.append((size, None))

    def _make_durable(self, operation: tuple[int, bytes | None]) -> None:
        offset, data = operation
        _resize(self.durable, offset) if data is None else _put(self.durable, offset, data)

    def lose(self, chance: random.Random) -> None:
        """Loses changes that are not durable. The shares of what is lost and torn differ between failures.

        A sector reaches the disk as the file was after one of its writes, with all earlier changes.
        """
        lost, torn = chance.choice(_SHARES), chance.choice(_SHARES)
        content = bytearray(self.durable)
        for offset, data in self.pending:
            _resize(content, offset) if data is None else _put(content, offset, data)
            if chance.random() < lost:
                continue
            if data is None:
                _resize(self.durable, offset)
                continue
            is_torn = chance.random() < torn
            for sector in range(offset // SECTOR, (offset + len(data) - 1) // SECTOR + 1):
                if not is_torn or chance.random() < 0.5:
                    start, end = sector * SECTOR, (sector + 1) * SECTOR
                    rest = min(end, len(self.durable)) - start
                    _put(self.durable, start, bytes(content[start:end]).ljust(rest, b"\0"))
        self.pending.clear()
        self.data = bytearray(self.durable)


def _resize(content: bytearray, size: int) -> None:
    if size < len(content):
        del content[size:]
    else:
        content += bytes(size - len(content))


def _put(content: bytearray, offset: int, data: bytes) -> None:
    if offset > len(content):
        content += bytes(offset - len(content))
    content[offset : offset + len(data)] = data


Changes: TypeAlias = tuple[tuple[str, "Inode | Directory | None"], ...]
"""Names, and what they become; None: removed."""


class Directory(Entry[Changes]):
    """The names in a directory, as they are and as durable."""

    __slots__ = ("durable", "names")

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, Inode | Directory] = {}
        self.durable: dict[str, Inode | Directory] = {}

    def change(self, *changes: tuple[str, Inode | Directory | None]) -> None:
        """Adds or removes names, in one operation."""
        _change(self.names, changes)
        self.pending.append(changes)

    def _make_durable(self, operation: Changes) -> None:
        _change(self.durable, operation)

    def settle(self) -> None:
        """Makes everything durable, here and below."""
        self.sync(self.done)
        for entry in self.names.values():
            entry.settle() if isinstance(entry, Directory) else entry.sync(entry.done)

    def lose(self, chance: random.Random) -> None:
        """Loses changes that are not durable, in this directory and below."""
        for changes in self.pending[: chance.randrange(len(self.pending) + 1)]:
            _change(self.durable, changes)
        self.pending.clear()
        self.names = dict(self.durable)
        for entry in self.names.values():
            entry.lose(chance)


def _change(names: dict[str, Inode | Directory], changes: Changes) -> None:
    for name, entry in changes:
        if entry is None:
            names.pop(name, None)
        else:
            names[name] = entry


class SimulatedDisk:
    """The disk of one machine.

    `operations` counts changing operations. `on_operation` is called before each with its name, and may raise OSError
    or PowerOff. `full`: no operation that needs space succeeds. `digest` changes with every operation.
    """

    def __init__(self, seed: str) -> None:
        self.root = Directory()
        self.operations = 0
        self.full = False
        self.digest = 0
        self.chance = random.Random(f"{seed}/disk")
        self.on_operation: Callable[[str], None] = lambda _: None
        self._locks: set[str] = set()

    # Names.

    def find(self, path: str) -> Inode | Directory | None:
        """The file or directory with this absolute path."""
        place: Inode | Directory | None = self.root
        for name in path.split("/")[1:]:
            if not isinstance(place, Directory):
                return None
            place = place.names.get(name) if name else place
        return place

    def directory(self, path: str) -> Directory:
        """The directory with this path. Raises FileNotFoundError and NotADirectoryError."""
        place = self.find(path)
        if place is None:
            raise _error(errno.ENOENT, path)
        if not isinstance(place, Directory):
            raise _error(errno.ENOTDIR, path)
        return place

    def file(self, path: str) -> Inode:
        """The file with this path. Raises FileNotFoundError and IsADirectoryError."""
        place = self.find(path)
        if place is None:
            raise _error(errno.ENOENT, path)
        if isinstance(place, Directory):
            raise _error(errno.EISDIR, path)
        return place

    def make_directory(self, path: str) -> None:
        """Makes a directory. Raises FileExistsError."""
        parent, _, name = path.rpartition("/")
        names = self.directory(parent or "/")
        if name in names.names:
            raise _error(errno.EEXIST, path)
        self._operate("mkdir", path.encode(), needs_space=True)
        names.change((name, Directory()))

    def make_file(self, path: str) -> Inode:
        """Makes an empty file in place of any other."""
        parent, _, name = path.rpartition("/")
        names = self.directory(parent or "/")
        self._operate("create", path.encode(), needs_space=True)
        inode = Inode()
        names.change((name, inode))
        return inode

    def unlink(self, path: str) -> None:
        """Removes a file."""
        self.file(path)
        parent, _, name = path.rpartition("/")
        self._operate("unlink", path.encode())
        self.directory(parent or "/").change((name, None))

    def rename(self, old: str, new: str) -> None:
        """Gives a file another name in its directory, in place of any other file."""
        inode = self.file(old)
        parent, _, name = old.rpartition("/")
        folder, _, target = new.rpartition("/")
        if folder != parent:
            raise _error(errno.EXDEV, new)
        self._operate("rename", new.encode())
        self.directory(parent).change((name, None), (target, inode))

    # Contents.

    def write(self, inode: Inode, offset: int, data: bytes) -> None:
        """Writes bytes into a file."""
        self._operate("write", data, needs_space=True)
        inode.write(offset, data)

    def truncate(self, inode: Inode, size: int) -> None:
        """Changes the size of a file."""
        self._operate("truncate", b"%d" % size, needs_space=size > len(inode.data))
        inode.truncate(size)

    def sync(self, entry: Inode | Directory) -> None:
        """Makes a file, or the names in a directory, durable as they are when the call begins."""
        count = entry.done
        self._operate("sync", b"")
        entry.sync(count)

    def _operate(self, name: str, detail: bytes, *, needs_space: bool = False) -> None:
        self.operations += 1
        self.digest = zlib.crc32(detail, zlib.crc32(name.encode(), self.digest))
        self.on_operation(name)
        if needs_space and self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    # Ends.

    def lock(self, path: str) -> None:
        """Locks a directory. Raises BlockingIOError."""
        if path in self._locks:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)
        self._locks.add(path)

    def unlock(self, path: str) -> None:
        """Unlocks a directory."""
        self._locks.discard(path)

    def process_ended(self) -> None:
        """The process that used the disk has ended: its locks are free."""
        self._locks.clear()

    def settle(self) -> None:
        """Makes everything durable."""
        self.root.settle()

    def power_failed(self, keep: str) -> None:
        """Loses changes that are not durable, except in the folder `keep` of the root."""
        self._locks.clear()
        folder = self.root.names.pop(keep)
        self.root.durable.pop(keep)
        self.root.lose(self.chance)
        self.root.names[keep] = self.root.durable[keep] = folder


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
