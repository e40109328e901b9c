"""The client port: it owns the connections, their sessions, and the queue of their output; and the listening sockets,
with the way of a connection from `accept` to its transport.

Rules:

- The core and this module call each other (`Backend`) in one thread, the event loop.
- A transaction first fires its watches and then answers its client, so that an event precedes any answer that shows
  the change.
- A session has at most one connection here, the newest. Its connection ends when its closeSession is applied.
- A server that does not serve answers four-letter words and refuses sessions.
- A connection counts towards all limits when it is accepted, before a TLS handshake. A refused one is closed in the
  same call, so that the number of refused sockets never uses up the descriptors of the server.

Source: `ServerCnxnFactory`, `NIOServerCnxnFactory`, `NettyServerCnxnFactory`; `FinalRequestProcessor.applyRequest`;
`ZooKeeperServer.createSession`, `reopenSession`; `NIOServerCnxnFactory.AcceptThread`, `NettyServerCnxnFactory` (TLS).
"""

import asyncio
import logging
import socket
import ssl
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

from refimpl.clients.backend import Backend
from refimpl.clients.channel import Channel, Phase, WriteQueue
from refimpl.clients.connection import Connection, Reply, Turns
from refimpl.clients.final_processor import FinalProcessor
from refimpl.clients.four_letter_words import FourLetterWords
from refimpl.clients.settings import ClientSettings
from refimpl.clients.statistics import OPERATION_OF, ServerStatistics
from refimpl.listening import Listener, ListenError, UnreadOutput, bind
from refimpl.system import system
from spec.config.server_line import Address
from spec.service.connection import PendingRequest, Route
from spec.service.expiry import AttendedTime, ExpiryQueue
from spec.service.handshake import ReadOnlyRules
from spec.service.sessions import first_session_id, next_session_id
from spec.tree.apply import TxnResult
from spec.tree.options import DEFAULTS, Options
from spec.tree.replies import Code
from spec.tree.requests import CreateSession, Request, SessionId
from spec.tree.txns import Change, CloseSessionTxn, CreateSessionTxn

logger = logging.getLogger("quorate.clients")


class Admission(Protocol):
    """The client port, as the acceptor sees it."""

    settings: ClientSettings

    def admit(self, address: str, port: int, descriptor: int = -1) -> Connection | None:
        """A new connection, if it is within the limits."""

    def forget(self, connection: Connection) -> None:
        """Remove a connection that has ended before it was open."""


class Acceptor:
    """The sockets of one client port, listening until `close`."""

    def __init__(self, admission: Admission) -> None:
        self._admission, self._settings = admission, admission.settings
        self._loop = asyncio.get_running_loop()
        self._listeners: list[Listener] = []
        self._opening: set[asyncio.Task[None]] = set()

    def listen(self) -> None:
        """Open the ports. Raises ListenError, and TlsError for a TLS file that cannot be used."""
        settings = self._settings
        context = settings.tls.context() if settings.tls else None
        if settings.address is not None:
            self._listen(settings.address, None)
        if settings.secure_address is not None:
            self._listen(settings.secure_address, context)

    def close(self) -> None:
        """Close the ports, and the connections whose handshake is not complete."""
        for listener in self._listeners:
            listener.close()
        for opening in tuple(self._opening):
            opening.cancel()
        self._listeners.clear()

    def ports(self) -> tuple[int, ...]:
        """The open ports, in the order of the settings; a port of 0 in the settings has its real number here."""
        return tuple(listener.port for listener in self._listeners)

    def _listen(self, address: Address, context: ssl.SSLContext | None) -> None:
        try:
            listener = Listener(bind(address.host, address.port), partial(self._accepted, context))
        except OSError as error:
            why = error.strerror or str(error)
            raise ListenError(error.errno, f"cannot listen for clients at {address}: {why}") from None
        self._listeners.append(listener)

    def _accepted(self, context: ssl.SSLContext | None, opened: socket.socket, peer: tuple[Any, ...]) -> None:
        connection = self._admission.admit(peer[0], peer[1], opened.fileno())
        if connection is None:
            opened.close()
            return
        opening = self._loop.create_task(self._open(connection, opened, context))
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)

    async def _open(self, connection: Connection, opened: socket.socket, context: ssl.SSLContext | None) -> None:
        timeout = self._settings.connect_timeout / 1000 if context is not None else None
        make = partial(self._loop.connect_accepted_socket, lambda: connection, opened)
        try:
            await make(ssl=context, ssl_handshake_timeout=timeout)
        except ConnectionResetError:
            logger.debug("%s: closed by the client before it was open", connection)
        except OSError as error:
            logger.warning("%s: disconnected before it was open: %s", connection, error)
        finally:
            if not connection.is_open:
                self._admission.forget(connection)


_TICK = 1000
"""Milliseconds between two checks for silent connections."""
_LINGER = 2000
"""Milliseconds for a client to read its last answer."""


