"""The arrays that grow during a search: vectors, the memo of the tables, and reserved address space.

Kernels get only views of these arrays, new ones for each call.
"""

import math
import mmap
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from checker.engine.kernels import hash_tables
from checker.engine.model import ModelError
from checker.engine.process import free_address_space

LEAST = 1 << 20  # bytes that a reservation must have
LINE = 64  # bytes in a line of the processor's cache
NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)  # Python names it since 3.13

Array = np.ndarray[Any, Any]


class Vector:
    """A growing array of numbers, or of rows of `width` numbers; unused room beyond `size` holds zeros."""

    def __init__(self, dtype: Any, width: int | None = None) -> None:
        self._data = aligned_zeros((64,) if width is None else (64, width), dtype)
        self.size = 0

    @property
    def view(self) -> Array:
        """The elements so far. Writing to it changes them; an append invalidates it."""
        return self._data[: self.size]

    def append(self, value: Any) -> None:
        """Add one element."""
        self.append_zero()
        self._data[self.size - 1] = value

    def append_zero(self) -> None:
        """Add one element of zero, as the unused room holds it."""
        self.size += 1
        if self.size > len(self._data):
            self._data = grown(self._data, self.size)

    def extend(self, values: Iterable[Any]) -> None:
        """Add elements in order."""
        added = list(values)
        self._data = grown(self._data, self.size + len(added))
        self._data[self.size : self.size + len(added)] = added
        self.size += len(added)


class Memo:
    """The hash table from (cell, operation) to (effect, new cell), as `hash_tables.lookup` reads it.

    At most half full: a probe then mostly ends in the cache line where it began.
    """

    def __init__(self) -> None:
        self._bits, self.size = 10, 0
        self.data = self._empty()

    @property
    def _spare(self) -> int:
        """The memo has at least 2**spare slots for each entry."""
        return 3 if self._bits <= 14 else 1

    @property
    def shift(self) -> np.uint64:
        """The number of bits by which a product is shifted to give a slot."""
        return np.uint64(64 - self._bits)

    def get(self, key: int) -> int | None:
        """The value of a key, or None."""
        value = int(hash_tables.find_memo(self.data, self.shift, np.uint64(key)))
        return None if value == int(hash_tables.MISSING) else value

    def insert(self, rows: dict[int, tuple[int, int, int]]) -> None:
        """Add new keys, each with its value, change of the fingerprint and affected bundles."""
        self.size += len(rows)
        if self.size << self._spare > 1 << self._bits:
            while self.size << self._spare > 1 << self._bits:
                self._bits += 1
            old, self.data = self.data.reshape(-1, hash_tables.WORDS), self._empty()
            hash_tables.insert_memo(self.data, self.shift, old[old[:, 0] != 0])
        if rows:
            added = [(key, *row) for key, row in rows.items()]
            hash_tables.insert_memo(self.data, self.shift, np.array(added, np.uint64))

    def _empty(self) -> Array:
        return aligned_zeros((hash_tables.WORDS << self._bits,), np.uint64)


def grown(array: Array, needed: int) -> Array:
    """An array with room for `needed` elements or rows: itself, or a copy of twice the length or more."""
    if needed <= len(array):
        return array
    larger = aligned_zeros((max(needed, 2 * len(array)), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def aligned_zeros(shape: tuple[int, ...], kind: Any) -> Array:
    """An array of zeros that begins with a cache line, so that no record of it needs two."""
    size = np.dtype(kind).itemsize * math.prod(shape)
    room = np.zeros(size + LINE, np.uint8)
    begin = -room.ctypes.data % LINE
    zeros: Array = room[begin : begin + size].view(kind).reshape(shape)
    return zeros


class ReservedArray:
    """An array of zeros in reserved address space, with `most` elements or as many as the system allows.

    It costs no memory until it is used, so that it can be filled in place. It uses huge pages if the system has them:
    random probes then miss the TLB less often. The constructor raises ModelError.
    """

    def __init__(self, kind: type[np.unsignedinteger[Any]], most: int) -> None:
        self._item = np.dtype(kind).itemsize
        self._memory = _reserve(most * self._item)
        self.array: Array = np.frombuffer(self._memory, kind, len(self._memory) // self._item)

    def give_back(self, begin: int, count: int) -> None:
        """Return the memory of these elements, which become 0; `begin` is at the start of a page."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._memory.madvise(mmap.MADV_DONTNEED, begin * self._item, count * self._item)


def _reserve(size: int) -> mmap.mmap:
    """Reserve this number of bytes of address space, or half of it as often as is necessary."""
    # Linux joins neighbours to one area, and refuses a fork if an area that counts is larger than the memory.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE
    size = min(size, free_address_space() // 4)
    while size >= LEAST:
        try:
            memory = mmap.mmap(-1, size, flags=flags)
        except (OSError, ValueError, OverflowError):
            size //= 2
            continue
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        return memory
    raise ModelError("this process may not reserve even 1 MiB of memory")
