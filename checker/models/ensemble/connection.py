"""The quorum connection between two servers: one socket, with a stream in each direction.

    learner -> leader    `up`
    leader -> learner    `down`

Rules of this module:

- Whoever ends closes its side: what it sent still arrives, what it was sent is lost. When both sides are closed
  nothing is left of the connection.
- A cut drops what is on its way in both directions. Each side notices for itself, later.
- A side that holds a connection of which the other is gone may notice at any time, with unread packets or without:
  a reset overtakes what was sent before it.
- A new connection takes the place of an old one of which the leader has not noticed the end yet, and it notices then.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from checker.engine import Actor, Outcome
from checker.models.ensemble.names import LINKS, connection_name
from spec.quorum import Sid
from spec.zab.packets import QuorumPacket


class Connection(msgspec.Struct, frozen=True):
    """A socket: who still holds it, whether it is broken, and the packets in flight, oldest first."""

    learner: Sid
    leader: Sid
    learner_holds: bool = True
    leader_holds: bool = True
    broken: bool = False
    up: tuple[QuorumPacket, ...] = ()
    down: tuple[QuorumPacket, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether both sides hold it, and nothing has cut it."""
        return self.learner_holds and self.leader_holds and not self.broken

    def is_lost_to(self, sid: Sid) -> bool:
        """Whether this side holds it, and may notice that it is of no use any more."""
        holds = self.learner_holds if sid == self.learner else self.leader_holds
        return holds and not self.is_whole


class Open(msgspec.Struct, frozen=True):
    """A learner connects, and sends its first packet."""

    learner: Sid
    leader: Sid
    first: QuorumPacket


class Transmit(msgspec.Struct, frozen=True):
    """One side sends a packet."""

    source: Sid
    packet: QuorumPacket


class Take(msgspec.Struct, frozen=True):
    """One side reads the oldest packet that was sent to it."""

    reader: Sid


class Close(msgspec.Struct, frozen=True):
    """One side closes, or its process ends."""

    side: Sid


class Break(msgspec.Struct, frozen=True):
    """The link is cut, or the network drops this one connection."""


def connection_actor(one: Sid, other: Sid) -> Actor:
    """The connection between two servers, whichever of them leads."""

    def step(values: tuple[Any, ...], operation: Any) -> Outcome | None:
        return Outcome((_after(values[0], operation),))

    return Actor(connection_name(one, other), (connection_name(one, other),), step)


def opening_actor(one: Sid, other: Sid) -> Actor:
    """What opens the connection, if the link is whole."""
    link = (min(one, other), max(one, other))

    def step(values: tuple[Any, ...], operation: Open) -> Outcome:
        connection, cut = values
        if link in cut:
            return Outcome((None, cut))
        return Outcome((Connection(operation.learner, operation.leader, up=(operation.first,)), cut))

    return Actor(f"open {connection_name(one, other)}", (connection_name(one, other), LINKS), step)


def _after(connection: Connection | None, operation: Any) -> Connection | None:
    if connection is None:
        return None
    match operation:
        case Transmit(source=source, packet=packet):
            return _transmitted(connection, source, packet)
        case Take(reader=reader) if reader == connection.leader:
            return replace(connection, up=connection.up[1:])
        case Take():
            return replace(connection, down=connection.down[1:])
        case Close(side=side):
            return _closed(connection, side)
        case Break():
            return _closed(replace(connection, broken=True, up=(), down=()), None)
    raise ValueError(f"a connection does not know {operation!r}")


def _transmitted(connection: Connection, source: Sid, packet: QuorumPacket) -> Connection:
    """A packet to a side that is gone, or over a broken connection, is lost."""
    if not connection.is_whole:
        return connection
    if source == connection.learner:
        return replace(connection, up=(*connection.up, packet))
    return replace(connection, down=(*connection.down, packet))


def _closed(connection: Connection, side: Sid | None) -> Connection | None:
    if side == connection.learner:
        connection = replace(connection, learner_holds=False, down=())
    elif side == connection.leader:
        connection = replace(connection, leader_holds=False, up=())
    return connection if connection.learner_holds or connection.leader_holds else None
