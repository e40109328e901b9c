"""The table engine: breadth-first search, level by level, in three passes of integer kernels.

A level is worked off block by block, a block in batches: the successors of some rows (`expand`), which of them
are new (`probe`), the rows of the new ones (`build`), and the properties of these (`examine`). What a pass finds
missing in the tables is worked out by Python between passes, and only the rows concerned are tried again.

Rules: a level is finished before what was found in it ends the search, so that a reported path is shortest; a
path is rebuilt by the plain engine from ordinals, and its last row must be the one that the tables reached.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil

from checker.engine import kernels
from checker.engine.frontier import Block, History, Pool, padded
from checker.engine.model import Finding, Model, ModelError
from checker.engine.plain import read, rebuild
from checker.engine.result import Coverage, Evaluations, Exploration, Found, Limits, Stop, wanted
from checker.engine.tables import Tables
from checker.engine.visited import Visited

BATCH = 1 << 16  # successors generated before they are looked up
ASIDE = 4096  # rows put aside before the tables are filled
REPORT_EVERY = 0.25  # seconds between calls of `progress`

Array = np.ndarray[Any, Any]


class _Interrupt(Exception):
    """A limit was reached inside a level."""


class Search:
    """One exploration by tables; `run` may be called once."""

    def __init__(
        self,
        model: Model,
        limits: Limits = Limits(),  # noqa: B008 (frozen)
        *,
        until_witnessed: bool = False,
        progress: Callable[[Exploration], None] = lambda _: None,
        tables: Tables | None = None,
    ) -> None:
        self.result = Exploration(model, "tables", limits)
        self.tables = tables or Tables(model)
        self._until_witnessed, self._progress = until_witnessed, progress
        self._process = psutil.Process()
        self._resident = self._process.memory_info().rss
        width = len(model.columns)
        self._pool, self._visited, self._history = Pool(width), Visited(), History()
        self._next: list[Block] = []
        self._row = np.zeros(padded(width), np.uint32)
        self._lists_of = np.zeros(width + len(self.tables.joint) + 1, np.uint64)
        self._stack = np.zeros(2 * kernels.STACK, np.uint64)
        self._found = np.zeros(BATCH, np.uint64)
        self._origins, self._fresh = np.zeros(BATCH, np.uint64), np.zeros(BATCH + 1, np.uint32)
        self._missing = np.zeros(8192, np.uint64)
        self._counters = np.zeros(5, np.int64)
        self._fired, self._reached = np.zeros(64, np.uint64), np.zeros(64, np.uint64)
        self._judged = {group: _Judged(len(props)) for group, props in self._property_sets()}
        self._began = self._reported = time.monotonic()

    def _property_sets(self) -> tuple[tuple[str, list[tuple[int, int]]], ...]:
        return (("usual", self.tables.usual), ("final", self.tables.final))

    # -- the search ------------------------------------------------------------------------------------------

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
        except (_Interrupt, KeyboardInterrupt):
            # What was found of the unfinished level counts as seen; nothing is claimed about the rest of it.
            result.levels.append(sum(block.size for block in self._next))
            over = result.limits.reached(result)
            result.stop = over if over not in (None, Stop.DEPTH) else Stop.INTERRUPTED
        finally:
            self._report()
            self._history.close()
        return result

    def _start(self) -> None:
        block = self._pool.take()
        cells = self.tables.row(self.result.model.initial())
        block.rows[0, : len(cells)], block.size = cells, 1
        block.fingerprints[0] = np.bitwise_xor.reduce(self.tables.zobrist.view[cells])
        self._visited.add(block.fingerprints[0])
        self._next = [block]
        self._base = 0
        self._examine("usual", block, np.arange(1, dtype=np.uint32), 0)

    def _expand_level(self) -> None:
        level, self._next = self._next, []
        base = self._history.size - sum(block.size for block in level)
        self._base = base
        level.reverse()
        while level:
            block = level.pop()
            todo = np.arange(block.size, dtype=np.uint32)
            while todo.size:
                todo = self._expand_block(block, todo)
            self._base += block.size
            self._pool.give(block)

    def _expand_block(self, block: Block, todo: Array) -> Array:
        """Expand the rows `todo` of a block; returns those that must be tried again."""
        position, again = 0, []
        aside, dead = np.empty(ASIDE, np.uint32), np.empty(block.size, np.uint32)
        while position < todo.size:
            tables, counters = self.tables, self._counters
            self._make_room_for_moves()
            counters[:] = 0
            before = position
            position = kernels.expand(
                block.rows, len(self.result.model.columns), block.fingerprints, todo, position,
                tables.listed.view, tables.lists.view, tables.masks.view, tables.masked, tables.joint,
                self._lists_of, self._row, self._stack, *self._program(),
                self._found, self._origins, self._fired, dead, aside, self._missing, counters,
            )  # fmt: skip
            missing, successors, put_aside, deadlocked, error = (int(c) for c in counters)
            if error or (position == before and not missing):
                raise ModelError("a move leads to operations without end, or a state has too many moves")
            self._take_in(block, successors)
            self.result.deadlocks += deadlocked
            if deadlocked:
                self._examine("final", block, dead[:deadlocked].copy(), self._base)
            again.append(aside[:put_aside].copy())
            if missing:
                self._fill(missing)
            self._check_time()
        return np.concatenate(again)

    def _take_in(self, block: Block, successors: int) -> None:
        """Passes two and three for a batch of successors of a block."""
        self.result.transitions += successors
        self._visited.reserve(successors)
        fresh = int(kernels.probe(
            self._visited.slots, self._visited.shift, self._visited.recent, self._found, successors, self._fresh,
            self._origins, self.tables.entries.view, self._reached,
        ))  # fmt: skip
        self._visited.used += fresh
        parents, ordinals = np.empty(fresh, np.uint32), np.empty(fresh, np.uint16)
        done = 0
        while done < fresh:
            if not self._next or self._next[-1].size == len(self._next[-1].rows):
                self._next.append(self._pool.take())
            into = self._next[-1]
            count = min(fresh - done, len(into.rows) - into.size)
            kernels.build(
                block.rows, self._fresh, done, done + count, self._found, self._origins, self._base, into.rows, into.fingerprints, into.size, parents, ordinals,
                self._stack, *self._program(), self._missing, self._counters,
            )  # fmt: skip
            todo = np.arange(into.size, into.size + count, dtype=np.uint32)
            self._history.append(parents[done : done + count], ordinals[done : done + count])
            into.size += count
            self._examine("usual", into, todo, self._history.size - into.size)
            done += count

    def _program(self) -> tuple[Any, ...]:
        """The arrays of the tables that say what moves do, as the kernels take them."""
        tables = self.tables
        return (tables.entries.view, tables.zobrist.view, *self._readers())

    def _readers(self) -> tuple[Any, ...]:
        tables = self.tables
        return (
            tables.group_rows.view, tables.read_rows.view, tables.classes.view, tables.bases.view,
            tables.memo.data, tables.memo.shift,
        )  # fmt: skip

    # -- properties ------------------------------------------------------------------------------------------

    def _examine(self, which: str, block: Block, todo: Array, base: int) -> None:
        """Hold rows of a block to the properties; `base` is the number of its first row among all states."""
        judged = self._judged[which]
        if not judged.first.size:
            return
        properties = dict(self._property_sets())[which]
        groups = np.array([group for _, group in properties], np.uint32)
        while todo.size:
            self._counters[:] = 0
            aside = np.empty(todo.size, np.uint32)
            kernels.examine(
                block.rows, todo, groups, self.tables.verdicts.view, judged.first, judged.states, judged.premises,
                judged.answers, *self._readers(), aside, self._missing, self._counters,
            )  # fmt: skip
            todo = aside[: self._counters[2]].copy()
            if self._counters[0]:
                self._fill(int(self._counters[0]))
        for place, (position, _) in enumerate(properties):
            first = int(judged.first[place])
            name = self.result.model.properties[position].name
            if first >= 0 and name not in self.result.found:
                self._record(position, block.rows[first], base + first)

    def _record(self, position: int, cells: Array, state: int) -> None:
        """Rebuild the path to the first finding of a property, and see that both engines arrive at one row."""
        model = self.result.model
        path = rebuild(model, self._history.ordinals(state))
        if path[-1].row != self.tables.values(int(cell) for cell in cells[: len(model.columns)]):
            raise ModelError("the plain engine reaches another state than the tables; a step is not a function")
        prop = model.properties[position]
        finding = prop.check(*(read(model, prop.reads, path[-1].row) or ()))
        if not isinstance(finding, Finding):
            raise ModelError(f"the property {prop.name!r} finds nothing where it found something before")
        self.result.found[prop.name] = Found(prop, finding, len(path) - 1, path)

    # -- bookkeeping -----------------------------------------------------------------------------------------

    def _fill(self, missing: int) -> None:
        self.tables.fill(self._missing[:missing])

    def _make_room_for_moves(self) -> None:
        if self.tables.action_of.size > len(self._fired):
            more = np.zeros(2 * self.tables.action_of.size - len(self._fired), np.uint64)
            self._fired, self._reached = (np.concatenate([c, more]) for c in (self._fired, self._reached))

    def _check_time(self) -> None:
        if time.monotonic() - self._reported < REPORT_EVERY:
            return
        self._report()
        limits = self.result.limits
        if Limits(memory=limits.memory, seconds=limits.seconds).reached(self.result) is not None:
            raise _Interrupt

    def _report(self) -> None:
        """Bring the result up to date and show it."""
        self._make_room_for_moves()
        result, self._reported = self.result, time.monotonic()
        result.seconds = self._reported - self._began
        result.peak_bytes = max(result.peak_bytes, self._process.memory_info().rss - self._resident)
        result.python_steps, result.python_seconds = self.tables.calls, self.tables.seconds
        actions = self.tables.action_of.view
        fired, reached = (
            np.bincount(actions, counts[: actions.size], len(self.tables.actions) + 1)
            for counts in (self._fired, self._reached)
        )
        result.coverage = {
            action: Coverage(int(fired[number]), int(reached[number]))
            for action, number in self.tables.actions.items()
        }
        for which, properties in self._property_sets():
            judged = self._judged[which]
            for place, (position, _) in enumerate(properties):
                result.evaluations[result.model.properties[position].name] = Evaluations(
                    int(judged.states[place]), int(judged.premises[place])
                )
        self._progress(result)


class _Judged:
    """The counts of a set of properties, as `kernels.examine` keeps them."""

    def __init__(self, properties: int) -> None:
        self.first = np.full(properties, -1, np.int64)
        self.states, self.premises = np.zeros(properties, np.int64), np.zeros(properties, np.int64)
        self.answers = np.zeros(properties, np.int64)


def explore(
    model: Model,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    *,
    until_witnessed: bool = False,
    progress: Callable[[Exploration], None] = lambda _: None,
) -> Exploration:
    """Explore a model by tables. Raises ModelError."""
    return Search(model, limits, until_witnessed=until_witnessed, progress=progress).run()
