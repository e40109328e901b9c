"""Stubborn sets: processes whose moves are enough in a state, because the others can neither help nor hinder them.

The kernel `stubborn_kernels` selects them by questions about single views. A set of processes is stubborn if, while
only others move,

1. no message comes into an empty channel of the set that could arrive and would make a difference (`Needs`);
2. one of its moves, the *key*, stays possible, changes no joint reading of a property, and belongs to no cycle of
   such moves (`Delivered`, `OwnMoves`, `Silent`).

The answers regard every run that the messages in the channels permit, and not only what the search has reached. So they
are final. docs/explanation-reduction.md has the proof.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from checker.engine.kernels import stubborn_kernels
from checker.engine.model import ModelError
from checker.engine.reduction.channels import LOW
from checker.engine.reduction.eligible import EligibleChannel
from checker.engine.reduction.events import Event, IrregularError, LocalEvents, ProcessChannels
from checker.engine.reduction.plan import StubbornPlan
from checker.engine.reduction.questions import YES
from checker.engine.reduction.views import Messages, View, Views
from checker.engine.tables.tables import IMPOSSIBLE, Tables

IRREGULAR = int(stubborn_kernels.IRREGULAR)


@dataclass(frozen=True)
class Arriving:
    """Of a view: the number of the view into which these messages of a channel may arrive as well."""

    channel: int
    messages: Messages


@dataclass(frozen=True)
class Sending:
    """Of a view: what it may send, as an `Arriving` for each output, or 0; IMPOSSIBLE if it is irregular."""


@dataclass(frozen=True)
class OwnMoves:
    """Of a view: the number of its own moves, whether one is a key move, and a `Silent` for each output, or 0."""


@dataclass(frozen=True)
class Needs:
    """Of a view: whether a set with its process needs the sender of a channel that is empty."""

    channel: int


@dataclass(frozen=True)
class Delivered:
    """Of a view: whether the delivery of a channel's oldest message is possible, and a key move."""

    channel: int
    message: int


@dataclass(frozen=True)
class Silent:
    """Of a view: whether no delivery of these messages sends anything, now and later."""

    channel: int
    messages: Messages


