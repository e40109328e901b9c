"""The elements of a picture of a step, derived from the rows before and after it.

Rules of this module: the content of a channel is the messages in flight, oldest first, followed by the queued one. A
message that is there only after a step was sent (or sent again, on a new connection). A message that is there only
before it arrived if the step delivered it. Otherwise it was lost: in a crash, with a cut link, or replaced in the send
queue by a newer one. A packet is shown as `spec.zab.packets.described` formats it. When a connection breaks, or is
replaced by another one of the same two servers, all its packets in flight are lost.
"""

from collections.abc import Callable, Iterator
from typing import Any

from checker.engine import Model, Move, Row
from checker.job import DiagramEvent
from checker.kit.environment import LINKS
from checker.models.ensemble import Setup
from checker.models.ensemble.actions import LOSSES, ServerAction
from checker.models.ensemble.connection import Connection
from checker.models.ensemble.setup import channel_name, connection_name, server_name
from checker.present.generic import Changes, changes
from spec.effects import Message
from spec.election.channel import Channel
from spec.election.messages import Notification
from spec.election.vote import ServerState
from spec.quorum import Sid, View
from spec.server import Server
from spec.txn import is_last
from spec.zab.packets import QuorumPacket, described
from spec.zab.state import Leader, LeaderPhase, LearnerPhase

_SERVING = (LeaderPhase.BROADCAST, LearnerPhase.BROADCAST)


def leader_of_vote(leader: Sid) -> int | str:
    """The leader of a vote; the lowest vote, which a non-voter has, is for `nobody`."""
    return leader if leader >= 0 else "nobody"


def notification(message: Message) -> str:
    """A notification: `vote for 3 (LOOKING, round 2)`."""
    assert isinstance(message, Notification)
    leader = leader_of_vote(message.vote.leader)
    return f"vote for {leader} ({message.state.name}, round {message.election_epoch})"


def decision(sid: Sid, leader: Sid, watches: bool) -> str:
    """The outcome of a server's decision: `LEADING`, `FOLLOWING 3`."""
    if sid == leader:
        return ServerState.LEADING.name
    return f"{(ServerState.OBSERVING if watches else ServerState.FOLLOWING).name} {leader}"


class DiagramEvents:
    """The events between two rows of an ensemble."""

    def __init__(self, model: Model, setup: Setup, file_of: Callable[[Sid, View], str]) -> None:
        sids = setup.sids
        self._file_of = file_of
        self._packets = Packets(model, setup.quorum_pairs)
        self._servers = [(sid, model.index[server_name(sid)]) for sid in sids]
        self._links = model.index[LINKS]
        self._channels = [
            (a, b, model.index[channel_name(a, b)])
            for a in sids
            for b in sids
            if a != b and channel_name(a, b) in model.index
        ]

    def of(self, before: Row, move: Move, after: Row) -> tuple[DiagramEvent, ...]:
        """All events of a step, in the order in which a picture shows them."""
        messages = [*self._messages(before, move, after), *self._packets.of(before, move, after)]
        arrived = [message for message in messages if message.kind == "deliver"]
        lost = [message for message in messages if message.kind == "lost"]
        sendings = [message for message in messages if message.kind == "send"]
        return (*arrived, *self._broken(before, move, after), *self._turns(before, move, after), *lost, *sendings)

    def _messages(self, before: Row, move: Move, after: Row) -> Iterator[DiagramEvent]:
        for source, destination, place in self._channels:
            old, new = _contents(before[place]), _contents(after[place])
            arrived = move.action == ServerAction.DELIVER and move.arguments[:2] == (source, destination)
            messages = changes(old, new, 0 if arrived else None)
            yield from _flow(source, destination, messages, notification)

    def _broken(self, before: Row, move: Move, after: Row) -> Iterator[DiagramEvent]:
        """Links that are cut or heal, and a connection that is dropped."""
        if move.action == ServerAction.DISCONNECT:
            first, second = move.arguments
            yield DiagramEvent("cut", server_name(first), "the connection", peer=server_name(second))
        old, new = before[self._links], after[self._links]
        for kind, links in (("cut", new - old), ("heal", old - new)):
            for first, second in sorted(links):
                yield DiagramEvent(kind, server_name(first), kind, peer=server_name(second))

    def _turns(self, before: Row, move: Move, after: Row) -> Iterator[DiagramEvent]:
        for sid, place in self._servers:
            if before[place] is not after[place]:
                yield from self._turn(server_name(sid), before[place], after[place])
                if move.action not in LOSSES and _is_used_up(before[place], after[place]):
                    yield DiagramEvent("note", server_name(sid), "gives up: its epoch has no zxid left")

    def _turn(self, lane: str, old: Server, new: Server) -> Iterator[DiagramEvent]:
        was, now = old.election, new.election
        if old.runs and not new.runs:
            yield DiagramEvent("crash", lane, "stops")
        if now is None:
            if new.runs_standalone and not old.runs:
                yield DiagramEvent("start", lane, f"starts standalone with {self._file_of(new.sid, new.view)}")
            return
        if was is None:
            yield DiagramEvent("start", lane, f"starts with {self._file_of(new.sid, new.view)}")
        elif old.view != new.view:
            yield DiagramEvent("note", lane, f"adopts {self._file_of(new.sid, new.view)}")
        if now.state is not ServerState.LOOKING and (was is None or was.state is ServerState.LOOKING):
            watches = now.state is ServerState.OBSERVING
            yield DiagramEvent("decide", lane, decision(new.sid, now.vote.leader, watches))
        serves = began_to_serve(old, new)
        if serves is not None:
            yield DiagramEvent("note", lane, serves)


