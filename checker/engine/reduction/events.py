"""The events of single processes, from the tables: what a message or an own move does to a cell, and what it sends.

Stubborn sets need events of cells that the search may never reach, so the tables learn these as well. An event is
*regular* if it changes its process, and puts messages behind all others into channels of its process. A process with
another event has no views (`IrregularError`).
"""

from __future__ import annotations

from typing import NamedTuple

from checker.engine.kernels import move_kernels
from checker.engine.model import ModelError
from checker.engine.reduction.channels import LOW, SET
from checker.engine.reduction.eligible import EligibleChannel
from checker.engine.tables.tables import IMPOSSIBLE, Tables

SET_WORDS = int(move_kernels.SET_WORDS)


class IrregularError(Exception):
    """An event or a channel that does more than stubborn sets can regard."""


class DeclarationError(ModelError):
    """A channel that does not do as it declares, which stubborn sets rely on."""


class ProcessChannels(NamedTuple):
    """A process: its column, and the positions of the channels to it and from it."""

    column: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class Event(NamedTuple):
    """The cell of a process after an event, and (channel, operation) for each sending, in order."""

    after: int
    sent: tuple[tuple[int, int], ...]


class Content(NamedTuple):
    """The messages of a channel, as operations on its receiver, oldest first; and the content without the oldest, and
    without all of them."""

    messages: tuple[int, ...]
    rest: int
    last: int


