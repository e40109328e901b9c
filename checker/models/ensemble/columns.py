"""The columns of an ensemble and the operations on them: who holds what, and how a step's effects are carried out.

    server 1 .. server n     spec.server.Server; operations are the election's events and CRASH
    1>2 ..                   one direction of a connection (spec.election.channel); fine grain only
    faults                   what is left of the budgets, and who is down by a fault or has yet to start
    links                    the links that are cut, as ordered pairs
    plan                     how many of the operator's actions are done; only where there is a plan
    votes                    the votes each server received last; only where a property reads them

Nothing here decides about the protocol: effects of `spec` become operations of other columns, and no more.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from checker.engine import Actor, Outcome, Read, Send
from checker.models.ensemble.setup import Budgets, Grain, Setup
from spec import server as spec_server
from spec.effects import Effect, Fact, Message, Observe, ResetConnections
from spec.effects import Send as SendEffect
from spec.election import channel as spec_channel
from spec.election.channel import Channel, ChannelRules
from spec.election.messages import Looked, VoteReceived
from spec.election.state import Rules
from spec.quorum import Sid
from spec.server import Server

FAULTS, LINKS, PLAN, VOTES = "faults", "links", "plan", "votes"
CRASH = "crash"
Link = tuple[Sid, Sid]


def server_name(sid: Sid) -> str:
    """The column of a server; ZooKeeper's own way to write it."""
    return f"server.{sid}"


def channel_name(source: Sid, destination: Sid) -> str:
    """The column of what one server sends another."""
    return f"{source}>{destination}"


class Faults(msgspec.Struct, frozen=True):
    """What is left of the budgets; `late` servers have yet to start, `down` ones were crashed by a fault."""

    left: Budgets = Budgets()
    late: frozenset[Sid] = frozenset()
    down: frozenset[Sid] = frozenset()


class Spend(msgspec.Struct, frozen=True):
    """Take one from a budget; `late` and `down` change by the servers given."""

    budget: str | None
    started: Sid | None = None
    crashed: Sid | None = None


class Transmit(msgspec.Struct, frozen=True):
    """`QuorumCnxManager.toSend`: a message is handed over; `knows_peer`: it may open a connection itself."""

    message: Message
    knows_peer: bool


class Establish(msgspec.Struct, frozen=True):
    """The other direction has opened the socket that this one shares."""


class Pop(msgspec.Struct, frozen=True):
    """The oldest message in flight arrives."""


class Change(msgspec.Struct, frozen=True):
    """The connection breaks or can be made again: the name of a function of `spec.election.channel`."""

    name: str


class Settled(msgspec.Struct, frozen=True):
    """A link changes: cut, or whole again."""

    cut: frozenset[Link] = frozenset()
    healed: bool = False


def server_actor(sid: Sid, setup: Setup, *, keep_votes: bool) -> Actor:
    """A server: its own step function, with every effect sent to whom it concerns."""
    rules = rules_of(setup)
    peers = [peer for peer in setup.sids if peer != sid and setup.talk(sid, peer)]

    def step(values: tuple[Any, ...], event: Any) -> Outcome | None:
        server: Server = values[0]
        if event == CRASH:
            crashed = spec_server.crash(server)
            forgotten = (Send(VOTES, Looked(sid, 0)),) if keep_votes else ()
            return None if crashed is None else Outcome((crashed,), forgotten)
        stepped = spec_server.step(server, event, rules)
        if stepped is None:
            return None
        after = stepped.state
        if setup.grain is Grain.ORACLE:
            return Outcome((_without_rounds(after),))
        sends = [send for effect in stepped.effects for send in _carried_out(after, effect, peers, keep_votes)]
        return Outcome((after,), tuple(sends))

    return Actor(server_name(sid), (server_name(sid),), step)


def rules_of(setup: Setup) -> Rules:
    """The bounds and variants of every server's election."""
    rounds = None if setup.grain is Grain.ORACLE else setup.round_limit
    return Rules(rounds, setup.variants, setup.outsiders)


