"""One client's connection: bytes in, requests to where they belong, answers out in their order.

Rules this module keeps:

- What a request waits for, and what its answer does to the connection, `spec.service.connection` decides.
- Nothing grows without bound. A client is not read from while it has too many requests waiting, while the server
  has, or while it does not read what it is sent; one that still has too much unread is disconnected.
- Bad bytes end this connection and nothing else.
- Answers and events of one turn of the event loop leave in one write, in the order in which they were made.

Source: `NIOServerCnxn`, `ServerCnxn`; `ZooKeeperServer.processConnectRequest`, `processPacket`, `finishSessionInit`.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import time
from collections import deque
from typing import TYPE_CHECKING, cast

from refimpl.clients.statistics import ConnectionStatistics
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
from spec.tree.data import Id
from spec.tree.fields import Record
from spec.tree.replies import Code
from spec.tree.requests import OPCODE_OF, SessionId

if TYPE_CHECKING:
    from refimpl.clients.server import Clients

logger = logging.getLogger("quorate.clients")

WORD_LENGTH = 4
MAX_BATCH = 256 * 1024
"""Bytes after which a client is sent what there is before more is made for it."""
_NO_PASSWORD = bytes(16)


class Phase(enum.Enum):
    """How far a connection has come."""

    FRESH = "nothing is known of the client"
    PRESENTED = "it waits for its session"
    SERVING = "it has a session"
    ENDED = "it is closed, or is when all is written"


class Connection(asyncio.Protocol):
    """A client, from its connection to its end; `number` tells connections apart, and orders them."""

    def __init__(self, clients: Clients, number: int) -> None:
        self.clients = clients
        self.number = number
        self.phase = Phase.FRESH
        self.address, self.port = "", 0
        self.session: SessionId = 0
        self.timeout = clients.settings.connect_timeout
        self.auth: tuple[Id, ...] = ()
        self.established = time.time_ns() // 1_000_000
        self.statistics = ConnectionStatistics()
        self.waiting: Waiting = ()
        self._arrivals: deque[int] = deque()
        self._opening: bytes | None = b""
        self._frames = Frames(clients.settings.max_buffer)
        self._backlog: deque[bytes] = deque()
        self._due: deque[tuple[Asked, int, tuple[Code, Record | None] | None]] = deque()
        self._out: list[bytes] = []
        self._unsent = 0
        self._transport: asyncio.Transport | None = None
        self._old_client = False
        self._unwritable = self._paused = self._working = self._session_over = False

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername") or ("", 0)
        self.address, self.port = peer[0], peer[1]
        self.auth = (Id("ip", self.address),)
        if not self.clients.admit(self):
            self.phase = Phase.ENDED
            self._transport.abort()

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
            self.end(f"bad frame: {error}")
            return
        self.work()

    def pause_writing(self) -> None:
        """The client does not read: it is not served until it does."""
        self._unwritable = True

    def resume_writing(self) -> None:
        """The client has read."""
        self._unwritable = False
        self.work()

    def connection_lost(self, _exc: Exception | None) -> None:
        """The connection is over."""
        self.phase = Phase.ENDED
        self._transport = None
        self._due.clear()
        self._backlog.clear()
        self._out.clear()
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
            self.end(f"bad ConnectRequest: {error}")
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
                self.end(reason)
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
        response = ConnectResponse(self.timeout, self.session, self.clients.password(self.session), read_only)
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
                if self._due and not self._full():
                    self._reply(*self._due.popleft())
                elif self._backlog and not self._held_back():
                    self._handle(self._backlog.popleft())
                else:
                    break
        finally:
            self._working = False
        if self._session_over and not self._due:
            self.finish("its session is closed")
        self._read_on(not self._backlog and not self._held_back())

    def _full(self) -> bool:
        """Whether the client has to read before it is told more."""
        return self._unwritable or self._unsent > MAX_BATCH

    def _held_back(self) -> bool:
        waiting, settings = len(self.waiting), self.clients.settings
        return (
            self._full()
            or bool(self._due)
            or self.phase is Phase.PRESENTED
            or waiting >= settings.max_waiting
            or throttled(waiting, self.clients.in_process, settings.global_outstanding_limit)
        )

    def _read_on(self, wanted: bool) -> None:
        """Reads from the client, or does not."""
        if self._transport is None or wanted is not self._paused or self._transport.is_closing():
            return
        self._paused = not wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

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
            self.end(f"bad packet: {error}")
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

    def settled(self, xid: int, route: Route, code: Code = Code.OK, reply: Record | None = None) -> None:
        """A transaction of this session, or the end of a sync: answers what it answers, and what waited behind it."""
        before = self.waiting
        self.waiting, answered = settle(before, xid, route)
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

    # Bytes out.

    def send(self, data: bytes) -> None:
        """Sends a packet, with others of this turn of the event loop."""
        if self.phase is Phase.ENDED:
            return
        if not self._out:
            self.clients.unsent.append(self)
        self._out.append(data)
        self._unsent += len(data)
        self.statistics.sent += 1
        self.clients.statistics.sent += 1

    def flush(self) -> None:
        """Gives the transport what is to be sent."""
        if not self._out or self._transport is None:
            return
        data = b"".join(self._out)
        self._out.clear()
        self._unsent = 0
        self._transport.write(data)
        if self._unwritable and self._transport.get_write_buffer_size() > self.clients.settings.max_unsent:
            logger.warning("%s: disconnected: it does not read what it asked for", self)
            self.abort()
        elif self._due or self._backlog:
            self.work()

    def unsent(self) -> int:
        """How many bytes the client has not taken yet."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def interest(self) -> int:
        """What the connection waits for, as `cons` shows it: 1 to read, 4 to write."""
        reading = not self._paused and self.phase in (Phase.PRESENTED, Phase.SERVING)
        return int(reading) | (4 if self.unsent() else 0)

    def finish(self, reason: str) -> None:
        """Ends the connection, and sees to it that the client can read what it was told last.

        A socket that is closed while there is something to read takes back what it has sent. So the client has some
        time to close first; what else it sends is not read as requests.
        """
        if self.phase is Phase.ENDED:
            return
        self._leave(reason)
        if self._transport is None or not self._transport.can_write_eof():
            self._close()
            return
        self._transport.write_eof()
        self._read_on(True)
        self.clients.linger(self)

    def end(self, reason: str) -> None:
        """Ends the connection when all is written that was to be sent."""
        if self.phase is not Phase.ENDED:
            self._leave(reason)
        self._close()

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _leave(self, reason: str) -> None:
        """The client is sent what there is, and served no more."""
        logger.debug("%s: closed: %s", self, reason)
        self.flush()
        self.phase = Phase.ENDED
        self.clients.in_process -= len(self.waiting)
        self.waiting = ()
        self._arrivals.clear()
        self._due.clear()
        self._backlog.clear()

    def abort(self) -> None:
        """Ends the connection at once."""
        self.end("aborted")
        if self._transport is not None:
            self._transport.abort()

    def __str__(self) -> str:
        return f"/{self.address}:{self.port}, session 0x{self.session % (1 << 64):x}"


_ZXID_OF_REPLY = {Route.AUTH: 0, Route.REFUSED: -1}

OPERATIONS = {
    1: "CREA", 2: "DELE", 3: "EXIS", 4: "GETD", 5: "SETD", 6: "GETA", 7: "SETA", 8: "GETC", 9: "SYNC", 11: "PING",
    12: "GETC", 13: "CHEC", 14: "MULT", 15: "CREA", 16: "RECO", 17: "CHKW", 18: "REMW", 19: "CREA", 21: "CREA",
    22: "MLTR", 101: "SETW", 103: "GETE", 104: "GETACN", 105: "STW2", 106: "ADDW", 107: "HOMI", -11: "CLOS",
}  # fmt: skip
"""What `cons` calls the last operation of a connection (`FinalRequestProcessor`, lastOp)."""

OPERATION_OF: dict[type[Record], str] = {
    record: OPERATIONS[opcode] for record, opcode in OPCODE_OF.items() if opcode in OPERATIONS
}
