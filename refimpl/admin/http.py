"""A small HTTP/1.1 server for GET requests, for the AdminServer and for the metrics.

Rules this module keeps:

- h11 parses requests and writes answers. A request is bounded by `MOST_BYTES`, and has no body. The number of
  connections is bounded by `MOST_CONNECTIONS`: further ones are closed.
- Requests are answered one at a time, and by turns (`SmallShare`): however many arrive, the server has most of its
  time for clients and peers. A connection is not read while a request of it waits, or an answer is unread.
- The unread answers of all connections are bounded (`UnreadOutput`): the slowest reader is disconnected.
- A connection without a complete request within the idle time ends.
- A page of another site is refused, as a local page refuses it (`spec.foreign_pages`).

Source: RFC 9112; `JettyAdminServer` (`admin.idleTimeout`).
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

import h11

from refimpl.listening import Listener, SmallShare, StreamTransport, UnreadOutput, bind, serve, stream_of
from refimpl.log_lines import RateLimit
from spec.config import Address
from spec.foreign_pages import refused_page
from spec.quorum.addresses import is_loopback

logger = logging.getLogger("quorate.admin")
logger.addFilter(RateLimit())

MOST_BYTES = 16 * 1024
"""The maximum size of a request."""
MOST_CONNECTIONS = 32
MOST_UNREAD = 16 << 20
"""The maximum number of bytes that the clients of a port have not read, before another answer is added."""
_PIECE = 4096
_BODY = (b"content-length", b"transfer-encoding")
JSON, TEXT, HTML = "application/json", "text/plain; charset=utf-8", "text/html; charset=utf-8"


class HttpRequest(NamedTuple):
    """A request: method, path without the query, and the query; of a repeated name the first value counts."""

    method: str
    path: str
    query: dict[str, str]


class HttpAnswer(NamedTuple):
    """An answer to a request."""

    status: int
    content_type: str
    body: bytes


HttpHandler: TypeAlias = Callable[[HttpRequest], HttpAnswer]


class HttpPort:
    """A port that answers GET and HEAD by `answer`, open from `listen` to `close`; `idle` is in seconds.

    Links of other sites may lead to the path `front`.
    """

    def __init__(self, address: Address, answer: HttpHandler, idle: float, share: SmallShare, front: str = "") -> None:
        self._address, self.answer, self.idle, self.share, self.front = address, answer, idle, share, front
        self.connections: set[HttpConnection] = set()
        self.unread: UnreadOutput[HttpConnection] = UnreadOutput(MOST_UNREAD)
        self._listener: Listener | None = None

    def listen(self) -> None:
        """Open the port. Raises OSError, and ValueError for a name that is not a host's."""
        bound = bind(self._address.host, self._address.port)
        self._listener = serve(bound, lambda: HttpConnection(self))

    @property
    def port(self) -> int:
        """The number of the open port."""
        assert self._listener is not None
        return self._listener.port

    @property
    def hosts(self) -> tuple[str, ...] | None:
        """What Host may be; None for any, at an address that other machines reach by names unknown here."""
        if not is_loopback(self._address.host):
            return None
        return tuple(str(Address(host, self.port)) for host in ("127.0.0.1", "localhost", "::1", self._address.host))

    def close(self) -> None:
        """Close the port and its connections."""
        if self._listener is not None:
            self._listener.close()
        for connection in tuple(self.connections):
            connection.abort()


