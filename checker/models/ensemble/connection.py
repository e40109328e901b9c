"""The quorum connection between two servers: one socket, with a stream in each direction.

    learner -> leader    `up`
    leader -> learner    `down`

Rules of this module:

- A server that ends closes its side: the packets that it sent still arrive, and the packets sent to it are lost. When
  neither side holds the connection, it is removed.
- A cut drops the packets in flight in both directions.
- A side notices that the other is gone when it has read every packet that was sent to it (`PeerClosed`). A later
  notice by a leader is not explored: its packets in the meantime are lost, and its counts stay the same in both cases.
  A learner may notice earlier, with unread packets, since a lost link loses them; and later, while it writes.
- A new connection replaces an old one.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from checker.engine import Actor, Outcome, Send
from checker.kit.environment import LINKS
from checker.models.ensemble.setup import connection_name, server_name
from spec.quorum import Sid
from spec.zab.events import Receive
from spec.zab.packets import QuorumPacket


class Connection(msgspec.Struct, frozen=True):
    """A socket: the sides that still hold it, and the packets in flight, oldest first."""

    learner: Sid
    leader: Sid
    learner_holds: bool = True
    leader_holds: bool = True
    up: tuple[QuorumPacket, ...] = ()
    down: tuple[QuorumPacket, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether both sides hold it."""
        return self.learner_holds and self.leader_holds

    def last_word_of(self, source: Sid) -> bool:
        """Whether exactly one packet is unread from a side that is gone."""
        if source == self.learner:
            return not self.learner_holds and len(self.up) == 1
        return not self.leader_holds and len(self.down) == 1


class Open(msgspec.Struct, frozen=True):
    """A learner connects, and sends its first packet."""

    learner: Sid
    leader: Sid
    first: QuorumPacket


class Transmit(msgspec.Struct, frozen=True):
    """One side sends packets, in this order."""

    source: Sid
    packets: tuple[QuorumPacket, ...]


class Take(msgspec.Struct, frozen=True):
    """One side reads the oldest packet that was sent to it."""

    reader: Sid


class Pass(msgspec.Struct, frozen=True):
    """The oldest packet that was sent to `reader`, if there is one, arrives in the same step."""

    reader: Sid


class Close(msgspec.Struct, frozen=True):
    """One side closes, or its process ends."""

    side: Sid


class Disconnection(msgspec.Struct, frozen=True):
    """The link is cut, or the network drops this one connection."""


class PeerClosed(msgspec.Struct, frozen=True):
    """The event that the other side of a server's connection is gone, and that every packet from it has been read."""

    peer: Sid


def connection_actor(one: Sid, other: Sid) -> Actor:
    """The connection between two servers, with either of them as the leader."""

    def step(values: tuple[Any, ...], operation: Any) -> Outcome | None:
        if isinstance(operation, Pass):
            return _passed(values[0], operation.reader)
        after, notices = _after(values[0], operation)
        return Outcome((after,), tuple(Send(server_name(sid), PeerClosed(peer)) for sid, peer in notices))

    return Actor(connection_name(one, other), (connection_name(one, other),), step)


def opening_actor(one: Sid, other: Sid) -> Actor:
    """The actor that opens the connection, unless the link is cut."""
    link = (min(one, other), max(one, other))

    def step(values: tuple[Any, ...], operation: Open) -> Outcome:
        _, cut = values
        if link in cut:
            return Outcome((None, cut))
        return Outcome((Connection(operation.learner, operation.leader, up=(operation.first,)), cut))

    return Actor(f"open {connection_name(one, other)}", (connection_name(one, other), LINKS), step)


_After = tuple[Connection | None, tuple[tuple[Sid, Sid], ...]]
"""The connection, and pairs (server, peer) for the servers that get `PeerClosed(peer)`."""


def _after(connection: Connection | None, operation: Any) -> _After:
    if connection is None:
        return None, ()
    match operation:
        case Transmit(source=source, packets=packets):
            return _transmitted(connection, source, packets), ()
        case Take(reader=reader) if reader == connection.leader:
            rest = replace(connection, up=connection.up[1:])
            return (rest if rest.learner_holds or rest.up else None), ()
        case Take():
            return replace(connection, down=connection.down[1:]), ()
        case Close(side=side):
            return _closed(connection, side)
        case Disconnection() if not connection.learner_holds:
            return None, ((connection.leader, connection.learner),)
        case Disconnection():
            return _closed(replace(connection, up=(), down=()), None)
    raise ValueError(f"a connection does not know {operation!r}")


def _passed(connection: Connection | None, reader: Sid) -> Outcome:
    if connection is None or not connection.is_whole:
        return Outcome((connection,))
    source = connection.learner if reader == connection.leader else connection.leader
    waiting = connection.up if reader == connection.leader else connection.down
    if not waiting:
        return Outcome((connection,))
    after, _ = _after(connection, Take(reader))
    return Outcome((after,), (Send(server_name(reader), Receive(source, waiting[0])),))


def _transmitted(connection: Connection, source: Sid, packets: tuple[QuorumPacket, ...]) -> Connection:
    """The connection after packets were sent; packets to a side that is gone are lost."""
    if not connection.is_whole:
        return connection
    if source == connection.learner:
        return replace(connection, up=(*connection.up, *packets))
    return replace(connection, down=(*connection.down, *packets))


def _closed(connection: Connection, side: Sid | None) -> _After:
    """The connection after one side is closed or, with None, after a cut.

    The other side gets `PeerClosed` when it has read every packet.
    """
    learner, leader = connection.learner, connection.leader
    if side == learner:
        if not connection.leader_holds or not connection.up:
            return None, ((leader, learner),) if connection.leader_holds else ()
        return replace(connection, learner_holds=False, down=()), ()
    closed = replace(connection, leader_holds=False, up=())
    if not closed.learner_holds:
        return None, ()
    drained = ((learner, leader),) if not closed.down else ()
    return closed, (((leader, learner), *drained) if side is None else drained)
