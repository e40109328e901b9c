"""The visited set: the fingerprints of all states seen, in shards.

A shard is one flat array that is doubled in place. Address space for the largest possible set is reserved in advance
and costs nothing until it is used, so that the set grows without a second copy of itself. A slot has eight bytes up to
2**27 slots, and five beyond (`packed_set`): at a billion states, the processor's caches are of no help anyway, and
memory is what ends a search.

Rules:

- The fingerprint 0 means an empty slot. A state with this fingerprint counts as seen, with the same probability as any
  other collision.
- A shard grows only in `reserve` and `refill`. `growth` predicts the bytes, so that a search ends before its limit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checker.engine.arrays import ReservedArray
from checker.engine.kernels import hash_tables, packed_set
from checker.engine.model import ModelError
from checker.engine.process import UNLIMITED

LOAD = 0.6  # a fuller set is slower: clusters grow, and a probe then touches a second cache line
LEAST_BITS = 12
RESERVED_BITS = 32  # of slots, in all shards: 2.5e9 states
PACKED_BITS = 28  # a set of this number of slots, and any larger one, has five bytes for each
SPILL = 1 << 16
TAKEN = 1 << 12
CHUNK = 1 << 20  # slots that are packed at a time

Array = np.ndarray[Any, Any]


class Visited:
    """A shard of the visited set. With `numbered`, for the graph, it also has the number of each state.

    A numbered set and the stash of a packed one are never `packable`.
    """

    def __init__(self, *, numbered: bool = False, shards: int = 1, packable: bool = True) -> None:
        self._most_bits = RESERVED_BITS - (shards - 1).bit_length()
        self._packable = packable and not numbered
        self._slots = ReservedArray(np.uint64, 1 << (PACKED_BITS - 1 if self._packable else self._most_bits))
        self._numbers = ReservedArray(np.uint32, 1 << self._most_bits) if numbered else None
        self._packed: ReservedArray | None = None
        self._stash: Visited | None = None
        self._bits, self.used = LEAST_BITS, 0

    @property
    def slots(self) -> Array:
        """The slots in use, as the kernels take them, of a set that is not packed."""
        return self._slots.array[: 1 << self._bits]

    @property
    def numbers(self) -> Array:
        """The numbers of the states in these slots; empty without the graph."""
        return np.zeros(0, np.uint32) if self._numbers is None else self._numbers.array[: 1 << self._bits]

    @property
    def shift(self) -> np.uint64:
        """The number of bits by which a fingerprint is shifted to give a slot."""
        return np.uint64(64 - self._bits)

    @property
    def is_packed(self) -> bool:
        """Whether a slot has five bytes."""
        return self._packed is not None

    @property
    def nbytes(self) -> int:
        """The bytes of the set, without its stash."""
        return self._size(self._bits)

    def growth(self, more: int) -> int:
        """The bytes that `reserve` will add for this number of further fingerprints; UNLIMITED if it will fail."""
        bits = self._bits_for(more)
        if bits > self._greatest():
            return UNLIMITED
        return self._size(bits) - self.nbytes if bits > self._bits else 0

    def reserve(self, more: int) -> None:
        """Make room for this number of further fingerprints. Raises ModelError beyond the address space."""
        bits = self._bits_for(more)
        if bits > self._greatest():
            raise ModelError("the state space is too large for the address space of this process")
        while self._bits < bits:
            if self._packable and self._bits + 1 == PACKED_BITS:
                self._pack()
            elif self._packed is not None and self._stash is not None:
                self._double_packed(self._packed, self._stash)
            else:
                self._double()
        if self._stash is not None:
            self._stash.reserve(more)

    def probe(
        self, shard: int, shards: int, found: Array, size: int, picks: Array, is_new: Array, slots: Array | None = None
    ) -> int:
        """Add those of the fingerprints found[:size] that belong to a shard, this one, for which room is reserved.

        is_new[i] becomes 1 for the first of each new one, and 0 otherwise; `picks` is room for `size` positions (u32).
        With `slots`, for the graph, slots[i] becomes the slot of found[i]. Returns the number of new ones.
        """
        rest = (shard, shards, found, size, picks, is_new)
        if self._packed is None or self._stash is None:
            added = int(hash_tables.probe(self.slots, self.shift, *rest, slots))
        else:
            stash = self._stash
            counts = int(packed_set.probe_packed(self._packed.array, self.shift, stash.slots, stash.shift, *rest))
            added = counts & 0xFFFFFFFF
            stash.used += counts >> 32
        self.used += added
        return added

    def refill(self, fingerprints: Array, states: Array) -> None:
        """Add further fingerprints, all of them new, with the numbers of their states (u32)."""
        self.reserve(len(fingerprints))
        if self._packed is None or self._stash is None:
            hash_tables.refill(self.slots, self.numbers, self.shift, fingerprints, states)
        else:
            waiting = self._put(self._packed, fingerprints)
            self._stash.refill(waiting, np.zeros(len(waiting), np.uint32))
        self.used += len(fingerprints)

    # -- growing ---------------------------------------------------------------------------------------------

    def _bits_for(self, more: int) -> int:
        bits = self._bits
        while self.used + more > LOAD * (1 << bits):
            bits += 1
        return bits

    def _size(self, bits: int) -> int:
        """The bytes of a set of this size."""
        if self._packable and bits >= PACKED_BITS:
            return packed_set.BYTES << bits
        return (8 if self._numbers is None else 12) << bits

    def _greatest(self) -> int:
        """The greatest size of a set in the address space that is reserved; without bound for one not yet packed."""
        if self._packed is not None:
            slots = (len(self._packed.array) - 8) // packed_set.BYTES - packed_set.SPARE
        else:
            slots = len(self._slots.array if self._numbers is None else self._numbers.array)
            if self._packable and slots == 1 << PACKED_BITS - 1:
                return self._most_bits
        return slots.bit_length() - 1

    def _double(self) -> None:
        self._bits += 1
        rooms = [np.empty(size, kind) for size in (TAKEN, SPILL) for kind in (np.uint64, np.uint32)]
        if hash_tables.spread(self.slots, self.numbers, 1 << self._bits - 1, self.shift, *rooms):
            raise ModelError("fingerprints are not spread evenly; this is a defect of the engine")

    def _pack(self) -> None:
        """Move all fingerprints to a set with five bytes for each slot; their old memory is given back on the way."""
        room = ReservedArray(np.uint8, packed_set.BYTES * ((1 << self._most_bits) + packed_set.SPARE) + 8)
        size, self._bits, self._packed = 1 << self._bits, PACKED_BITS, room
        waiting = list[Array]()
        for begin in range(0, size, CHUNK):
            chunk = self._slots.array[begin : begin + CHUNK]
            waiting.append(self._put(room, chunk[chunk != 0]))
            self._slots.give_back(begin, len(chunk))
        self._begin_stash(waiting)

    def _double_packed(self, room: ReservedArray, stash: Visited) -> None:
        """Double a packed set in place, from the last slot down; every fingerprint moves to a later slot."""
        shift, end = self.shift, (1 << self._bits) + packed_set.SPARE
        self._bits += 1
        room_for_moves, waiting = np.empty(TAKEN, np.uint64), list[Array]()
        while end:
            begin = max(0, end - TAKEN)
            count = int(packed_set.take_packed(room.array, shift, begin, end, room_for_moves))
            waiting.append(self._put(room, room_for_moves[:count]))
            end = begin
        # Most distances that were too long are not any more, and the stash is consulted only after the longest.
        waiting.append(self._put(room, stash.slots[stash.slots != 0]))
        self._begin_stash(waiting)

    def _begin_stash(self, waiting: list[Array]) -> None:
        """Put all fingerprints of the stash into a new one; in parts they would not be spread evenly."""
        fingerprints = np.concatenate(waiting)
        self._stash = Visited(packable=False)
        self._stash.refill(fingerprints, np.zeros(len(fingerprints), np.uint32))

    def _put(self, room: ReservedArray, fingerprints: Array) -> Array:
        """Add new fingerprints to a packed set, and return those for the stash."""
        stashed = np.empty(len(fingerprints), np.uint64)
        return stashed[: int(packed_set.put_packed(room.array, self.shift, fingerprints, stashed))].copy()


class Shards:
    """The visited set of a search, or of one of its `parts`, divided into one shard for each worker."""

    def __init__(self, count: int, *, numbered: bool = False, parts: int = 1) -> None:
        self.parts = [Visited(numbered=numbered, shards=count * parts) for _ in range(count)]

    @property
    def nbytes(self) -> int:
        """The bytes of all parts, without their stashes."""
        return sum(part.nbytes for part in self.parts)

    def growth(self, more: int) -> int:
        """The bytes that all parts will grow by for this number of further fingerprints, divided evenly."""
        return sum(part.growth(-(-more // len(self.parts))) for part in self.parts)

    def refill(self, fingerprints: Array, first: int) -> None:
        """Add further fingerprints, all of them new, of states with consecutive numbers from `first`."""
        owners = (fingerprints & 0xFFFFFFFF) * len(self.parts) >> 32
        for shard, part in enumerate(self.parts):
            places = np.flatnonzero(owners == shard)
            part.refill(fingerprints[places], (places + first).astype(np.uint32))
