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

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import msgspec

from checker.engine import Actor, Column, Model, ModelError, Move, Outcome, Property, Read, Rule, Send
from checker.engine.contract import call, listed, place_of, wrong
from checker.engine.model import Fairness
from checker.kit.actions import Action, FaultAction, fair_among, spend
from checker.kit.disk import Restored, UnfinishedWrite, disk_name, late_disk
from checker.kit.environment import Environment, ModelFragment, environment, is_up
from checker.kit.networks import (
    Arrival,
    Insert,
    Network,
    channel_actor,
    channel_column,
    channel_rule,
    loss_rule,
    name_of,
)

Link: TypeAlias = tuple[str, str]
"""A sender and a receiver, by their names."""
Batches: TypeAlias = dict[str, tuple[Any, ...]]
"""The messages of one step by receiver, each batch in the order of sending."""


class Chosen(msgspec.Struct, frozen=True):
    """The operation that a machine takes a choice."""

    choice: Any


class Reaction(NamedTuple):
    """The new state of a machine, the messages it sends, and the events it reports to history variables.

    `sends` are pairs of receiver and message. The messages for one receiver enter its channel in this order. `reports`
    are pairs of the name of a history variable and an event. They are recorded first, in this order. `after_sync` are
    messages that leave as soon as all earlier writes of the machine are durable: in the same step, unless the disk is
    late.
    """

    state: Any
    sends: tuple[tuple[str, Any], ...] = ()
    reports: tuple[tuple[str, Any], ...] = ()
    after_sync: tuple[tuple[str, Any], ...] = ()


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
    an action that never fires. `fair` declares those that must happen, such as a timeout, in a form of `Rule.fair`. Any
    other choice need never be made, such as a request; deliveries are fair. An `Action` has its fairness, its caption
    and its budget in its traits.

    `durable(state)` is the state with which the machine starts again after a crash: the content of its disk, and first
    values for all else. Without it the machine never crashes. A step writes if it changes this state.

    States, messages and choices are hashable and immutable: strings, numbers, tuples, frozensets, enumerations, frozen
    dataclasses and structs.
    """

    name: str
    start: Reaction
    on_message: Callable[[Any, str, Any], Reaction | None] = no_message
    choices: Callable[[Any], Iterable[Any]] = no_choices
    on_choice: Callable[[Any, Any], Reaction | None] | None = None
    actions: tuple[str, ...] = ()
    fair: Fairness = False
    durable: Callable[[Any], Any] | None = None


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
    faults: Environment | None = None,
    histories: Sequence[HistoryVariable] = (),
    properties: Iterable[Property] = (),
) -> Model:
    """The model of machines on a network, in an environment with these faults.

    `links` are the links that exist, as pairs of names; by default one from each machine to each other one. A model
    without the links that are never used is smaller and faster. A message to an unknown machine, or on a link that does
    not exist, raises ModelError: here at the start, otherwise during the exploration.
    """
    names = [machine.name for machine in machines]
    pairs = [(a, b) for a in names for b in names if a != b] if links is None else list(dict.fromkeys(links))
    for pair in pairs:
        _check_link(name, pair, names)
    is_late = faults is not None and faults.unfinished_writes > 0
    late = frozenset(machine.name for machine in machines if machine.durable and is_late)
    assembly = _Assembly(network, frozenset(pairs), {history.name: history for history in histories}, late)
    world = _environment(network, machines, pairs, faults)
    choosing = [machine for machine in machines if machine.choices is not no_choices]
    fallible = {machine.name for machine in machines if machine.durable and faults is not None and faults.crashes}
    gates = {name: (is_up(name),) if name in fallible else () for name in names}
    batches, values = _started(assembly, machines)
    return Model(
        name,
        columns=(
            *(Column(machine.name, machine.start.state) for machine in machines),
            *(channel_column(network, *pair, batches.get(pair, ())) for pair in pairs),
            *(Column(history.name, values[history.name]) for history in histories),
            *world.columns,
        ),
        actors=(
            *(assembly.actor(machine) for machine in machines),
            *(channel_actor(network, *pair) for pair in pairs),
            *(_recorder(history) for history in histories),
            *world.actors,
        ),
        rules=(
            *(_choice_rule(machine, *gates[machine.name]) for machine in choosing),
            *(channel_rule(network, *pair, *gates[pair[1]]) for pair in pairs),
            *world.rules,
        ),
        properties=tuple(properties),
    )


def _check_link(model: str, pair: Link, names: Sequence[str]) -> None:
    for end in pair:
        if end not in names:
            raise ModelError(f"the model {model!r} has a link {name_of(*pair)!r}, and no machine is named {end!r}")


@dataclass(frozen=True)
class _Assembly:
    """The parts of a model that its machines refer to; `late` machines have a late disk."""

    network: Network
    links: frozenset[Link]
    histories: dict[str, HistoryVariable]
    late: frozenset[str]

    def batches(self, machine: str, reaction: Reaction, function: object = None) -> tuple[Batches, Batches]:
        """The messages of a reaction that leave now, and those that wait for a late disk. Raises ModelError."""
        for name in ("sends", "reports", "after_sync"):
            pairs = getattr(reaction, name)
            if not isinstance(pairs, tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
                right = "write a tuple of pairs, as in Reaction(state, ((receiver, message),))"
                raise wrong(f"the machine {machine!r}", pairs, right, function, verb=f"has the {name}")
        leaving: Batches = {}
        waiting: Batches = {}
        for batches, sends in (
            (leaving, reaction.sends),
            (waiting if machine in self.late else leaving, reaction.after_sync),
        ):
            for receiver, message in sends:
                if (machine, receiver) not in self.links:
                    why = f"{machine!r} sends {message!r} to {receiver!r}, and the model has no link between them"
                    raise ModelError(f"{why}; add ({machine!r}, {receiver!r}) to its links")
                batches[receiver] = (*batches.get(receiver, ()), message)
        for history, event in reaction.reports:
            if history not in self.histories:
                raise ModelError(f"{machine!r} reports {event!r} to {history!r}, and no history variable has that name")
        return leaving, waiting

    def outcome(
        self, machine: Machine, ignored: Outcome | None, function: Callable[..., Any], state: Any, *arguments: Any
    ) -> Outcome | None:
        """A reaction as the engine carries it out: first the reports, then the messages. Raises ModelError."""
        source = f"the machine {machine.name!r}"
        reaction = call(source, function, state, *arguments)
        if reaction is None or reaction is WAIT:
            return None if reaction is WAIT else ignored
        if not isinstance(reaction, Reaction):
            raise wrong(source, reaction, "a Reaction or None would be right", function)
        leaving, waiting = self.batches(machine.name, reaction, function)
        reports = (Send(history, event) for history, event in reaction.reports)
        messages = (Send(name_of(machine.name, receiver), Insert(batch)) for receiver, batch in leaving.items())
        writes: tuple[Send, ...] = ()
        durable = machine.durable if machine.name in self.late else None
        if durable is not None:
            before, after = (call(source, durable, value) for value in (state, reaction.state))
            if waiting or before != after:
                writes = (Send(disk_name(machine.name), UnfinishedWrite(after, tuple(waiting.items()))),)
        return Outcome((reaction.state,), (*reports, *messages, *writes))

    def actor(self, machine: Machine) -> Actor:
        def step(values: tuple[Any, ...], operation: Any) -> Outcome | None:
            (state,) = values
            if isinstance(operation, Arrival):
                ignored = Outcome((state,)) if self.network.ordered else None
                return self.outcome(machine, ignored, machine.on_message, state, operation.source, operation.message)
            if isinstance(operation, Restored):
                return Outcome((operation.state,))
            if operation is FaultAction.CRASH and machine.durable is not None:
                return Outcome((call(f"the machine {machine.name!r}", machine.durable, state),))
            if isinstance(operation, Chosen) and machine.on_choice is not None:
                return self.outcome(machine, None, machine.on_choice, state, operation.choice)
            why = f"the machine {machine.name!r} has no function for {operation!r}; give it on_choice"
            raise ModelError(f"{why}{place_of(machine.choices)}")

        return Actor(machine.name, (machine.name,), step)


def _started(assembly: _Assembly, machines: Iterable[Machine]) -> tuple[dict[Link, tuple[Any, ...]], dict[str, Any]]:
    """The messages under way on each link and the values of history variables before the first move."""
    batches: dict[Link, tuple[Any, ...]] = {}
    values = {name: history.initial for name, history in assembly.histories.items()}
    for machine in machines:
        if not isinstance(machine.start, Reaction):
            raise wrong(f"the machine {machine.name!r}", machine.start, "start=Reaction(state) is right", None, "has")
        for started in assembly.batches(machine.name, machine.start):
            for receiver, batch in started.items():
                # A first state is durable, so that nothing waits for the disk.
                batches[machine.name, receiver] = (*batches.get((machine.name, receiver), ()), *batch)
        for history, event in machine.start.reports:
            record = assembly.histories[history].record
            values[history] = call(f"the history variable {history!r}", record, values[history], event)
    return batches, values


def _environment(
    network: Network, machines: Sequence[Machine], pairs: Sequence[Link], budgets: Environment | None
) -> ModelFragment:
    """The faults of machines and links. A machine that crashes breaks its connections, if they keep the order."""
    if budgets is None:
        return ModelFragment()
    links: dict[frozenset[str], tuple[str, ...]] = {}
    for pair in pairs:
        links[frozenset(pair)] = (*links.get(frozenset(pair), ()), name_of(*pair))
    ended = {
        name: (
            disk_name(name) if budgets.unfinished_writes else name,
            *(channel for ends in links if network.ordered and name in ends for channel in links[ends]),
        )
        for name in (machine.name for machine in machines if machine.durable)
    }
    operations = {name: tuple(Send(actor, FaultAction.CRASH) for actor in actors) for name, actors in ended.items()}
    world = environment(operations, links, budgets)
    losses = (loss_rule(network, *pair) for pair in pairs if budgets.losses)
    disks = [
        late_disk(machine.name, call(f"the machine {machine.name!r}", machine.durable, machine.start.state), most)
        for machine in machines
        if machine.durable and (most := budgets.unfinished_writes)
    ]
    return ModelFragment(
        (*world.columns, *(column for disk in disks for column in disk.columns)),
        (*world.actors, *(actor for disk in disks for actor in disk.actors)),
        (*losses, *world.rules, *(rule for disk in disks for rule in disk.rules)),
    )


def _recorder(history: HistoryVariable) -> Actor:
    source = f"the history variable {history.name!r}"

    def step(values: tuple[Any, ...], event: Any) -> Outcome:
        return Outcome((call(source, history.record, values[0], event),))

    return Actor(history.name, (history.name,), step)


def _choice_rule(machine: Machine, *gates: Read) -> Rule:
    name = f"choices of {machine.name}"
    source = f"the rule {name!r}"

    def moves(state: Any, *_: bool) -> Iterator[Move]:
        for choice in listed(source, machine.choices, state, right='choices are a list; one of them is ["go"]'):
            action, chosen = _action(choice), Send(machine.name, Chosen(choice))
            spent = (spend(action),) if isinstance(action, Action) and action.traits.budget is not None else ()
            yield Move(action, (machine.name,), (*spent, chosen))

    rule = Rule(name, (Read(machine.name), *gates), moves, machine.actions, machine.fair)
    named = {action: rule.strength(action) for action in rule.named_fair}
    return replace(rule, fair=machine.fair if not named and machine.fair else fair_among(machine.actions) | named)


def _action(choice: Any) -> str:
    """The action of a choice: the choice, the first item of a tuple, or the name of the type."""
    first = choice[0] if isinstance(choice, tuple) and choice else choice
    return first if isinstance(first, str) else type(choice).__name__
