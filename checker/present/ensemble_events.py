"""The elements of a picture of a step, derived from the rows before and after it.

Rules of this module: the content of a channel is the messages in flight, oldest first, followed by the queued one. A
message that is there only after a step was sent (or sent again, on a new connection). A message that is there only
before it arrived if the step delivered it. Otherwise it was lost: in a crash, with a cut link, or replaced in the send
queue by a newer one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import SequenceMatcher

from checker.engine import Model, Move, Row
from checker.job import DiagramEvent
from checker.models.ensemble import Setup
from checker.models.ensemble.actions import Action
from checker.models.ensemble.names import LINKS, channel_name, server_name
from checker.present.zab_wording import Packets, began_to_serve
from spec.effects import Message
from spec.election.channel import Channel
from spec.election.messages import Notification
from spec.election.vote import ServerState
from spec.quorum import Sid, View
from spec.server import Server


def leader_words(leader: Sid) -> int | str:
    """The leader of a vote; `nobody` for the vote of a server that does not vote."""
    return leader if leader >= 0 else "nobody"


def vote_words(message: Message) -> str:
    """A notification: `vote for 3 (LOOKING, round 2)`."""
    assert isinstance(message, Notification)
    leader = leader_words(message.vote.leader)
    return f"vote for {leader} ({message.state.name}, round {message.election_epoch})"


def decided(sid: Sid, leader: Sid, watches: bool) -> str:
    """The outcome of a server's decision: `LEADING`, `FOLLOWING 3`."""
    if sid == leader:
        return ServerState.LEADING.name
    return f"{(ServerState.OBSERVING if watches else ServerState.FOLLOWING).name} {leader}"


class Events:
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
        arrived = [each for each in messages if each.kind == "deliver"]
        lost = [each for each in messages if each.kind == "lost"]
        sent = [each for each in messages if each.kind == "send"]
        return (*arrived, *self._broken(before, move, after), *self._turns(before, after), *lost, *sent)

    def _messages(self, before: Row, move: Move, after: Row) -> Iterator[DiagramEvent]:
        for source, destination, place in self._channels:
            old, new = _contents(before[place]), _contents(after[place])
            if move.action == Action.DELIVER and move.arguments[:2] == (source, destination):
                yield _drawn("deliver", destination, source, old.pop(0))
            edits = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
            for kind, start, end, begin, until in edits:
                if kind in ("delete", "replace"):
                    yield from (_drawn("lost", source, destination, each) for each in old[start:end])
                if kind in ("insert", "replace"):
                    yield from (_drawn("send", source, destination, each) for each in new[begin:until])

    def _broken(self, before: Row, move: Move, after: Row) -> Iterator[DiagramEvent]:
        """Links that are cut or heal, and a connection that is dropped."""
        if move.action == Action.DISCONNECT:
            one, other = move.arguments
            yield DiagramEvent("cut", server_name(one), "the connection", peer=server_name(other))
        old, new = before[self._links], after[self._links]
        for kind, links in (("cut", new - old), ("heal", old - new)):
            for one, other in sorted(links):
                yield DiagramEvent(kind, server_name(one), kind, peer=server_name(other))

    def _turns(self, before: Row, after: Row) -> Iterator[DiagramEvent]:
        for sid, place in self._servers:
            if before[place] is not after[place]:
                yield from self._turn(server_name(sid), before[place], after[place])

    def _turn(self, lane: str, old: Server, new: Server) -> Iterator[DiagramEvent]:
        was, now = old.election, new.election
        if now is None:
            if was is not None:
                yield DiagramEvent("crash", lane, "stops")
            return
        if was is None:
            yield DiagramEvent("start", lane, f"starts with {self._file_of(new.sid, new.view)}")
        elif old.view != new.view:
            yield DiagramEvent("note", lane, f"adopts {self._file_of(new.sid, new.view)}")
        if now.state is not ServerState.LOOKING and (was is None or was.state is ServerState.LOOKING):
            watches = now.state is ServerState.OBSERVING
            yield DiagramEvent("decide", lane, decided(new.sid, now.vote.leader, watches))
        serves = began_to_serve(old, new)
        if serves is not None:
            yield DiagramEvent("note", lane, serves)


def _contents(channel: Channel) -> list[Message]:
    return [*channel.in_flight, *([] if channel.queued is None else [channel.queued])]


def _drawn(kind: str, lane: Sid, peer: Sid, message: Message) -> DiagramEvent:
    return DiagramEvent(kind, server_name(lane), vote_words(message), peer=server_name(peer))
