"""The blocks of a level that is being filled, and those that wait for long: their rows take less memory, or a temporary
file.

A level may have tens of millions of rows. Only the blocks of the present round and the block that is being filled need
their full width. All others are stored with two bytes for a cell (`move_kernels`). If even that is too much, they go to
an unnamed temporary file, which disappears with the process.

Rules:

- Storing and waking a block gives the same rows, fingerprints and judgements.
- Two files take turns: one has the rest of the present level, and the other the next level. A file is emptied when its
  level is finished.
- Any worker may store or wake a block. Tables do not change at that time.
"""

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from checker.engine.kernels import move_kernels
from checker.engine.states.frontier import Pool, RowBlock
from checker.engine.tables import Tables

AWAKE = 32  # blocks that may wait in full width
IN_MEMORY = 1 << 30  # bytes of stored blocks in memory, at most

Array = np.ndarray[Any, Any]


class StoredBlock(NamedTuple):
    """A block at rest: `size` rows, and where they are.

    The parts are the low halves of places (u16, by column), the high halves of the `wide` columns (u16), fingerprints
    (u64) and judgements (u32). They are in `parts`, or one after the other in a file from the byte `begin`.
    """

    size: int
    wide: tuple[int, ...]
    parts: tuple[Array, ...]
    file: int = -1
    begin: int = 0


Block: TypeAlias = RowBlock | StoredBlock


