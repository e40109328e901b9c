"""The questions of the reduction about single cells; kernels know them by their numbers in the tables.

`answers` has the meaning of the answers. A channel is named by its position among the eligible ones, an operation by
its number in the tables.
"""

from __future__ import annotations

from dataclasses import dataclass

YES = 1


@dataclass(frozen=True)
class ArrivalEffect:
    """Of a cell of a process: whether an operation from a channel leaves it as it is, now and later."""

    channel: int
    operation: int


@dataclass(frozen=True)
class Future:
    """Of a cell of a process: the operations it may still send to a channel. The answer is the number of a `Sent`."""

    channel: int


@dataclass(frozen=True)
class Removal:
    """Of a content of a channel: whether the delivery commutes with these operations of the sender, and all others.

    `operations` is None if all operations append. `inert` are the words of other deliveries to the receiver that make
    no difference either.
    """

    channel: int
    operations: frozenset[int] | None
    inert: frozenset[int]


@dataclass(frozen=True)
class Insertion:
    """Of a content of a channel: whether this operation commutes with all others, and with deliveries.

    With `repeats`, the operation may come any number of times, and `operations` are all that the sender may still send
    there.
    """

    channel: int
    operation: int
    operations: frozenset[int]
    repeats: bool


@dataclass(frozen=True)
class Repetition:
    """Of a cell of a process: whether an operation from a channel, now or later, may be repeated without effect."""

    channel: int
    operation: int


@dataclass(frozen=True)
class InertDeliveries:
    """The words of the deliveries of a channel that make no difference to a receiver; a subject of questions."""

    channel: int
    words: frozenset[int]


@dataclass(frozen=True)
class Sent:
    """Of an `InertDeliveries`: the number of the `Removal` for a sender that may still send these operations."""

    operations: frozenset[int] | None
