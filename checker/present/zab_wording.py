"""Captions of the actions of leading and following, and their elements in a picture.

Rules of this module: a packet is shown as `spec.zab.packets.described` formats it. When a connection breaks, or is
replaced by another one of the same two servers, all its packets in flight are lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from checker.engine import Model, Move, Row
from checker.job import DiagramEvent
from checker.models.ensemble.actions import Action
from checker.models.ensemble.connection import Connection
from checker.models.ensemble.names import connection_name, server_name
from checker.present.ensemble_fields import transaction
from spec.effects import DiskOperation
from spec.quorum import Sid
from spec.server import Server
from spec.txn import Txn, format_zxid
from spec.zab.packets import QuorumPacket, described
from spec.zab.state import Append, EnterEpoch, LeaderPhase, LearnerPhase

_SERVING = (LeaderPhase.BROADCAST, LearnerPhase.BROADCAST)


def caption(action: Action, move: Move) -> str:
    """One sentence with the actor and the action, for an action of leading and following."""
    return str(_WORDS[action](*move.arguments))


def _on_disk(sid: Sid, operation: DiskOperation) -> str:
    server = server_name(sid)
    match operation:
        case Append(txn=txn, ack=ack):
            return f"{server} has {transaction(txn)} on disk" + (" and acknowledges it" if ack else "")
        case EnterEpoch(epoch=epoch):
            return f"{server} has currentEpoch {epoch} on disk and acknowledges NEWLEADER"
    return f"{server} has a snapshot of its tree on disk"


def _written_late(sid: Sid, txn: Txn) -> str:
    return f"an old sync thread of {server_name(sid)} has {transaction(txn)} on disk"


_WORDS: dict[Action, Any] = {
    Action.RECEIVE: lambda a, b, packet: f"{server_name(b)} receives {described(packet)} from {server_name(a)}",
    Action.SYNC: _on_disk,
    Action.SYNC_LATE: _written_late,
    Action.APPLY: lambda sid, zxid: f"{server_name(sid)} applies {format_zxid(zxid)}",
    Action.CLIENT_WRITE: lambda sid, value: f"a client writes {value} at {server_name(sid)}",
}


def began_to_serve(old: Server, new: Server) -> str | None:
    """The note of the step in which a leader or a learner begins to serve, with its epoch; None for other steps."""
    was, now = old.zab, new.zab
    if now is None or now.phase not in _SERVING or (was is not None and was.phase in _SERVING):
        return None
    return f"serves in epoch {now.epoch}"


class Packets:
    """The packets that travel between two rows of an ensemble."""

    def __init__(self, model: Model, pairs: tuple[tuple[Sid, Sid], ...]) -> None:
        self._connections = [model.index[name] for pair in pairs if (name := connection_name(*pair)) in model.index]

    def of(self, before: Row, move: Move, after: Row) -> Iterator[DiagramEvent]:
        """The arrivals, losses and sent packets of a step."""
        for place in self._connections:
            if before[place] is not after[place]:
                yield from _travelled(before[place], move, after[place])


def _travelled(old: Connection | None, move: Move, new: Connection | None) -> Iterator[DiagramEvent]:
    replaced = old is not None and new is not None and not _may_be_the_same(old, new)
    had, has = _streams(old), _streams(new)
    for source, reader in sorted(had | has):
        waiting, then = had.get((source, reader), ()), has.get((source, reader), ())
        if move.action == Action.RECEIVE and move.arguments[:2] == (source, reader):
            yield DiagramEvent("deliver", server_name(reader), described(waiting[0]), peer=server_name(source))
            waiting = waiting[1:]
        stays = not replaced and then[: len(waiting)] == waiting
        if not stays:
            yield from (_between("lost", source, reader, packet) for packet in waiting)
        yield from (_between("send", source, reader, packet) for packet in (then[len(waiting) :] if stays else then))


def _may_be_the_same(old: Connection, new: Connection) -> bool:
    """Whether both may be the same connection: the roles are equal, and no side has taken hold of it again."""
    held_again = (new.learner_holds and not old.learner_holds) or (new.leader_holds and not old.leader_holds)
    return (old.learner, old.leader) == (new.learner, new.leader) and not held_again


def _streams(connection: Connection | None) -> dict[tuple[Sid, Sid], tuple[QuorumPacket, ...]]:
    """The packets in flight by sender and receiver, oldest first."""
    if connection is None:
        return {}
    learner, leader = connection.learner, connection.leader
    return {(learner, leader): connection.up, (leader, learner): connection.down}


def _between(kind: str, source: Sid, reader: Sid, packet: QuorumPacket) -> DiagramEvent:
    return DiagramEvent(kind, server_name(source), described(packet), peer=server_name(reader))
