"""One client's connection: it decodes requests, routes them, and sends the answers in order.

The requests that the client port handles in one turn of the event loop are bounded. The bound is shared by all
connections, so that a client with long requests delays the others by one of them. Without it
15 requests of 1 MB each stopped the server for five seconds.

Rules:

- `spec.service.connection` decides the order of the answers, and which answers end the connection.
- All queues are bounded. Reading pauses while the client or the whole server has too many pending requests, and while
  the client does not read its answers.
- Invalid bytes end this connection and affect no other.
- Answers and events of one turn of the event loop leave in one write, in the order of their creation.

Source: `NIOServerCnxn`, `ServerCnxn`; `ZooKeeperServer.processConnectRequest`, `processPacket`, `finishSessionInit`.
"""

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Protocol, TypeAlias

from refimpl.clients.channel import Channel, ChannelOwner, Phase
from refimpl.jute import JuteError
from refimpl.system import system
from refimpl.wire.client import (
    BadRequestError,
    ConnectRequest,
    ConnectResponse,
    decode_connect_request,
    decode_request,
    encode_connect_response,
    encode_reply,
)
from refimpl.wire.frames import Frames
from spec.service.connection import (
    ROUTES,
    Ending,
    PendingRequest,
    Route,
    answered_at_once,
    demanded,
    ending,
    number_settled,
    throttled,
)
from spec.service.digest_md5 import Exchange, Untried
from spec.service.handshake import ConnectClaims, Invalid, NewSession, ReadOnlyRules, Rejection, Renew, present
from spec.service.sessions import password
from spec.tree.data import Id, Record
from spec.tree.replies import Code
from spec.tree.requests import SessionId

BYTES = 64 * 1024
"""Bytes of requests in one turn; a longer request gets a turn alone."""


class Worker(Protocol):
    """A connection with pending requests."""

    def work(self) -> None:
        """Resume the handling of requests."""


class Turns:
    """The budget of one turn, and the connections that wait for the next one.

    The connections are served in the order in which they began to wait. The first one is served in the next turn. A
    connection that has been served and waits again goes to the end. `call_soon` runs a function in the next turn.
    """

    def __init__(self, call_soon: Callable[[Callable[[], None]], None]) -> None:
        self._call_soon = call_soon
        self._handled = 0
        self._postponed: OrderedDict[Worker, None] = OrderedDict()

    def may_handle(self, connection: Worker, size: int) -> bool:
        """Whether a request of this many bytes fits into this turn; otherwise a later turn calls `connection.work`."""
        if not self._handled:
            self._call_soon(self._next)
        elif self._handled + size > BYTES:
            self._postponed[connection] = None
            return False
        self._handled += max(size, 1)
        return True

    def _next(self) -> None:
        self._handled = 0
        while self._postponed:
            connection, _ = self._postponed.popitem(last=False)
            before = self._handled
            connection.work()
            if connection in self._postponed:
                if self._handled == before:
                    self._postponed.move_to_end(connection, last=False)
                return


logger = logging.getLogger("quorate.clients")

Reply: TypeAlias = tuple[Code, Record | None]

WORD_LENGTH = 4
_NO_PASSWORD = bytes(16)


class ConnectionOwner(ChannelOwner, Protocol):
    """The client port, as a connection sees it: sessions, the shared limits, and answers."""

    turns: Turns
    now: int
    in_process: int
    bytes_in_process: int

    @property
    def is_serving(self) -> bool:
        """Whether the server serves; otherwise it refuses sessions."""

    @property
    def last_zxid(self) -> int:
        """The zxid of the last transaction applied."""

    def opened(self, connection: "Connection") -> None:
        """Start the time for a ConnectRequest."""

    def heard(self, connection: "Connection") -> None:
        """Extend the session of a client that has sent bytes."""

    def forget(self, connection: "Connection") -> None:
        """Remove a connection that has ended."""

    def answer_word(self, connection: "Connection", opening: bytes) -> bool:
        """Answer a four-letter word; return False if the first bytes are not one."""

    def read_only(self, session: SessionId) -> ReadOnlyRules | None:
        """The rules for a client that presents this session, if the server has no quorum."""

    def open_session(self, connection: "Connection") -> None:
        """Create a session for this connection."""

    def renew_session(self, connection: "Connection", session: SessionId) -> None:
        """Attach an existing session to this connection."""

    def forward(self, connection: "Connection", pending: PendingRequest) -> None:
        """Pass a write or a sync to the server."""

    def answer(self, connection: "Connection", pending: PendingRequest) -> Reply:
        """Answer any other request from the current tree."""

    def answered(self, connection: "Connection", pending: PendingRequest, zxid: int, arrived: int) -> None:
        """Count an answered request."""