class _File:
    """An unnamed file of which any thread may write a new part."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the search that owns it)
        self._lock, self._size = threading.Lock(), 0

    @property
    def number(self) -> int:
        return self._file.fileno()

    def append(self, parts: tuple[Array, ...]) -> int:
        """Write arrays one after the other; return where they begin. Raises OSError."""
        size = sum(part.nbytes for part in parts)
        with self._lock:
            begin, self._size = self._size, self._size + size
        position = begin
        for part in parts:
            rest = part.reshape(-1).view(np.uint8)
            while rest.size:
                count = os.pwrite(self.number, rest.data, position)
                rest, position = rest[count:], position + count
        return begin

    def clear(self) -> None:
        os.ftruncate(self.number, 0)
        self._size = 0

    def close(self) -> None:
        self._file.close()


class WaitingBlocks:
    """Stores and wakes blocks; stored blocks may take `in_memory` bytes."""

    def __init__(self, tables: Tables, pool: Pool, in_memory: int = IN_MEMORY) -> None:
        self._tables, self._pool, self._in_memory = tables, pool, in_memory
        self._files: list[_File] = []
        self._memory, self._lock = 0, threading.Lock()
        self.spilled = 0  # bytes written to files so far

    def store(self, block: RowBlock) -> StoredBlock:
        """Store a block, which returns to the pool. Raises OSError."""
        size, columns = block.size, len(self._tables.model.columns)
        low, is_wide = np.empty((columns, size), np.uint16), np.zeros(columns, np.uint8)
        places = self._tables.places.view
        move_kernels.narrow(block.rows, size, places, low, is_wide)
        wide = tuple(int(column) for column in np.flatnonzero(is_wide))
        high = np.empty((len(wide), size), np.uint16)
        for place, column in enumerate(wide):
            move_kernels.narrow_high(block.rows, size, column, places, high[place])
        parts = (low, high, block.fingerprints[:size].copy(), block.judgements[:size].copy())
        self._pool.give(block)
        bytes_needed = sum(part.nbytes for part in parts)
        with self._lock:
            stays = self._memory + bytes_needed <= self._in_memory
            self._memory += bytes_needed if stays else 0
            self.spilled += 0 if stays else bytes_needed
            if not stays and not self._files:
                self._files = [_File(), _File()]
        if stays:
            return StoredBlock(size, wide, parts)
        file = self._files[-1]
        return StoredBlock(size, wide, (), file.number, file.append(parts))

    def append(self, blocks: list[Block], block: RowBlock, *, is_last: bool) -> None:
        """Append a block to a level that is read again, stored if the level is large. Raises OSError."""
        blocks.append(self.store(block) if len(blocks) >= AWAKE and not is_last else block)

    def wake(self, stored: Block) -> RowBlock:
        """The block of a stored one, which is not needed any more; a block that is awake itself."""
        if isinstance(stored, RowBlock):
            return stored
        with self._lock:
            self._memory -= sum(part.nbytes for part in stored.parts)
        return self.read(stored)

    def read(self, stored: StoredBlock) -> RowBlock:
        """A block of the pool with the rows of a stored one. Raises OSError."""
        size, columns = stored.size, len(self._tables.model.columns)
        shapes = [((columns, size), np.uint16), ((len(stored.wide), size), np.uint16), ((size,), np.uint64)]
        parts = list(stored.parts) or _read(stored, [*shapes, ((size,), np.uint32)])
        low, high, fingerprints, judgements = parts
        block = self._pool.take()
        high_of = np.full(columns, len(stored.wide), np.uint32)
        high_of[list(stored.wide)] = np.arange(len(stored.wide))
        move_kernels.widen(low, high, high_of, *self._tables.cells_by_column(), block.rows, size)
        block.fingerprints[:size], block.judgements[:size], block.size = fingerprints, judgements, size
        return block

    @contextmanager
    def opened(self, block: Block) -> Iterator[RowBlock]:
        """A block with its rows, for reading; it stays as it is."""
        if isinstance(block, RowBlock):
            yield block
            return
        awake = self.read(block)
        try:
            yield awake
        finally:
            self._pool.give(awake)

    def begin_level(self) -> None:
        """Begin a level: all stored blocks of the previous one have been woken."""
        if self._files:
            self._files.reverse()
            self._files[-1].clear()

    def close(self) -> None:
        """Close and delete the files."""
        for file in self._files:
            file.close()


def _read(stored: StoredBlock, shapes: list[tuple[tuple[int, ...], Any]]) -> list[Array]:
    parts, position = [], stored.begin
    for shape, kind in shapes:
        part = np.empty(shape, kind)
        rest = part.reshape(-1).view(np.uint8)
        while rest.size:
            count = os.preadv(stored.file, [rest.data], position)
            if not count:
                raise OSError(5, "the temporary file of waiting states is shorter than what was written to it")
            rest, position = rest[count:], position + count
        parts.append(part)
    return parts


class Target(NamedTuple):
    """Rows of a block of the next level: where to build, and the number of the first state there."""

    block: RowBlock
    begin: int
    end: int
    state: int


class NextLevel:
    """The blocks of the next level in the order of their states; the last one is never stored."""

    def __init__(self, tables: Tables, pool: Pool, waiting: WaitingBlocks) -> None:
        self._tables, self._pool, self._waiting = tables, pool, waiting
        self.blocks: list[Block] = []

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(block.size for block in self.blocks)

    def begin(self) -> tuple[RowBlock, Array]:
        """Make the first states, without judgements, the only rows; return their block, and their places among
        `Model.first_rows` (u16). Raises ModelError.
        """
        block, firsts = self._pool.take(), self._tables.first_states()
        block.size, columns = firsts.cells.shape
        block.rows[: block.size, :columns], block.fingerprints[: block.size] = firsts.cells, firsts.fingerprints
        self.blocks = [block]
        return block, firsts.places

    def take(self) -> list[Block]:
        """All blocks; the level is empty afterwards."""
        blocks, self.blocks = self.blocks, []
        return blocks

    def room(self, total: int, state: int) -> list[Target]:
        """Rows for this number of new states, the first of which is `state`; they count after `add`."""
        targets = list[Target]()
        if not total:
            return targets
        last = self.blocks[-1] if self.blocks else self._pool.take()
        assert isinstance(last, RowBlock)
        begin = last.size
        while total:
            if begin == len(last.rows):
                last, begin = self._pool.take(), 0
            end = min(len(last.rows), begin + total)
            targets.append(Target(last, begin, end, state))
            total -= end - begin
            state += end - begin
            begin = end
        return targets

    def add(self, targets: list[Target]) -> None:
        """Count the rows that were built."""
        for into, _, end, _ in targets:
            if not self.blocks or self.blocks[-1] is not into:
                self.blocks.append(into)
            into.size = end

    def full(self) -> list[int]:
        """The places of the full blocks to store, if the level is large."""
        if len(self.blocks) <= AWAKE:
            return []
        return [place for place, block in enumerate(self.blocks[:-1]) if isinstance(block, RowBlock)]

    def store(self, place: int) -> None:
        """Store the block at a place of `full`. Raises OSError."""
        block = self.blocks[place]
        if isinstance(block, RowBlock):
            self.blocks[place] = self._waiting.store(block)


def part_of(targets: list[Target], state: int, size: int) -> list[Target]:
    """The part of `targets` for this number of states from `state`."""
    parts = []
    for block, begin, end, first in targets:
        low, high = max(state, first), min(state + size, first + end - begin)
        if low < high:
            parts.append(Target(block, begin + low - first, begin + high - first, low))
    return parts