class ClientPort:
    """The client port of one server.

    `now` is the time of this turn of the event loop, in milliseconds. `in_process` counts the pending requests of all
    connections, and `bytes_in_process` the bytes in them. `first_reserved` is the lowest file descriptor that is kept
    from clients.
    """

    def __init__(
        self, settings: ClientSettings, options: Options = DEFAULTS, first_reserved: int = sys.maxsize
    ) -> None:
        self.settings = settings
        self.backend: Backend | None = None
        self.serving_since = 0  # by `System.monotonic_ms`; of no meaning without a backend
        self.statistics = ServerStatistics()
        self.processor = FinalProcessor(self.statistics, options, settings.auth, settings.max_watch_bytes)
        self.turns = Turns(self._call_soon)
        self.in_process = 0
        self.now = 0
        self.write_queue = WriteQueue(self._call_soon)
        self.unread_output: UnreadOutput[Channel] = UnreadOutput(settings.max_unsent_in_all)
        self.four_letter_words = FourLetterWords(self)
        self._first_reserved = first_reserved
        self._connections: dict[int, Connection] = {}
        self._count = 0
        self._of_address: Counter[str] = Counter()
        self._sessions: dict[SessionId, Connection] = {}
        self._next_session = first_session_id(settings.server_id, system().wall_ms())
        self._silent = ExpiryQueue(_TICK)
        self._time = AttendedTime(2 * _TICK, system().monotonic_ms())
        self.bytes_in_process = 0
        self._acceptor: Acceptor | None = None
        self._ticking: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    # Calls of the core.

    async def start(self) -> None:
        """Open the ports. Raises ListenError, and TlsError for a TLS file that cannot be used."""
        self._loop = asyncio.get_running_loop()
        self._acceptor = Acceptor(self)
        try:
            self._acceptor.listen()
        except ListenError:
            await self.close()
            raise
        self._tick()

    async def close(self) -> None:
        """Close the ports and all connections."""
        if self._ticking is not None:
            self._ticking.cancel()
        if self._acceptor is not None:
            self._acceptor.close()
        self.end()
        for connection in tuple(self._connections.values()):
            connection.abort()

    def ports(self) -> tuple[int, ...]:
        """The open ports, in the order of the settings; a port of 0 in the settings has its real number here."""
        return self._acceptor.ports() if self._acceptor is not None else ()

    def begin(self, backend: Backend) -> None:
        """The server begins to serve."""
        self.backend, self.serving_since = backend, system().monotonic_ms()

    def end(self) -> None:
        """The server stops serving: its connections end, so that clients look for another server."""
        self.backend = None
        for connection in tuple(self._connections.values()):
            if connection.phase is not Phase.FRESH:
                connection.end("this server does not serve any more")

    def applied(self, change: Change, applied: TxnResult) -> None:
        """The next transaction is applied to the tree; any server may have proposed it."""
        if applied.events:
            self.processor.fire(applied.events)
        connection = self._sessions.get(change.session)
        if connection is None:
            return
        self._turn()
        closes = type(change.record) is CloseSessionTxn
        if connection.phase is Phase.PRESENTED:
            if type(change.record) is CreateSessionTxn:
                connection.established_as(valid=True)
        else:
            connection.settled(change.cxid, Route.WRITE, applied.code, applied.reply, closes=closes)
        if closes:
            connection.session_closed()

    def synced(self, session: SessionId, cxid: int, code: Code = Code.OK) -> None:
        """A sync is complete, or refused with this code."""
        connection = self._sessions.get(session)
        if connection is not None:
            self._turn()
            connection.settled(cxid, Route.SYNC, code)

    def revalidated(self, session: SessionId, valid: bool) -> None:
        """The leader has answered whether a session is alive; if so, this server owns it now."""
        connection = self._sessions.get(session)
        if connection is not None and connection.phase is Phase.PRESENTED:
            connection.established_as(valid)

    # Calls of the connections (`ConnectionOwner`).

    @property
    def is_serving(self) -> bool:
        """Whether the server serves; otherwise it refuses sessions."""
        return self.backend is not None

    @property
    def last_zxid(self) -> int:
        """The zxid of the last transaction applied."""
        return self.backend.last_zxid if self.backend is not None else 0

    def admit(self, address: str, port: int, descriptor: int = -1) -> Connection | None:
        """A new connection, if it is within the limits: in all, per address, and of file descriptors."""
        self._count += 1
        connection = Connection(self, self._count, address, port)
        of_address, limits = self._of_address[address], self.settings
        if descriptor >= self._first_reserved:
            self.statistics.refused += 1
            logger.warning("%s is refused: the file descriptors that are left are kept for the server", connection)
            return None
        if 0 < limits.max_cnxns <= len(self._connections) or 0 < limits.max_client_cnxns <= of_address:
            self.statistics.refused += 1
            logger.warning("too many connections: %s is refused (it has %d)", connection, of_address)
            return None
        self._connections[connection.number] = connection
        self._of_address[address] += 1
        return connection

    def opened(self, connection: Connection) -> None:
        """A connection is open, after its TLS handshake: its time for a ConnectRequest begins."""
        self._turn()
        self._silent.update(connection.number, connection.timeout, self._time.at(self.now))

    def forget(self, connection: Connection) -> None:
        """Remove a connection and its watches; its session lives until it expires."""
        if self._connections.pop(connection.number, None) is None:
            return
        self._silent.remove(connection.number)
        self.processor.forget(connection)
        if self._sessions.get(connection.session) is connection:
            del self._sessions[connection.session]
        if not connection.is_held:
            self._forget_address(connection.address)

    def release_after(self, seconds: float, channel: Channel) -> None:
        """Release a connection after a time. One that ends earlier counts for its address until then."""
        assert self._loop is not None
        self._loop.call_later(seconds, self._release, channel)

    def _release(self, channel: Channel) -> None:
        channel.release()
        if channel.number not in self._connections:
            self._forget_address(channel.address)

    def _forget_address(self, address: str) -> None:
        self._of_address[address] -= 1
        if not self._of_address[address]:
            del self._of_address[address]

    def linger(self, number: int) -> None:
        """Give the client of a finished connection time to close it."""
        self._turn()
        self._silent.update(number, _LINGER, self._time.at(self.now))

    def heard(self, connection: Connection) -> None:
        """A client has sent bytes. They extend its session, but not the time for a ConnectRequest."""
        self._turn()
        if connection.phase is Phase.SERVING:
            self._silent.update(connection.number, connection.timeout, self._time.at(self.now))
            if self.backend is not None:
                self.backend.touch(connection.session, connection.timeout)

    def read_only(self, session: SessionId) -> ReadOnlyRules | None:
        """The rules for a client that presents this session, if the server has no quorum."""
        return self.backend.read_only(session) if self.backend is not None else None

    def open_session(self, connection: Connection) -> None:
        """Create a session for this connection."""
        assert self.backend is not None
        session, self._next_session = self._next_session, next_session_id(self._next_session)
        self._attach(connection, session)
        self.backend.write(Request(session, 0, CreateSession(connection.timeout)))

    def renew_session(self, connection: Connection, session: SessionId) -> None:
        """Attach an existing session to this connection, and end its older connection here."""
        assert self.backend is not None
        older = self._sessions.get(session)
        if older is not None:
            older.end("its session has another connection")
        self._attach(connection, session)
        self.backend.revalidate(session, connection.timeout)

    def forward(self, connection: Connection, pending: PendingRequest) -> None:
        """Pass a write or a sync to the core; a read behind it waits in the connection."""
        assert self.backend is not None
        if pending.route is Route.SYNC:
            self.backend.sync(connection.session, pending.xid)
        elif pending.route is Route.WRITE and pending.record is not None:
            self.backend.write(Request(connection.session, pending.xid, pending.record, pending.auth))

    def answer(self, connection: Connection, pending: PendingRequest) -> Reply:
        """Answer any other request from the current tree."""
        return self.processor.answer(connection, pending, self.backend.tree if self.backend is not None else None)

    def answered(self, connection: Connection, pending: PendingRequest, zxid: int, arrived: int) -> None:
        """Count an answered request."""
        time = self.now
        operation = OPERATION_OF.get(type(pending.record), "NA")
        connection.statistics.answered(operation, pending.xid, zxid, arrived, time)
        self.statistics.latency.add(time - arrived)

    def answer_word(self, connection: Connection, opening: bytes) -> bool:
        """Whether the first bytes are a four-letter word, which is then answered before the connection ends."""
        return self.four_letter_words.answer(connection, opening)

    # Queries of the four-letter words.

    @property
    def connections(self) -> tuple[Connection, ...]:
        """All connections, oldest first."""
        return tuple(self._connections.values())

    def connected_by_expiry(self) -> Iterator[tuple[int, tuple[Connection, ...]]]:
        """The connections by the time at which each one times out, on the clock of `now` without pauses."""
        for when, numbers in self._silent.by_time():
            yield when, tuple(self._connections[number] for number in numbers)

    # Internals.

    def _attach(self, connection: Connection, session: SessionId) -> None:
        connection.session = session
        self._sessions[session] = connection
        self._silent.update(connection.number, connection.timeout, self._time.at(self.now))

    def _turn(self) -> None:
        self.now = system().monotonic_ms()

    def _call_soon(self, function: Callable[[], None]) -> None:
        assert self._loop is not None
        self._loop.call_soon(function)

    def _tick(self) -> None:
        assert self._loop is not None
        self._ticking = self._loop.call_later(_TICK / 1000, self._tick)
        self._turn()
        for number in self._silent.expired(self._time.tick(self.now)):
            connection = self._connections[number]
            if connection.phase is not Phase.ENDED:
                logger.info("%s: disconnected: not heard for %d ms", connection, connection.timeout)
            connection.abort()
