"""The graph of the local states of processes, learnt on demand and numbered for kernels (`plan.LocalGraph`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from checker.engine.arrays import grown
from checker.engine.kernels import closure_kernels, queue_kernels
from checker.engine.model import ModelError
from checker.engine.reduction.eligible import EligibleChannel
from checker.engine.reduction.events import DeclarationError, Event, IrregularError, LocalEvents, ProcessChannels
from checker.engine.reduction.idle_rules import IdleRules
from checker.engine.reduction.plan import LocalGraph
from checker.engine.tables.tables import Tables

Array = np.ndarray[Any, Any]

BITS = 64  # of a word
FIRST = 64  # room for states, contents, events and sendings at the beginning


def wider(array: Array, columns: int) -> Array:
    """A copy of a table with more columns."""
    larger = np.zeros((len(array), columns), array.dtype)
    larger[:, : array.shape[1]] = array
    return larger


class LocalGraphBuilder:
    """The local states, messages, events and contents that are known so far.

    `channels` and `processes` have their positions; `order` has the number of each channel for the kernels.
    """

    def __init__(
        self,
        tables: Tables,
        channels: list[EligibleChannel],
        processes: list[ProcessChannels],
        questions: Any,
        idle: IdleRules,
    ) -> None:
        self.events = LocalEvents(tables, channels, processes)
        self._tables, self._channels, self._processes, self._questions = tables, channels, processes, questions
        order = [channel for process in processes for channel in process.inputs]
        self.number_of = {channel: number for number, channel in enumerate(order)}
        self._order = order
        self._process_of = {process.column: number for number, process in enumerate(processes)}
        self._bits: list[dict[tuple[int, int], int]] = [{} for _ in processes]  # (channel, operation) -> bit
        self._messages: list[list[tuple[int, int]]] = [[] for _ in processes]
        self._sending_into: dict[tuple[int, int], int] = {}  # (channel, bit) -> the operation on a bounded channel
        self._numbers, self._owners = dict[int, int](), list[int]()  # of local states, by cell; their processes
        self._contents, self._own_steps = 1, 0
        self._event_numbers: dict[tuple[int, int], int] = {}
        self._sendings: dict[tuple[tuple[int, int], ...], int] = {(): 0}
        self._joint = tables.joint_bundles
        self._idle = idle
        self._arrays = self._empty()

    def _empty(self) -> dict[str, Array]:
        processes, channels = len(self._processes), len(self._order)
        arrays: dict[str, Array] = {
            name: np.zeros(FIRST, np.uint32)
            for name in ("cells", "owner", "own_steps", "heads", "popped", "content_cells")
        }
        arrays |= {"own": np.zeros((FIRST, 3), np.uint32), "events": np.zeros((FIRST, 2), np.uint32)}
        arrays |= {name: np.zeros((FIRST, BITS), np.uint32) for name in ("steps", "appended")}
        arrays |= {
            "sends": np.zeros((FIRST, processes), np.uint64),
            "outlets": np.zeros(FIRST, np.uint64),
            "held": np.zeros((FIRST, 1), np.uint64),
            "channel_bits": np.zeros((channels, 1), np.uint64),
            "questions": np.zeros((processes, BITS), np.uint32),
            "append_questions": np.zeros((channels, BITS), np.uint32),
            "targets": np.array([self._process_of[self._channels[c].target] for c in self._order], np.uint32),
            "own_question": np.array([self._questions.own()], np.uint32),
        }
        return arrays

    @property
    def arrays(self) -> LocalGraph:
        """The graph as kernels take it."""
        return LocalGraph(**self._arrays)

    @property
    def _word_count(self) -> int:
        return int(self._arrays["channel_bits"].shape[1])

    def _room(self, needed: int, *names: str) -> None:
        for name in names:
            if needed > len(self._arrays[name]):
                self._arrays[name] = grown(self._arrays[name], needed)

    # -- messages --------------------------------------------------------------------------------------------

    def bit(self, channel: int, operation: int) -> int:
        """The bit of a message: an operation on the receiver that may arrive by a channel."""
        process = self._process_of[self._channels[channel].target]
        known = self._bits[process].setdefault((channel, operation), len(self._messages[process]))
        if known == len(self._messages[process]):
            self._messages[process].append((channel, operation))
            if known >= BITS * self._word_count:
                self._widen()
            arrays, number = self._arrays, self.number_of[channel]
            arrays["channel_bits"][number, known // BITS] |= np.uint64(1 << known % BITS)
            arrays["questions"][process, known] = self._questions.step(known)
            if self._channels[channel].carries is not None:
                arrays["append_questions"][number, known] = self._questions.appended(known)
        return known

    def _widen(self) -> None:
        """Make room for twice as many messages."""
        arrays, words, processes = self._arrays, self._word_count, len(self._processes)
        for name in ("steps", "appended", "questions", "append_questions"):
            arrays[name] = wider(arrays[name], 2 * words * BITS)
        for name in ("held", "channel_bits"):
            arrays[name] = wider(arrays[name], 2 * words)
        flat = arrays["sends"].reshape(-1, words)
        arrays["sends"] = wider(flat, 2 * words).reshape(-1, 2 * words * processes)

    # -- local states ----------------------------------------------------------------------------------------

    def state(self, cell: int) -> int:
        """The number of a local state."""
        known = self._numbers.get(cell)
        if known is not None:
            return known
        number = self._numbers[cell] = len(self._owners)
        self._owners.append(self._process_of[self._tables.column_of(cell)])
        self._room(number + 1, "cells", "owner", "own", "steps")
        self._arrays["cells"][number], self._arrays["owner"][number] = cell, self._owners[number]
        self._tables.contents.view[cell] = number + 1
        return number

    def learn_own(self, cell: int) -> None:
        """List the own moves of a local state."""
        state = self.state(cell)
        process = self._owners[state]
        try:
            steps = [self._step(cell, event) for event in self.events.own(process, cell)]
        except (IrregularError, ModelError):
            self._arrays["own"][state] = 0, 0, int(closure_kernels.IRREGULAR_OWN)
            return
        first, self._own_steps = self._own_steps, self._own_steps + len(steps)
        self._room(self._own_steps, "own_steps")
        self._arrays["own_steps"][first : self._own_steps] = steps
        self._arrays["own"][state] = first, len(steps), int(closure_kernels.LISTED_OWN)

    def learn_step(self, cell: int, bit: int) -> None:
        """Find the step of a local state on a message."""
        state = self.state(cell)
        process = self._owners[state]
        try:
            event = self.events.delivered(process, cell, self._messages[process][bit][1])
            step = int(closure_kernels.REFUSED) if event is None else self._step(cell, event)
        except (IrregularError, ModelError):
            step = int(closure_kernels.IRREGULAR_STEP)
        self._arrays["steps"][state, bit] = step

    def _step(self, cell: int, event: Event) -> int:
        unseen = self._is_unseen(cell, event.after)
        after, sending = self.state(event.after), self._sending(event.sent)
        first = int(closure_kernels.FIRST_EVENT)
        number = self._event_numbers.setdefault((after, sending), first + len(self._event_numbers))
        self._room(number + 1, "events")
        self._arrays["events"][number] = after, sending
        return number | (int(closure_kernels.UNSEEN) if unseen else 0)

    def _is_unseen(self, before: int, after: int) -> bool:
        """Whether no property and no idle rule reads a difference together with other columns."""
        if before == after:
            return True
        if self._tables.affected(before, after) & self._joint:
            return False
        return self._idle.show_alike(before, after)

    def _sending(self, sent: tuple[tuple[int, int], ...]) -> int:
        known = self._sendings.get(sent)
        if known is not None:
            return known
        bits = [(channel, self.bit(channel, each)) for channel, op in sent for each in self._carried(channel, op, sent)]
        number = self._sendings[sent] = len(self._sendings)
        self._room(number + 1, "sends", "outlets")
        for channel, bit in bits:
            word = self._process_of[self._channels[channel].target] * self._word_count + bit // BITS
            self._arrays["sends"][number, word] |= np.uint64(1 << bit % BITS)
        for channel, _ in sent:
            self._arrays["outlets"][number] |= np.uint64(1 << self.number_of[channel])
        return number

    def _carried(self, channel: int, operation: int, sent: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
        """The messages of a sending. One into a bounded channel has one message, which no other operation has."""
        found = self.events.messages(channel, operation)
        if self._channels[channel].carries is not None:
            if len(found) != 1 or sum(each == channel for each, _ in sent) > 1:
                raise IrregularError
            if self._sending_into.setdefault((channel, self.bit(channel, found[0])), operation) != operation:
                raise IrregularError
        return found

    # -- contents --------------------------------------------------------------------------------------------

    def learn_content(self, channel: int, cell: int) -> int:
        """Number a content of a channel, and those that deliveries lead to. Raises IrregularError."""
        if self._is_numbered(cell):
            return int(self._tables.contents.view[cell])
        content = self.events.content(channel, cell)
        if self._is_numbered(cell):  # its moves were listed just now, and `StubbornSets.listed` was told
            return int(self._tables.contents.view[cell])
        popped = self.learn_content(channel, content.rest) if content.messages else 0
        bits = [self.bit(channel, message) for message in content.messages]
        number = self._contents
        self._contents += 1
        self._room(self._contents, "held", "heads", "popped", "content_cells", "appended")
        for bit in bits:
            self._arrays["held"][number, bit // BITS] |= np.uint64(1 << bit % BITS)
        self._arrays["heads"][number] = bits[0] + 1 if bits else 0
        self._arrays["popped"][number], self._arrays["content_cells"][number] = popped, cell
        self._tables.contents.view[cell] = number
        return number

    def _is_numbered(self, cell: int) -> bool:
        """Whether a content has a number. Raises IrregularError."""
        known = int(self._tables.contents.view[cell])
        if known == int(queue_kernels.IRREGULAR_CONTENT):
            raise IrregularError
        return known != 0

    def learn_appended(self, channel: int, cell: int, bit: int) -> None:
        """Find the content of a bounded channel after a message was sent. Raises DeclarationError.

        The search will not compare that operation with what the channel declares, since its result is known then.
        """
        number = int(self._tables.contents.view[cell])
        try:
            after = self.events.after(cell, self._sending_into[channel, bit])
            self._tables.listing(after)
            result = self.learn_content(channel, after)
        except DeclarationError:
            raise
        except (IrregularError, ModelError):
            result = int(queue_kernels.IRREGULAR_CONTENT)
        self._arrays["appended"][number, bit] = result