class LocalEvents:
    """The events of processes, and the messages of channels."""

    def __init__(self, tables: Tables, channels: list[EligibleChannel], processes: list[ProcessChannels]) -> None:
        self._tables, self._channels, self.processes = tables, channels, processes
        self._contents: dict[int, Content] = {}
        self._messages: dict[tuple[int, int], tuple[int, ...]] = {}
        self._positions = [{channels[c].column: c for c in process.outputs} for process in processes]
        initial = tables.model.columns
        self._empty = [tables.cell(c.column, initial[c.column].initial, "the initial state") for c in channels]

    def own(self, process: int, cell: int) -> tuple[Event, ...]:
        """The events by the own moves of a cell that are possible. Raises IrregularError."""
        return tuple(self._listed(process, cell))

    def delivered(self, process: int, cell: int, message: int) -> Event | None:
        """The event that a message arrives; None if it is impossible. Raises IrregularError."""
        return self._event(process, cell, [self.processes[process].column << 32 | message])

    def messages(self, channel: int, operation: int) -> tuple[int, ...]:
        """The messages that an operation puts into a channel. Raises IrregularError."""
        key = (channel, operation)
        if key not in self._messages:
            each, value = self._channels[channel], self._tables.operation(operation)
            if each.carries is not None:
                sends = each.carries(value)
                if sends is None:
                    raise IrregularError
                self._messages[key] = tuple(self._tables.operation_number(send) for send in sends)
            elif each.appends is None or not each.appends(value):
                raise IrregularError
            else:
                empty = self.content(channel, self._empty[channel]).last
                self._messages[key] = self.content(channel, self.after(empty, operation)).messages
        return self._messages[key]

    def content(self, channel: int, cell: int) -> Content:
        """The messages of a content, whose moves deliver or lose the oldest one. Raises IrregularError."""
        waiting: list[tuple[int, int]] = []
        while cell not in self._contents:
            oldest = self._oldest(channel, cell)
            if oldest is None:
                self._contents[cell] = Content((), cell, cell)
                break
            waiting.append((cell, oldest[1]))
            cell = oldest[0]
        for before, message in reversed(waiting):
            rest = self._contents[cell]
            self._contents[before], cell = Content((message, *rest.messages), cell, rest.last), before
        return self._contents[cell]

    def _sends_into(self, channel: int, operation: int) -> bool:
        """Whether an operation is declared as a sending into a channel."""
        each, value = self._channels[channel], self._tables.operation(operation)
        if each.carries is not None:
            return each.carries(value) is not None
        return each.appends is not None and each.appends(value)

    def check_possible(self, channel: int, cell: int, operation: int) -> None:
        """Raises DeclarationError for a sending that was impossible."""
        if self._sends_into(channel, operation):
            self._refuse(channel, cell, operation, "appends", "it is impossible")

    def check_sending(self, channel: int, cell: int, operation: int) -> None:
        """Raises DeclarationError if an operation declared as a sending does something else, and IrregularError."""
        if not self._sends_into(channel, operation):
            return
        each = self._channels[channel]
        if each.carries is None:
            before, added = self.content(channel, cell).messages, self.messages(channel, operation)
            if self.content(channel, self.after(cell, operation)).messages != before + added:
                said = "it does not put the same messages behind all others"
                self._refuse(channel, cell, operation, "appends", said)
        elif self.is_settled(channel, cell):
            value = self._tables.result(cell, operation)
            if self._tables.effect_words(value >> 32) or not self.is_settled(channel, value & LOW):
                self._refuse(channel, cell, operation, "is carried", "it concerns more than a settled content")
            before, after = (self.content(channel, each).messages for each in (cell, value & LOW))
            if not {*before, *self.messages(channel, operation)}.issuperset(after):
                self._refuse(channel, cell, operation, "is carried", "other messages are in the content then")
            if before[:1] != after[:1] and before:
                self._refuse(channel, cell, operation, "is carried", "another message is the oldest one then")

    def is_settled(self, channel: int, cell: int) -> bool:
        """Whether the model says that sendings into this content concern it alone."""
        settled = self._channels[channel].settled
        return settled is None or settled(self._tables.values([cell])[0])

    def _refuse(self, channel: int, cell: int, operation: int, what: str, but: str) -> None:
        name = self._tables.model.columns[self._channels[channel].column].name
        value, content = self._tables.operation(operation), self._tables.values([cell])[0]
        raise DeclarationError(f"the channel {name!r} declares that {value!r} {what}, but with {content!r} {but}")

    def after(self, cell: int, operation: int) -> int:
        """The content after an operation that sends nothing. Raises IrregularError."""
        value = self._tables.result(cell, operation)
        if value & LOW == IMPOSSIBLE or self._tables.effect_words(value >> 32):
            raise IrregularError
        return value & LOW

    def _oldest(self, channel: int, cell: int) -> tuple[int, int] | None:
        """The content without its oldest message, and this message; None for an empty channel."""
        if not self.is_settled(channel, cell):
            raise IrregularError
        place, count = self._tables.listing(cell)
        found, messages = set(), set[int]()
        own, target = SET | self._channels[channel].column, self._channels[channel].target
        for _ in range(count):
            words = self._tables.effect_words(place)
            place += 1 + len(words)
            if len(words) < SET_WORDS or words[0] >> 32 != own or len(words) > SET_WORDS + 1:
                raise IrregularError
            found.add(words[0] & LOW)
            messages |= {word & LOW for word in words[SET_WORDS:] if word >> 32 == target}
            if any(word >> 32 != target for word in words[SET_WORDS:]):
                raise IrregularError
        if not count:
            return None
        if len(found) != 1 or len(messages) != 1 or found == {cell}:
            raise IrregularError
        return found.pop(), messages.pop()

    def _listed(self, process: int, cell: int) -> list[Event]:
        place, count = self._tables.listing(cell)
        events = []
        for _ in range(count):
            words = self._tables.effect_words(place)
            place += 1 + len(words)
            event = self._event(process, cell, words)
            if event is not None:
                events.append(event)
        return events

    def _event(self, process: int, cell: int, words: list[int]) -> Event | None:
        """The event that these words of an effect describe."""
        column, positions = self.processes[process].column, self._positions[process]
        after, sent, left = cell, list[tuple[int, int]](), words[::-1]
        while left:
            word = left.pop()
            target, operation = word >> 32, word & LOW
            if target == column:
                value = self._tables.result(after, operation)
                after = value & LOW
                if after == IMPOSSIBLE:
                    return None
                if value >> 32:
                    left += reversed(self._tables.effect_words(value >> 32))
            elif target in positions:
                self.messages(positions[target], operation)
                sent.append((positions[target], operation))
            elif target == SET | column:
                after = operation
                del left[1 - SET_WORDS :]
            else:
                raise IrregularError
        return Event(after, tuple(sent))
