"""Stubborn sets: processes whose moves are enough in a state, because the others can neither help nor hinder them.

The kernel `stubborn_kernels` selects them, by closures of views (`closure_kernels`) over the graph of local states
(`local_graph`). A set of processes is stubborn if, while only others move,

1. no message comes into an empty channel of the set that could arrive and would make a difference;
2. its moves commute with those of the others in the channels between them;
3. one of its moves, the *key*, stays possible, changes no joint reading of a property, and belongs to no cycle of such
   moves.

The answers regard every run that the messages in the channels permit, and not only what the search has reached. So they
are final, except that a joint rule is idle (`idle_rules`). docs/explanation-reduction.md has the proof.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from checker.engine.kernels import drain_kernels, move_kernels, queue_kernels, stubborn_kernels
from checker.engine.model import ModelError
from checker.engine.reduction.channels import LOW
from checker.engine.reduction.eligible import EligibleChannel
from checker.engine.reduction.events import IrregularError, ProcessChannels
from checker.engine.reduction.idle_rules import IdleRules
from checker.engine.reduction.local_graph import LocalGraphBuilder
from checker.engine.reduction.plan import LocalGraph, StubbornPlan, ViewRoom
from checker.engine.tables.tables import IMPOSSIBLE, Tables


@dataclass(frozen=True)
class OwnMoves:
    """Of a local state: its number, and its own moves."""


@dataclass(frozen=True)
class StepOn:
    """Of a local state: its step on the message with this bit."""

    bit: int


@dataclass(frozen=True)
class Appended:
    """Of a content of a bounded channel: the content after the message with this bit was sent."""

    bit: int


class StubbornSets:
    """The graph of local states, for kernels. It observes the tables, and compares what channels do with the model."""

    def __init__(self, tables: Tables, channels: list[EligibleChannel]) -> None:
        self._tables, self._channels = tables, channels
        self.rows = np.zeros((0, 4), np.uint32)
        columns = sorted({channel.source for channel in channels} | {channel.target for channel in channels})
        inputs, outputs = self._order(columns)
        self._by_column = {channel.column: position for position, channel in enumerate(channels)}
        self._processes = [
            ProcessChannels(column, tuple(inputs[n]), tuple(outputs[n])) for n, column in enumerate(columns)
        ]
        tables.observer = self
        tables.remember()
        self._idle = IdleRules(tables)
        self._graph = LocalGraphBuilder(tables, channels, self._processes, self, self._idle)
        self.plan = self._plan()
        self._idle.mark(self.plan.idle)
        self._room = ViewRoom.of(self.plan, self.graph)
        self._missing, self._counters = np.zeros(1 << 10, np.uint64), np.zeros(6, np.int64)
        self._viewed: list[int] | None = None  # the row whose views the room has

    @property
    def graph(self) -> LocalGraph:
        """The graph of local states, as kernels take it."""
        return self._graph.arrays

    def own(self) -> int:
        """The number of the question about own moves."""
        return self._tables.question(OwnMoves())

    def step(self, bit: int) -> int:
        """The number of the question about a message."""
        return self._tables.question(StepOn(bit))

    def appended(self, bit: int) -> int:
        """The number of the question about a message that is sent."""
        return self._tables.question(Appended(bit))

    def _order(self, columns: list[int]) -> tuple[list[list[int]], list[list[int]]]:
        """The channels to and from each process."""
        numbered = list(enumerate(self._channels))
        return (
            [[n for n, channel in numbered if channel.target == column] for column in columns],
            [[n for n, channel in numbered if channel.source == column] for column in columns],
        )

    def _plan(self) -> StubbornPlan:
        columns = len(self._tables.model.columns)
        owners, affects = np.full(columns, stubborn_kernels.NOBODY, np.uint8), np.zeros(columns, np.uint64)
        numbers = self._graph.number_of
        of_column = {process.column: position for position, process in enumerate(self._processes)}
        processes, first, begin = [], 0, 0
        for position, process in enumerate(self._processes):
            owners[[process.column, *(self._channels[c].column for c in process.inputs)]] = position
            ends = first + len(process.inputs), begin + len(process.outputs)
            processes.append((process.column, first, ends[0], begin, ends[1]))
            affects[process.column] = sum(1 << number for number in range(first, ends[0]))
            for number, channel in enumerate(process.inputs, first):
                affects[self._channels[channel].column] = 1 << number
            first, begin = ends
        inputs = [
            (each.column, of_column[each.source], of_column[each.target], each.carries is not None)
            for each in (self._channels[channel] for channel in numbers)
        ]
        outputs = [numbers[channel] for process in self._processes for channel in process.outputs]
        sides = np.flatnonzero(owners == stubborn_kernels.NOBODY)
        tables = (processes, inputs, outputs, sides)
        bits = (np.zeros(self._tables.masks.view.shape[1], np.uint64) for _ in range(2))
        return StubbornPlan(owners, affects, *(np.array(each, np.uint32) for each in tables), *bits)

    # -- what the tables learn -------------------------------------------------------------------------------

    def sent(self, actor: int, operation: int, source: str) -> None:
        """Nothing depends on the origin of an operation."""

    def learnt(self, cell: int, operation: int, value: int) -> None:
        """An operation on a channel was carried out. Raises ModelError if it is not as the channel declares."""
        channel = self._by_column.get(self._tables.column_of(cell))
        if channel is not None:
            if value & LOW == IMPOSSIBLE:
                self._graph.events.check_possible(channel, cell, operation)
                return
            with suppress(IrregularError):  # `listed` marks the content
                self._graph.events.check_sending(channel, cell, operation)

    def listed(self, cell: int) -> None:
        """The moves of a channel's content were listed."""
        channel = self._by_column.get(self._tables.column_of(cell))
        if channel is not None:
            try:
                self._graph.learn_content(channel, cell)
            except IrregularError:
                self._tables.contents.view[cell] = queue_kernels.IRREGULAR_CONTENT

    def enabled(self, position: int, moves: list[int]) -> None:
        """A joint rule lists moves in a row of the search."""
        self._idle.listed(position, moves)

    def holds(self) -> bool:
        """Whether all rules that are taken for idle have been so. If not, the graph is learnt again without them."""
        if self._idle.hold(self.plan.broken):
            return True
        self._idle.mark(self.plan.idle)
        tables = self._tables
        tables.contents.view[:] = 0
        self._graph = LocalGraphBuilder(tables, self._channels, self._processes, self, self._idle)
        for channel in self._channels:
            for cell in tables.known_cells(channel.column):
                if tables.is_listed(cell):
                    self.listed(cell)
        self._room, self._viewed = ViewRoom.of(self.plan, self.graph), None
        return False

    def answer(self, cell: int, question: Any) -> None:
        """Learn the part of the graph that a kernel lacks."""
        match question:
            case OwnMoves():
                self._graph.learn_own(cell)
            case StepOn(bit):
                self._graph.learn_step(cell, bit)
            case Appended(bit):
                self._graph.learn_appended(self._by_column[self._tables.column_of(cell)], cell, bit)
            case _:
                raise ModelError(f"{question!r} was asked about stubborn sets, which is a defect")

    # -- paths -----------------------------------------------------------------------------------------------

    def drained(self, before: list[int], cells: list[int]) -> list[int]:
        """The columns of the channels that deliver at once in a row of cells after another one, in this order."""
        row, columns = list(cells), list[int]()
        while len(columns) < int(drain_kernels.MOST_INERT):
            found = self._drained_next(before, row)
            if not found:
                break
            column = int(self.plan.inputs[found - 1, 0])
            place, _ = self._tables.listing(row[column])
            self._carry_out(row, self._tables.effect_words(place))
            columns.append(column)
        return columns

    def _drained_next(self, before: list[int], row: list[int]) -> int:
        """The channel, plus 1, that drains a row after another one, whose views the room must have."""
        while True:
            if self._viewed != before:
                self._select(before)
            found = self._call(drain_kernels.find_drained, row, (self._tables.flat_cells,))
            if self._viewed == before:
                return found

    def _carry_out(self, row: list[int], words: list[int]) -> None:
        """Carry out the words of an effect on a row."""
        while words:
            word, *words = words
            if word >> 32 & int(move_kernels.SET):
                row[word >> 32 & int(move_kernels.COLUMN_BITS)] = word & LOW
                words = words[int(move_kernels.SET_WORDS) - 1 :]
                continue
            value = self._tables.result(row[word >> 32], word & LOW)
            row[word >> 32] = value & LOW
            words = [*self._tables.effect_words(value >> 32), *words]

    def chosen(self, cells: list[int]) -> frozenset[int] | None:
        """The columns whose own rules were followed in a row of cells; None for all moves."""
        bits = self._select(cells)
        if bits == int(stubborn_kernels.ALL):
            return None
        owned = enumerate(self.plan.owners.tolist())
        return frozenset(column for column, owner in owned if owner < 64 and bits >> owner & 1)

    def _select(self, cells: list[int]) -> int:
        """The stubborn set of a row; afterwards the room has its views."""
        self._room = self._room.with_space(self.plan, self.graph)
        found = self._call(stubborn_kernels.find_stubborn_set, cells, (self._tables.masks.view, self._tables.joint))
        self._viewed = cells
        return found

    def _call(self, kernel: Any, cells: list[int], arrays: tuple[Any, ...]) -> int:
        """The answer of a kernel for a row, after the graph was filled as far as it is needed."""
        row, tables = np.array(cells, np.uint32), self._tables
        while True:
            self._counters[:] = 0
            room = self._room.fitting(self.plan, self.graph)
            if room is not self._room:
                self._room, self._viewed = room, None
            found = int(
                kernel(
                    row, self.plan, tables.contents.view, *arrays,
                    self.graph, self._room, self._missing, self._counters,
                )
            )  # fmt: skip
            if not self._counters[0]:
                return found
            tables.fill(self._missing[: int(self._counters[0])])
