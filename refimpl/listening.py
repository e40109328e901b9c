"""Listening sockets, and bounds on what the peers of one port may cost together.

Each accepted connection is checked before it costs more than one file descriptor.

Rules:

- The receiver of an accepted socket decides in the same call, so at most one refused socket is open at a time. The
  servers of asyncio create a protocol for each socket first, and on a TLS port they call it only after the handshake.
- A turn of the event loop accepts at most `ACCEPTS` connections of each socket; a server of asyncio accepts as many as
  its backlog. The others wait in the kernel, where they cost no descriptor of this process.
- Without a free descriptor a port pauses for a second.
- `SmallShare` bounds the time that work for strangers takes, `UnreadOutput` the bytes that wait to be read.

Source: `NIOServerCnxnFactory.AcceptThread.doAccept`, `pauseAccept`.
"""

import asyncio
import contextlib
import errno
import logging
import socket
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

from refimpl.system import system

logger = logging.getLogger("quorate.listening")

ACCEPTS = 8
"""Connections that one listening socket accepts in one turn of the event loop."""
MAX_STRANGERS = 64
"""The maximum number of connections per port from peers that are unknown or have not introduced themselves."""
PAUSES = 3
"""The pause after a piece of work of `SmallShare`, as a multiple of its time."""
PAUSE = 1.0
"""Seconds without accepting after the system has refused a socket."""
_BACKLOG = 128
"""Connections that wait in the kernel."""

Accepted: TypeAlias = Callable[[socket.socket, tuple[Any, ...]], None]
"""Receives a socket, which it owns, and the address of the peer."""


class StreamTransport(Protocol):
    """The transport of a connection, as this package uses it; that of uvloop is no subclass of `asyncio.Transport`."""

    def write(self, data: bytes, /) -> None:
        """Queue bytes for the peer."""

    def can_write_eof(self) -> bool:
        """Whether `write_eof` is possible; it is not with TLS."""

    def write_eof(self) -> None:
        """Close the direction to the peer, after the queued bytes."""

    def get_write_buffer_size(self) -> int:
        """The number of queued bytes."""

    def pause_reading(self) -> None:
        """Stop reading from the peer."""

    def resume_reading(self) -> None:
        """Read from the peer again."""

    def get_extra_info(self, name: str, /) -> object:
        """Information about the connection; None if there is none of this name."""

    def is_closing(self) -> bool:
        """Whether the connection is closed or being closed."""

    def close(self) -> None:
        """Close the connection, after the queued bytes."""

    def abort(self) -> None:
        """Close the connection immediately."""


def stream_of(transport: asyncio.BaseTransport) -> StreamTransport:
    """The transport of a stream, as `asyncio.Protocol.connection_made` receives it."""
    return cast(StreamTransport, transport)


class SmallShare:
    """Work that anyone can cause: one piece at a time, in order, and never more than a quarter of the time."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._next: asyncio.TimerHandle | None = None
        self._free_at = 0.0

    def add(self, work: Callable[[], None]) -> None:
        """Do a piece of work in a later turn of the event loop."""
        self._waiting.append(work)
        if self._next is None:
            self._schedule()

    def _schedule(self) -> None:
        pause = max(0.0, self._free_at - system().monotonic())
        self._next = asyncio.get_running_loop().call_later(pause, self._run)

    def _run(self) -> None:
        began = system().monotonic()
        try:
            self._waiting.popleft()()
        finally:
            ended = system().monotonic()
            self._free_at, self._next = ended + PAUSES * (ended - began), None
            if self._waiting:
                self._schedule()


class OutputReader(Protocol):
    """A connection whose peer reads output."""

    def unread(self) -> int:
        """The number of bytes that the peer has not read."""


AnyReader = TypeVar("AnyReader", bound=OutputReader)


class UnreadOutput(Generic[AnyReader]):
    """The bytes that the peers of a port have not read: at most `most` bytes and the last output."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sizes: dict[AnyReader, int] = {}
        self._total = 0

    def slowest_with(self, reader: AnyReader) -> AnyReader | None:
        """The connection that must end, now that one has output: that with the most unread bytes if all have too many.

        It does not count any more.
        """
        self._count(reader)
        if self._total > self._most:
            for client in tuple(self._sizes):
                self._count(client)
        if self._total <= self._most:
            return None
        slowest = max(self._sizes, key=self._sizes.__getitem__)
        self.forget(slowest)
        return slowest

    def forget(self, reader: AnyReader) -> None:
        """Forget a connection that has ended."""
        self._total -= self._sizes.pop(reader, 0)

    def _count(self, reader: AnyReader) -> None:
        self.forget(reader)
        if size := reader.unread():
            self._sizes[reader] = size
            self._total += size


