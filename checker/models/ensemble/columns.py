"""The columns of an ensemble, and the conversion of a step's effects to operations on them.

    server 1 .. server n     spec.server.Server; operations are the election's events and CRASH
    1>2 ..                   one direction of a connection (spec.election.channel); fine grain only
    faults                   the rest of the budgets, and the servers that are down or not started (checker.kit.actions)
    links                    the links that are cut, as ordered pairs
    plan                     the number of the operator's actions that are done; only where there is a plan
    votes                    the votes each server received last; only where a property reads them
    1-2 ..                   the quorum connection of two servers (connection); only where servers lead and follow
    history                  the facts that servers reported (history); the same
    connections              election connections that only one end can make (setup); only where addresses differ

This module makes no decision of the protocol: it only turns the effects of `spec` into operations of other columns.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import msgspec
from msgspec.structs import replace

from checker.engine import Actor, Outcome, Send
from checker.models.ensemble.connection import Close, Open, PeerClosed, Transmit
from checker.models.ensemble.effects import SyncsEnded, misapplied, misfits, standing_alone, syncs
from checker.models.ensemble.history import HistoryPart, concerns
from checker.models.ensemble.setup import (
    CONNECTIONS,
    HISTORY,
    PLAN,
    VOTES,
    Grain,
    Link,
    Setup,
    channel_name,
    connection_name,
    server_name,
)
from checker.refinement.abstract_steps import abstract_steps
from spec import server as spec_server
from spec.durable import Durable
from spec.effects import Connect, Disconnect, Effect, Effects, Fact, Message, Observe, ResetConnections
from spec.effects import Send as SendEffect
from spec.election import channel as spec_channel
from spec.election.channel import Channel, ChannelRules
from spec.election.messages import LeaderLost, Looked, VoteReceived
from spec.election.state import ElectionRules
from spec.election.vote import Vote
from spec.quorum import Addresses, Port, Sid, opens, reaches
from spec.server import Event, Server
from spec.variants import Variant
from spec.zab.events import LearnerGone
from spec.zab.packets import QuorumPacket
from spec.zab.state import Leader, Learner, ZabRules

CRASH = "crash"


class DiskReplaced(msgspec.Struct, frozen=True):
    """The data directory of a server that does not run has this content when it starts."""

    durable: Durable


class SoftwareReplaced(msgspec.Struct, frozen=True):
    """A server that does not run starts with another release, which has these known defects."""

    defects: frozenset[Variant]


class Enqueue(msgspec.Struct, frozen=True):
    """The message of `QuorumCnxManager.toSend`; with `knows_peer` the sender itself may open the connection.

    `addresses` are the addresses in the sender's file.
    """

    message: Message
    knows_peer: bool
    addresses: Addresses | None = None


class Establish(msgspec.Struct, frozen=True):
    """The other direction has opened the socket that both share."""


class Pop(msgspec.Struct, frozen=True):
    """The oldest message in flight arrives."""


class ChannelTransition(Enum):
    """A connection breaks or becomes possible again: the functions of `spec.election.channel`."""

    SELF_CRASHED = "self_crashed"
    PEER_CRASHED = "peer_crashed"
    SELF_RESET = "self_reset"
    PEER_RESET = "peer_reset"
    CUT = "cut"
    REACHABLE = "reachable"


_TRANSITIONS: Mapping[ChannelTransition, Callable[[Channel], Channel]] = {
    ChannelTransition.SELF_CRASHED: spec_channel.self_crashed,
    ChannelTransition.PEER_CRASHED: spec_channel.peer_crashed,
    ChannelTransition.SELF_RESET: spec_channel.self_reset,
    ChannelTransition.PEER_RESET: spec_channel.peer_reset,
    ChannelTransition.CUT: spec_channel.cut,
    ChannelTransition.REACHABLE: spec_channel.reachable,
}


class ConnectRequest(msgspec.Struct, frozen=True):
    """A learner connects to a quorum port by the `addresses` in its file, and sends the packet `first`."""

    learner: Sid
    first: QuorumPacket
    addresses: Addresses | None = None


class ConnectionsMade(msgspec.Struct, frozen=True):
    """Election connections were made."""

    links: frozenset[Link]


class ConnectionsEnded(msgspec.Struct, frozen=True):
    """Election connections break: those of a server whose process ends, or those on cut links."""

    server: Sid | None = None
    cut: frozenset[Link] = frozenset()


class RecordedFacts(msgspec.Struct, frozen=True):
    """The reports of servers that are kept: the votes that they receive, and parts of the history."""

    votes: bool = False
    parts: frozenset[HistoryPart] = frozenset()


def server_actor(sid: Sid, setup: Setup, kept: RecordedFacts) -> Actor:
    """A server: its step function, with every effect sent to the columns that it concerns."""
    all_defects = (release.defects for release in setup.releases)
    rules_by_defects = {defects: (rules_of(setup, defects), setup.zab_with(defects)) for defects in all_defects}
    carried_out = _Carrier(sid, setup, kept)

    def step(values: tuple[Any, ...], event: Any) -> Outcome | None:
        server: Server = values[0]
        rules, zab = rules_by_defects[server.defects]
        if event == CRASH:
            crashed = spec_server.crash(server, zab)
            if crashed is None:
                return None
            return Outcome((crashed,), (*carried_out.crash(), *carried_out.abstract(server, None, crashed, ())))
        if isinstance(event, DiskReplaced):
            return Outcome((spec_server.stopped(server, event.durable),)) if not server.runs else None
        if isinstance(event, SoftwareReplaced):
            return Outcome((replace(server, defects=event.defects),)) if not server.runs else None
        if isinstance(event, ConnectRequest):
            return _knocked(server, event, rules, zab)
        noticed = _noticed(server, event) if isinstance(event, PeerClosed) else event
        stepped = None if noticed is None else spec_server.step(server, noticed, rules, zab)
        if stepped is None:
            return Outcome((server,)) if isinstance(event, PeerClosed) else None
        after = _without_rounds(stepped.state) if setup.grain is Grain.ORACLE else stepped.state
        effects = stepped.effects
        if stepped.state.runs_standalone:
            effects = standing_alone(server, stepped.state, effects)
        if HistoryPart.MISFITS in kept.parts:
            effects = (*effects, *map(Observe, misfits(server, noticed, stepped.state, effects)))
        if HistoryPart.SYNCS in kept.parts:
            effects = syncs(server, noticed, stepped.state, effects)
        if HistoryPart.MISAPPLIED in kept.parts and (report := misapplied(server, stepped.state, effects)) is not None:
            effects = (*effects, Observe(report))
        return Outcome((after,), (*carried_out(after, effects), *carried_out.abstract(server, noticed, after, effects)))

    return Actor(server_name(sid), (server_name(sid),), step)


def _noticed(server: Server, gone: PeerClosed) -> Event | None:
    """The event for the loss of a connection's other side; a learner that writes to its disk notices it later."""
    part = server.zab
    if isinstance(part, Leader):
        return LearnerGone(gone.peer)
    if isinstance(part, Learner) and part.leader == gone.peer and not part.queue and not part.commits:
        return LeaderLost()
    return None


