"""A small HTTP/1.1 server for GET requests, for the AdminServer and for the metrics.

Rules this module keeps:

- h11 parses requests and writes answers. A request is bounded by `MOST_BYTES`; a body is read up to that bound and
  dropped. The number of connections is bounded by `MOST_CONNECTIONS`: further ones are closed.
- A connection that is silent, or does not read its answer, ends after the idle time.
- An answer is computed in one piece; the event loop does nothing else meanwhile.

Source: RFC 9112; `JettyAdminServer` (`admin.idleTimeout`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

import h11

from refimpl.listening import Listener, StreamTransport, bind, serve, stream_of
from spec.config import Address

logger = logging.getLogger("quorate.admin")

MOST_BYTES = 16 * 1024
"""The maximum size of a request, and of its body."""
MOST_CONNECTIONS = 32
_PIECE = 4096
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
    """A port that answers GET and HEAD by `answer`, open from `listen` to `close`; `idle` is in seconds."""

    def __init__(self, address: Address, answer: HttpHandler, idle: float) -> None:
        self._address, self.answer, self.idle = address, answer, idle
        self.connections: set[HttpConnection] = set()
        self._listener: Listener | None = None

    def listen(self) -> None:
        """Opens the port. Raises OSError, and ValueError for a name that is not a host's."""
        bound = bind(self._address.host, self._address.port)
        self._listener = serve(bound, lambda: HttpConnection(self))

    @property
    def port(self) -> int:
        """The number of the open port."""
        assert self._listener is not None
        return self._listener.port

    def close(self) -> None:
        """Closes the port and its connections."""
        if self._listener is not None:
            self._listener.close()
        for connection in tuple(self.connections):
            connection.abort()


class HttpConnection(asyncio.Protocol):
    """One connection of a client, for several requests one after another."""

    def __init__(self, port: HttpPort) -> None:
        self._port = port
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_BYTES)
        self._request: h11.Request | None = None
        self._body = 0
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
        self._port.connections.discard(self)
        if self._idle is not None:
            self._idle.cancel()

    def data_received(self, data: bytes) -> None:
        """Reads requests, and answers each complete one."""
        self._wait()
        try:
            for start in range(0, len(data), _PIECE):  # h11 bounds the rest of an incomplete request alone
                self._parser.receive_data(data[start : start + _PIECE])
                self._read()
        except h11.RemoteProtocolError as error:
            logger.debug("a request over HTTP is refused: %s", error)
            self._refuse(error.error_status_hint)

    def abort(self) -> None:
        """Ends the connection immediately."""
        if self._transport is not None:
            self._transport.abort()

    def _wait(self) -> None:
        """Starts the idle time anew."""
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(self._port.idle, self.abort)

    def _read(self) -> None:
        while self._transport is not None and not self._transport.is_closing():
            event = self._parser.next_event()
            if isinstance(event, h11.Request):
                self._request, self._body = event, 0
            elif isinstance(event, h11.Data):
                self._body += len(event.data)
                if self._body > MOST_BYTES:
                    self._refuse(413)
                    return
            elif isinstance(event, h11.EndOfMessage) and self._request is not None:
                self._send(self._request.method.decode("ascii"), self._answered(self._request))
                if self._parser.our_state is h11.MUST_CLOSE:
                    self._transport.close()
                    return
                self._parser.start_next_cycle()
            else:  # more bytes are needed, or the client has closed
                return

    def _answered(self, request: h11.Request) -> HttpAnswer:
        method, target = request.method.decode("ascii"), urlsplit(request.target.decode("ascii", "replace"))
        if method not in {"GET", "HEAD"}:
            return HttpAnswer(405, TEXT, b"only GET is answered\n")
        pairs = parse_qsl(target.query, keep_blank_values=True)
        try:
            return self._port.answer(HttpRequest(method, unquote(target.path), dict(reversed(pairs))))
        except Exception:
            logger.exception("a defect of this program: %s", target.path)
            return HttpAnswer(500, TEXT, b"the answer could not be made; the log of the server says why\n")

    def _refuse(self, status: int) -> None:
        """Answers a request that is malformed or too long, and closes."""
        if self._parser.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self._send("GET", HttpAnswer(status, TEXT, b"the request is malformed or too long\n"), closes=True)
        if self._transport is not None:
            self._transport.close()

    def _send(self, method: str, answer: HttpAnswer, closes: bool = False) -> None:
        headers = [
            ("Content-Type", answer.content_type),
            ("Content-Length", str(len(answer.body))),
            ("Cache-Control", "no-store"),
            *([("Connection", "close")] if closes else []),
        ]
        sent = self._parser.send(h11.Response(status_code=answer.status, headers=headers)) or b""
        if method != "HEAD":
            sent += self._parser.send(h11.Data(data=answer.body)) or b""
        sent += self._parser.send(h11.EndOfMessage()) or b""
        if self._transport is not None:
            self._transport.write(sent)