class Connection(Channel):
    """The connection of one client; `number` identifies it and gives its age."""

    def __init__(self, owner: ConnectionOwner, number: int, address: str, port: int) -> None:
        super().__init__(owner, number, address, port)
        self._owner: ConnectionOwner = owner
        self.timeout = owner.settings.connect_timeout
        self.auth: tuple[Id, ...] = (Id("ip", address),)
        self.sasl: Exchange = Untried()
        self._required = owner.settings.auth.required
        self.established = system().wall_ms()
        self.waiting: deque[PendingRequest] = deque()
        self._arrivals: deque[tuple[int, int]] = deque()
        """The time at which each waiting request arrived, and its size in bytes."""
        self._waiting_bytes = 0
        self._opening: bytes | None = b""
        self._frames = Frames(owner.settings.max_buffer)
        self._backlog: deque[bytes] = deque()
        self._due: deque[tuple[PendingRequest, int, Reply | None]] = deque()
        self._old_client = self._read_only = self._working = self._session_over = False

    # The callbacks of asyncio that `Channel` leaves to this class.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open, after its TLS handshake."""
        super().connection_made(transport)
        if self.phase is not Phase.ENDED:
            self._owner.opened(self)

    def data_received(self, data: bytes) -> None:
        """Decode bytes from the client."""
        if self.phase is Phase.ENDED:
            return
        self._owner.heard(self)
        if self._opening is not None:
            opening = self._opened(data)
            if opening is None:
                return
            data, self._opening = opening, None
        try:
            self._backlog.extend(self._frames.feed(data))
        except JuteError as error:
            self.refuse(f"bad frame: {error}")
            return
        self.work()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        super().connection_lost(exc)
        self._owner.forget(self)

    # The first bytes: a four-letter word or a ConnectRequest.

    def _opened(self, data: bytes) -> bytes | None:
        """Return the first bytes of a frame; None while they are incomplete, and for a four-letter word."""
        opening = (self._opening or b"") + data
        if len(opening) < WORD_LENGTH:
            self._opening = opening
            return None
        return None if self._owner.answer_word(self, opening) else opening

    def _present(self, frame: bytes) -> None:
        try:
            request = decode_connect_request(frame)
        except JuteError as error:
            self.refuse(f"bad ConnectRequest: {error}")
            return
        if not self._owner.is_serving:
            self.end("this server is not serving")
            return
        self._old_client = request.read_only is None
        self._begin(request, self._owner.last_zxid)

    def _begin(self, request: ConnectRequest, last_zxid: int) -> None:
        session, rules = request.session_id, self._owner.read_only(request.session_id)
        presented = ConnectClaims(
            request.last_zxid_seen, request.time_out, session, request.passwd, bool(request.read_only)
        )
        verdict = present(presented, self._owner.settings.session_limits, last_zxid, rules)
        self._read_only = rules is not None
        match verdict:
            case Rejection(reason):
                self.refuse(reason)
            case Invalid():
                self.established_as(valid=False)
            case NewSession(timeout):
                self.phase, self.timeout = Phase.PRESENTED, timeout
                self._owner.open_session(self)
            case Renew(session, timeout):
                self.phase, self.timeout = Phase.PRESENTED, timeout
                self._owner.renew_session(self, session)

    def established_as(self, valid: bool) -> None:
        """Send the ConnectResponse; end the connection if the session is invalid."""
        read_only = None if self._old_client else self._read_only
        if not valid:
            self.send(encode_connect_response(ConnectResponse(0, 0, _NO_PASSWORD, read_only)))
            self.finish("its session is not valid")
            return
        response = ConnectResponse(self.timeout, self.session, password(self.session), read_only)
        self.phase = Phase.SERVING
        self.send(encode_connect_response(response))
        self.statistics.answered("SESS", 0, self._owner.last_zxid, self._owner.now, self._owner.now)
        self.work()

    # Requests.

    def work(self) -> None:
        """Send pending answers and handle pending requests within the bounds of this client."""
        if self._working:
            return
        self._working = True
        try:
            while True:
                if self._due and not self.full():
                    self._reply(*self._due.popleft())
                elif self._backlog and not self._held_back() and self._has_turn():
                    self._handle(self._backlog.popleft())
                else:
                    break
        finally:
            self._working = False
        if self._session_over and not self._due:
            self.finish("its session is closed")
        self.read_on(not self._backlog and not self._held_back())

    def _has_turn(self) -> bool:
        return self._owner.turns.may_handle(self, len(self._backlog[0]))

    def _held_back(self) -> bool:
        waiting, settings = len(self.waiting), self._owner.settings
        return (
            self.full()
            or bool(self._due)
            or self.phase is Phase.PRESENTED
            or waiting >= settings.max_waiting
            or self._waiting_bytes >= settings.max_waiting_bytes
            or throttled(waiting, self._owner.in_process, settings.global_outstanding_limit)
            or throttled(waiting, self._owner.bytes_in_process, settings.large_request_max_bytes)
        )

    def drop(self) -> None:
        """Discard all pending requests."""
        self._owner.in_process -= len(self.waiting)
        self._owner.bytes_in_process -= self._waiting_bytes
        self._waiting_bytes = 0
        self.waiting.clear()
        self._arrivals.clear()
        self._due.clear()
        self._backlog.clear()

    @property
    def stopped(self) -> bool:
        """Whether answers or requests are pending."""
        return bool(self._due or self._backlog)

    def _handle(self, frame: bytes) -> None:
        if self.phase is Phase.ENDED:
            return
        self.statistics.received += 1
        self._owner.statistics.received += 1
        if self.phase is Phase.FRESH:
            self._present(frame)
            return
        try:
            xid, record = decode_request(frame)
        except BadRequestError as error:
            route = Route.REFUSED if error.code is Code.UNIMPLEMENTED else Route.MALFORMED
            self._arrived(PendingRequest(error.xid, None, route, self.auth), len(frame))
        except JuteError as error:
            self.refuse(f"bad packet: {error}")
        else:
            self._arrived(PendingRequest(xid, record, ROUTES[type(record)], self.auth), len(frame))

    def _arrived(self, pending: PendingRequest, size: int) -> None:
        if self._required:
            pending = demanded(pending, self._required)
        if answered_at_once(pending, behind_others=bool(self.waiting)):
            self._reply(pending, self._owner.now, None)
            return
        self.waiting.append(pending)
        self._arrivals.append((self._owner.now, size))
        self._waiting_bytes += size
        self._owner.in_process += 1
        self._owner.bytes_in_process += size
        self._owner.forward(self, pending)

    def settled(
        self, xid: int, route: Route, code: Code = Code.OK, reply: Record | None = None, *, closes: bool = False
    ) -> None:
        """Answer a request whose transaction is applied or whose sync is complete, and the requests behind it.

        A sync with another code than OK is refused with it.
        """
        answered = number_settled(self.waiting, xid, route, closes=closes)
        self._owner.in_process -= answered
        outcome = (code, reply) if route is Route.WRITE or code is not Code.OK else None
        for _ in range(answered):
            pending = self.waiting.popleft()
            arrived, size = self._arrivals.popleft()
            self._waiting_bytes -= size
            self._owner.bytes_in_process -= size
            if self._due or self.full():
                self._due.append((pending, arrived, outcome))
            else:
                self._reply(pending, arrived, outcome)
                if self.phase is Phase.ENDED:
                    return
            outcome = None
        if answered and (self._due or self._backlog or self._paused):
            self.work()

    def session_closed(self) -> None:
        """The session is closed: the connection ends after the pending answers."""
        self._session_over = True
        self.work()

    def _reply(self, pending: PendingRequest, arrived: int, outcome: Reply | None) -> None:
        if self.phase is Phase.ENDED:
            return
        code, reply = outcome if outcome is not None else self._owner.answer(self, pending)
        if self._held:  # the answer itself is the first that waits
            self._due.appendleft((pending, arrived, (code, reply)))
            return
        after, route = ending(pending, code), pending.route
        if after is not Ending.DROPPED:
            zxid = self._owner.last_zxid if route in _LAST_ZXID else _OTHER_ZXIDS[route]
            try:
                self.send(encode_reply(pending.xid, zxid, code, reply))
            except JuteError as error:
                # Another implementation has put a string into the tree that is not valid Unicode.
                logger.warning("session 0x%x: an answer cannot be encoded: %s", self.session % (1 << 64), error)
                self.send(encode_reply(pending.xid, zxid, Code.MARSHALLING_ERROR))
            self._owner.answered(self, pending, zxid, arrived)
        if after is not Ending.STAYS:
            self.finish(f"after {pending.route.name} with {code.name}")


_OTHER_ZXIDS = {Route.AUTH: 0, Route.UNAUTHENTICATED: 0, Route.REFUSED: -1}
"""The constants that answers to authentication and to unknown requests carry in place of the last zxid."""
_LAST_ZXID = (Route.WRITE, *(route for route in Route if route not in _OTHER_ZXIDS))