def _knocked(server: Server, knock: ConnectRequest, rules: ElectionRules, zab: ZabRules | None) -> Outcome:
    """A leader accepts, and an older connection of the same learner ends.

    A learner, a standalone server and a stopped one refuse.

    The port of a real server is closed while it is LOOKING, and the learner tries again. Here the first packets of the
    learner wait until the server leads, even if the learner has given up by that time: as if it had connected and was
    lost immediately. If the server starts to follow, the connection ends.
    """
    refuses = server.election is None or isinstance(server.zab, Learner)
    if refuses or not reaches(knock.addresses, server.view.addresses, server.sid, Port.QUORUM):
        return Outcome((server,))
    end = spec_server.step(server, LearnerGone(knock.learner), rules, zab) if isinstance(server.zab, Leader) else None
    after = server if end is None else end.state
    name = f"open {connection_name(knock.learner, server.sid)}"
    return Outcome((after,), (Send(name, Open(knock.learner, server.sid, knock.first)),))


def rules_of(setup: Setup, defects: frozenset[Variant] = frozenset()) -> ElectionRules:
    """The bounds and variants of the election of a server whose release has these defects."""
    rounds = None if setup.grain is Grain.ORACLE else setup.round_limit
    return ElectionRules(rounds, setup.variants | defects, setup.outsiders, setup.hears_observers)