class HttpConnection(asyncio.Protocol):
    """One connection of a client, for several requests one after another."""

    def __init__(self, port: HttpPort) -> None:
        self._port = port
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_BYTES)
        self._arrived = bytearray()
        self._has_turn = self._unwritable = self._ended = False
        self._transport: StreamTransport | None = None
        self._idle: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open; one beyond the limit is closed."""
        self._transport = stream_of(transport)
        if len(self._port.connections) >= MOST_CONNECTIONS:
            self._transport.abort()
            return
        self._port.connections.add(self)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """The connection has ended."""
        self._transport = None
        self._arrived.clear()
        self._port.connections.discard(self)
        self._port.unread.forget(self)
        if self._idle is not None:
            self._idle.cancel()

    def data_received(self, data: bytes) -> None:
        """Keep the bytes until the turn of this connection; nothing more is read before it."""
        self._arrived += data
        self._request_turn()

    def eof_received(self) -> bool:
        """The client sends nothing more; the requests that have arrived are answered before the end."""
        self._ended = True
        self._request_turn()
        return True

    def pause_writing(self) -> None:
        """The client does not read: its next request waits until it does."""
        self._unwritable = True

    def resume_writing(self) -> None:
        """The client reads again."""
        self._unwritable = False
        self._request_turn()

    def abort(self) -> None:
        """End the connection immediately."""
        if self._transport is not None:
            self._transport.abort()

    def unread(self) -> int:
        """The number of bytes that the client has not read."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def _wait(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(self._port.idle, self.abort)

    def _request_turn(self) -> None:
        if self._transport is None or self._has_turn or self._unwritable or self._transport.is_closing():
            return
        self._has_turn = True
        self._transport.pause_reading()
        self._port.share.add(self._turn)

    def _turn(self) -> None:
        self._has_turn = False
        if self._transport is None or self._transport.is_closing():
            return
        try:
            request = self._next_request()
            if request is not None:
                self._wait()
                self._send(request.method, self._answered(request))
                if self._parser.our_state is h11.MUST_CLOSE:
                    self._transport.close()
                else:
                    self._parser.start_next_cycle()
                    self._request_turn()
            elif self._ended:
                self._transport.close()
            elif not self._transport.is_closing():
                self._transport.resume_reading()
        except h11.RemoteProtocolError as error:
            logger.debug("a request over HTTP is refused: %s", error)
            self._refuse(error.error_status_hint, "malformed or too long")

    def _next_request(self) -> h11.Request | None:
        """The next complete request; None if more bytes are needed, or if it is refused. Raises RemoteProtocolError."""
        request = None
        while True:
            event = self._parser.next_event()
            if isinstance(event, h11.Request):
                request = event
                if event.method not in {b"GET", b"HEAD"}:
                    self._refuse(405, "not a GET")
                    return None
                if any(name in _BODY and value != b"0" for name, value in event.headers):
                    self._refuse(413, "one with a body")
                    return None
            elif isinstance(event, h11.EndOfMessage):
                return request
            elif event is h11.NEED_DATA and self._arrived:
                # In pieces, since h11 bounds only the rest of an incomplete request.
                self._parser.receive_data(bytes(self._arrived[:_PIECE]))
                del self._arrived[:_PIECE]
            else:
                return None

    def _answered(self, request: h11.Request) -> HttpAnswer:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
        try:
            target = urlsplit(request.target.decode("ascii", "replace"))
            path, pairs = unquote(target.path), parse_qsl(target.query, keep_blank_values=True)
        except ValueError:
            return HttpAnswer(400, TEXT, b"the target is not a valid address\n")
        status = refused_page(headers, self._port.hosts, is_front=path.rstrip("/") == self._port.front)
        if status is not None:
            return HttpAnswer(status, TEXT, b"only programs, and pages of this port at its address, are answered\n")
        try:
            return self._port.answer(HttpRequest(request.method.decode("ascii"), path, dict(reversed(pairs))))
        except Exception:
            logger.exception("a defect of this program: %s", path)
            return HttpAnswer(500, TEXT, b"the answer could not be made; the log of the server says why\n")

    def _refuse(self, status: int, what: str) -> None:
        if self._parser.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self._send(b"GET", HttpAnswer(status, TEXT, f"the request is {what}\n".encode()), closes=True)
        if self._transport is not None:
            self._transport.close()

    def _send(self, method: bytes, answer: HttpAnswer, closes: bool = False) -> None:
        headers = [
            ("Content-Type", answer.content_type),
            ("Content-Length", str(len(answer.body))),
            ("Cache-Control", "no-store"),
            *([("Connection", "close")] if closes else []),
        ]
        content = self._parser.send(h11.Response(status_code=answer.status, headers=headers)) or b""
        if method != b"HEAD":
            content += self._parser.send(h11.Data(data=answer.body)) or b""
        content += self._parser.send(h11.EndOfMessage()) or b""
        if self._transport is None:
            return
        self._transport.write(content)
        slowest = self._port.unread.slowest_with(self)
        if slowest is not None:
            logger.warning("port %d: a client that does not read its answers is disconnected", self._port.port)
            slowest.abort()
