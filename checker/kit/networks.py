"""Networks for models of actors: ordered or not, lossy or not, duplicating or not.

A network consists of channels, one for each *link*, which is an ordered pair of actors. A channel is a column of the
model, named "sender->receiver", an actor of the same name that carries out `Insert` and `Remove`, and a rule that lists
the deliveries, losses and repetitions that are possible.

    network           content of a channel            a delivery takes             a loss takes
    ordered           a tuple, the head first         the head                     the head
    unordered         a Bag with counts               one copy of any message      one copy of any message
    duplicating       a Bag that counts each once     nothing                      the message

A network that is ordered and duplicating keeps a tuple. It delivers the head with or without taking it.

Rules of this module:

- Equal contents have one representation, so no state occurs twice.
- An ordered channel loses only its head. A message that is lost behind another one is lost when it becomes the head:
  no actor can notice the difference, and there are fewer states.
- The moves of a channel have an order that depends only on its content, so that a run can be repeated in another
  process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from checker.engine import Actor, Channel, Column, ModelError, Move, Outcome, Read, Rule, Send
from checker.engine.contract import described, same_types
from checker.engine.model import Strength
from checker.kit.actions import FaultAction, has_left, spend
from checker.kit.environment import ModelFragment

ARROW = "->"
DELIVER, LOSE, REPEAT = "deliver", FaultAction.LOSE, "repeat"
"""The actions of a network: a message arrives, a message is lost, a message arrives and stays."""


class Insert(msgspec.Struct, frozen=True):
    """The operation that puts messages into a channel, in this order."""

    messages: tuple[Any, ...]


class Remove(msgspec.Struct, frozen=True):
    """The operation that takes one copy of a message out of a channel; impossible if it cannot be taken."""

    message: Any


class Arrival(msgspec.Struct, frozen=True):
    """The operation that a message arrives at an actor."""

    source: str
    message: Any


@dataclass(frozen=True)
class Bag:
    """A multiset of messages: each with the number of its copies, without an order.

    `Bag.of` makes one of messages, which must be hashable. Equal bags are equal, whatever the order of insertion was.
    Iteration gives each copy, in an order that is the same in every process.

        bag = Bag.of(["vote", "ack"]).plus("ack")
        assert list(bag) == ["ack", "ack", "vote"] and bag == Bag.of(["ack", "vote", "ack"])
    """

    counts: frozenset[tuple[Any, int]] = frozenset()

    @staticmethod
    def of(messages: Iterable[Any]) -> Bag:
        """The bag of these messages."""
        bag = Bag()
        for message in messages:
            bag = bag.plus(message)
        return bag

    def count(self, message: Any) -> int:
        """The number of copies of a message."""
        for other, count in self.counts:
            if other == message:
                same_types(other, message, "a channel")
                return count
        return 0

    def plus(self, message: Any, most: int | None = None) -> Bag:
        """The bag with one more copy of a message, or the same bag if there are `most` copies of it."""
        count = self.count(message)
        if count == most:
            return self
        return Bag(self.counts - {(message, count)} | {(message, count + 1)})

    def minus(self, message: Any) -> Bag | None:
        """The bag with one copy less of a message; None if there is no copy."""
        count = self.count(message)
        if not count:
            return None
        fewer = {(message, count - 1)} if count > 1 else frozenset()
        return Bag(self.counts - {(message, count)} | fewer)

    def distinct(self) -> list[Any]:
        """Each message once, in the same order in every process; in this process for other values than data."""
        return sorted((message for message, _ in self.counts), key=lambda message: (described(message), hash(message)))

    def __iter__(self) -> Iterator[Any]:
        for message in self.distinct():
            yield from [message] * self.count(message)

    def __len__(self) -> int:
        return sum(count for _, count in self.counts)

    def __contains__(self, message: Any) -> bool:
        return self.count(message) > 0


Content: TypeAlias = tuple[Any, ...] | Bag | FaultAction
"""The messages of a channel; `FaultAction.CUT` while its link is cut."""


@dataclass(frozen=True)
class Network:
    """The guarantees of a network. The default delivers each message at most once, in any order, and loses none.

    `ordered`: the messages of a link arrive in the order of sending. `lossy`: a message may be lost. `duplicating`: a
    message may arrive any number of times. `fair` is the fairness of deliveries. With "strong", a link delivers again
    and again if it has a message to deliver again and again, even if all of them may also be lost.

        Network(ordered=True)                   TCP connections that do not break
        Network(lossy=True, duplicating=True)   UDP
    """

    ordered: bool = False
    lossy: bool = False
    duplicating: bool = False
    fair: Strength = True

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions of its moves."""
        lose = (LOSE,) if self.lossy else ()
        return (DELIVER, *lose, *((REPEAT,) if self.ordered and self.duplicating else ()))

    def content(self, messages: Iterable[Any] = ()) -> Content:
        """The content of a channel into which these messages were put."""
        return self.after_insert(() if self.ordered else Bag(), messages)

    def after_insert(self, content: Content, messages: Iterable[Any]) -> Content:
        """The content of a channel after an insertion."""
        if isinstance(content, tuple):
            return (*content, *messages)
        if not isinstance(content, Bag):
            return content  # the link is cut
        for message in messages:
            content = content.plus(message, most=1 if self.duplicating else None)
        return content

    def after_removal(self, content: Content, message: Any) -> Content | None:
        """The content of a channel after a removal; None if the message cannot be taken out."""
        if isinstance(content, tuple):
            return content[1:] if content[:1] == (message,) else None
        return content.minus(message) if isinstance(content, Bag) else None

    def after_fault(self, content: Content, fault: FaultAction) -> Content:
        """The content of a channel after a cut or a healing of its link, or the end of its connection."""
        if FaultAction.CUT in (fault, content) and fault is not FaultAction.HEAL:
            return FaultAction.CUT
        return self.content()

    def next_messages(self, content: Content) -> Iterable[Any]:
        """The messages that may arrive now."""
        if isinstance(content, tuple):
            return content[:1]
        return content.distinct() if isinstance(content, Bag) else ()