def _contents(channel: Channel) -> list[Message]:
    return [*channel.in_flight, *([] if channel.queued is None else [channel.queued])]


def _flow(source: Sid, reader: Sid, messages: Changes[Any], words: Callable[[Any], str]) -> Iterator[DiagramEvent]:
    sender, receiver = server_name(source), server_name(reader)
    yield from (DiagramEvent("deliver", receiver, words(message), peer=sender) for message in messages.arrived)
    yield from (DiagramEvent("lost", sender, words(message), peer=receiver) for message in messages.lost)
    yield from (DiagramEvent("send", sender, words(message), peer=receiver) for message in messages.sent)


def began_to_serve(old: Server, new: Server) -> str | None:
    """The note of the step in which a leader or a learner begins to serve, with its epoch; None for other steps."""
    was, now = old.zab, new.zab
    if now is None or now.phase not in _SERVING or (was is not None and was.phase in _SERVING):
        return None
    return f"serves in epoch {now.epoch}"


def _is_used_up(old: Server, new: Server) -> bool:
    """Whether a leader whose epoch has no zxid left has ended its part."""
    ended = new.runs and new.zab is None
    return ended and isinstance(old.zab, Leader) and is_last(old.zab.last_proposed, old.durable.layout)


class Packets:
    """The packets that travel between two rows of an ensemble."""

    def __init__(self, model: Model, pairs: tuple[tuple[Sid, Sid], ...]) -> None:
        self._connections = [model.index[name] for pair in pairs if (name := connection_name(*pair)) in model.index]

    def of(self, before: Row, move: Move, after: Row) -> Iterator[DiagramEvent]:
        """The arrivals, losses and sent packets of a step."""
        for place in self._connections:
            if before[place] is not after[place]:
                yield from _packets(before[place], move, after[place])


def _packets(old: Connection | None, move: Move, new: Connection | None) -> Iterator[DiagramEvent]:
    replaced = old is not None and new is not None and not _may_be_the_same(old, new)
    had, has = _streams(old), _streams(new)
    for source, reader in sorted(had | has):
        before, after = had.get((source, reader), ()), has.get((source, reader), ())
        arrived = move.action == ServerAction.RECEIVE and move.arguments[:2] == (source, reader)
        yield from _flow(source, reader, changes(before, after, 0 if arrived else None, replaced=replaced), described)


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
