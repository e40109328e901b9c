"""One client's connection: bytes in, requests to where they belong, answers out in their order.

Rules this module keeps:

- What a request waits for, and what its answer does to the connection, `spec.service.connection` decides.
- Nothing grows without bound. A client is not read from while it has too many requests waiting, while the server
  has, or while it does not read what it is sent.
- Bad bytes end this connection and nothing else.
- Answers and events of one turn of the event loop leave in one write, in the order in which they were made.

Source: `NIOServerCnxn`, `ServerCnxn`; `ZooKeeperServer.processConnectRequest`, `processPacket`, `finishSessionInit`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING

from refimpl.clients.channel import Channel, Phase
from refimpl.clock import wall_ms
from refimpl.jute import JuteError
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
from spec.service.connecting import Invalid, NewSession, Presented, Renew, TurnedAway, present
from spec.service.connection import ROUTES, Asked, Ending, Route, Waiting, arrive, ending, settle, throttled
from spec.service.sessions import password
from spec.tree.data import Id
from spec.tree.fields import Record
from spec.tree.replies import Code

if TYPE_CHECKING:
    from refimpl.clients.server import Clients

logger = logging.getLogger("quorate.clients")

WORD_LENGTH = 4
_NO_PASSWORD = bytes(16)


class Connection(Channel):
    """A client, from its connection to its end; `number` tells connections apart, and orders them."""

    def __init__(self, clients: Clients, number: int) -> None:
        super().__init__(clients, number)
        self.timeout = clients.settings.connect_timeout
        self.auth: tuple[Id, ...] = ()
        self.established = wall_ms()
        self.waiting: Waiting = ()
        self._arrivals: deque[int] = deque()
        self._opening: bytes | None = b""
        self._frames = Frames(clients.settings.max_buffer)
        self._backlog: deque[bytes] = deque()
        self._due: deque[tuple[Asked, int, tuple[Code, Record | None] | None]] = deque()
        self._old_client = self._working = self._session_over = False

    # What asyncio calls, but for what the channel answers itself.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        super().connection_made(transport)
        self.auth = (Id("ip", self.address),)
        if not self.clients.admit(self):
            self.phase = Phase.ENDED
            self.abort()

    def data_received(self, data: bytes) -> None:
        """Bytes from the client."""
        if self.phase is Phase.ENDED:
            return
        self.clients.heard(self)
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
        """The connection is over."""
        super().connection_lost(exc)
        self.clients.forget(self)

    # The beginning: a four-letter word, or a session.

    def _opened(self, data: bytes) -> bytes | None:
        """The first bytes, if they begin a frame; None while there are too few, and for a four-letter word."""
        opening = (self._opening or b"") + data
        if len(opening) < WORD_LENGTH:
            self._opening = opening
            return None
        return None if self.clients.word(self, opening) else opening

    def _present(self, frame: bytes) -> None:
        """The first frame: the client presents itself."""
        try:
            request = decode_connect_request(frame)
        except JuteError as error:
            self.refuse(f"bad ConnectRequest: {error}")
            return
        service = self.clients.service
        if service is None:
            self.end("this server is not serving")
            return
        self._old_client = request.read_only is None
        self._begin(request, service.last_zxid)

    def _begin(self, request: ConnectRequest, last_zxid: int) -> None:
        presented = Presented(request.last_zxid_seen, request.time_out, request.session_id, request.passwd)
        verdict = present(presented, self.clients.settings.session_limits, last_zxid)
        match verdict:
            case TurnedAway(reason):
                self.refuse(reason)
            case Invalid():
                self.established_as(valid=False)
            case NewSession(timeout):
                self.phase, self.timeout = Phase.PRESENTED, timeout
                self.clients.open_session(self)
            case Renew(session, timeout):
                self.phase, self.timeout = Phase.PRESENTED, timeout
                self.clients.renew_session(self, session)

    def established_as(self, valid: bool) -> None:
        """The session is there, or is no more: the client is told, and served or left."""
        read_only = None if self._old_client else False
        if not valid:
            self.send(encode_connect_response(ConnectResponse(0, 0, _NO_PASSWORD, read_only)))
            self.finish("its session is not valid")
            return
        response = ConnectResponse(self.timeout, self.session, password(self.session), read_only)
        self.phase = Phase.SERVING
        self.send(encode_connect_response(response))
        self.statistics.answered("SESS", 0, self.clients.last_zxid, self.clients.now, self.clients.now)
        self.work()

    # Requests.

    def work(self) -> None:
        """Answers what is due and handles what has arrived, as far as this client may go on now."""
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
        return self.clients.turns.may_handle(self, len(self._backlog[0]))

    def _held_back(self) -> bool:
        waiting, settings = len(self.waiting), self.clients.settings
        return (
            self.full()
            or bool(self._due)
            or self.phase is Phase.PRESENTED
            or waiting >= settings.max_waiting
            or throttled(waiting, self.clients.in_process, settings.global_outstanding_limit)
        )

    def drop(self) -> None:
        """What was asked is not answered any more."""
        self.clients.in_process -= len(self.waiting)
        self.waiting = ()
        self._arrivals.clear()
        self._due.clear()
        self._backlog.clear()

    @property
    def stopped(self) -> bool:
        """Whether something waits for the client to be told more, or to be read from."""
        return bool(self._due or self._backlog)

    def _handle(self, frame: bytes) -> None:
        """One packet of the client."""
        if self.phase is Phase.ENDED:
            return
        self.statistics.received += 1
        self.clients.statistics.received += 1
        if self.phase is Phase.FRESH:
            self._present(frame)
            return
        try:
            xid, record = decode_request(frame)
        except BadRequestError as error:
            route = Route.REFUSED if error.code is Code.UNIMPLEMENTED else Route.MALFORMED
            self._arrived(Asked(error.xid, None, route))
        except JuteError as error:
            self.refuse(f"bad packet: {error}")
        else:
            self._arrived(Asked(xid, record, ROUTES[type(record)], self.auth))

    def _arrived(self, asked: Asked) -> None:
        self.waiting, at_once = arrive(self.waiting, asked)
        if at_once:
            self._reply(asked, self.clients.now, None)
            return
        self._arrivals.append(self.clients.now)
        self.clients.in_process += 1
        self.clients.forward(self, asked)

    def settled(
        self, xid: int, route: Route, code: Code = Code.OK, reply: Record | None = None, *, closes: bool = False
    ) -> None:
        """A transaction of this session, or the end of a sync: answers what it answers, and what waited behind it."""
        before = self.waiting
        self.waiting, answered = settle(before, xid, route, closes=closes)
        if not answered:
            return
        self.clients.in_process -= len(answered)
        outcome = (code, reply) if route is Route.WRITE else None
        for asked in answered:
            self._due.append((asked, self._arrivals.popleft(), outcome))
            outcome = None
        self.work()

    def session_closed(self) -> None:
        """The session is over: the connection ends when what is due is answered."""
        self._session_over = True
        self.work()

    def _reply(self, asked: Asked, arrived: int, outcome: tuple[Code, Record | None] | None) -> None:
        """Answers a request: a write with its outcome, anything else with what the tree shows now."""
        if self.phase is Phase.ENDED:
            return
        code, reply = outcome if outcome is not None else self.clients.answers.answer(self, asked)
        after = ending(asked, code)
        if after is not Ending.DROPPED:
            # Authentication and the refusal of unknown requests are no part of the tree's history.
            zxid = _ZXID_OF_REPLY.get(asked.route, self.clients.last_zxid)
            self._send_reply(asked, zxid, code, reply)
            self.clients.answered(self, asked, zxid, arrived)
        if after is not Ending.STAYS:
            self.finish(f"after {asked.route.name} with {code.name}")

    def _send_reply(self, asked: Asked, zxid: int, code: Code, reply: Record | None) -> None:
        try:
            self.send(encode_reply(asked.xid, zxid, code, reply))
        except JuteError as error:
            # Only a string that is no Unicode, put into the tree by another implementation, comes here.
            logger.warning("session 0x%x: an answer cannot be encoded: %s", self.session % (1 << 64), error)
            self.send(encode_reply(asked.xid, zxid, Code.MARSHALLING_ERROR))


_ZXID_OF_REPLY = {Route.AUTH: 0, Route.REFUSED: -1}
