"""The expansion of a level in rounds, by any number of workers: of a whole search, or of one part of it.

A round is some consecutive rows of a level, cut into slices. It has three passes, and every pass is finished before the
next:

1. Each slice is expanded by any worker. Python then computes the entries that were missing in the tables, and the rows
   concerned are expanded again, until none is left.
2. Each worker adds the fingerprints of its shard to the visited set, slice by slice. On a cluster, the owners of the
   fingerprints do this (`checker.cluster`); the second pass of a round can then follow the first pass of a later one.
3. The new states get consecutive numbers, and each slice's rows are built and judged by any worker.

Rules:

- States are numbered in the order of the plain engine: by the number of the parent, then by ordinal. A state belongs to
  its first parent in this order. So counts, coverage and paths are the same for every number of workers, and do not
  depend on the moment at which a row could be expanded.
- A round changes the result and the next level only at its end. An interrupt before that discards the round.
- Tables are filled only while no kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import numpy as np

from checker.engine.arrays import grown
from checker.engine.evaluator import Evaluator, PendingRows
from checker.engine.kernels import build_kernels, graph_kernels
from checker.engine.liveness.graph_liveness import Graph
from checker.engine.process import UNLIMITED, Interrupts
from checker.engine.result import Coverage, Exploration
from checker.engine.states.frontier import OriginLog, Pool, RowBlock
from checker.engine.states.visited import Shards
from checker.engine.states.waiting import IN_MEMORY, Block, NextLevel, Target, WaitingBlocks, part_of
from checker.engine.tables import Tables
from checker.engine.worker import Slice, Worker

SLICE = 1 << 14  # rows
ROUND = 4  # blocks

Array = np.ndarray[Any, Any]


def unchecked(_: int) -> None:
    """Let a round go on."""


class MoveCounts:
    """Two counters (u64) for each label of moves: the times that they fired, and the states that they reached first."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.fired, self.reached = np.zeros(0, np.uint64), np.zeros(0, np.uint64)

    def add(self, fired: Array, reached: Array) -> None:
        """Add the counts of a worker."""
        self.fired, self.reached = (grown(counts, len(reached)) for counts in (self.fired, self.reached))
        self.fired[: len(fired)] += fired
        self.reached[: len(reached)] += reached

    def coverage(self) -> dict[str, Coverage]:
        """The totals by action."""
        coverage = {label.action: Coverage() for label in self._tables.labels[1:]}
        for label, fired, reached in zip(self._tables.labels, self.fired.tolist(), self.reached.tolist(), strict=False):
            if label.action in coverage:
                coverage[label.action].fired += fired
                coverage[label.action].new += reached
        return coverage


