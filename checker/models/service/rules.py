"""A service: its columns, actors and rules. Requests and replies travel, servers apply transactions, faults happen.

A client's library (`spec.client`) is between the link and the client. It has a column only where something depends on
its memory (`ServiceSetup.has_library`); elsewhere the link sends to the client directly. It keeps outstanding requests
only if the setup is `pipelined`: with one request at a time the client knows them.

The request that registers watches again is carried out in the move that reconnects. On a real connection it is the
first request, and the server treats every change that it applies between the two as missed.

Rules of this module: each rule reads as little as it needs.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from checker.engine import Actor, Column, Move, Outcome, Read, Rule, Send
from checker.kit.actions import FAULTS, Faults, fair_among, faults_actor, has_left, limited_rule, spend
from checker.kit.environment import ModelFragment
from checker.models.service.client_connection import ClientConnection, ConnectionState, link_actor
from checker.models.service.messages import (
    Acceptance,
    ClientCrash,
    ConnectionLoss,
    DeliverMessage,
    DeliverRequest,
    Delivery,
    DropEphemerals,
    Propose,
    RefuseSession,
    RegisterWatches,
    Reply,
    RequestSession,
    ResumeSession,
    ServiceAction,
    SessionExpiry,
    SubmitRequest,
    WatchNotification,
)
from checker.models.service.servers import (
    LaggingServer,
    Leader,
    accepts_session,
    lagging_server_actor,
    leader_actor,
    open_sessions,
    server_without_lag,
    watches_actor,
)
from checker.models.service.setup import (
    LEADER,
    Clocks,
    ServiceSetup,
    client_name,
    library_name,
    link_name,
    server_name,
    session_of,
    watches_name,
)
from spec import client as spec
from spec.client import Library
from spec.tree.data import OPEN_ACL_UNSAFE, new_znode
from spec.tree.paths import ROOT
from spec.tree.requests import CloseSession, SessionId
from spec.tree.store import FrozenStore
from spec.variants import Variant


def library_actor(client: int, setup: ServiceSetup) -> Actor:
    """The library of a client."""
    name, above = library_name(client), client_name(client)
    registers = setup.keeps_watches and Variant.LOST_WATCH not in setup.variants

    def step(values: tuple[Any, ...], said: Any) -> Outcome:
        library: Library = values[0]
        match said:
            case SubmitRequest(record):
                return Outcome((spec.submit(library, record) if setup.pipelined else library,))
            case Acceptance(server, told):
                after = spec.connected(library, told.session)
                again = (
                    (Send(server_name(server), RegisterWatches(client, after)),) if registers and after.watches else ()
                )
                return Outcome((after,), (*again, Send(above, told)))
        return Outcome((_relevant(_remember(library, said)),), (Send(above, said),))

    def _remember(library: Library, said: Delivery | ConnectionLoss | SessionExpiry | ClientCrash) -> Library:
        match said:
            case Delivery(WatchNotification(type_, path)):
                return spec.notified(library, type_, path)
            case Delivery(Reply(asked, code, _, zxid)):
                return spec.closed() if isinstance(asked, CloseSession) else spec.answered(library, asked, code, zxid)
            case ConnectionLoss():
                return spec.lost(library, keeps_watches=setup.keeps_watches)
            case SessionExpiry():
                return spec.expired(library)
        return spec.closed()

    def _relevant(library: Library) -> Library:
        """The library without information that has no effect in this setup.

        Without lag every server has applied every transaction, so a library without watches need not keep the last
        zxid. If the setup does not keep watches, they are dropped.
        """
        if not setup.lag and not library.watches:
            library = replace(library, seen=0)
        return library if setup.keeps_watches else replace(library, watches=frozenset())

    return Actor(name, (name,), step)


def _rules(setup: ServiceSetup) -> Iterator[Rule]:
    """All rules of a service; those of faults without a budget are left out."""
    for client in setup.client_ids:
        yield _arrive(client, setup)
        yield _deliver(client, setup)
        yield _lapse(client)
        yield from (_reconnect(client, server, setup) for server in setup.server_ids)
        if setup.budgets.disconnects:
            yield _disconnect(client, setup)
        if setup.budgets.expiries:
            yield _expire(client, setup)
            if setup.reopens:
                yield _open(client, setup)
        if setup.budgets.crashes:
            yield _crash(client)
    if setup.lag:
        yield from (_apply(server) for server in setup.server_ids)


def known_actions(setup: ServiceSetup) -> Iterator[ServiceAction]:
    """The actions of a service, including those that its clients may never enable."""
    budgets, action = setup.budgets, ServiceAction
    yield from (action.ARRIVE, action.DELIVER)
    yield from (action.APPLY,) if setup.lag else ()
    yield from (action.DISCONNECT, action.RECONNECT) if budgets.disconnects else ()
    yield from (action.ARRIVE_LATE,) if budgets.disconnects or budgets.crashes else ()
    yield from (action.EXPIRE, action.RECONNECT) if budgets.expiries else ()
    yield from (action.OPEN,) if budgets.expiries and setup.reopens else ()
    yield from (action.CRASH, action.LAPSE) if budgets.crashes else ()


def _arrive(client: int, setup: ServiceSetup) -> Rule:
    name = link_name(client)
    places = 2 if Variant.REORDERED_REQUESTS in setup.variants else 1
    early = Variant.ANSWERED_BEFORE_COMMIT in setup.variants

    def moves(link: ClientConnection) -> Iterator[Move]:
        if link.state is ConnectionState.UP:
            for place in range(min(places, len(link.up))):
                yield Move(
                    ServiceAction.ARRIVE, (client, link.server, link.up[place]), (Send(name, DeliverRequest(place)),)
                )
        if link.stray and (early or link.state is not ConnectionState.UP):
            yield Move(ServiceAction.ARRIVE_LATE, (client, link.stray[0]), (Send(name, ServiceAction.ARRIVE_LATE),))

    return Rule(f"requests of {name}", (Read(name),), moves, (ServiceAction.ARRIVE, ServiceAction.ARRIVE_LATE))


def _deliver(client: int, setup: ServiceSetup) -> Rule:
    name = link_name(client)
    overtakes = Variant.WATCH_AFTER_DATA in setup.variants

    def moves(link: ClientConnection) -> Iterator[Move]:
        if link.down:
            yield Move(ServiceAction.DELIVER, (client, link.server, link.down[0]), (Send(name, DeliverMessage()),))
        if overtakes:
            answer = next((n for n, message in enumerate(link.down) if isinstance(message, Reply)), 0)
            if answer:
                yield Move(
                    ServiceAction.DELIVER,
                    (client, link.server, link.down[answer]),
                    (Send(name, DeliverMessage(answer)),),
                )

    return Rule(f"messages of {name}", (Read(name),), moves, (ServiceAction.DELIVER,))


def _apply(server: int) -> Rule:
    name = server_name(server)

    def oldest(replica: LaggingServer) -> object:
        return replica.pending[0] if replica.pending else None

    def moves(first: object) -> tuple[Move, ...]:
        return (Move(ServiceAction.APPLY, (server, first), (Send(name, ServiceAction.APPLY),)),)

    return Rule(f"{name} applies", (Read(name, oldest),), moves, (ServiceAction.APPLY,))


def _reconnect(client: int, server: int, setup: ServiceSetup) -> Rule:
    name = link_name(client)
    backwards = Variant.STALE_AFTER_MOVING in setup.variants

    def session(link: ClientConnection) -> SessionId | None:
        return link.session if link.state is ConnectionState.DOWN else None

    def seen(library: Library) -> int:
        return library.seen

    def moves(session: SessionId, sessions: tuple[SessionId, ...], zxid: int, seen: int = 0) -> tuple[Move, ...]:
        if not backwards and not accepts_session(session, seen, zxid):
            return ()
        reply = ResumeSession(server, zxid) if session in sessions else RefuseSession()
        return (Move(ServiceAction.RECONNECT, (client, server), (Send(name, reply),)),)

    def both(leader: Leader) -> tuple[tuple[SessionId, ...], int]:
        return open_sessions(leader), leader.zxid

    rule = f"{name} reconnects to {server}"
    if not setup.lag:
        with_leader = (Read(name, session), Read(LEADER, both))
        return Rule(rule, with_leader, lambda session, leader: moves(session, *leader), (ServiceAction.RECONNECT,))
    at_server = Read(server_name(server), lambda replica: replica.zxid)
    reads = (Read(name, session), Read(LEADER, open_sessions), at_server, Read(library_name(client), seen))
    return Rule(rule, reads, moves, (ServiceAction.RECONNECT,))


def _open(client: int, setup: ServiceSetup) -> Rule:
    name = link_name(client)

    def moves(link: ClientConnection) -> Iterator[Move]:
        if link.state is ConnectionState.OVER:
            for server in setup.server_ids:
                yield Move(ServiceAction.OPEN, (client, server), (Send(name, RequestSession(server)),))

    return Rule(f"{name} opens a session", (Read(name),), moves, (ServiceAction.OPEN,))


def _end(client: int, session: SessionId) -> tuple[Send, ...]:
    """The end of a session. Its requests still in flight are dropped, or find it closed and change nothing."""
    return Send(link_name(client), ServiceAction.EXPIRE), Send(LEADER, Propose(session, CloseSession()))


def _lapse(client: int) -> Rule:
    name = link_name(client)

    def session(link: ClientConnection) -> SessionId | None:
        return link.session or None if link.state is ConnectionState.GONE else None

    def moves(session: SessionId, sessions: tuple[SessionId, ...]) -> Iterator[Move]:
        if session in sessions:
            yield Move(ServiceAction.LAPSE, (client,), _end(client, session))

    reads = (Read(name, session), Read(LEADER, open_sessions))
    return Rule(f"the session of {name} lapses", reads, moves, (ServiceAction.LAPSE,))


def _expire(client: int, setup: ServiceSetup) -> Rule:
    name = link_name(client)
    states = (ConnectionState.DOWN,) if setup.clocks is Clocks.TRUSTED else (ConnectionState.DOWN, ConnectionState.UP)

    def session(link: ClientConnection) -> SessionId | None:
        return link.session if link.state in states and not link.cut else None

    def moves(session: SessionId, sessions: tuple[SessionId, ...], _left: bool) -> Iterator[Move]:
        if session in sessions:
            yield Move(ServiceAction.EXPIRE, (client,), (spend(ServiceAction.EXPIRE), *_end(client, session)))

    reads = (Read(name, session), Read(LEADER, open_sessions), has_left(ServiceAction.EXPIRE))
    return Rule(f"the session of {name} expires", reads, moves, (ServiceAction.EXPIRE,))


def _disconnect(client: int, setup: ServiceSetup) -> Rule:
    name = link_name(client)
    drops = Variant.EPHEMERAL_DIES_WITH_CONNECTION in setup.variants

    def connected(link: ClientConnection) -> tuple[int | None, SessionId] | None:
        return (link.server, link.session) if link.state is ConnectionState.UP else None

    def moves(connected: tuple[int | None, SessionId], _left: bool) -> tuple[Move, ...]:
        server, session = connected
        dropped = (Send(LEADER, DropEphemerals(session)),) if drops else ()
        sends = (spend(ServiceAction.DISCONNECT), Send(name, ServiceAction.DISCONNECT), *dropped)
        return (Move(ServiceAction.DISCONNECT, (client, server), sends),)

    return Rule(
        f"{name} is lost",
        (Read(name, connected), has_left(ServiceAction.DISCONNECT)),
        moves,
        (ServiceAction.DISCONNECT,),
    )


def _crash(client: int) -> Rule:
    name = link_name(client)

    def lives(link: ClientConnection) -> bool | None:
        return None if link.state is ConnectionState.GONE else True

    living, ends = Read(name, lives), (Send(name, ServiceAction.CRASH),)
    return limited_rule(ServiceAction.CRASH, f"client {client}", (client,), ends, living)


def service(setup: ServiceSetup) -> ModelFragment:
    """The service. Initially every client is connected, with its first session."""
    tree = first_tree(setup)
    columns = [Column(LEADER, Leader(tree))]
    actors = [leader_actor(setup)]
    for server in setup.server_ids:
        if setup.lag:
            columns.append(Column(server_name(server), LaggingServer(tree)))
            actors.append(lagging_server_actor(server, setup))
        else:
            actors.append(server_without_lag(server))
        columns.append(Column(watches_name(server), frozenset()))
        actors.append(watches_actor(server, setup))
    for client in setup.client_ids:
        first = session_of(client)
        columns.append(
            Column(link_name(client), ClientConnection(ConnectionState.UP, first, setup.first_server(client)))
        )
        actors.append(link_actor(client, setup))
        if setup.has_library:
            columns.append(Column(library_name(client), Library(session=first)))
            actors.append(library_actor(client, setup))
    columns.append(Column(FAULTS, Faults(setup.budgets)))
    actors.append(faults_actor())
    rules = (dataclasses.replace(rule, fair=fair_among(rule.actions)) for rule in _rules(setup))
    return ModelFragment(tuple(columns), tuple(actors), tuple(rules))


def first_tree(setup: ServiceSetup) -> FrozenStore:
    """The initial tree of a run: the root, the paths of the setup, and a session for each client.

    ZooKeeper's own znodes are left out, since no client here reads them.
    """
    paths = sorted({ROOT, *setup.paths})
    znode = new_znode(b"", OPEN_ACL_UNSAFE, 0, 0, 0)
    sessions = tuple((session_of(client), 0) for client in setup.client_ids)
    return FrozenStore(tuple((path, znode) for path in paths), sessions)
