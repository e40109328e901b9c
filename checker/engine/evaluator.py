"""Evaluates properties in states: with the tables for known answers, and with the model for new ones.

Rows are judged as they are built, by any worker. Rows with an unknown answer wait, and so does every finding, until
`settle` is called while no kernel runs. The first finding of a property is that with the least state number, so that it
does not depend on the order of evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from checker.engine.arrays import grown
from checker.engine.kernels import build_kernels
from checker.engine.result import Exploration
from checker.engine.states.frontier import OriginLog, RowBlock
from checker.engine.steps import count_steps, step_properties
from checker.engine.tables import Tables

Array = np.ndarray[Any, Any]
MISSING = 8192
LAST = np.uint64((1 << 64) - 1)  # greater than every state
ALL = np.uint64((1 << 64) - 1)  # bundles


class PendingRows(NamedTuple):
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


class Tally:
    """For each judgement or verdict: the number of times it was reached, and its first state; `noted` are old ones."""

    def __init__(self) -> None:
        self.times, self.first, self.noted = np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.bool_)

    def make_room(self, numbers: int) -> None:
        """Add counters for this number of judgements or verdicts."""
        before = len(self.times)
        self.times, self.first, self.noted = (grown(array, numbers) for array in (self.times, self.first, self.noted))
        self.first[before:] = LAST

    def add(self, other: Tally) -> None:
        """Add the counts of another tally."""
        self.make_room(len(other.times))
        self.times[: len(other.times)] += other.times
        first = self.first[: len(other.first)]
        np.minimum(first, other.first, out=first)

    def clear(self) -> None:
        """Forget all counts."""
        self.times[:] = 0
        self.first[:] = LAST

    def unnoted(self) -> list[int]:
        """The judgements or verdicts that were reached since the last call."""
        reached = np.flatnonzero((self.times > 0) & ~self.noted)
        self.noted[reached] = True
        return [int(number) for number in reached]


class Evaluator:
    """The counts of evaluations, and the first finding of every property; for liveness, each state's judgement."""

    def __init__(self, tables: Tables, result: Exploration) -> None:
        self._tables, self._result = tables, result
        self._judged, self._final = Tally(), Tally()
        self._verdicts = np.zeros(len(tables.verdicts.final), np.uint64)  # room for those of one row
        self._missing, self._counters = np.zeros(MISSING, np.uint64), np.zeros(5, np.int64)
        self._waiting: list[PendingRows] = []
        self._failing: int | None = None  # the first state that fails, until it is recorded
        self.recorded: list[Hit] = []  # all findings so far, except those of liveness

    def add(self, tally: Tally) -> None:
        """Add the judgements of a worker."""
        self._judged.add(tally)

    def wait(self, pending: Iterable[PendingRows]) -> None:
        """Judge these rows at the next `settle`."""
        self._waiting += pending

    def judge_first(self, block: RowBlock) -> None:
        """Judge the first states, the rows of a block."""
        count = block.size
        block.judgements[:count] = 0
        self._waiting.append(PendingRows(block, np.arange(count, dtype=np.uint32), 0, np.full(count, ALL, np.uint64)))

    def examine_final(self, block: RowBlock, rows: Array, base: int) -> None:
        """Evaluate the FINAL properties in rows of states without a successor, at the next `settle`."""
        if self._verdicts.size and rows.size:
            self._waiting.append(PendingRows(block, rows, base, None))

    def note_failing(self, states: Iterable[int]) -> None:
        """Record the first of the states that fail as a finding, at the next `settle`."""
        first = min(states, default=None)
        if first is not None:
            self._failing = first if self._failing is None else min(first, self._failing)

    def settle(self, row_of: Callable[[int], Array]) -> None:
        """Judge the waiting rows, which fills the tables, and record the findings.

        `row_of` gives the row of a state of the present round.
        """
        self.judge_waiting()
        self._note(row_of)

    def judge_waiting(self) -> None:
        """Judge the waiting rows, which fills the tables."""
        while self._waiting:
            self._waiting[0] = self._judge(self._waiting[0])
            if not self._waiting[0].rows.size:
                del self._waiting[0]  # only now: after an interrupt before this line, it is judged again

    def report(self) -> None:
        """Update the evaluation counts of the result."""
        self._result.evaluations = self._tables.verdicts.evaluations(*self.tallies[:2])
        count_steps(self._result)

    def premises(self, history: OriginLog, most: int) -> dict[str, list[list[int]]]:
        """Runs to states in which the premise of a property held, by its name, as the ordinals of successors.

        They are the first `most` states of different judgements. A step property has none.
        """
        properties = self._result.model.properties
        of_steps = step_properties(properties)
        states: dict[str, list[int]] = {prop.name: [] for prop in properties if prop not in of_steps}
        reached = np.flatnonzero(self._judged.times > 0)
        for number in reached[np.argsort(self._judged.first[reached])].tolist():
            for position in self._tables.verdicts.premises(number):
                first = states.get(properties[position].name)
                if first is not None and len(first) < most:
                    first.append(int(self._judged.first[number]))
        return {name: [history.ordinals(state) for state in first] for name, first in states.items()}

    @property
    def tallies(self) -> tuple[Array, Array, Array]:
        """The number of times that each judgement was reached, and each verdict in final states; and the first state of
        each judgement.
        """
        return self._judged.times, self._final.times, self._judged.first

    def resume(self, judged: Array, final: Array, first: Array | None, recorded: Iterable[Hit]) -> None:
        """Continue with the counts and the findings of another evaluator.

        `first` has the first state of each judgement, if these numbers of states mean the same here.
        """
        for tally, times, states in ((self._judged, judged, first), (self._final, final, None)):
            tally.times, tally.noted = times, times > 0
            tally.first = np.full(len(times), LAST) if states is None else states
        self.recorded = list(recorded)

    def _judge(self, what: PendingRows) -> PendingRows:
        """Judge rows, or evaluate final states; return those that lack an answer, which is in the tables afterwards."""
        tables, verdicts = self._tables, self._tables.verdicts
        block, rows, base, affected = what
        aside, affecting = np.empty(rows.size, np.uint32), np.empty(rows.size, np.uint64)
        answers = tables.answers(self._missing, self._counters)
        if affected is None:
            self._final.make_room(len(verdicts.verdicts))
            judging = build_kernels.Judging(verdicts.final, self._verdicts, self._final.times, self._final.first)
            build_kernels.evaluate_rows(block.rows, rows, base, judging, aside, answers)
        else:
            self._judged.make_room(verdicts.judgements.size)
            judging = verdicts.judging(self._judged.times, self._judged.first)
            build_kernels.judge_rows(
                block.rows, rows, affected, block.judgements, base, judging, aside, affecting, answers
            )
        missing, put_aside = int(self._counters[0]), int(self._counters[2])
        rest = PendingRows(block, aside[:put_aside], base, None if affected is None else affecting[:put_aside])
        if missing:
            # After an interrupt here, the rows that are judged already must not be judged again.
            self._waiting[0] = rest
            tables.fill(self._missing[:missing])
        return rest

    def _note(self, row_of: Callable[[int], Array]) -> None:
        verdicts, hits = self._tables.verdicts, dict[int, int]()
        known = {hit.position for hit in self.recorded}
        _, expanded = self._tables.model.raising
        if self._failing is not None and expanded not in known:
            hits[expanded] = self._failing
        self._failing = None
        sources = (
            (self._judged, [(n, verdicts.found(n)) for n in self._judged.unnoted()]),
            (self._final, [(n, verdicts.verdicts[n].found) for n in self._final.unnoted()]),
        )
        for tally, reached in sources:
            for number, positions in reached:
                state = int(tally.first[number])
                for position in {*positions} - known:
                    hits[position] = min(state, hits.get(position, state))
        for position, state in sorted(hits.items()):
            cells = row_of(state)[: len(self._tables.model.columns)]
            self.recorded.append(Hit(position, tuple(int(cell) for cell in cells), state))