class SearchState(NamedTuple):
    """The data that grows during a search. The graph exists only for properties of liveness."""

    result: Exploration
    tables: Tables
    pool: Pool
    waiting: WaitingBlocks
    history: OriginLog
    visited: Shards
    evaluator: Evaluator
    counts: MoveCounts
    graph: Graph | None

    @classmethod
    def of(
        cls, result: Exploration, tables: Tables, workers: int = 1, *, fingerprints: bool = False, parts: int = 1
    ) -> SearchState:
        """The data of a new search, or of one of its `parts`; with `fingerprints`, its history also keeps these."""
        graph = Graph(tables) if result.model.liveness else None
        pool = Pool(len(result.model.columns))
        return cls(
            result,
            tables,
            pool,
            WaitingBlocks(tables, pool, min(IN_MEMORY, (result.limits.memory or UNLIMITED) // 8)),
            OriginLog(fingerprints=fingerprints),
            Shards(workers, numbered=graph is not None, parts=parts),
            Evaluator(tables, result),
            MoveCounts(tables),
            graph,
        )

    def close(self) -> None:
        """Close and delete the temporary files."""
        self.history.close()
        self.waiting.close()
        if self.graph is not None:
            self.graph.close()


class Round(NamedTuple):
    """A round after pass one: its slices, the counts of moves (u64) by each worker, and the states that fail.

    A state fails if a function of the model fails for one of its moves. It has no successors.
    """

    slices: list[Slice]
    fired: list[Array]
    failing: list[int]


class Rounds:
    """Expands the rows of `level`; the new states are added to `following`."""

    def __init__(self, state: SearchState) -> None:
        self._state = state
        self.following = NextLevel(state.tables, state.pool, state.waiting)
        self.level: list[Block] = []  # without the first blocks, whose rows are all built
        self._base = 0  # the number of the first state in `level`
        self._next, self._built = 0, 0  # rows of `level` that were expanded, and of those whose children are built
        self.expanded = 0  # successors generated
        self.candidates = 0  # of the last round: successors for the visited set
        self._workers = [
            Worker(state.tables, number, part, filters=state.graph is None)
            for number, part in enumerate(state.visited.parts)
        ]
        self._threads = ThreadPoolExecutor(len(self._workers) - 1) if len(self._workers) > 1 else None
        self._spare: list[Slice] = []

    def begin(self) -> None:
        """Add the first states."""
        state, (block, places) = self._state, self.following.begin()
        fingerprints = block.fingerprints[: block.size]
        state.visited.refill(fingerprints, 0)
        state.history.append(np.zeros(block.size, np.uint32), places, [fingerprints])
        self.know_roots(block.size)
        state.evaluator.judge_first(block)
        self.settle()
        self._mark([Target(block, 0, block.size, 0)])

    def know_roots(self, count: int) -> None:
        """Note the number of first states."""
        history = self._state.history
        history.roots, history.has_places = count, len(self._state.result.model.first_rows) > 1

    def begin_level(self) -> int:
        """Make the next level the present one; return its number of rows."""
        for block in self.level:
            self._state.pool.give(self._state.waiting.wake(block))
        self.resume(self.following.take(), [])
        self._state.waiting.begin_level()
        return self.left

    def resume(self, level: list[Block], following: list[Block]) -> None:
        """Continue with these blocks, which have the newest states."""
        self.level, self.following.blocks = level, following
        self._next = self._built = 0
        self._base = self._state.history.size - self.following.rows - self.left

    @property
    def left(self) -> int:
        """The number of rows of the level that were not expanded."""
        return sum(block.size for block in self.level) - self._next

    @property
    def next_state(self) -> int:
        """The number of the first state that was not expanded."""
        return self._base + self._next

    def expand(self, check: Callable[[int], None] = unchecked) -> None:
        """Carry out a whole round.

        `check` is called between two passes with the bytes that the visited set is going to grow by, and may raise to
        end the search.
        """
        expanded = self.generate(self._rows_of_a_round, check)
        slices, shards = expanded.slices, len(self._workers)
        for part in slices:
            part.make_room(slots=self._state.graph is not None)
        self.candidates = sum(part.size for part in slices)
        check(self._state.visited.growth(self.candidates))
        self._each_worker(lambda worker: worker.probe(slices, shards), alone=len(slices) == 1)
        self.build(expanded)

    def find_ends(self, check: Callable[[int], None] = unchecked, rows: int | None = None) -> None:
        """Examine the next rows, or those of a round, for states without a successor; nothing else is added or
        counted.
        """
        expanded = self.generate(self._rows_of_a_round if rows is None else rows, check)
        with Interrupts():
            self._examine_ends(expanded)
        self.settle()
        self._release(expanded.slices)

    def settle(self) -> None:
        """Finish the evaluations that need Python."""
        self._state.evaluator.settle(self._row_of)

    def close(self) -> None:
        """End the threads."""
        if self._threads is not None:
            self._threads.shutdown()

    @property
    def _rows_of_a_round(self) -> int:
        return sum(block.size for block in self.level[:ROUND])

    # -- passes ----------------------------------------------------------------------------------------------

    def generate(self, rows: int, check: Callable[[int], None] = unchecked) -> Round:
        """Pass one on the next rows of the level, until no row is put aside."""
        for worker in self._workers:
            worker.clear()
        slices = list(self._cut(self._next, self._next + rows))
        self._each(slices, Worker.expand)
        failing: list[int] = []
        while waiting := [part for part in slices if part.aside.size]:
            keys = np.concatenate([worker.missing[: worker.noted] for worker in self._workers])
            if not keys.size:
                failing = self._without_failing(slices)
                break
            self._state.tables.fill(keys)
            for worker in self._workers:
                worker.noted = 0
            check(0)
            self._each(waiting, Worker.expand_again)
        for part in slices:
            if part.size > part.first_late:
                part.merge()
        self._next += rows
        self.expanded += sum(part.transitions for part in slices)
        return Round(slices, [worker.fired.copy() for worker in self._workers], failing)

    def _without_failing(self, slices: list[Slice]) -> list[int]:
        """Expand all slices again without the rows that are aside, for whose answers nothing is left to ask.

        Returns these states. All other answers are known.
        """
        rows = [part.aside for part in slices]
        for worker in self._workers:
            worker.forget()
        self._each(list(zip(slices, rows, strict=True)), lambda worker, item: worker.expand_without(*item))
        return [part.base + row for part, failing in zip(slices, rows, strict=True) for row in failing.tolist()]

    def build(self, expanded: Round) -> None:
        """Pass three: build the new states, which pass two has marked in each slice."""
        state, slices = self._state, expanded.slices
        new = [int(part.added.sum()) for part in slices]
        first, total = state.history.size, sum(new)
        targets = self.following.room(total, first)
        parents, ordinals = np.empty(total, np.uint32), np.empty(total, np.uint16)
        work, begin = [], 0
        for part, more in zip(slices, new, strict=True):
            own = slice(begin, begin + more)
            work.append((part, part_of(targets, first + begin, more), parents[own], ordinals[own]))
            begin += more
        pending: list[PendingRows] = []

        def build(worker: Worker, item: tuple[Slice, list[Target], Array, Array]) -> None:
            part, *_ = item
            build_kernels.collect(part.is_new, part.size, part.fresh)
            pending.extend(worker.build(*item))

        self._each(work, build)
        with Interrupts():
            state.result.transitions += sum(part.transitions for part in slices)
            self._examine_ends(expanded)
            self.following.add(targets)
            state.history.append(parents, ordinals, [into.fingerprints[low:high] for into, low, high, _ in targets])
            for worker, fired in zip(self._workers, expanded.fired, strict=True):
                state.counts.add(fired, worker.reached)
                state.evaluator.add(worker.tally)
                worker.clear()
            state.evaluator.wait(pending)
        self._number(slices, new, first)
        self.settle()
        self._mark(targets)
        self._release(slices)
        self._each(self.following.full(), lambda _, place: self.following.store(place))

    def _examine_ends(self, expanded: Round) -> None:
        """Count the states without a successor, which the evaluator examines, and note those that fail."""
        self._state.evaluator.note_failing(expanded.failing)
        for part in expanded.slices:
            dead = np.sort(np.concatenate(part.dead))
            self._state.result.deadlocks += dead.size
            self._state.evaluator.examine_final(part.block, dead, part.base)

    # -- blocks ----------------------------------------------------------------------------------------------

    def _cut(self, begin: int, end: int) -> Iterator[Slice]:
        """The slices of these rows of the level, whose blocks are woken."""
        firsts, first = dict[int, int](), 0  # of the rows of blocks, by their places in the level
        for place, block in enumerate(self.level):
            if first >= end:
                break
            if begin < first + block.size:
                firsts[place] = first
            first += block.size

        def wake(_: Worker, place: int) -> None:
            self.level[place] = self._state.waiting.wake(self.level[place])

        self._each([place for place in firsts if not isinstance(self.level[place], RowBlock)], wake)
        for place, first in firsts.items():
            block = self.level[place]
            assert isinstance(block, RowBlock)
            for low in range(max(begin - first, 0), min(end - first, block.size), SLICE):
                part = self._spare.pop() if self._spare else Slice(len(self._workers))
                rows = np.arange(low, min(low + SLICE, end - first, block.size), dtype=np.uint32)
                part.begin(block, rows, self._base + first)
                yield part

    def _release(self, slices: list[Slice]) -> None:
        """Return the slices, and the blocks of the level whose rows are all built."""
        self._spare += slices
        self._built += sum(len(part.rows) for part in slices)
        while self.level and self.level[0].size <= self._built:
            block = self.level.pop(0)
            self._base += block.size
            self._next -= block.size
            self._built -= block.size
            self._state.pool.give(self._state.waiting.wake(block))

    def _row_of(self, state: int) -> Any:
        """The row of a state of a round that is under way: one of those that are expanded, or a new one."""
        following = self._state.history.size - self.following.rows
        blocks, first = (self.following.blocks, following) if state >= following else (self.level, self._base)
        for block in blocks:
            if first <= state < first + block.size and isinstance(block, RowBlock):
                return block.rows[state - first]
            first += block.size
        raise IndexError(state)

    # -- the graph, for liveness -----------------------------------------------------------------------------

    def _number(self, slices: list[Slice], new: list[int], first: int) -> None:
        graph, shards = self._state.graph, self._state.visited.parts
        if graph is None:
            return
        for part, more in zip(slices, new, strict=True):
            for shard, visited in enumerate(shards):
                arguments = (visited.numbers, shard, len(shards), part.found, part.slots)
                graph_kernels.number(*arguments, part.fresh, more, first)
            first += more
        for part in slices:
            targets = np.empty(part.size, np.uint32)
            for shard, visited in enumerate(shards):
                graph_kernels.resolve(visited.numbers, shard, len(shards), part.found, part.slots, targets)
            graph.add(int(part.rows[0]), len(part.rows), part.origins, targets)

    def _mark(self, targets: Iterable[Target]) -> None:
        if self._state.graph is not None:
            for block, begin, end, state in targets:
                marks = self._state.graph.marks(state + end - begin)
                marks[state : state + end - begin] = block.judgements[begin:end]

    # -- workers ---------------------------------------------------------------------------------------------

    def _each(self, items: list[Any], task: Callable[[Worker, Any], Any]) -> None:
        queue = iter(items)

        def work(worker: Worker) -> None:
            for item in queue:
                task(worker, item)

        self._each_worker(work, alone=len(items) < 2)

    def _each_worker(self, task: Callable[[Worker], None], *, alone: bool) -> None:
        """Carry out a task for each worker, each in its thread; this thread is that of the first.

        With little to do, this thread carries them out `alone`, since it would wait longer for the others.
        """
        for worker in self._workers:
            worker.make_room()
        if alone or self._threads is None:
            for worker in self._workers:
                task(worker)
            return
        first, *helpers = self._workers
        running = [self._threads.submit(task, worker) for worker in helpers]
        try:
            task(first)
        finally:
            with Interrupts():  # nobody may fill tables while a kernel runs
                wait(running)
        for result in running:
            result.result()