def name_of(source: str, target: str) -> str:
    """The name of the channel from one actor to another."""
    return f"{source}{ARROW}{target}"


def channel_actor(network: Network, source: str, target: str) -> Actor:
    """The actor that holds the content of a channel."""
    name = name_of(source, target)

    def step(values: tuple[Any, ...], operation: Any) -> Outcome | None:
        (content,) = values
        if isinstance(operation, Insert):
            return Outcome((network.after_insert(content, operation.messages),))
        if isinstance(operation, Remove):
            rest = network.after_removal(content, operation.message)
            return None if rest is None else Outcome((rest,))
        if isinstance(operation, FaultAction):
            return Outcome((network.after_fault(content, operation),))
        raise ModelError(f"the channel {name!r} cannot carry out {operation!r}; send it Insert or Remove")

    return Actor(name, (name,), step)


def channel_column(network: Network, source: str, target: str, messages: Iterable[Any] = ()) -> Column:
    """The column of a channel, with the messages that are under way at first."""
    return Column(name_of(source, target), network.content(messages), Channel(source, target))


def channel_rule(network: Network, source: str, target: str, *gates: Read) -> Rule:
    """The rule that lists what may happen to the messages of a channel while the gates are open.

    Its moves have the arguments (sender, receiver, message). A delivery is fair, unlike a loss and a repetition.
    """
    name = name_of(source, target)
    keeps = network.duplicating and not network.ordered

    def moves(content: Content, *_: bool) -> Iterator[Move]:
        for message in network.next_messages(content):
            arguments = (source, target, message)
            take, arrive = Send(name, Remove(message)), Send(target, Arrival(source, message))
            yield Move(DELIVER, arguments, (arrive,) if keeps else (take, arrive))
            if network.ordered and network.duplicating:
                yield Move(REPEAT, arguments, (arrive,))
            if network.lossy:
                yield Move(LOSE, arguments, (take,))

    return Rule(f"network {name}", (Read(name), *gates), moves, network.actions, {DELIVER: network.fair})


def channel(network: Network, source: str, target: str, messages: Iterable[Any] = (), *gates: Read) -> ModelFragment:
    """A channel for any model: its column, its actor, and the rule of its deliveries while the gates are open.

    A message is sent by `Send("a->b", Insert((message,)))`. A delivery sends `Arrival` to the actor `target`. A model
    with other deliveries leaves the rule out, and takes messages by `Remove`. A `FaultAction` empties the channel.
    """
    return ModelFragment(
        (channel_column(network, source, target, messages),),
        (channel_actor(network, source, target),),
        (channel_rule(network, source, target, *gates),),
    )


def loss_rule(network: Network, source: str, target: str) -> Rule:
    """The rule that loses a message of a channel, and takes one from the budget of losses."""
    name = name_of(source, target)

    def moves(content: Content, _: bool) -> Iterator[Move]:
        for message in network.next_messages(content):
            yield Move(LOSE, (source, target, message), (spend(LOSE), Send(name, Remove(message))))

    return Rule(f"losses of {name}", (Read(name), has_left(LOSE)), moves, (LOSE,))