def _without_rounds(server: Server) -> Server:
    """With the oracle nobody compares rounds, and the proposal of a LOOKING server is its own: forget the rest."""
    if server.election is None:
        return server
    return replace(server, election=replace(server.election, round=1, recvset=(), finalizing=False))


def _carried_out(server: Server, effect: Effect, peers: list[Sid], keep_votes: bool) -> list[Send]:
    match effect:
        case SendEffect(peer=peer, message=message):
            knows = peer in server.view.members
            return [Send(channel_name(server.sid, peer), Transmit(message, knows))] if peer in peers else []
        case ResetConnections():
            return [send for peer in peers for send in reset(server.sid, peer)]
        case Observe(fact=fact) if keep_votes and isinstance(fact, VoteReceived | Looked):
            return [Send(VOTES, fact)]
    return []


def reset(sid: Sid, peer: Sid) -> list[Send]:
    """A server closes its connection to a peer and forgets what it queued."""
    here, there = channel_name(sid, peer), channel_name(peer, sid)
    return [Send(here, Change("self_reset")), Send(there, Change("peer_reset"))]


def reachable(sid: Sid, peer: Sid) -> list[Send]:
    """Both ends run and the link is whole."""
    return [Send(name, Change("reachable")) for name in (channel_name(sid, peer), channel_name(peer, sid))]


def channel_actor(source: Sid, destination: Sid, rules: ChannelRules) -> Actor:
    """One direction of a connection; a send that opens the socket opens it for the other direction too."""
    name, back = channel_name(source, destination), channel_name(destination, source)

    def step(values: tuple[Any, ...], operation: Any) -> Outcome | None:
        channel: Channel = values[0]
        match operation:
            case Transmit(message=message, knows_peer=knows_peer):
                sent = spec_channel.send(channel, message, rules, knows_peer)
                return Outcome((sent.channel,), (Send(back, Establish()),) if sent.connected else ())
            case Establish():
                return Outcome((spec_channel.establish(channel, rules),))
            case Pop():
                delivered = spec_channel.deliver(channel, rules)
                return None if delivered is None else Outcome((delivered.channel,))
            case Change(name=change):
                return Outcome((getattr(spec_channel, change)(channel),))
        raise ValueError(f"a channel does not know {operation!r}")

    return Actor(name, (name,), step)


def faults_actor() -> Actor:
    """The budgets; an operation that nothing is left for is impossible."""

    def step(values: tuple[Any, ...], spend: Spend) -> Outcome | None:
        faults: Faults = values[0]
        left, late, down = faults.left, faults.late, faults.down
        if spend.budget is not None:
            remaining = getattr(left, spend.budget) - 1
            if remaining < 0:
                return None
            left = replace(left, **{spend.budget: remaining})
        if spend.started is not None:
            late, down = late - {spend.started}, down - {spend.started}
        if spend.crashed is not None:
            down = down | {spend.crashed}
        return Outcome((Faults(left, late, down),))

    return Actor(FAULTS, (FAULTS,), step)


def links_actor() -> Actor:
    """The cut links."""

    def step(values: tuple[Any, ...], change: Settled) -> Outcome | None:
        cut = frozenset() if change.healed else values[0] | change.cut
        return None if cut == values[0] else Outcome((cut,))

    return Actor(LINKS, (LINKS,), step)


def plan_actor() -> Actor:
    """How far the operator has come."""
    return Actor(PLAN, (PLAN,), lambda values, _: Outcome((values[0] + 1,)))


def votes_actor() -> Actor:
    """For each server the last vote of each sender since it began its election, its own included.

    A map (server, sender) -> vote as a sorted tuple of pairs: the receive bucket that a reader is shown.
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


def has_left(budget: str) -> Read:
    """A gate: something is left of a budget."""
    return Read(FAULTS, lambda faults: True if getattr(faults.left, budget) > 0 else None)
