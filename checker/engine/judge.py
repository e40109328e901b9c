"""Holding states to properties: by tables where they know the answer, by the model where they do not.

Rows are examined as they are built, maybe by a thread beside the search. What the tables do not know yet waits,
and so does every finding, until `settle` is called while no kernel runs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from checker.engine import kernels
from checker.engine.frontier import Block, History
from checker.engine.model import Finding, ModelError
from checker.engine.result import Evaluations, Exploration, Found
from checker.engine.semantics import read, rebuild
from checker.engine.tables import Tables

Array = np.ndarray[Any, Any]
MISSING = 8192


class _Waiting(NamedTuple):
    """Rows of a block that could not be judged yet; `base` is the number of the block's first row."""

    properties: _Properties
    block: Block
    rows: Array
    base: int


class _Hit(NamedTuple):
    """The first row with a finding of a property, and its number among all states."""

    position: int
    cells: tuple[int, ...]
    state: int


class _Properties:
    """Properties that are held to the same states, with their counts as `kernels.examine` keeps them."""

    def __init__(self, numbered: list[tuple[int, int]]) -> None:
        self.positions = [position for position, _ in numbered]
        self.groups = np.array([group for _, group in numbered], np.uint32)
        self.first = np.full(len(numbered), -1, np.int64)
        self.states, self.premises, self.answers = (np.zeros(len(numbered), np.int64) for _ in range(3))


class Judge:
    """Counts evaluations, and keeps the first finding of every property."""

    def __init__(self, tables: Tables, result: Exploration) -> None:
        self._tables, self._result = tables, result
        self._usual, self._final = _Properties(tables.usual), _Properties(tables.final)
        self._missing, self._counters = np.zeros(MISSING, np.uint64), np.zeros(5, np.int64)
        self._waiting: list[_Waiting] = []
        self._hits: list[_Hit] = []

    def examine(self, block: Block, begin: int, end: int, base: int) -> None:
        """Hold the rows begin to end of a block to the properties of all states."""
        if self._usual.groups.size:
            self._examine(_Waiting(self._usual, block, np.arange(begin, end, dtype=np.uint32), base))

    def examine_final(self, block: Block, rows: Array, base: int) -> None:
        """Hold rows of states without a successor to the properties of these."""
        if self._final.groups.size and rows.size:
            self._examine(_Waiting(self._final, block, rows, base))

    def settle(self, history: History) -> None:
        """Judge what waits, filling the tables; and rebuild the paths of what was found."""
        while self._waiting:
            self._examine(self._waiting[0], fill=True)
            del self._waiting[0]  # only now: an interrupt before leaves it to be judged again
        while self._hits:
            self._record(self._hits[0], history)
            del self._hits[0]

    def report(self) -> None:
        """Bring the counts of the result up to date."""
        for properties in (self._usual, self._final):
            for place, position in enumerate(properties.positions):
                counts = Evaluations(int(properties.states[place]), int(properties.premises[place]))
                self._result.evaluations[self._result.model.properties[position].name] = counts

    def _examine(self, what: _Waiting, *, fill: bool = False) -> None:
        tables, properties = self._tables, what.properties
        self._counters[:] = 0
        aside = np.empty(what.rows.size, np.uint32)
        unseen = properties.first < 0
        kernels.examine(
            what.block.rows, what.rows, properties.groups, tables.verdicts.view, properties.first, properties.states,
            properties.premises, properties.answers, *tables.readers(), aside, self._missing, self._counters,
        )  # fmt: skip
        for place in np.flatnonzero(unseen & (properties.first >= 0)):
            row = int(properties.first[place])
            cells = tuple(int(cell) for cell in what.block.rows[row, : len(tables.model.columns)])
            self._hits.append(_Hit(properties.positions[place], cells, what.base + row))
        missing, put_aside = int(self._counters[0]), int(self._counters[2])
        if put_aside:
            self._waiting.append(what._replace(rows=aside[:put_aside].copy()))
        if fill and missing:
            tables.fill(self._missing[:missing])

    def _record(self, hit: _Hit, history: History) -> None:
        """Rebuild the path to a finding, and see that both engines arrive at one row and find the same."""
        model = self._result.model
        path = rebuild(model, history.ordinals(hit.state))
        if path[-1].row != self._tables.values(hit.cells):
            raise ModelError("the plain engine reaches another state than the tables; a step is not a function")
        prop = model.properties[hit.position]
        finding = prop.check(*(read(model, prop.reads, path[-1].row) or ()))
        if not isinstance(finding, Finding):
            raise ModelError(f"the property {prop.name!r} finds nothing where it found something before")
        self._result.found[prop.name] = Found(prop, finding, len(path) - 1, path)
