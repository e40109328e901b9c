"""The rounds of one part of a search: expansion of its rows, its share of the visited set, and its new rows.

A round of the whole search is some pieces of a level (`pieces`). Each part expands its own rows of it, sends each
fingerprint to its owner, adds the fingerprints that it owns to its visited set, and builds the rows of its new states.
Several rounds may be under way: the second pass of a round can follow the first pass of a later one.

Rules:

- An owner adds the candidates of all parts in the order of the pieces, so that the first parent in the order of the
  whole level gets a state, as in the plain engine.
- States have consecutive numbers inside a part, in the order of the whole search. A parent is always at the same part
  as its children, so that a path needs no other part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from checker.engine.evaluator import Evaluator, PendingRows
from checker.engine.kernels import build_kernels, move_kernels
from checker.engine.result import Exploration
from checker.engine.search_state import MoveCounts
from checker.engine.states.frontier import OriginLog, Pool, RowBlock
from checker.engine.states.next_level import NextLevel, part_of
from checker.engine.states.visited import Visited
from checker.engine.states.waiting import Block, WaitingBlocks
from checker.engine.tables import Tables
from checker.engine.worker import Slice, Worker

SLICE = 1 << 14  # rows
JOINT_CACHE = 1 << 12  # slots

Array = np.ndarray[Any, Any]


class Expansion(NamedTuple):
    """A round after its first pass: slices of rows, and their successors one after the other.

    `found` has the fingerprints, and `ends` the position after the last successor of each own piece.
    """

    slices: list[Slice]
    found: Array
    ends: Array


class PartRounds:
    """The data of one part, and the passes of its rounds. The next level is in `following`."""

    def __init__(self, tables: Tables, result: Exploration, parts: int) -> None:
        self.tables, self.parts = tables, parts
        self.pool, self.history = Pool(len(result.model.columns)), OriginLog()
        self.visited = Visited(shards=parts)
        self.evaluator, self.counts = Evaluator(tables, result), MoveCounts(tables)
        self.transitions, self.deadlocks, self.expanded = 0, 0, 0
        self.candidates = 0  # of the last round: fingerprints for this part of the visited set
        self.waiting = WaitingBlocks(tables, self.pool)
        self.level: list[Block] = []
        self.following = NextLevel(tables, self.pool, self.waiting)
        self._worker = Worker(tables, 0, JOINT_CACHE, self.visited, filters=True)
        self._spare: list[Slice] = []
        self._next, self._built = 0, 0  # rows of the level that were expanded, and of those whose children are built
        self._base = 0  # the number of the first row in `level`
        self._released = 0  # rows of the level whose blocks are in use again

    def close(self) -> None:
        """Delete the temporary files."""
        self.history.close()
        self.waiting.close()

    def begin(self) -> None:
        """Add the initial state, the first of the next level."""
        block = self.following.begin()
        self.visited.refill(block.fingerprints[:1], np.zeros(1, np.uint32))
        self.history.append(np.zeros(1, np.uint32), np.zeros(1, np.uint16), block.fingerprints[:1])
        self.evaluator.judge_first(block)
        self._settle()

    def advance(self) -> int:
        """Make the next level the present one; return its number of rows."""
        for block in self.level:
            self._forget_block(block)
        self.level = self.following.take()
        self.waiting.begin_level()
        self._next = self._built = self._released = 0
        rows = sum(block.size for block in self.level)
        self._base = self.history.size - rows
        return rows

    def release_all(self) -> None:
        """Forget the rows of both levels."""
        self.level += self.following.take()
        self.advance()

    def level_rows(self) -> tuple[Array, Array]:
        """The rows and the judgements of the whole level."""
        rows, judgements = list[Array](), list[Array]()
        for block in self.level:
            with self.waiting.opened(block) as awake:
                rows.append(awake.rows[: block.size].copy())
                judgements.append(awake.judgements[: block.size].copy())
        return np.concatenate(rows), np.concatenate(judgements)

    def replace_level(self, rows: Array, judgements: Array) -> None:
        """Make these rows, the newest states, the present level. Their width is that of a block."""
        self.release_all()
        begin = 0
        while begin < len(rows):
            block = self.pool.take()
            block.size = min(len(block.rows), len(rows) - begin)
            own = slice(begin, begin + block.size)
            block.rows[: block.size], block.judgements[: block.size] = rows[own], judgements[own]
            block.fingerprints[: block.size] = self.tables.fingerprints(rows[own, : len(self.tables.model.columns)])
            begin += block.size
            self.waiting.append(self.following.blocks, block, is_last=begin == len(rows))
        self.advance()

    def replace_visited(self, fingerprints: Array) -> None:
        """Make these fingerprints the visited set."""
        self.visited = Visited(shards=self.parts)
        self.visited.refill(fingerprints, np.zeros(len(fingerprints), np.uint32))

    def forget_hits(self) -> None:
        """Forget the findings so far, whose states are about to get other numbers."""
        self.evaluator.recorded.clear()

    def forget_counts(self) -> None:
        """Count from here on."""
        self.transitions = self.deadlocks = self.expanded = 0
        for counts in (self.counts.fired, self.counts.reached, *self.evaluator.tallies):
            counts[:] = 0

    # -- pass one --------------------------------------------------------------------------------------------

    def expand(self, sizes: Array) -> Expansion:
        """Expand the next rows of the level, in pieces of these sizes."""
        slices = self._generated(int(sizes.sum()))
        sources = [np.zeros(0, np.int64)]
        for part in slices:
            self.transitions += part.transitions
            sources.append((part.origins[: part.size] & move_kernels.SOURCE_BITS).astype(np.int64) + part.base)
        self._count()
        ends = np.searchsorted(np.concatenate(sources), self._base + self._next + np.cumsum(sizes))
        self._next += int(sizes.sum())
        found = [np.zeros(0, np.uint64), *(part.found[: part.size] for part in slices)]
        return Expansion(slices, np.concatenate(found), ends)

    def find_ends(self, rows: int) -> None:
        """Examine the next rows of the level for states without a successor; nothing else is added or counted."""
        slices = self._generated(rows)
        self._worker.clear()
        self._settle()
        self._next += rows
        self._built += rows
        self._spare += slices
        self._release()

    def _generated(self, rows: int) -> list[Slice]:
        """The slices of the next rows of the level, with their successors and the states that have none."""
        worker, slices = self._worker, list(self._cut(self._next, self._next + rows))
        self._ready()
        for part in slices:
            worker.expand(part)
        while waiting := [part for part in slices if part.aside.size]:
            self.tables.fill(worker.missing[: worker.noted])
            worker.noted = 0
            worker.make_room()
            for part in waiting:
                worker.expand_again(part)
        for part in slices:
            if part.size > part.first_late:
                part.merge()
            dead = np.sort(np.concatenate(part.dead))
            self.deadlocks += dead.size
            self.expanded += part.transitions
            self.evaluator.examine_final(part.block, dead, part.base)
        return slices

    def _cut(self, begin: int, end: int) -> Iterator[Slice]:
        first = self._released
        for place, block in enumerate(self.level):
            if not isinstance(block, RowBlock) and begin < first + block.size and first < end:
                self.level[place] = self.waiting.wake(block)
        for block in self.level:
            for low in range(max(begin, first), min(end, first + block.size), SLICE):
                high = min(low + SLICE, end, first + block.size)
                part = self._spare.pop() if self._spare else Slice(1)
                assert isinstance(block, RowBlock)
                part.begin(block, np.arange(low - first, high - first, dtype=np.uint32), self._base + first)
                yield part
            first += block.size

    # -- pass two --------------------------------------------------------------------------------------------

    def probe(self, found: Array) -> Array:
        """Add fingerprints to the visited set; return a flag (u8) for each, 1 for the first of each new one."""
        is_new, picks = np.zeros(len(found), np.uint8), np.zeros(len(found) + 1, np.uint32)
        self.visited.reserve(len(found))
        self.visited.probe(0, 1, found, len(found), picks, is_new)
        self.candidates = len(found)
        return is_new

    # -- pass three ------------------------------------------------------------------------------------------

    def build(self, expansion: Expansion, is_new: Array) -> Array:
        """Build the rows of the new successors of a round; return the number of them for each own piece."""
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_new, dtype=np.int64)])
        total, first, done, begin = int(sums[-1]), self.history.size, 0, 0
        targets = self.following.room(total, first)
        parents, ordinals = np.empty(total, np.uint32), np.empty(total, np.uint16)
        pending: list[PendingRows] = []
        self._ready()
        for part in expansion.slices:
            flags = is_new[begin : begin + part.size].reshape(1, -1)
            begin += part.size
            more = int(flags.sum())
            if len(part.fresh) < part.size + 1:
                part.fresh = np.zeros(len(part.found) + 1, np.uint32)
            build_kernels.collect(flags, part.size, part.fresh)
            own = slice(done, done + more)
            pending += self._worker.build(part, part_of(targets, first + done, more), parents[own], ordinals[own])
            done += more
        self.following.add(targets)
        self.history.append(parents, ordinals, ordinals)
        self.evaluator.add(self._worker.tally)
        self._count()
        self.evaluator.wait(pending)
        self._settle()
        self._built += sum(len(part.rows) for part in expansion.slices)
        self._spare += expansion.slices
        self._release()
        for place in self.following.full():
            self.following.store(place)
        ends = np.concatenate([np.zeros(1, np.int64), expansion.ends])
        counts: Array = np.diff(sums[ends])
        return counts

    def _release(self) -> None:
        """Return the blocks of the level whose rows are all built, and have no evaluation that waits."""
        while self.level and self._released + self.level[0].size <= self._built:
            self._released += self.level[0].size
            self._forget_block(self.level.pop(0))

    def _forget_block(self, block: Block) -> None:
        if isinstance(block, RowBlock):
            self.pool.give(block)
        else:
            self.pool.give(self.waiting.wake(block))

    # -- help ------------------------------------------------------------------------------------------------

    def _ready(self) -> None:
        self._worker.clear()
        self._worker.make_room()

    def _count(self) -> None:
        self.counts.add(self._worker.fired, self._worker.reached)
        self._worker.fired[:], self._worker.reached[:] = 0, 0

    def _settle(self) -> None:
        """Finish the evaluations that need Python."""
        self.evaluator.settle(self.history, self._row_of)

    def _row_of(self, state: int) -> Array:
        following = self.history.size - self.following.rows
        blocks, first = (
            (self.following.blocks, following) if state >= following else (self.level, self._base + self._released)
        )
        for block in blocks:
            if first <= state < first + block.size and isinstance(block, RowBlock):
                row: Array = block.rows[state - first]
                return row
            first += block.size
        raise IndexError(state)