class StubbornSets:
    """The answers about views, for kernels. It observes the tables, and compares what channels do with `appends`."""

    def __init__(self, tables: Tables, channels: list[EligibleChannel]) -> None:
        self._tables, self._channels = tables, channels
        self.rows = np.zeros((0, 4), np.uint32)
        columns = sorted({channel.source for channel in channels} | {channel.target for channel in channels})
        inputs, outputs = self._order(columns)
        self._place = {channel: place for each in inputs for place, channel in enumerate(each)}
        self._of_column = {column: position for position, column in enumerate(columns)}
        self._by_column = {channel.column: position for position, channel in enumerate(channels)}
        self._processes = [
            ProcessChannels(column, tuple(inputs[n]), tuple(outputs[n])) for n, column in enumerate(columns)
        ]
        tables.observer = self
        self._views = Views(LocalEvents(tables, channels, self._processes))
        self._joint = tables.joint_bundles
        self.plan = self._plan()
        self._room = self.plan.room()

    def _order(self, columns: list[int]) -> tuple[list[list[int]], list[list[int]]]:
        """The channels to and from each process."""
        numbered = list(enumerate(self._channels))
        return (
            [[n for n, channel in numbered if channel.target == column] for column in columns],
            [[n for n, channel in numbered if channel.source == column] for column in columns],
        )

    def _plan(self) -> StubbornPlan:
        width, number = len(self._tables.model.columns), self._tables.question
        owners = np.full(width, stubborn_kernels.NOBODY, np.uint8)
        order = [channel for process in self._processes for channel in process.inputs]
        at = {channel: place for place, channel in enumerate(order)}
        processes, first, begin = [], 0, 0
        for position, process in enumerate(self._processes):
            owners[[process.column, *(self._channels[c].column for c in process.inputs)]] = position
            ends = first + len(process.inputs), begin + len(process.outputs)
            processes.append((process.column, first, ends[0], begin, ends[1]))
            first, begin = ends
        inputs = [
            (
                self._channels[c].column, self._of_column[self._channels[c].source], number(Needs(c)),
                self._of_column[self._channels[c].target],
            )
            for c in order
        ]  # fmt: skip
        outputs = [at[channel] for process in self._processes for channel in process.outputs]
        sides = np.flatnonzero(owners == stubborn_kernels.NOBODY)
        return StubbornPlan(
            owners,
            np.array(processes, np.uint32),
            np.array(inputs, np.uint32),
            np.array(outputs, np.uint32),
            np.array([number(Sending()), number(OwnMoves())], np.uint32),
            sides.astype(np.uint32),
        )

    # -- what the tables learn -------------------------------------------------------------------------------

    def sent(self, actor: int, operation: int, source: str) -> None:
        """Nothing depends on the origin of an operation."""

    def learnt(self, cell: int, operation: int, value: int) -> None:
        """An operation on a channel was carried out. Raises ModelError if it is declared to append and does not."""
        channel = self._by_column.get(self._tables.column_of(cell))
        if channel is not None and value & LOW != IMPOSSIBLE:
            with suppress(IrregularError):  # `listed` marks the content
                self._views.events.check_append(channel, cell, operation)

    def listed(self, cell: int) -> None:
        """The moves of a channel's content were listed."""
        channel = self._by_column.get(self._tables.column_of(cell))
        if channel is None:
            return
        try:
            messages = self._views.events.content(channel, cell).messages
        except IrregularError:
            self._tables.contents.view[cell] = IRREGULAR
            return
        if messages:
            self._tables.contents.view[cell] = self._arriving(channel, frozenset(messages))
            self._tables.asks.view[cell] = self._tables.question(Delivered(channel, messages[0]))

    def holds(self) -> bool:
        """All answers are final."""
        return True

    # -- answers ---------------------------------------------------------------------------------------------

    def answer(self, cell: int, question: Any) -> int:
        """The answer to a kernel's question, as a value of the memo."""
        view = self._view(cell)
        try:
            match question:
                case Arriving(channel, messages):
                    return self._tables.subject(self._with(view, channel, messages))
                case Sending():
                    return self._sending(view)
                case OwnMoves():
                    return self._own_moves(view)
                case Needs(channel):
                    return YES if self._views.needs_sender(view, self._place[channel]) else IMPOSSIBLE
                case Delivered(_, message):
                    return self._kind_of_delivery(view, message)
                case _:
                    return YES if self._views.are_silent(view, question.messages) else IMPOSSIBLE
        except IrregularError:
            return IMPOSSIBLE if isinstance(question, Sending) else self._unexpected(question)

    @staticmethod
    def _unexpected(question: object) -> int:
        raise ModelError(f"{question!r} was asked about a process whose events are irregular, which is a defect")

    def _view(self, subject: int) -> View:
        process = self._of_column.get(self._tables.column_of(subject))
        if process is None:
            found: View = self._tables.subject_of(subject)
            return found
        return View(process, subject, (frozenset(),) * len(self._processes[process].inputs))

    def _with(self, view: View, channel: int, messages: Messages) -> View:
        place = self._place[channel]
        joined = view.messages[place] | messages
        return view._replace(messages=(*view.messages[:place], joined, *view.messages[place + 1 :]))

    def _arriving(self, channel: int, messages: Messages) -> int:
        return self._tables.question(Arriving(channel, messages)) if messages else 0

    def _sending(self, view: View) -> int:
        sent = self._views.closure(view).sent
        pairs = zip(self._processes[view.process].outputs, sent, strict=True)
        return self._tables.effect([self._arriving(*pair) for pair in pairs]) << 32 | YES

    def _own_moves(self, view: View) -> int:
        events = self._views.events.own(view.process, view.cell)
        key = any(self._is_unseen(view, event) and self._views.is_irreversible(view, event) for event in events)
        pairs = zip(self._processes[view.process].outputs, self._views.answers(view), strict=True)
        silent = [self._tables.question(Silent(*pair)) if pair[1] else 0 for pair in pairs]
        return self._tables.effect([len(events), int(key), *silent]) << 32 | YES

    def _kind_of_delivery(self, view: View, message: int) -> int:
        event = self._views.events.delivered(view.process, view.cell, message)
        if event is None:
            return stubborn_kernels.REFUSED
        if not self._is_unseen(view, event):
            return stubborn_kernels.POSSIBLE
        if not event.sent or self._views.is_irreversible(view, event):
            return stubborn_kernels.KEY
        return stubborn_kernels.KEY_IF_SILENT

    def _is_unseen(self, view: View, event: Event) -> bool:
        """Whether an event changes nothing that a property reads together with other columns."""
        return not self._tables.affected(view.cell, event.after) & self._joint

    # -- paths -----------------------------------------------------------------------------------------------

    def drained(self, _: list[int]) -> list[int]:
        """A search by stubborn sets drains nothing."""
        return []

    def chosen(self, cells: list[int]) -> frozenset[int] | None:
        """The columns whose own rules were followed in a row of cells; None for all moves.

        The search has expanded this row, so that all answers are known.
        """
        tables, counters = self._tables, np.zeros(6, np.int64)
        arrays = (tables.masks.view, tables.joint, tables.contents.view, tables.asks.view, *self._room)
        memo = (tables.entries.view, tables.memo.data, tables.memo.shift, np.zeros(1, np.uint64), counters)
        row = np.array(cells, np.uint32)
        bits = int(stubborn_kernels.find_stubborn_set(row, *self.plan[1:], *arrays, *memo))
        if bits == int(stubborn_kernels.ALL):
            return None
        return frozenset(
            column for column, owner in enumerate(self.plan.owners.tolist()) if owner < 64 and bits >> owner & 1
        )
