"""Evaluates properties in states: with the tables for known answers, and with the model for new ones.

Rows are judged as they are built, possibly in a second thread. Rows with an unknown answer wait, and so does every
finding, until `settle` is called while no kernel runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from checker.engine.frontier import OriginLog, RowBlock
from checker.engine.kernels import build_kernels
from checker.engine.liveness.graph import Marks
from checker.engine.model import Finding, ModelError
from checker.engine.result import Discovery, Evaluations, Exploration
from checker.engine.semantics import answer, rebuild
from checker.engine.tables import Tables

Array = np.ndarray[Any, Any]
MISSING = 8192
ALL = np.uint64((1 << 64) - 1)  # bundles


class _PendingRows(NamedTuple):
    """Rows of a block that could not be judged yet; `base` is the number of the block's first row.

    `affected` has the bundles to evaluate for each row (u64); None for final states.
    """

    block: RowBlock
    rows: Array
    base: int
    affected: Array | None


class Hit(NamedTuple):
    """The first row with a finding of a property, and its number among all states."""

    position: int
    cells: tuple[int, ...]
    state: int


class _Tally:
    """For each judgement or verdict, the number of times it was reached (u64), and its first state (u64)."""

    def __init__(self) -> None:
        self.times, self.first = np.zeros(64, np.uint64), np.zeros(64, np.uint64)

    def make_room(self, numbers: int) -> None:
        """Add counters for this number of judgements or verdicts."""
        more = numbers - len(self.times)
        if more > 0:
            self.times, self.first = (np.append(c, np.zeros(more + len(c), c.dtype)) for c in (self.times, self.first))


class Evaluator:
    """The counts of evaluations, and the first finding of every property; for liveness, each state's judgement."""

    def __init__(self, tables: Tables, result: Exploration, marks: Marks | None) -> None:
        self._tables, self._result, self._marks = tables, result, marks
        self._judged, self._final = _Tally(), _Tally()
        self._verdicts = np.zeros(len(tables.verdicts.final), np.uint64)  # room for those of one row
        self._found: set[int] = set()
        self._missing, self._counters = np.zeros(MISSING, np.uint64), np.zeros(5, np.int64)
        self._waiting: list[_PendingRows] = []
        self._hits: list[Hit] = []
        self.recorded: list[Hit] = []  # all findings so far, except those of liveness

    @contextmanager
    def judging(self, block: RowBlock, begin: int, base: int) -> Iterator[tuple[Any, ...]]:
        """Gives a kernel its arguments to judge the rows of a block from `begin`; `base` is the state of its row 0."""
        verdicts = self._tables.verdicts
        self._judged.make_room(verdicts.judgements.size)
        self._counters[:] = 0
        aside, affecting = np.empty(len(block.rows), np.uint32), np.empty(len(block.rows), np.uint64)
        unseen = self._judged.times == 0
        yield (
            verdicts.judged, verdicts.judgements.view, self._judged.times, self._judged.first,
            self._tables.cells.view, *self._tables.readers(), aside, affecting, self._missing, self._counters,
        )  # fmt: skip
        if put_aside := int(self._counters[2]):
            self._waiting.append(_PendingRows(block, aside[:put_aside].copy(), base, affecting[:put_aside].copy()))
        reached = np.flatnonzero(unseen & (self._judged.times > 0))
        self._note({int(self._judged.first[n]): verdicts.found(n) for n in reached.tolist()}, block, base)
        self._mark(block, begin, base)

    def judge_first(self, block: RowBlock) -> None:
        """Judge the initial state, the first row of a block."""
        block.judgements[0] = 0
        self._judge(_PendingRows(block, np.zeros(1, np.uint32), 0, np.full(1, ALL, np.uint64)))

    def examine_final(self, block: RowBlock, rows: Array, base: int) -> None:
        """Evaluate the FINAL properties in rows of states without a successor."""
        if self._verdicts.size and rows.size:
            self._judge(_PendingRows(block, rows, base, None))

    def settle(self, history: OriginLog) -> None:
        """Judge the waiting rows, which fills the tables, and rebuild the paths of the findings."""
        while self._waiting:
            self._judge(self._waiting[0], fill=True)
            del self._waiting[0]  # only now: after an interrupt before this line, it is judged again
        while self._hits:
            self._record(self._hits[0], history)
            del self._hits[0]

    def report(self) -> None:
        """Update the evaluation counts of the result."""
        counts = [Evaluations() for _ in self._result.model.properties]
        verdicts = self._tables.verdicts
        totals = verdicts.totals(self._judged.times, self._final.times)
        for verdict, times in zip(verdicts.verdicts, totals.tolist(), strict=True):
            for position in verdict.bundle.properties:
                counts[position].states += times
            for position in verdict.premises:
                counts[position].premise += times
        self._result.evaluations = {
            p.name: count for p, count in zip(self._result.model.properties, counts, strict=True)
        }

    @property
    def tallies(self) -> tuple[Array, Array]:
        """The number of times that each judgement was reached, and each verdict in final states."""
        return self._judged.times, self._final.times

    def resume(self, tallies: tuple[Array, Array], recorded: Iterable[Hit], history: OriginLog) -> None:
        """Continue with the counts of another evaluator; the paths of its findings are rebuilt."""
        for tally, times in zip((self._judged, self._final), tallies, strict=True):
            tally.times, tally.first = times, np.zeros(len(times), np.uint64)
        for hit in recorded:
            self._found.add(hit.position)
            self._record(hit, history)

    def _judge(self, what: _PendingRows, *, fill: bool = False) -> None:
        """Judge rows again, or evaluate final states."""
        if what.affected is None:
            self._evaluate(what)
        else:
            block, rows, base, affected = what
            with self.judging(block, 0, base) as judging:
                build_kernels.judge_rows(block.rows, rows, affected, block.judgements, base, *judging)
        if fill and (missing := int(self._counters[0])):
            self._tables.fill(self._missing[:missing])

    def _evaluate(self, what: _PendingRows) -> None:
        """Evaluate the FINAL properties in rows."""
        verdicts = self._tables.verdicts
        self._final.make_room(len(verdicts.verdicts))
        self._counters[:] = 0
        aside, unseen = np.empty(what.rows.size, np.uint32), self._final.times == 0
        build_kernels.evaluate_rows(
            what.block.rows, what.rows, what.base, verdicts.final, self._verdicts, self._final.times, self._final.first,
            self._tables.cells.view, *self._tables.readers(), aside, self._missing, self._counters,
        )  # fmt: skip
        if put_aside := int(self._counters[2]):
            self._waiting.append(what._replace(rows=aside[:put_aside].copy()))
        found: dict[int, list[int]] = {}
        for number in np.flatnonzero(unseen & (self._final.times > 0)).tolist():
            found.setdefault(int(self._final.first[number]), []).extend(verdicts.verdicts[number].found)
        self._note(found, what.block, what.base)

    def _note(self, found: dict[int, list[int]], block: RowBlock, base: int) -> None:
        """Note the first state with a finding of each property; `found` has the findings of states in a block."""
        hits: dict[int, int] = {}
        for state in sorted(found):
            for position in found[state]:
                if position not in self._found:
                    hits.setdefault(position, state)
        for position, state in sorted(hits.items()):
            self._found.add(position)
            cells = tuple(int(cell) for cell in block.rows[state - base, : len(self._tables.model.columns)])
            self._hits.append(Hit(position, cells, state))

    def _mark(self, block: RowBlock, begin: int, base: int) -> None:
        """Store the judgements of a block's states from row `begin` for liveness."""
        if self._marks is not None:
            marks = self._marks.room(base + len(block.rows))
            marks[base + begin : base + block.size] = block.judgements[begin : block.size]

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
