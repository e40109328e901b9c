"""The expansion of a level in rounds, by any number of workers.

A round is some blocks of a level, cut into slices. It has three passes, and every pass is finished before the next:

1. Each slice is expanded by any worker. Python then computes the entries that were missing in the tables, and the rows
   concerned are expanded again, until none is left.
2. Each worker adds the fingerprints of its shard to the visited set, slice by slice.
3. The new states get consecutive numbers, and each slice's rows are built and judged by any worker.

Rules:

- States are numbered in the order of the plain engine: by the number of the parent, then by ordinal. A state belongs to
  its first parent in this order. So counts, coverage and paths are the same for every number of workers, and do not
  depend on the moment at which a row could be expanded.
- A round changes the result and the next level only at its end. An interrupt before that discards the round.
- Tables are filled only while no kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import count
from typing import Any

import numpy as np

from checker.engine.evaluator import PendingRows
from checker.engine.kernels import build_kernels, graph_kernels
from checker.engine.process import Interrupts
from checker.engine.search_state import SearchState
from checker.engine.states.frontier import RowBlock
from checker.engine.states.next_level import NextLevel, Target, part_of
from checker.engine.states.waiting import Block
from checker.engine.worker import Slice, Worker

SLICE = 1 << 14  # rows
ROUND = 4  # blocks

Array = np.ndarray[Any, Any]


class Rounds:
    """Expands blocks; the new states are added to `following`.

    `joint_cache` is the number of slots in the cache of the moves of joint rules (a power of two).
    """

    def __init__(self, state: SearchState, joint_cache: int) -> None:
        self._state = state
        self.following = NextLevel(state.tables, state.pool, state.waiting)
        self.expanded = 0  # successors generated
        self.candidates = 0  # of the last round: successors for the visited set
        parts = state.visited.parts
        self._workers = [
            Worker(state.tables, number, joint_cache, part, filters=state.graph is None)
            for number, part in enumerate(parts)
        ]
        self._threads = ThreadPoolExecutor(len(parts) - 1) if len(parts) > 1 else None
        self._slices: list[Slice] = []
        self._present: list[tuple[int, RowBlock]] = []  # the blocks of this round, with their first states

    def begin(self) -> None:
        """Add the initial state."""
        state, block = self._state, self.following.begin()
        state.visited.refill(block.fingerprints[:1], 0)
        self._present = [(0, block)]
        state.history.append(np.zeros(1, np.uint32), np.zeros(1, np.uint16), block.fingerprints[:1])
        state.evaluator.judge_first(block)
        self.settle()
        self._mark([Target(block, 0, 1, 0)])

    def expand(self, blocks: list[Block], base: int, check: Callable[[int], None]) -> None:
        """Expand blocks, whose first row is state `base`; they are reused afterwards.

        `check` is called between two passes with the bytes that the visited set is going to grow by, and may raise to
        end the search.
        """
        slices = self._generated(blocks, base, check)
        for part in slices:
            part.make_room(slots=self._state.graph is not None)
        self.candidates = sum(part.size for part in slices)
        check(self._state.visited.growth(self.candidates))
        shards = len(self._workers)
        self._each_worker(lambda worker: worker.probe(slices, shards), alone=len(slices) == 1)
        self._add(slices)
        self._give_back()
        self._store()

    def find_ends(self, blocks: list[Block], base: int, check: Callable[[int], None]) -> None:
        """Examine blocks, as `expand` takes them, for states without a successor; nothing else is added or counted."""
        slices = self._generated(blocks, base, check)
        with Interrupts():
            self._examine_ends(slices)
            for worker in self._workers:
                worker.clear()
        self.settle()
        self._give_back()

    def settle(self) -> None:
        """Finish the evaluations that need Python."""
        self._state.evaluator.settle(self._state.history, self._row_of)

    def close(self) -> None:
        """End the threads."""
        if self._threads is not None:
            self._threads.shutdown()

    # -- passes ----------------------------------------------------------------------------------------------

    def _generated(self, blocks: list[Block], base: int, check: Callable[[int], None]) -> list[Slice]:
        """The slices of some blocks after pass one."""
        self._present = []
        for block in self._wake(blocks):
            self._present.append((base, block))
            base += block.size
        slices = self._cut()
        self._generate(slices, check)
        return slices

    def _give_back(self) -> None:
        for _, block in self._present:
            self._state.pool.give(block)

    def _examine_ends(self, slices: list[Slice]) -> None:
        """Count the states without a successor, which the evaluator examines, and the work of pass one."""
        for part in slices:
            dead = np.sort(np.concatenate(part.dead))
            self._state.result.deadlocks += dead.size
            self.expanded += part.transitions
            self._state.evaluator.examine_final(part.block, dead, part.base)

    def _cut(self) -> list[Slice]:
        shards, used = len(self._workers), count()
        for worker in self._workers:
            worker.clear()
        for base, block in self._present:
            for begin in range(0, block.size, SLICE):
                number = next(used)
                if number == len(self._slices):
                    self._slices.append(Slice(shards))
                rows = np.arange(begin, min(begin + SLICE, block.size), dtype=np.uint32)
                self._slices[number].begin(block, rows, base)
        return self._slices[: next(used)]

    def _generate(self, slices: list[Slice], check: Callable[[int], None]) -> None:
        """Pass one, until no row is put aside."""
        self._each(slices, Worker.expand)
        while waiting := [part for part in slices if part.aside.size]:
            keys = [worker.missing[: worker.noted] for worker in self._workers]
            self._state.tables.fill(np.concatenate(keys))
            for worker in self._workers:
                worker.noted = 0
            check(0)
            self._each(waiting, Worker.expand_again)
        for part in slices:
            if part.size > part.first_late:
                part.merge()

    def _add(self, slices: list[Slice]) -> None:
        state, history = self._state, self._state.history
        new = [int(part.added.sum()) for part in slices]
        first, total = history.size, sum(new)
        targets = self.following.room(total, first)
        parents, ordinals = np.empty(total, np.uint32), np.empty(total, np.uint16)
        work, done = [], 0
        for part, more in zip(slices, new, strict=True):
            own = slice(done, done + more)
            work.append((part, part_of(targets, first + done, more), parents[own], ordinals[own]))
            done += more
        pending: list[PendingRows] = []

        def build(worker: Worker, item: tuple[Slice, list[Target], Array, Array]) -> None:
            part, *_ = item
            build_kernels.collect(part.is_new, part.size, part.fresh)
            pending.extend(worker.build(*item))

        self._each(work, build)
        with Interrupts():
            self._commit(slices, targets, parents, ordinals)
            for worker in self._workers:
                state.counts.add(worker.fired, worker.reached)
                state.evaluator.add(worker.tally)
                worker.clear()
            state.evaluator.wait(pending)
        self._number(slices, new, first)
        self.settle()
        self._mark(targets)

    def _commit(self, slices: list[Slice], targets: list[Target], parents: Array, ordinals: Array) -> None:
        state, result = self._state, self._state.result
        result.transitions += sum(part.transitions for part in slices)
        self._examine_ends(slices)
        self.following.add(targets)
        fingerprints = [into.fingerprints[begin:end] for into, begin, end, _ in targets]
        state.history.append(parents, ordinals, np.concatenate([np.zeros(0, np.uint64), *fingerprints]))

    # -- blocks that wait ------------------------------------------------------------------------------------

    def _wake(self, blocks: list[Block]) -> list[RowBlock]:
        awake = [block if isinstance(block, RowBlock) else None for block in blocks]

        def wake(_: Worker, place: int) -> None:
            block = blocks[place]
            awake[place] = block if isinstance(block, RowBlock) else self._state.waiting.wake(block)

        self._each([place for place, block in enumerate(awake) if block is None], wake)
        return [block for block in awake if block is not None]

    def _store(self) -> None:
        self._each(self.following.full(), lambda _, place: self.following.store(place))

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
                marks = self._state.graph.marks.room(state + end - begin)
                marks[state : state + end - begin] = block.judgements[begin:end]

    # -- workers ---------------------------------------------------------------------------------------------

    def _each(self, items: list[Any], task: Callable[[Worker, Any], Any]) -> None:
        left = iter(items)

        def work(worker: Worker) -> None:
            for item in left:
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
        first, *others = self._workers
        running = [self._threads.submit(task, worker) for worker in others]
        try:
            task(first)
        finally:
            with Interrupts():  # nobody may fill tables while a kernel runs
                wait(running)
        for each in running:
            each.result()

    def _row_of(self, state: int) -> Any:
        """The row of a state of this round: one of those that are expanded, or a new one."""
        for base, block in self._present:
            if base <= state < base + block.size:
                return block.rows[state - base]
        first = self._state.history.size - self.following.rows
        for new in self.following.blocks:
            if state < first + new.size and isinstance(new, RowBlock):
                return new.rows[state - first]
            first += new.size
        raise IndexError(state)
