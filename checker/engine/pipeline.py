"""The expansion of a block of rows: in batches, by passes of integer kernels, with Python between them.

A batch is the successors of some rows (`expand`), the selection of the new ones (`probe`), the rows of the new ones
(`build`), and their properties (`examine`). Python computes the entries that a pass found missing in the tables,
between passes, and only the affected rows are tried again.

Rules:

- With two workers, one thread expands the next batch while another processes the previous one. Batches are processed in
  the same order as with one worker, so that every figure and every path is the same.
- Tables are filled only while no kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from checker.engine.frontier import RowBlock, padded
from checker.engine.kernels import build_kernels, graph_kernels, hash_tables, search_kernels
from checker.engine.model import ModelError
from checker.engine.search_state import SearchState

BATCH = 1 << 16  # successors generated before they are looked up
ASIDE = 4096  # rows put aside before the tables are filled
MISSING = 8192  # keys noted before the tables are filled

Array = np.ndarray[Any, Any]


class Batch:
    """Successors between two passes: fingerprints and origins, from `search_kernels.expand`."""

    def __init__(self) -> None:
        self.found, self.origins = np.zeros(BATCH, np.uint64), np.zeros(BATCH, np.uint64)
        self.size = 0


class Pipeline:
    """Expands blocks; the new states are added to `following`.

    `joint_cache` is the number of slots in the cache of the moves of joint rules (a power of two). `check` is called
    after the expansion of each batch, and may raise to end the search.
    """

    def __init__(self, state: SearchState, workers: int, joint_cache: int, check: Callable[[], None]) -> None:
        self._state, self._check = state, check
        self.following: list[RowBlock] = []
        self.expanded = 0  # successors generated, including those not yet processed
        self._helper = ThreadPoolExecutor(1) if workers > 1 else None
        self._in_progress: Future[None] | None = None
        self._spent: list[RowBlock] = []
        self._batches = [Batch(), Batch()]
        joint = len(state.tables.joint)
        self._width = width = len(state.result.model.columns)
        self._row, self._joint_key = np.zeros(padded(width), np.uint32), np.zeros(padded(width), np.uint32)
        self._cached_keys = np.zeros((joint_cache, padded(width)), np.uint32)
        self._cached_lists = np.zeros((joint_cache, joint + 2), np.uint64)
        self._lists_of = np.zeros(width + joint + 1, np.uint64)
        self._stacks = [np.zeros(2 * search_kernels.STACK, np.uint64) for _ in range(2)]
        self._fresh = np.zeros(BATCH + 1, np.uint32)
        self._missing, self._counters = np.zeros(MISSING, np.uint64), np.zeros(5, np.int64)

    def begin(self) -> None:
        """Add the initial state."""
        _, tables, pool, history, visited, evaluator, _, _ = self._state
        block = pool.take()
        cells = tables.row(self._state.result.model.initial())
        block.rows[0, : len(cells)], block.size = cells, 1
        block.fingerprints[0] = tables.fingerprints(np.array([cells]))[0]
        visited.add(block.fingerprints[0])
        self.following = [block]
        history.append(np.zeros(1, np.uint32), np.zeros(1, np.uint16), block.fingerprints[:1])
        evaluator.judge_first(block)
        evaluator.settle(history)

    def expand(self, block: RowBlock, base: int) -> None:
        """Expand a block, whose first row is state `base`; the block is reused once it is no longer needed."""
        todo = np.arange(block.size, dtype=np.uint32)
        while todo.size:
            todo = self._expand(block, todo, base)
        self._spent.append(block)

    def wait(self) -> None:
        """Wait until no batch is in progress; then finish the evaluations that need Python."""
        if self._in_progress is not None:
            self._in_progress.result()
            self._in_progress = None
            self._state.evaluator.settle(self._state.history)
        while self._spent:
            self._state.pool.give(self._spent.pop())

    def make_room_for_moves(self) -> None:
        """Add counters for all moves; no kernel counts while they are replaced."""
        if self._state.counts.too_few:
            self.wait()
            self._state.counts.make_room()

    def close(self) -> None:
        """End the second thread."""
        if self._helper is not None:
            self._helper.shutdown()

    def _expand(self, block: RowBlock, todo: Array, base: int) -> Array:
        """Expand the rows `todo` of a block; return those that must be tried again."""
        position, again = 0, []
        aside, dead = np.empty(ASIDE, np.uint32), np.empty(block.size, np.uint32)
        while position < todo.size:
            tables, counters, batch = self._state.tables, self._counters, self._batches[0]
            self.make_room_for_moves()
            counters[:] = 0
            before = position
            position = search_kernels.expand(
                block.rows, self._width, block.fingerprints, todo, position,
                tables.cells.view, tables.masks.view, tables.masked, tables.joint,
                self._lists_of, self._joint_key, self._cached_keys, self._cached_lists,
                self._row, self._stacks[0], tables.entries.view, *tables.readers(),
                batch.found, batch.origins, self._state.counts.fired, dead, aside, self._missing, counters,
            )  # fmt: skip
            missing, batch.size, put_aside, deadlocked, error = (int(c) for c in counters)
            if error or (position == before and not missing):
                raise ModelError("a move leads to operations without end, or a state has too many moves")
            self.expanded += batch.size
            again.append(aside[:put_aside].copy())
            self._hand_over(block, batch, dead[:deadlocked].copy(), base)
            if missing:
                self.wait()
                tables.fill(self._missing[:missing])
            self._check()
        return np.concatenate(again)

    # -- a batch ---------------------------------------------------------------------------------------------

    def _hand_over(self, block: RowBlock, batch: Batch, dead: Array, base: int) -> None:
        """Process a batch: in this thread, or in the second one after the previous batch."""
        self.wait()
        self._batches.reverse()
        if self._helper is None:
            self._process(block, batch, dead, base)
            self._state.evaluator.settle(self._state.history)
        else:
            self._in_progress = self._helper.submit(self._process, block, batch, dead, base)

    def _process(self, block: RowBlock, batch: Batch, dead: Array, base: int) -> None:
        """Run passes two and three for the successors of a block, and evaluate the properties in the new states."""
        result, tables, pool, history, _, evaluator, _, _ = self._state
        result.transitions += batch.size
        result.deadlocks += dead.size
        evaluator.examine_final(block, dead, base)
        fresh = self._probe(block, batch, base)
        parents, ordinals = np.empty(fresh, np.uint32), np.empty(fresh, np.uint16)
        done = 0
        while done < fresh:
            if not self.following or self.following[-1].size == len(self.following[-1].rows):
                self.following.append(pool.take())
            into = self.following[-1]
            begin, count = into.size, min(fresh - done, len(into.rows) - into.size)
            into.size, first = begin + count, history.size - begin
            with evaluator.judging(into, begin, first) as judging:
                build_kernels.build(
                    block.rows, self._fresh, done, done + count, batch.found, batch.origins, base,
                    block.judgements, into.rows, into.fingerprints, into.judgements, begin, history.size,
                    parents, ordinals, self._stacks[1], tables.entries.view, *judging,
                )  # fmt: skip
            new = slice(done, done + count)
            history.append(parents[new], ordinals[new], into.fingerprints[begin : into.size])
            done += count

    def _probe(self, block: RowBlock, batch: Batch, base: int) -> int:
        """Run pass two; with the graph, also record the targets of the moves. Return the number of new states."""
        visited, entries, graph = self._state.visited, self._state.tables.entries.view, self._state.graph
        visited.reserve(batch.size)
        if graph is None:
            fresh = int(hash_tables.probe(
                visited.slots, visited.shift, visited.recent, batch.found, batch.size, self._fresh,
                batch.origins, entries, self._state.counts.reached,
            ))  # fmt: skip
        else:
            targets = np.empty(batch.size, np.uint32)
            fresh = int(graph_kernels.number(
                visited.slots, visited.numbers, visited.shift, visited.recent, visited.recent_numbers,
                batch.found, batch.size, self._fresh, batch.origins, entries, self._state.counts.reached,
                visited.used, targets,
            ))  # fmt: skip
            graph.add(base, block.size, batch.origins, targets)
        visited.used += fresh
        return fresh