def peer_of(transport: StreamTransport) -> str:
    """The address of the other end, for a log line."""
    name = transport.get_extra_info("peername")
    return f"{name[0]}:{name[1]}" if isinstance(name, tuple) and len(name) > 1 else "an unknown address"


class ListenError(OSError):
    """A port cannot be opened; the message names the address and the reason."""


class Listener:
    """Bound sockets of one port, listening until `close`. It is made in the event loop's thread. Raises OSError."""

    def __init__(self, bound: Iterable[socket.socket], accepted: Accepted) -> None:
        self._loop = asyncio.get_running_loop()
        self._accepted = accepted
        self._sockets = tuple(bound)
        self._paused: dict[socket.socket, asyncio.TimerHandle] = {}
        try:
            for listening in self._sockets:
                listening.setblocking(False)
                listening.listen(_BACKLOG)
        except OSError:
            self.close()
            raise
        for listening in self._sockets:
            self._resume(listening)

    @property
    def port(self) -> int:
        """The number of the port."""
        number: int = self._sockets[0].getsockname()[1]
        return number

    def close(self) -> None:
        """Stop listening. Connections that were accepted are not affected."""
        for handle in self._paused.values():
            handle.cancel()
        for listening in self._sockets:
            self._loop.remove_reader(listening)
            listening.close()
        self._sockets = ()

    def _resume(self, listening: socket.socket) -> None:
        self._paused.pop(listening, None)
        self._loop.add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTS):
            if listening not in self._sockets:
                return  # the receiver of a connection has closed the port
            try:
                opened, peer = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                logger.warning("port %d: no connection is accepted for %g s: %s", self.port, PAUSE, error.strerror)
                self._loop.remove_reader(listening)
                self._paused[listening] = self._loop.call_later(PAUSE, self._resume, listening)
                return
            opened.setblocking(False)
            self._accepted(opened, peer)


def serve(bound: Iterable[socket.socket], protocol: Callable[[], asyncio.Protocol]) -> Listener:
    """Listen with a protocol for each connection, as `create_server` does. Raises OSError.

    A connection that its protocol closes when it is made is closed three turns of the event loop later.
    """
    loop = asyncio.get_running_loop()
    opening: set[asyncio.Task[Any]] = set()

    def accepted(opened: socket.socket, _peer: tuple[Any, ...]) -> None:
        task = loop.create_task(loop.connect_accepted_socket(protocol, opened))
        opening.add(task)
        task.add_done_callback(opening.discard)

    return Listener(bound, accepted)


def bind(host: str, port: int) -> list[socket.socket]:
    """Sockets at the addresses of a host that this machine has; an empty name means all interfaces.

    Raises OSError, and ValueError for a name that is not a host's.
    """
    # The protocol is explicit in each socket: asyncio sets TCP_NODELAY only there.
    infos = system().getaddrinfo(host or None, port, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE)
    missing = OSError(errno.EADDRNOTAVAIL, f"{host} has no address")
    sockets: list[socket.socket] = []
    with contextlib.ExitStack() as unfinished:
        for family, kind, protocol, _, address in dict.fromkeys(infos):
            try:
                bound = unfinished.enter_context(system().socket(family, kind, protocol))
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                bound.bind(address)
            except OSError as error:
                if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
                missing = error
            else:
                sockets.append(bound)
        if not sockets:
            raise missing
        unfinished.pop_all()
    return sockets
