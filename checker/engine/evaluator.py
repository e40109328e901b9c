"""Evaluates properties in states: with the tables for known answers, and with the model for new ones.

Rows are examined as they are built, possibly in a second thread. Rows with an unknown answer wait, and so does every
finding, until `settle` is called while no kernel runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from checker.engine.frontier import OriginLog, RowBlock
from checker.engine.kernels import graph_kernels, search_kernels
from checker.engine.layout import EvaluationMode
from checker.engine.liveness.graph import Marks
from checker.engine.model import Finding, ModelError
from checker.engine.result import Discovery, Evaluations, Exploration
from checker.engine.semantics import answer, rebuild
from checker.engine.tables import Tables

Array = np.ndarray[Any, Any]
MISSING = 8192


class _PendingRows(NamedTuple):
    """Rows of a block that could not be judged yet; `base` is the number of the block's first row."""

    bundles: _Bundles
    block: RowBlock
    rows: Array
    base: int


class Hit(NamedTuple):
    """The first row with a finding of a property, and its number among all states."""

    position: int
    cells: tuple[int, ...]
    state: int


class _Bundles:
    """Bundles of properties for the same states; `verdicts` is room for those of one row."""

    def __init__(self, bundles: Array) -> None:
        self.bundles = bundles
        self.verdicts = np.zeros(len(bundles), np.uint32)


class Evaluator:
    """The counts of evaluations, and the first finding of every property; for liveness, each state's verdict."""

    def __init__(self, tables: Tables, result: Exploration, marks: Marks | None) -> None:
        self._tables, self._result, self._marks = tables, result, marks
        self._every_state, self._final, self._liveness = (_Bundles(tables.bundles(how)) for how in EvaluationMode)
        # For each verdict: the number of times it was reached, and its first row in the block in which it was first
        # reached.
        self._tally, self._first = np.zeros(64, np.uint64), np.zeros(64, np.uint32)
        self._found: set[int] = set()
        self._missing, self._counters = np.zeros(MISSING, np.uint64), np.zeros(5, np.int64)
        self._waiting: list[_PendingRows] = []
        self._hits: list[Hit] = []
        self.recorded: list[Hit] = []  # all findings so far, except those of liveness

    def examine(self, block: RowBlock, begin: int, end: int, base: int) -> None:
        """Evaluate the properties of all states in the rows begin to end of a block."""
        for bundles in (self._every_state, self._liveness):
            if bundles.bundles.size:
                self._examine(_PendingRows(bundles, block, np.arange(begin, end, dtype=np.uint32), base))

    def examine_final(self, block: RowBlock, rows: Array, base: int) -> None:
        """Evaluate the FINAL properties in rows of states without a successor."""
        if self._final.bundles.size and rows.size:
            self._examine(_PendingRows(self._final, block, rows, base))

    def settle(self, history: OriginLog) -> None:
        """Judge the waiting rows, which fills the tables, and rebuild the paths of the findings."""
        while self._waiting:
            self._examine(self._waiting[0], fill=True)
            del self._waiting[0]  # only now: after an interrupt before this line, it is judged again
        while self._hits:
            self._record(self._hits[0], history)
            del self._hits[0]

    def report(self) -> None:
        """Update the evaluation counts of the result."""
        counts = [Evaluations() for _ in self._result.model.properties]
        for verdict, times in zip(self._tables.verdicts, self._tally.tolist(), strict=False):
            for position in verdict.bundle.properties:
                counts[position].states += times
            for position in verdict.premises:
                counts[position].premise += times
        self._result.evaluations = {
            p.name: count for p, count in zip(self._result.model.properties, counts, strict=True)
        }

    @property
    def tally(self) -> Array:
        """The number of times that each verdict was reached."""
        return self._tally

    def resume(self, tally: Array, recorded: Iterable[Hit], history: OriginLog) -> None:
        """Continue with the counts of another evaluator; the paths of its findings are rebuilt."""
        self._tally, self._first = tally, np.zeros(len(tally), np.uint32)
        for hit in recorded:
            self._found.add(hit.position)
            self._record(hit, history)

    def _examine(self, what: _PendingRows, *, fill: bool = False) -> None:
        tables = self._tables
        self._make_room()
        self._counters[:] = 0
        aside = np.empty(what.rows.size, np.uint32)
        rows = (what.block.rows, what.rows, what.bundles.bundles, tables.verdict_of.view, what.bundles.verdicts)
        rest = (*tables.readers(), aside, self._missing, self._counters)
        if what.bundles is self._liveness and self._marks is not None:
            marks = self._marks.room(what.base + len(what.block.rows))
            graph_kernels.mark(*rows, self._tally, marks, what.base, *rest)
        else:
            unseen = self._tally == 0
            search_kernels.examine(*rows, self._tally, self._first, *rest)
            self._note(np.flatnonzero(unseen & (self._tally > 0)), what)
        missing, put_aside = int(self._counters[0]), int(self._counters[2])
        if put_aside:
            self._waiting.append(what._replace(rows=aside[:put_aside].copy()))
        if fill and missing:
            tables.fill(self._missing[:missing])

    def _note(self, verdicts: Array, what: _PendingRows) -> None:
        """Note the findings of verdicts that were reached for the first time, each property's first."""
        hits: dict[int, int] = {}
        for number in sorted(verdicts, key=self._first.__getitem__):
            for position in self._tables.verdicts[number].found:
                if position not in self._found:
                    hits.setdefault(position, int(self._first[number]))
        for position, row in sorted(hits.items()):
            self._found.add(position)
            cells = tuple(int(cell) for cell in what.block.rows[row, : len(self._tables.model.columns)])
            self._hits.append(Hit(position, cells, what.base + row))

    def _make_room(self) -> None:
        """Add counters for all verdicts."""
        more = len(self._tables.verdicts) - len(self._tally)
        if more > 0:
            self._tally, self._first = (
                np.concatenate([c, np.zeros(more + len(c), c.dtype)]) for c in (self._tally, self._first)
            )

    def _record(self, hit: Hit, history: OriginLog) -> None:
        """Rebuild the path to a finding, and check that both engines reach the same row and the property finds
        something.
        """
        model = self._result.model
        path = rebuild(model, history.ordinals(hit.state))
        if path[-1].row != self._tables.values(hit.cells):
            raise ModelError("the plain engine reaches another state than the tables; a step is not a function")
        prop = model.properties[hit.position]
        finding = answer(model, prop, path[-1].row)
        if not isinstance(finding, Finding):
            raise ModelError(f"the property {prop.name!r} finds nothing where it found something before")
        self._result.found[prop.name] = Discovery(prop, finding, len(path) - 1, path)
        self.recorded.append(hit)
