"""The arrays that grow during a search: vectors, the memo of the tables, and the set of fingerprints seen.

Kernels get only views of these arrays, new ones for each call. The set of fingerprints is one flat array of 64-bit
numbers that is doubled in place. Address space for the largest possible set is reserved in advance, and costs nothing
until it is used. The set therefore grows without a second copy of itself. It uses huge pages if the system has them:
random probes then miss the TLB less often.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterable
from typing import Any

import numpy as np

from checker.engine.kernels import hash_tables
from checker.engine.model import ModelError

LOAD = 0.6  # a fuller set is slower: clusters grow, and a probe then touches a second cache line
RECENT = 1 << 15  # fingerprints remembered in the processor's cache
RESERVED_BITS = 32  # of slots: 2.5e9 states
SPILL = 1 << 16
TAKEN = 1 << 12
LINE = 64  # bytes in a line of the processor's cache

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
        self._reserve(self.size + 1)
        self._data[self.size] = value
        self.size += 1

    def extend(self, values: Iterable[Any]) -> None:
        """Add elements in order."""
        added = list(values)
        self._reserve(self.size + len(added))
        self._data[self.size : self.size + len(added)] = added
        self.size += len(added)

    def _reserve(self, needed: int) -> None:
        if needed > len(self._data):
            larger = aligned_zeros((max(needed, 2 * len(self._data)), *self._data.shape[1:]), self._data.dtype)
            larger[: self.size] = self._data[: self.size]
            self._data = larger


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


class Visited:
    """Open addressing by leading bits, so that growing moves entries in order.

    With `numbered`, for the graph, a second array has the number of each state in the same slot. The fingerprint 0
    means an empty slot; a state with this fingerprint would count as seen, with the same probability as any other
    collision.
    """

    def __init__(self, *, numbered: bool = False, shards: int = 1) -> None:
        bits = RESERVED_BITS - (shards - 1).bit_length()
        self._reserved = reserve(np.uint64, bits)
        self._numbers = reserve(np.uint32, bits) if numbered else np.zeros(0, np.uint32)
        self._bits, self.used = 12, 0
        self._most = min(len(self._reserved), len(self._numbers)) if numbered else len(self._reserved)

    @property
    def slots(self) -> Array:
        """The slots in use, as the kernels take them."""
        return self._reserved[: 1 << self._bits]

    @property
    def numbers(self) -> Array:
        """The numbers of the states in these slots; empty without the graph."""
        return self._numbers[: 1 << self._bits]

    @property
    def shift(self) -> np.uint64:
        """The number of bits by which a fingerprint is shifted to give a slot."""
        return np.uint64(64 - self._bits)

    def reserve(self, more: int) -> None:
        """Make room for this number of further fingerprints. Raises ModelError beyond the address space."""
        while self.used + more > LOAD * (1 << self._bits):
            if 2 << self._bits > self._most:
                raise ModelError("the state space is too large for the address space of this process")
            self._bits += 1
            rooms = [np.empty(size, kind) for size in (TAKEN, SPILL) for kind in (np.uint64, np.uint32)]
            if hash_tables.spread(self.slots, self.numbers, 1 << self._bits - 1, self.shift, *rooms):
                raise ModelError("fingerprints are not spread evenly; this is a defect of the engine")

    def refill(self, fingerprints: Array, states: Array) -> None:
        """Add further fingerprints, all of them new, with the numbers of their states (u32)."""
        self.reserve(len(fingerprints))
        hash_tables.refill(self.slots, self.numbers, self.shift, fingerprints, states)
        self.used += len(fingerprints)


class Shards:
    """The visited set, divided into one part for each worker."""

    def __init__(self, count: int, *, numbered: bool = False) -> None:
        self.parts = [Visited(numbered=numbered, shards=count) for _ in range(count)]

    def refill(self, fingerprints: Array, first: int) -> None:
        """Add further fingerprints, all of them new, of states with consecutive numbers from `first`."""
        owners = (fingerprints & 0xFFFFFFFF) * len(self.parts) >> 32
        for shard, part in enumerate(self.parts):
            own = np.flatnonzero(owners == shard)
            part.refill(fingerprints[own], (own + first).astype(np.uint32))


def aligned_zeros(shape: tuple[int, ...], kind: Any) -> Array:
    """An array of zeros that begins with a cache line, so that no record of it needs two."""
    size = np.dtype(kind).itemsize * math.prod(shape)
    room = np.zeros(size + LINE, np.uint8)
    begin = -room.ctypes.data % LINE
    zeros: Array = room[begin : begin + size].view(kind).reshape(shape)
    return zeros


def reserve(kind: type[np.unsignedinteger[Any]], most: int = RESERVED_BITS) -> Array:
    """Reserve an array with room for a number for 2**most states, or for as many as the system allows.

    Raises ModelError.
    """
    size = np.dtype(kind).itemsize
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    for bits in range(most, 20, -1):
        try:
            memory = mmap.mmap(-1, size << bits, flags=flags)
        except (OSError, ValueError, OverflowError):
            continue
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        return np.frombuffer(memory, kind)
    raise ModelError("this process may not reserve even 16 MiB of memory")
