"""State machines that send messages, and the model of several of them on a network.

A *machine* is written without I/O. It has a state, and functions that return a `Reaction` to a message or to a choice:
the new state and the messages to send. `network_model` makes columns, actors and rules of it.

    def pong(state, source, message):
        return Reaction(state + 1, ((source, "pong"),)) if message == "ping" else None

    def ping(state, source, message):
        return Reaction("done")

    model = network_model(
        "ping",
        [Machine("a", Reaction("waits", (("b", "ping"),)), ping), Machine("b", Reaction(0), pong)],
        Network(lossy=True),
    )

The model has a column for each machine, with its name and its state; one for each link, with the messages under way
(`checker.kit.networks`); and one for each history variable.

A machine ignores a message if `on_message` returns None. An ordered network then discards the message, because later
messages wait behind it. Any other network leaves it where it is, and the delivery is no move: a run with the delivery
would differ from one without it only in the messages under way. So properties should not depend on ignored messages.
A machine that returns `WAIT` leaves the message on its way in any network, for instance until it has started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import msgspec

from checker.engine import Actor, Column, Model, ModelError, Move, Outcome, Property, Read, Rule, Send
from checker.engine.contract import call, listed, place_of, wrong
from checker.kit.networks import (
    Arrival,
    Insert,
    Network,
    channel_actor,
    channel_column,
    channel_rule,
    name_of,
)

Link: TypeAlias = tuple[str, str]
"""A sender and a receiver, by their names."""


class Chosen(msgspec.Struct, frozen=True):
    """The operation that a machine takes a choice."""

    choice: Any


class Reaction(NamedTuple):
    """The new state of a machine, the messages it sends, and the events it reports to history variables.

    `sends` are pairs of receiver and message. The messages for one receiver enter its channel in this order. `reports`
    are pairs of the name of a history variable and an event. They are recorded first, in this order.
    """

    state: Any
    sends: tuple[tuple[str, Any], ...] = ()
    reports: tuple[tuple[str, Any], ...] = ()


WAIT = Reaction(None)
"""The answer of `on_message` to a message that stays on its way: its delivery is no move now."""


def to_each(receivers: Iterable[str], message: Any) -> tuple[tuple[str, Any], ...]:
    """One message for each receiver, in the form for `Reaction.sends`."""
    return tuple((receiver, message) for receiver in receivers)


def no_message(state: Any, source: str, message: Any) -> Reaction | None:  # noqa: ARG001 (the signature of a handler)
    """Ignore every message: for a machine that only makes choices."""
    return None


def no_choices(state: Any) -> tuple[Any, ...]:  # noqa: ARG001 (the signature of a handler)
    """Offer no choice: for a machine that only reacts to messages."""
    return ()


@dataclass(frozen=True)
class Machine:
    """A named state machine.

    `start` has its first state, and the messages and reports at the start. `on_message(state, source, message)` returns
    its reaction to a message, None if it ignores the message, or `WAIT`. `choices(state)` lists what it may do without
    a message: a timer, a decision, a request of its user. `on_choice(state, choice)` returns the reaction, or None if
    the choice is impossible. The action of a choice is the choice itself if it is a string, its first item if that is a
    string in a tuple, and otherwise the name of its type. `actions` declares the actions, so that the report can name
    an action that never fires. `fair` declares those that happen at last if they stay possible, such as a timeout: True
    for all, or their names. Any other choice need never be made, such as a crash or a request; deliveries are fair.

    States, messages and choices are hashable and immutable: strings, numbers, tuples, frozensets, enumerations, frozen
    dataclasses and structs.
    """

    name: str
    start: Reaction
    on_message: Callable[[Any, str, Any], Reaction | None] = no_message
    choices: Callable[[Any], Iterable[Any]] = no_choices
    on_choice: Callable[[Any, Any], Reaction | None] | None = None
    actions: tuple[str, ...] = ()
    fair: bool | tuple[str, ...] = False


@dataclass(frozen=True)
class HistoryVariable:
    """A variable that records events for properties; no machine reads it.

    `record(value, event)` returns the value after an event.

        HistoryVariable("decided", frozenset(), lambda value, event: value | {event})
    """

    name: str
    initial: Any
    record: Callable[[Any, Any], Any]


def network_model(
    name: str,
    machines: Sequence[Machine],
    network: Network = Network(),
    *,
    links: Iterable[Link] | None = None,
    histories: Sequence[HistoryVariable] = (),
    properties: Iterable[Property] = (),
) -> Model:
    """The model of machines on a network.

    `links` are the links that exist, as pairs of names; by default one from each machine to each other one. A model
    without the links that are never used is smaller and faster. A message to an unknown machine, or on a link that does
    not exist, raises ModelError: here at the start, otherwise during the exploration.
    """
    names = [machine.name for machine in machines]
    pairs = [(a, b) for a in names for b in names if a != b] if links is None else list(dict.fromkeys(links))
    for pair in pairs:
        _check_link(name, pair, names)
    assembly = _Assembly(network, frozenset(pairs), {history.name: history for history in histories})
    started = _Start(assembly)
    for machine in machines:
        started.add(machine)
    return Model(
        name,
        columns=(
            *(Column(machine.name, machine.start.state) for machine in machines),
            *(channel_column(network, *pair, started.messages(pair)) for pair in pairs),
            *(Column(history.name, started.values[history.name]) for history in histories),
        ),
        actors=(
            *(assembly.actor(machine) for machine in machines),
            *(channel_actor(network, *pair) for pair in pairs),
            *(_recorder(history) for history in histories),
        ),
        rules=(
            *(_choice_rule(machine) for machine in machines if machine.choices is not no_choices),
            *(channel_rule(network, *pair) for pair in pairs),
        ),
        properties=tuple(properties),
    )


def _check_link(model: str, pair: Link, names: Sequence[str]) -> None:
    for end in pair:
        if end not in names:
            raise ModelError(f"the model {model!r} has a link {name_of(*pair)!r}, and no machine is named {end!r}")


@dataclass(frozen=True)
class _Assembly:
    """The parts of a model that its machines refer to."""

    network: Network
    links: frozenset[Link]
    histories: dict[str, HistoryVariable]

    def batches(self, machine: str, reaction: Reaction, function: object = None) -> dict[str, tuple[Any, ...]]:
        """The messages of a reaction by receiver, each batch in the order of sending. Raises ModelError."""
        for name, pairs in (("sends", reaction.sends), ("reports", reaction.reports)):
            if not isinstance(pairs, tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
                right = "write a tuple of pairs, as in Reaction(state, ((receiver, message),))"
                raise wrong(f"the machine {machine!r}", pairs, right, function, verb=f"has the {name}")
        batches: dict[str, tuple[Any, ...]] = {}
        for receiver, message in reaction.sends:
            if (machine, receiver) not in self.links:
                why = f"{machine!r} sends {message!r} to {receiver!r}, and the model has no link between them"
                raise ModelError(f"{why}; add ({machine!r}, {receiver!r}) to its links")
            batches[receiver] = (*batches.get(receiver, ()), message)
        for history, event in reaction.reports:
            if history not in self.histories:
                raise ModelError(f"{machine!r} reports {event!r} to {history!r}, and no history variable has that name")
        return batches

    def outcome(
        self, machine: str, ignored: Outcome | None, function: Callable[..., Any], *arguments: Any
    ) -> Outcome | None:
        """A reaction as the engine carries it out: first the reports, then the messages. Raises ModelError."""
        source = f"the machine {machine!r}"
        reaction = call(source, function, *arguments)
        if reaction is None or reaction is WAIT:
            return None if reaction is WAIT else ignored
        if not isinstance(reaction, Reaction):
            raise wrong(source, reaction, "a Reaction or None would be right", function)
        batches = self.batches(machine, reaction, function)
        reports = (Send(history, event) for history, event in reaction.reports)
        messages = (Send(name_of(machine, receiver), Insert(batch)) for receiver, batch in batches.items())
        return Outcome((reaction.state,), (*reports, *messages))

    def actor(self, machine: Machine) -> Actor:
        def step(values: tuple[Any, ...], operation: Any) -> Outcome | None:
            (state,) = values
            if isinstance(operation, Arrival):
                ignored = Outcome((state,)) if self.network.ordered else None
                return self.outcome(
                    machine.name, ignored, machine.on_message, state, operation.source, operation.message
                )
            if isinstance(operation, Chosen) and machine.on_choice is not None:
                return self.outcome(machine.name, None, machine.on_choice, state, operation.choice)
            why = f"the machine {machine.name!r} has no function for {operation!r}; give it on_choice"
            raise ModelError(f"{why}{place_of(machine.choices)}")

        return Actor(machine.name, (machine.name,), step)


class _Start:
    """The messages under way and the values of history variables before the first move."""

    def __init__(self, assembly: _Assembly) -> None:
        self._assembly = assembly
        self._batches: dict[Link, tuple[Any, ...]] = {}
        self.values = {name: history.initial for name, history in assembly.histories.items()}

    def add(self, machine: Machine) -> None:
        """Take the first messages and reports of a machine. Raises ModelError."""
        if not isinstance(machine.start, Reaction):
            raise wrong(f"the machine {machine.name!r}", machine.start, "start=Reaction(state) is right", None, "has")
        for receiver, batch in self._assembly.batches(machine.name, machine.start).items():
            self._batches[machine.name, receiver] = batch
        for history, event in machine.start.reports:
            record = self._assembly.histories[history].record
            self.values[history] = call(f"the history variable {history!r}", record, self.values[history], event)

    def messages(self, link: Link) -> tuple[Any, ...]:
        return self._batches.get(link, ())


def _recorder(history: HistoryVariable) -> Actor:
    source = f"the history variable {history.name!r}"

    def step(values: tuple[Any, ...], event: Any) -> Outcome:
        return Outcome((call(source, history.record, values[0], event),))

    return Actor(history.name, (history.name,), step)


def _choice_rule(machine: Machine) -> Rule:
    name = f"choices of {machine.name}"
    source = f"the rule {name!r}"

    def moves(state: Any) -> list[Move]:
        choices = listed(source, machine.choices, state, right='choices are a list; one of them is ["go"]')
        return [Move(_action(choice), (machine.name,), (Send(machine.name, Chosen(choice)),)) for choice in choices]

    return Rule(name, (Read(machine.name),), moves, machine.actions, machine.fair)


def _action(choice: Any) -> str:
    """The action of a choice: the choice, the first item of a tuple, or the name of the type."""
    first = choice[0] if isinstance(choice, tuple) and choice else choice
    return first if isinstance(first, str) else type(choice).__name__
