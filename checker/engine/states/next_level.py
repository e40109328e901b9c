"""The next level of a search while it is filled: where rows are built, and which blocks are stored."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checker.engine.contract import first_row
from checker.engine.states.frontier import Pool, RowBlock
from checker.engine.states.waiting import AWAKE, Block, WaitingBlocks
from checker.engine.tables import Tables


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

    def begin(self) -> RowBlock:
        """Make the initial state, without a judgement, the only row; return its block. Raises ModelError."""
        block = self._pool.take()
        cells = self._tables.row(first_row(self._tables.model))
        block.rows[0, : len(cells)], block.size = cells, 1
        block.fingerprints[0] = self._tables.fingerprints(np.array([cells]))[0]
        self.blocks = [block]
        return block

    def take(self) -> list[Block]:
        """All blocks; the level is empty afterwards."""
        taken, self.blocks = self.blocks, []
        return taken

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
    found = []
    for block, begin, end, first in targets:
        low, high = max(state, first), min(state + size, first + end - begin)
        if low < high:
            found.append(Target(block, begin + low - first, begin + high - first, low))
    return found
