"""A client's connection: the messages in flight in both directions, and the state of the client's session.

Rules of this module:

- Both directions are FIFO: a notification that was sent before a reply is received before it.
- When a connection is lost, replies and notifications in flight are lost. Writes in flight to the server may still
  arrive (`stray`), until the client has a connection again or its session is over; late reads would change nothing.
- A client learns of the loss of its connection immediately. If the server closes it, the client learns of this after
  every message that the server sent before.
- A client that has requested the end of its session does not connect again.
- Information that can never matter again is dropped: a client that is gone keeps only a session that may still lapse,
  and writes that may still arrive.
"""

import enum
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from checker.engine import Actor, ModelError, Outcome, Send
from checker.models.service.messages import (
    Acceptance,
    ClientCrash,
    CloseConnection,
    ConnectionClosed,
    ConnectionLoss,
    ConnectionStart,
    DeliverMessage,
    DeliverRequest,
    Delivery,
    ForgetClient,
    RefuseSession,
    Reply,
    RequestSession,
    ResumeSession,
    SendMessage,
    SendRequest,
    ServeRequest,
    ServerMessage,
    ServiceAction,
    SessionExpiry,
    StartSession,
    SubmitRequest,
    WatchNotification,
)
from checker.models.service.servers import answered_early
from checker.models.service.setup import ServiceSetup, client_name, library_name, link_name, server_name, watches_name
from spec.service.connection import ROUTES, Route
from spec.tree.data import Record
from spec.tree.requests import CloseSession, CreateSession, SessionId
from spec.variants import Variant


class ConnectionState(enum.Enum):
    """The state of a client's connection and session, as far as the client knows."""

    UP = "up"  # connected to `server`
    DOWN = "down"  # without a connection; the session may live
    OVER = "over"  # the session has expired, and the client knows
    OPENING = "opening"  # a new session is requested through `server`
    GONE = "gone"  # the client has closed its session, or crashed; session 0: it has ended


class ClientConnection(msgspec.Struct, frozen=True):
    """A connection. `waiting` counts the requests that have arrived at the server and wait there for a commit."""

    state: ConnectionState
    session: SessionId
    server: int | None = None
    up: tuple[Record, ...] = ()
    waiting: int = 0
    down: tuple[ServerMessage, ...] = ()
    stray: tuple[Record, ...] = ()
    closing: bool = False

    @property
    def cut(self) -> bool:
        """Whether the server has closed the connection and the client does not know yet."""
        return bool(self.down) and _ends(self.down[-1])


def _ends(message: ServerMessage) -> bool:
    return isinstance(message, ConnectionClosed) or (
        isinstance(message, Reply) and isinstance(message.asked, CloseSession)
    )


def waits(record: Record) -> bool:
    """Whether a request is answered only when something is committed, or applied."""
    return ROUTES[type(record)] in (Route.WRITE, Route.SYNC)


def may_change(records: Iterable[Record]) -> tuple[Record, ...]:
    """The records that change something when they arrive late."""
    return tuple(record for record in records if ROUTES[type(record)] is Route.WRITE)


def link_actor(client: int, setup: ServiceSetup) -> Actor:
    """The connection of a client."""
    return Actor(link_name(client), (link_name(client),), _ConnectionSteps(client, setup).step)