def _without_rounds(server: Server) -> Server:
    """The server without its round: with the oracle no rule compares rounds, and a LOOKING server proposes itself.

    Where the decided servers lead and follow, the vote that they decided with is forgotten too: they report to others
    only their leader, and that an epoch has begun.
    """
    election = server.election
    if election is None:
        return server
    vote = election.vote if server.zab is None else Vote(election.vote.leader, 0, 0)
    return replace(server, election=replace(election, round=1, vote=vote, recvset=(), finalizing=False))


class _Carrier:
    """Turns the effects of one server into operations of other columns."""

    def __init__(self, sid: Sid, setup: Setup, kept: RecordedFacts) -> None:
        self._sid, self._setup, self._kept = sid, setup, kept
        peers = [peer for peer in setup.sids if peer != sid and setup.talk(sid, peer)]
        self._notified = [] if setup.grain is Grain.ORACLE else peers
        self._connected = [] if setup.zab is None else peers

    def __call__(self, server: Server, effects: tuple[Effect, ...]) -> tuple[Send, ...]:
        """The operations for these effects, in order; consecutive packets to one server travel together."""
        sends: list[Send] = []
        for effect in effects:
            for send in self._one(server, effect):
                last = sends[-1] if sends else None
                if last is not None and last.actor == send.actor and _both_transmit(last, send):
                    packets = (*last.operation.packets, *send.operation.packets)
                    sends[-1] = Send(send.actor, Transmit(self._sid, packets))
                else:
                    sends.append(send)
        return tuple(sends)

    def _one(self, server: Server, effect: Effect) -> list[Send]:
        """The operations for one effect; effects that concern only the server, or a real disk, have no operations."""
        match effect:
            case SendEffect(peer=peer, message=QuorumPacket() as packet):
                return [Send(connection_name(self._sid, peer), Transmit(self._sid, (packet,)))]
            case SendEffect(peer=peer, message=message):
                handed = Enqueue(message, peer in server.view.members, server.view.addresses)
                return [Send(channel_name(self._sid, peer), handed)] if peer in self._notified else []
            case ResetConnections():
                return [send for peer in self._notified for send in reset(self._sid, peer)]
            case Connect(leader=leader, first=QuorumPacket() as first):
                knock = ConnectRequest(self._sid, first, server.view.addresses)
                return [Send(server_name(leader), knock)] if leader in self._connected else []
            case Disconnect(peer=peer):
                return self._closed(self._connected if peer is None else [peer])
            case Observe(fact=fact):
                return self._reported(fact)
        return []

    def crash(self) -> tuple[Send, ...]:
        """The process ends, and its sockets close."""
        forgotten = [Send(VOTES, Looked(self._sid, 0))] if self._kept.votes else []
        ended = self._reported(SyncsEnded(self._sid))
        return (*forgotten, *ended, *self._closed(self._connected))

    def abstract(self, before: Server, event: Event | None, after: Server, effects: Effects) -> list[Send]:
        """The operation of the history for a step that concerns abstract Zab; the event is None for a crash."""
        if HistoryPart.REIGNS not in self._kept.parts:
            return []
        steps = abstract_steps(before, event, after, effects)
        return [] if steps is None else [Send(HISTORY, steps)]

    def _closed(self, peers: list[Sid]) -> list[Send]:
        return [Send(connection_name(self._sid, peer), Close(self._sid)) for peer in peers]

    def _reported(self, fact: Fact) -> list[Send]:
        if self._kept.votes and isinstance(fact, VoteReceived | Looked):
            return [Send(VOTES, fact)]
        return [Send(HISTORY, fact)] if concerns(fact, self._kept.parts) else []


