"""Views of processes: everything that a process may do while certain messages may arrive, in any order and number.

The *closure* of a view are the cells that its process may reach. It is an upper bound, since each message may arrive
again and again, in any order. So what holds in a closure holds in every run in which no other messages arrive.
"""

from __future__ import annotations

from typing import NamedTuple

from checker.engine.model import ModelError
from checker.engine.reduction.events import Event, IrregularError, LocalEvents

MOST_CELLS = 1 << 10  # of a closure; a view with more is irregular

Messages = frozenset[int]


class View(NamedTuple):
    """A process, its cell, and for each of its inputs the messages that may arrive, as operations."""

    process: int
    cell: int
    messages: tuple[Messages, ...]


class Closure(NamedTuple):
    """The cells that a view may reach, its own among them, and the messages sent there, by output."""

    cells: frozenset[int]
    sent: tuple[Messages, ...]


Steps = tuple[frozenset[int], frozenset[tuple[int, int]]]
"""The cells that single events of a cell lead to, without itself, and (channel, operation) for what they send."""


class Views:
    """Answers about views. All functions that take one raise IrregularError, and no ModelError."""

    def __init__(self, events: LocalEvents) -> None:
        self.events = events
        self._closures: dict[View, Closure | None] = {}
        self._steps: dict[tuple[int, Messages | None], dict[int, Steps]] = {}  # by process and messages; None: own
        self._sendings: dict[frozenset[tuple[int, int]], dict[int, Messages]] = {}
        self._redundant: dict[tuple[int, Messages], bool] = {}

    def closure(self, view: View) -> Closure:
        """The closure of a view."""
        if view not in self._closures:
            try:
                self._closures[view] = self._closure(view)
            except (IrregularError, ModelError):
                self._closures[view] = None
        found = self._closures[view]
        if found is None:
            raise IrregularError
        return found

    def _closure(self, view: View) -> Closure:
        process = view.process
        kinds: list[tuple[Messages | None, dict[int, Steps]]] = [(None, self._known_steps(process, None))]
        kinds += [(messages, self._known_steps(process, messages)) for messages in view.messages if messages]
        seen, waiting, sent = {view.cell}, [view.cell], set[tuple[int, int]]()
        while waiting:
            cell = waiting.pop()
            for messages, known in kinds:
                steps = known.get(cell)
                if steps is None:
                    steps = self._learn(process, cell, messages)
                after, sending = steps
                if sending:
                    sent |= sending
                if not after <= seen:
                    waiting += after - seen
                    seen |= after
            if len(seen) > MOST_CELLS:
                raise IrregularError
        by_output = self._by_output(frozenset(sent))
        empty = frozenset[int]()
        return Closure(
            frozenset(seen), tuple(by_output.get(output, empty) for output in self.events.processes[process].outputs)
        )

    def _by_output(self, sent: frozenset[tuple[int, int]]) -> dict[int, Messages]:
        """The messages of sendings, by channel."""
        known = self._sendings.get(sent)
        if known is None:
            found: dict[int, set[int]] = {}
            for output, operation in sent:
                found.setdefault(output, set()).update(self.events.messages(output, operation))
            known = self._sendings[sent] = {output: frozenset(messages) for output, messages in found.items()}
        return known

    def _known_steps(self, process: int, messages: Messages | None) -> dict[int, Steps]:
        return self._steps.setdefault((process, messages), {})

    def _learn(self, process: int, cell: int, messages: Messages | None) -> Steps:
        """The steps of a cell by its own moves, or by these messages."""
        if messages is None:
            found = [*self.events.own(process, cell)]
        else:
            arrived = [self.events.delivered(process, cell, message) for message in messages]
            found = [event for event in arrived if event is not None]
        steps = (
            frozenset(event.after for event in found if event.after != cell),
            frozenset(sending for event in found for sending in event.sent),
        )
        self._known_steps(process, messages)[cell] = steps
        return steps

    # -- answers ---------------------------------------------------------------------------------------------

    def needs_sender(self, view: View, place: int) -> bool:
        """Whether a stubborn set with this process needs the sender of its empty input at `place`.

        It does not if none of the messages can arrive in this cell, or if they are *redundant* from now on.
        """
        messages = view.messages[place]
        if all(self.events.delivered(view.process, view.cell, message) is None for message in messages):
            return False
        without = (*view.messages[:place], frozenset[int](), *view.messages[place + 1 :])
        cells = self.closure(view._replace(messages=without)).cells
        return not all(self._are_redundant(view.process, cell, messages) for cell in cells)

    def _are_redundant(self, process: int, cell: int, messages: Messages) -> bool:
        """Whether each message cannot arrive in a cell, has no effect there, or that of an own move."""
        known = self._redundant.get((cell, messages))
        if known is None:
            effects = {None, Event(cell, ()), *self.events.own(process, cell)}
            known = all(self.events.delivered(process, cell, message) in effects for message in messages)
            self._redundant[cell, messages] = known
        return known

    def is_irreversible(self, view: View, event: Event) -> bool:
        """Whether the process cannot come back to its cell after an event."""
        return view.cell not in self.closure(view._replace(cell=event.after)).cells

    def answers(self, view: View) -> tuple[Messages, ...]:
        """The messages, by output, that reversible deliveries in this cell send."""
        found = [set[int]() for _ in self.events.processes[view.process].outputs]
        places = {output: place for place, output in enumerate(self.events.processes[view.process].outputs)}
        for message in frozenset[int]().union(*view.messages):
            event = self.events.delivered(view.process, view.cell, message)
            if event is not None and event.sent and not self.is_irreversible(view, event):
                for output, operation in event.sent:
                    found[places[output]] |= {*self.events.messages(output, operation)}
        return tuple(map(frozenset, found))

    def are_silent(self, view: View, messages: Messages) -> bool:
        """Whether no delivery of these messages sends anything, now and later."""
        known = self._known_steps(view.process, messages)
        for cell in self.closure(view).cells:
            steps = known.get(cell) or self._learn(view.process, cell, messages)
            if steps[1]:
                return False
        return True
