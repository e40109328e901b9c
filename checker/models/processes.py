"""Processes that communicate over FIFO channels: a short way from step functions to a model.

A `Process` is a state machine: `step(state, event)` returns the new state and the messages to send, or None when the
event is impossible now (a message then stays in its channel). Events are `Deliver(source, message)` and the events that
`spontaneous(state)` lists: timers, client requests, decisions.

Columns: one for each process, with its name; one for each ordered pair of processes, named "a->b", a tuple of messages
with its head first. Channels neither lose, repeat nor reorder messages; models with faults have their own channels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from checker.engine.contract import call, listed, wrong
from checker.engine.model import Actor, Column, Model, Move, Outcome, Property, Read, Rule, Send

POP = "pop"


class Deliver(NamedTuple):
    """The event that the head of the channel from `source` arrives."""

    source: str
    message: Any


class Stepped(NamedTuple):
    """The result of a step: the new state, and (destination, message) pairs in the order they are sent."""

    state: Any
    messages: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Process:
    """A named state machine, its initial state, and the events that it may take without a message."""

    name: str
    initial: Any
    step: Callable[[Any, Any], Stepped | None]
    spontaneous: Callable[[Any], Iterable[Any]] = lambda _: ()
    fair: bool | tuple[str, ...] = False


def model_of(name: str, processes: Sequence[Process], properties: Iterable[Property] = ()) -> Model:
    """The model of these processes, with a channel in each direction between every two of them."""
    pairs = [(a.name, b.name) for a in processes for b in processes if a.name != b.name]
    channels = [channel(source, destination) for source, destination in pairs]
    return Model(
        name,
        columns=(
            *(Column(process.name, process.initial) for process in processes),
            *(Column(actor.name, ()) for actor in channels),
        ),
        actors=(*(_actor(process) for process in processes), *channels),
        rules=(*(_own_events(process) for process in processes), *(_delivery(*pair) for pair in pairs)),
        properties=tuple(properties),
    )


def channel(source: str, destination: str) -> Actor:
    """A FIFO channel; its operations are POP and a tuple of messages to append."""
    name = f"{source}->{destination}"

    def step(values: tuple[Any, ...], operation: Any) -> Outcome | None:
        (waiting,) = values
        if operation == POP:
            return Outcome((waiting[1:],)) if waiting else None
        return Outcome(((*waiting, *operation),))

    return Actor(name, (name,), step)


def _actor(process: Process) -> Actor:
    def step(values: tuple[Any, ...], event: Any) -> Outcome | None:
        source = f"the process {process.name!r}"
        stepped = call(source, process.step, values[0], event)
        if stepped is None:
            return None
        if not isinstance(stepped, Stepped):
            raise wrong(source, stepped, "a Stepped or None would be right", process.step)
        batches: dict[str, tuple[Any, ...]] = {}
        for destination, message in stepped.messages:
            batches[destination] = (*batches.get(destination, ()), message)
        sends = tuple(Send(f"{process.name}->{to}", batch) for to, batch in batches.items())
        return Outcome((stepped.state,), sends)

    return Actor(process.name, (process.name,), step)


def _own_events(process: Process) -> Rule:
    source = f"the process {process.name!r}"

    def moves(state: Any) -> list[Move]:
        events = listed(source, process.spontaneous, state, right='events are a list; one of them is ["go"]')
        return [Move(_action(event), (process.name,), (Send(process.name, event),)) for event in events]

    return Rule(f"events of {process.name}", (Read(process.name),), moves, fair=process.fair)


def _action(event: Any) -> str:
    """The name of an event: itself if it is a string, the first string of a plain tuple, or the name of its type."""
    if isinstance(event, str):
        return event
    named = type(event) is tuple and event and isinstance(event[0], str)
    return str(event[0]) if named else type(event).__name__


def _delivery(source: str, destination: str) -> Rule:
    name = f"{source}->{destination}"

    def moves(waiting: tuple[Any, ...]) -> list[Move]:
        if not waiting:
            return []
        event = Deliver(source, waiting[0])
        return [Move("deliver", (source, destination, waiting[0]), (Send(name, POP), Send(destination, event)))]

    return Rule(f"delivery {name}", (Read(name),), moves, fair=True)