class _ConnectionSteps:
    def __init__(self, client: int, setup: ServiceSetup) -> None:
        self._client, self._has_library = client, setup.has_library
        self._above = library_name(client) if setup.has_library else client_name(client)
        self._may_be_early = setup.lag and Variant.ANSWERED_BEFORE_COMMIT in setup.variants

    def step(self, values: tuple[Any, ...], asked: Any) -> Outcome | None:
        link: ClientConnection = values[0]
        match asked:
            case SendRequest(record):
                return self._ask(link, record)
            case DeliverRequest(place):
                return self._arrive(link, place)
            case ServiceAction.ARRIVE_LATE:
                return self._arrive_late(link)
            case SendMessage(message, ahead):
                return Outcome((self._enqueue(link, message, ahead),))
            case DeliverMessage(place):
                return self._deliver(link, place)
            case CloseConnection(server, session):
                return self._cut(link, server, session)
            case ServiceAction.DISCONNECT:
                return self._lose(link, link.stray + may_change(link.up))
            case ServiceAction.CRASH:
                return self._end_process(link)
            case ServiceAction.EXPIRE:
                return Outcome((_after_session() if link.state is ConnectionState.GONE else replace(link, stray=()),))
            case _:
                return self._reconnect(link, asked)

    def _reconnect(
        self, link: ClientConnection, asked: ResumeSession | RefuseSession | RequestSession | StartSession
    ) -> Outcome:
        match asked:
            case ResumeSession(server, zxid):
                after = replace(link, state=ConnectionState.UP, server=server, stray=())
                return Outcome((after,), (self._accept(server, ConnectionStart(True, link.session, zxid)),))
            case RefuseSession():
                return Outcome(
                    (ClientConnection(ConnectionState.OVER, link.session),), (Send(self._above, SessionExpiry()),)
                )
            case RequestSession(server):
                session = link.session + 1
                request = ServeRequest(session, CreateSession(0), self._client)
                return Outcome(
                    (ClientConnection(ConnectionState.OPENING, session, server),), (Send(server_name(server), request),)
                )
            case StartSession(session, zxid):
                assert link.server is not None
                after = ClientConnection(ConnectionState.UP, session, link.server)
                return Outcome((after,), (self._accept(link.server, ConnectionStart(False, session, zxid)),))

    def _accept(self, server: int, told: ConnectionStart) -> Send:
        return Send(self._above, Acceptance(server, told) if self._has_library else told)

    def _ask(self, link: ClientConnection, record: Record) -> Outcome:
        if link.state is not ConnectionState.UP:
            raise ModelError(f"client {self._client} asks for {record!r} while its connection is {link.state.value}")
        submitted = (Send(self._above, SubmitRequest(record)),) if self._has_library else ()
        closing = link.closing or isinstance(record, CloseSession)
        # A request on a connection that the server has closed is lost.
        up = link.up if link.cut else (*link.up, record)
        return Outcome((replace(link, up=up, closing=closing),), submitted)

    def _arrive(self, link: ClientConnection, place: int) -> Outcome | None:
        if place >= len(link.up) or (link.waiting and not waits(link.up[place])):
            return None
        record, rest = link.up[place], link.up[:place] + link.up[place + 1 :]
        if self._early(record):
            after = replace(link, up=rest, stray=(*link.stray, record))
        else:
            after = replace(link, up=rest, waiting=link.waiting + waits(record))
        return Outcome((after,), (self._request(link, record, self._client),))

    def _arrive_late(self, link: ClientConnection) -> Outcome | None:
        if not link.stray:
            return None
        return Outcome((replace(link, stray=link.stray[1:]),), (self._request(link, link.stray[0], None),))

    def _request(self, link: ClientConnection, record: Record, client: int | None) -> Send:
        # A late request goes to the leader through any server, so the server that read it makes no difference.
        return Send(server_name(link.server or 1), ServeRequest(link.session, record, client))

    def _early(self, record: Record) -> bool:
        return self._may_be_early and answered_early(record)

    def _enqueue(self, link: ClientConnection, message: ServerMessage, ahead: bool) -> ClientConnection:
        if link.state is not ConnectionState.UP or link.cut:
            return link
        awaited = isinstance(message, Reply) and waits(message.asked) and not self._early(message.asked)
        place = len(link.down)
        while ahead and place and isinstance(link.down[place - 1], WatchNotification):
            place -= 1
        down = (*link.down[:place], message, *link.down[place:])
        return replace(link, down=down, waiting=link.waiting - awaited)

    def _deliver(self, link: ClientConnection, place: int) -> Outcome | None:
        if place >= len(link.down):
            return None
        message = link.down[place]
        if isinstance(message, ConnectionClosed):
            return self._lose(link, link.stray)
        heard = Send(self._above, Delivery(message))
        if _ends(message):
            return Outcome((_after_session(),), (heard,))
        return Outcome((replace(link, down=link.down[:place] + link.down[place + 1 :]),), (heard,))

    def _cut(self, link: ClientConnection, server: int | None, session: SessionId) -> Outcome:
        """The server closes the connection, after every message that it has sent."""
        if link.state is not ConnectionState.UP or link.session != session or server not in (None, link.server):
            return Outcome((link,))
        # The reply to CloseSession already ends the connection.
        down = link.down if link.cut else (*link.down, ConnectionClosed())
        return Outcome((replace(link, up=(), waiting=0, down=down, stray=()),), self._forget(link))

    def _lose(self, link: ClientConnection, stray: tuple[Record, ...]) -> Outcome:
        after = ClientConnection(
            ConnectionState.GONE if link.closing else ConnectionState.DOWN, link.session, stray=stray
        )
        return Outcome((after,), (*self._forget(link), Send(self._above, ConnectionLoss())))

    def _end_process(self, link: ClientConnection) -> Outcome:
        stray = link.stray + may_change(link.up)
        after = (
            _after_session()
            if link.state is ConnectionState.OVER
            else ClientConnection(ConnectionState.GONE, link.session, stray=stray)
        )
        return Outcome((after,), (*self._forget(link), Send(self._above, ClientCrash())))

    def _forget(self, link: ClientConnection) -> tuple[Send, ...]:
        """The operations by which a server forgets a client without a connection to it."""
        if link.server is None:
            return ()
        forget = ForgetClient(self._client)
        return Send(server_name(link.server), forget), Send(watches_name(link.server), forget)


def _after_session() -> ClientConnection:
    """The link of a client that is gone and whose session has ended."""
    return ClientConnection(ConnectionState.GONE, 0)
