"""The table engine: breadth-first search, level by level, in three passes of integer kernels.

A level is worked off block by block, a block in batches: the successors of some rows (`expand`), which of them
are new (`probe`), the rows of the new ones (`build`), and the properties of these (`examine`). What a pass finds
missing in the tables is worked out by Python between passes, and only the rows concerned are tried again.

Rules:
- a level is finished before what was found in it ends the search, so that a reported path is shortest;
- a path is rebuilt by the plain engine from ordinals, and its last row must be the one that the tables reached;
- with two workers one thread expands the next batch while another takes in the last: batches are taken in in the
  same order, so that every figure and every path is the same as with one;
- tables are filled only while no kernel runs;
- the graph is kept only where liveness is asked for, and liveness is judged when everything was seen, not before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import psutil

from checker.engine import graph_kernels, kernels, liveness
from checker.engine.frontier import Block, History, Pool, padded
from checker.engine.graph import Graph
from checker.engine.judge import Judge
from checker.engine.model import Model, ModelError
from checker.engine.result import Coverage, Exploration, Limits, Stop, wanted
from checker.engine.tables import Tables
from checker.engine.visited import Visited

BATCH = 1 << 16  # successors generated before they are looked up
ASIDE = 4096  # rows put aside before the tables are filled
MISSING = 8192  # keys noted before the tables are filled
LOOKS = 1 << 12  # ways to look to the joint rules for which the moves that they list are kept
REPORT_EVERY = 0.25  # seconds between calls of `progress`

Array = np.ndarray[Any, Any]


class Batch:
    """Successors on their way from one pass to the next: fingerprints and origins, as `kernels.expand` writes them."""

    def __init__(self) -> None:
        self.found, self.origins = np.zeros(BATCH, np.uint64), np.zeros(BATCH, np.uint64)
        self.size = 0


class _LimitReachedError(Exception):
    """A limit was reached inside a level."""


class Search:
    """One exploration by tables; `run` may be called once."""

    def __init__(
        self,
        model: Model,
        limits: Limits = Limits(),
        *,
        until_witnessed: bool = False,
        progress: Callable[[Exploration], None] = lambda _: None,
        workers: int = 1,
    ) -> None:
        self.result = Exploration(model, "tables", limits)
        self.tables = Tables(model)
        self._until_witnessed, self._progress = until_witnessed, progress
        self._helper = ThreadPoolExecutor(1) if workers > 1 else None
        self._taking_in: Future[None] | None = None
        self._process = psutil.Process()
        self._resident = self._process.memory_info().rss
        self._width = len(model.columns)
        self._graph = Graph(self.tables) if model.liveness else None
        self._pool, self._history = Pool(self._width), History()
        self._visited = Visited(numbered=self._graph is not None)
        self._judge = Judge(self.tables, self.result, self._graph.marks if self._graph else None)
        self._next: list[Block] = []
        self._spent: list[Block] = []
        self._batches = [Batch(), Batch()]
        self._row = np.zeros(padded(self._width), np.uint32)
        self._look = np.zeros(padded(self._width), np.uint32)
        self._known = np.zeros((LOOKS, padded(self._width)), np.uint32)
        self._known_lists = np.zeros((LOOKS, len(self.tables.joint) + 2), np.uint64)
        self._lists_of = np.zeros(self._width + len(self.tables.joint) + 1, np.uint64)
        self._stacks = [np.zeros(2 * kernels.STACK, np.uint64) for _ in range(2)]
        self._fresh = np.zeros(BATCH + 1, np.uint32)
        self._missing = np.zeros(MISSING, np.uint64)
        self._counters = np.zeros(5, np.int64)
        # What is built was expanded before, so that nothing can be missing; kernels want somewhere to note it.
        self._nothing_missing = np.zeros(1, np.uint64), np.zeros(1, np.int64)
        self._fired, self._reached = np.zeros(64, np.uint64), np.zeros(64, np.uint64)
        self._began = self._reported = time.monotonic()

    def run(self) -> Exploration:
        """Explore until everything was seen or there is a reason to stop. Raises ModelError."""
        result = self.result
        try:
            self._start()
            while self._next:
                result.levels.append(sum(block.size for block in self._next))
                self._report()
                stop = wanted(result.model, result, self._until_witnessed) or result.limits.reached(result)
                if stop is not None:
                    result.stop = stop
                    break
                self._expand_level()
            else:
                result.stop = wanted(result.model, result, self._until_witnessed) or Stop.EXHAUSTED
            if self._graph is not None and result.stop is Stop.EXHAUSTED:
                self._judge_liveness(self._graph)
        except (_LimitReachedError, KeyboardInterrupt):
            self._wait()
            self._judge.settle(self._history)
            # What was found of the unfinished level counts as seen; nothing is claimed about the rest of it.
            result.levels += [rest] if (rest := self._history.size - result.states) else []
            over = Limits(None, None, result.limits.memory, result.limits.seconds).reached(result)
            result.stop = over or Stop.INTERRUPTED
        except OSError as error:
            why = f"the temporary folder cannot take more ({error.strerror}); TMPDIR names another"
            raise ModelError(why) from None
        finally:
            if self._helper is not None:
                self._helper.shutdown()
            self._report()
            self._history.close()
            if self._graph is not None:
                self._graph.close()
        return result

    def _judge_liveness(self, graph: Graph) -> None:
        """Judge what needs the whole space, one property after the other as long as time and memory are left."""
        result, moves = self.result, graph.finish()
        memory = result.limits.memory
        left = None if memory is None else max(0, memory - result.states * liveness.NEEDED)
        room = Limits(None, None, left, result.limits.seconds)
        for prop in result.model.liveness:
            self._report()
            stop = room.reached(result)
            if stop is not None:
                result.stop = stop
                return
            liveness.judge(result, prop, graph, moves, self._history)

    # -- a level ---------------------------------------------------------------------------------------------

    def _start(self) -> None:
        block = self._pool.take()
        cells = self.tables.row(self.result.model.initial())
        block.rows[0, : len(cells)], block.size = cells, 1
        block.fingerprints[0] = np.bitwise_xor.reduce(self.tables.zobrist.view[cells])
        self._visited.add(block.fingerprints[0])
        self._next = [block]
        self._judge.examine(block, 0, 1, 0)
        self._judge.settle(self._history)

    def _expand_level(self) -> None:
        level, self._next = self._next, []
        base = self._history.size - sum(block.size for block in level)
        level.reverse()
        while level:
            block = level.pop()
            todo = np.arange(block.size, dtype=np.uint32)
            while todo.size:
                todo = self._expand_block(block, todo, base)
            base += block.size
            self._spent.append(block)
        self._wait()

    def _expand_block(self, block: Block, todo: Array, base: int) -> Array:
        """Expand the rows `todo` of a block; returns those that must be tried again."""
        position, again = 0, []
        aside, dead = np.empty(ASIDE, np.uint32), np.empty(block.size, np.uint32)
        while position < todo.size:
            tables, counters, batch = self.tables, self._counters, self._batches[0]
            self._make_room_for_moves()
            counters[:] = 0
            before = position
            position = kernels.expand(
                block.rows, self._width, block.fingerprints, todo, position,
                tables.listed.view, tables.masks.view, tables.masked, tables.joint,
                self._lists_of, tables.looks.view, self._look, self._known, self._known_lists,
                self._row, self._stacks[0], *self._program(),
                batch.found, batch.origins, self._fired, dead, aside, self._missing, counters,
            )  # fmt: skip
            missing, batch.size, put_aside, deadlocked, error = (int(c) for c in counters)
            if error or (position == before and not missing):
                raise ModelError("a move leads to operations without end, or a state has too many moves")
            again.append(aside[:put_aside].copy())
            self._hand_over(block, batch, dead[:deadlocked].copy(), base)
            if missing:
                self._wait()
                tables.fill(self._missing[:missing])
            self._check_limits()
        return np.concatenate(again)

    def _program(self) -> tuple[Any, ...]:
        """The arrays of the tables that say what moves do, as the kernels take them."""
        return (self.tables.entries.view, self.tables.zobrist.view, *self.tables.readers())

    # -- a batch ---------------------------------------------------------------------------------------------

    def _hand_over(self, block: Block, batch: Batch, dead: Array, base: int) -> None:
        """Have a batch taken in: at once, or by the other thread as soon as it is done with the last one."""
        self._wait()
        self._batches.reverse()
        if self._helper is None:
            self._take_in(block, batch, dead, base)
            self._judge.settle(self._history)
        else:
            self._taking_in = self._helper.submit(self._take_in, block, batch, dead, base)

    def _wait(self) -> None:
        """Until no batch is being taken in; then what it left to Python is done."""
        if self._taking_in is not None:
            self._taking_in.result()
            self._taking_in = None
            self._judge.settle(self._history)
        while self._spent:
            self._pool.give(self._spent.pop())

    def _take_in(self, block: Block, batch: Batch, dead: Array, base: int) -> None:
        """Passes two and three, and the properties, for the successors of a block."""
        self.result.transitions += batch.size
        self.result.deadlocks += dead.size
        self._judge.examine_final(block, dead, base)
        fresh = self._look_up(block, batch, base)
        parents, ordinals = np.empty(fresh, np.uint32), np.empty(fresh, np.uint16)
        done = 0
        while done < fresh:
            if not self._next or self._next[-1].size == len(self._next[-1].rows):
                self._next.append(self._pool.take())
            into = self._next[-1]
            count = min(fresh - done, len(into.rows) - into.size)
            kernels.build(
                block.rows, self._fresh, done, done + count, batch.found, batch.origins, base,
                into.rows, into.fingerprints, into.size, parents, ordinals,
                self._stacks[1], *self._program(), *self._nothing_missing,
            )  # fmt: skip
            self._history.append(parents[done : done + count], ordinals[done : done + count])
            begin, into.size = into.size, into.size + count
            self._judge.examine(into, begin, into.size, self._history.size - into.size)
            done += count

    def _look_up(self, block: Block, batch: Batch, base: int) -> int:
        """Pass two; with the graph, also to which states the moves lead. Returns how many are new."""
        visited, entries = self._visited, self.tables.entries.view
        visited.reserve(batch.size)
        if self._graph is None:
            fresh = int(kernels.probe(
                visited.slots, visited.shift, visited.recent, batch.found, batch.size, self._fresh,
                batch.origins, entries, self._reached,
            ))  # fmt: skip
        else:
            targets = np.empty(batch.size, np.uint32)
            fresh = int(graph_kernels.number(
                visited.slots, visited.numbers, visited.shift, visited.recent, visited.recent_numbers,
                batch.found, batch.size, self._fresh, batch.origins, entries, self._reached, visited.used, targets,
            ))  # fmt: skip
            self._graph.add(base, block.size, batch.origins, targets)
        visited.used += fresh
        return fresh

    # -- bookkeeping -----------------------------------------------------------------------------------------

    def _make_room_for_moves(self) -> None:
        """Counters for every move there is; nothing counts while they are replaced."""
        if self.tables.label_of.size > len(self._fired):
            self._wait()
            more = np.zeros(2 * self.tables.label_of.size - len(self._fired), np.uint64)
            self._fired, self._reached = (np.concatenate([c, more]) for c in (self._fired, self._reached))

    def _check_limits(self) -> None:
        if time.monotonic() - self._reported < REPORT_EVERY:
            return
        self._report()
        limits = self.result.limits
        if Limits(None, None, limits.memory, limits.seconds).reached(self.result) is not None:
            raise _LimitReachedError

    def _report(self) -> None:
        """Bring the result up to date and show it."""
        self._make_room_for_moves()
        result, self._reported = self.result, time.monotonic()
        result.seconds = self._reported - self._began
        result.peak_bytes = max(result.peak_bytes, self._process.memory_info().rss - self._resident)
        result.python_steps, result.python_calls = self.tables.steps, self.tables.calls
        result.python_seconds = self.tables.seconds
        labels = self.tables.label_of.view
        fired, reached = (
            np.bincount(labels, counts[: labels.size], len(self.tables.labels))
            for counts in (self._fired, self._reached)
        )
        result.coverage = {label.action: Coverage() for label in self.tables.labels[1:]}
        for number, label in enumerate(self.tables.labels[1:], 1):
            result.coverage[label.action].fired += int(fired[number])
            result.coverage[label.action].new += int(reached[number])
        self._judge.report()
        self._progress(result)


def explore(
    model: Model,
    limits: Limits = Limits(),
    *,
    until_witnessed: bool = False,
    progress: Callable[[Exploration], None] = lambda _: None,
    workers: int = 1,
) -> Exploration:
    """Explore a model by tables, with one or two threads. Raises ModelError."""
    return Search(model, limits, until_witnessed=until_witnessed, progress=progress, workers=workers).run()
