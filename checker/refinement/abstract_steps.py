"""The abstract actions of one step of a server, as a value that the model sends to its history.

A step that concerns abstract Zab has the disk of its server before and after it, and the actions between the two, in
order. All other steps are stutters, and send nothing. Both users of the refinement, the property and the validation of
journals, name a broken condition by `named`. Nothing here loads z3.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias

import msgspec

from spec.durable import Durable
from spec.effects import Fact
from spec.quorum import Sid, View
from spec.txn import Txn

REFINEMENT = "RefinesAbstractZab"
"""The name of the property."""
Broken: TypeAlias = tuple[str, str]
"""An action, and the condition of it that does not hold."""
ReignKey: TypeAlias = tuple[int, Sid]
"""A reign: its epoch and its server. A server begins an epoch once, since it accepts it by that."""
NO_REIGN: ReignKey = (0, 0)
"""The zero reign; with another epoch, the reign of a server that the history does not know."""


class Disk(msgspec.Struct, frozen=True):
    """The part of a disk that abstract Zab has: both epochs, the transactions in order, and the last zxid."""

    accepted: int
    current: int
    txns: tuple[Txn, ...]
    last: int


def disk_of(durable: Durable) -> Disk:
    """The abstraction of a disk."""
    return Disk(durable.accepted_epoch, durable.current_epoch, tuple(durable.txns), durable.last_zxid)


class Name(Enum):
    """The abstract actions, by their names in `checker.symbolic.zab.actions`; the last three only keep the books."""

    BEGIN = "begin"
    PROMISE = "promise"
    ESTABLISH = "establish"
    SYNCHRONISE = "synchronise"
    ENTER = "enter"
    PROPOSE = "propose"
    BEGIN_BROADCAST = "begin_broadcast"
    ACK = "ack"
    VOID_ACKS = "void_acks"
    SERVE = "serve"
    COMMIT = "commit"
    FOLLOW = "follow"
    """A learner has the epoch of this reign, and may take steps of it until it leaves."""
    LEAVE = "leave"
    """The server no longer leads or follows."""


class AbstractAction(msgspec.Struct, frozen=True):
    """An abstract action of a reign.

    `zxid` belongs to a transaction, or is the bound of an action. `quorum` is the set that the leader
    counted, and `view` the view of a reign that begins. `learner` is the server whose acknowledgements become void.
    """

    name: Name
    reign: ReignKey
    zxid: int = 0
    quorum: frozenset[Sid] = frozenset()
    txns: tuple[Txn, ...] = ()
    view: View | None = None
    learner: Sid = 0


class AbstractSteps(Fact, frozen=True):
    """A step of `server` that concerns abstract Zab."""

    server: Sid
    before: Disk
    calls: tuple[AbstractAction, ...]
    after: Disk


def named(broken: Sequence[Broken]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The clause of a finding, the first broken condition, and the others as its values. `broken` has at least one."""
    (action, condition), *others = broken
    return f"{action}: {condition}", tuple((f"and at {name}", also) for name, also in others)