def _both_transmit(one: Send, other: Send) -> bool:
    return isinstance(one.operation, Transmit) and isinstance(other.operation, Transmit)


def reset(sid: Sid, peer: Sid) -> list[Send]:
    """A server closes its connection to a peer and forgets its queue."""
    here, there = channel_name(sid, peer), channel_name(peer, sid)
    return [Send(here, ChannelTransition.SELF_RESET), Send(there, ChannelTransition.PEER_RESET)]


def reachable(sid: Sid, peer: Sid) -> list[Send]:
    """Both ends run and the link is up."""
    return [Send(name, ChannelTransition.REACHABLE) for name in (channel_name(sid, peer), channel_name(peer, sid))]


def channel_actor(source: Sid, destination: Sid, rules: ChannelRules, *, addressed: bool = False) -> Actor:
    """One direction of a connection; a send that opens the socket also opens it for the other direction.

    With `addressed` it reads the file of the destination, because the addresses in both files decide which connections
    are possible.
    """
    name, back = channel_name(source, destination), channel_name(destination, source)

    def step(values: tuple[Any, ...], operation: Any) -> Outcome | None:
        channel: Channel = values[0]
        listeners = values[1:]
        match operation:
            case Enqueue(message=message, knows_peer=knows_peer, addresses=addresses):
                listener = listeners[0].view.addresses if listeners else None
                may_connect = knows_peer and opens(addresses, source, listener, destination)
                sending = spec_channel.send(channel, message, rules, may_connect)
                return Outcome((sending.channel, *listeners), (Send(back, Establish()),) if sending.connected else ())
            case Establish():
                return Outcome((spec_channel.establish(channel, rules), *listeners))
            case Pop():
                delivered = spec_channel.deliver(channel, rules)
                return None if delivered is None else Outcome((delivered.channel, *listeners))
            case ChannelTransition() as transition:
                return Outcome((_TRANSITIONS[transition](channel), *listeners))
        raise ValueError(f"a channel does not know {operation!r}")

    return Actor(name, (name, server_name(destination)) if addressed else (name,), step)


def connections_actor() -> Actor:
    """The election connections that only one end could make again."""

    def step(values: tuple[Any, ...], change: ConnectionsMade | ConnectionsEnded) -> Outcome:
        links: frozenset[Link] = values[0]
        if isinstance(change, ConnectionsMade):
            return Outcome((links | change.links,))
        return Outcome((frozenset(link for link in links - change.cut if change.server not in link),))

    return Actor(CONNECTIONS, (CONNECTIONS,), step)


def plan_actor() -> Actor:
    """The number of the operator's actions that are done."""
    return Actor(PLAN, (PLAN,), lambda values, _: Outcome((values[0] + 1,)))


def votes_actor() -> Actor:
    """For each server the last vote of each sender since the server began its election, including its own vote.

    A map (server, sender) -> vote as a sorted tuple of pairs: the receive bucket, as it is displayed.
    """

    def step(values: tuple[Any, ...], fact: Fact) -> Outcome:
        votes = dict(values[0])
        match fact:
            case VoteReceived(server=server, sender=sender, vote=vote):
                votes[server, sender] = vote
            case Looked(server=server):
                votes = {key: vote for key, vote in votes.items() if key[0] != server}
        return Outcome((tuple(sorted(votes.items(), key=lambda pair: pair[0])),))

    return Actor(VOTES, (VOTES,), step)
