"""The transport of one client: its output buffer, flow control, and the end of the connection.

Rules:

- The packets of one turn of the event loop leave in one write, in the order of their creation.
- A refused connection leaves one line in the log, under a rate limit.
- The unread bytes of a client are bounded, and those of all clients. A client that does not read gets no further
  answers (`full`). Watch events arrive without a request, so a client whose unread bytes exceed the bound is
  disconnected, and the one with the most unread bytes if those of all do. ZooKeeper 3.9.5 bounds neither:
  `NIOServerCnxn` queues every event, and the server ends in OutOfMemoryError.

Source: `NIOServerCnxn.sendBuffer`, `handleWrite`, `close`; `NettyServerCnxn`.
"""

import asyncio
import enum
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from refimpl.clients.settings import ClientSettings
from refimpl.clients.statistics import ConnectionStatistics, ServerStatistics
from refimpl.listening import StreamTransport, UnreadOutput, stream_of
from refimpl.log_lines import RateLimit
from spec.tree.requests import SessionId

logger = logging.getLogger("quorate.clients")
logger.addFilter(RateLimit())

MAX_BATCH = 256 * 1024
"""Bytes of answers for one client in one turn; the next answer waits until these are written."""


class Phase(enum.Enum):
    """The state of a connection."""

    FRESH = "no ConnectRequest has arrived"
    PRESENTED = "the session is being created or renewed"
    SERVING = "the client has a session"
    ENDED = "closed, or closing as soon as the output is written"


class ChannelOwner(Protocol):
    """The client port, as a channel sees it."""

    settings: ClientSettings
    statistics: ServerStatistics
    write_queue: "WriteQueue"
    unread_output: "UnreadOutput[Channel]"

    def linger(self, number: int) -> None:
        """Give the client of a finished connection time to close it."""

    def release_after(self, seconds: float, channel: "Channel") -> None:
        """Release a channel after a time; it may have ended by then."""


class Channel(asyncio.Protocol, ABC):
    """The transport half of a connection; its subclass `Connection` handles requests."""

    def __init__(self, owner: ChannelOwner, number: int, address: str, port: int) -> None:
        self._owner = owner
        self.number = number
        self.phase = Phase.FRESH
        self.address, self.port = address, port
        self.session: SessionId = 0
        self.statistics = ConnectionStatistics()
        self._transport: StreamTransport | None = None
        self._out: list[bytes] = []
        self._unsent = 0
        self._unwritable = self._paused = self._held = False

    # The requests, handled by the subclass.

    @abstractmethod
    def work(self) -> None:
        """Resume the handling of requests."""

    @abstractmethod
    def drop(self) -> None:
        """Discard all pending requests."""

    @property
    @abstractmethod
    def stopped(self) -> bool:
        """Whether requests or answers are pending."""

    # The callbacks of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open, after its TLS handshake; the client port may be closed by then."""
        self._transport = stream_of(transport)
        if self.phase is Phase.ENDED:
            self._transport.abort()

    def pause_writing(self) -> None:
        """The client does not read: answers stop until it does."""
        self._unwritable = True

    def resume_writing(self) -> None:
        """The client reads again."""
        self._unwritable = False
        self._owner.unread_output.forget(self)
        self.work()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """The connection has ended."""
        self.phase = Phase.ENDED
        self._transport = None
        self._out.clear()
        self._owner.unread_output.forget(self)
        self.drop()

    # Bytes out.

    def send(self, data: bytes) -> None:
        """Queue a packet, which leaves at the end of this turn of the event loop."""
        if self.phase is Phase.ENDED:
            return
        if not self._out:
            self._owner.write_queue.add(self)
        self._out.append(data)
        self._unsent += len(data)
        self.statistics.sent += 1
        self._owner.statistics.sent += 1

    def flush(self) -> None:
        """Hand the queued packets to the transport, and resume requests that waited for it."""
        if not self._out or self._transport is None:
            return
        data = b"".join(self._out)
        self._out.clear()
        self._unsent = 0
        self._transport.write(data)
        if self._unwritable and self.phase is not Phase.ENDED:
            # The slowest client beyond the bound of all has to go, or else this one.
            slowest = self._owner.unread_output.slowest_with(self)
            if slowest is None and self.unread() > self._owner.settings.max_unsent:
                slowest = self
            if slowest is not None:
                logger.warning("%s: disconnected: it does not read its answers", slowest)
                slowest.abort()
        if self._paused or self.stopped:
            self.work()

    def full(self) -> bool:
        """Whether further answers wait until the client reads, or until a hold ends."""
        return self._unwritable or self._held or self._unsent > MAX_BATCH

    def hold(self, seconds: float) -> None:
        """Make all further answers wait for a time."""
        self._held = True
        self._owner.release_after(seconds, self)

    def release(self) -> None:
        """End a hold."""
        self._held = False
        if self.phase is not Phase.ENDED:
            self.work()

    def unread(self) -> int:
        """The number of bytes that the client has not read."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    # Flow control and closing.

    @property
    def is_held(self) -> bool:
        """Whether its answers wait for the end of a hold."""
        return self._held

    @property
    def is_open(self) -> bool:
        """Whether the connection has a transport: since its TLS handshake, until its end."""
        return self._transport is not None

    @property
    def remote(self) -> str:
        """The address and the port of the client; an address of IPv6 has brackets."""
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"

    @property
    def is_secure(self) -> bool:
        """Whether the connection uses TLS."""
        return self._transport is not None and self._transport.get_extra_info("ssl_object") is not None

    def interest(self) -> int:
        """The interest set of the connection, as `cons` shows it: 1 for reading, 4 for writing."""
        reading = not self._paused and self.phase in (Phase.PRESENTED, Phase.SERVING)
        return int(reading) | (4 if self.unread() else 0)

    def read_on(self, wanted: bool) -> None:
        """Resume or pause reading from the client."""
        if self._transport is None or wanted is not self._paused or self._transport.is_closing():
            return
        self._paused = not wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def finish(self, reason: str) -> None:
        """End the connection so that the client can read the last answer.

        A socket that is closed with unread input resets the connection, and the client may lose output. The client
        therefore gets time to close first; its further input is discarded.
        """
        if self.phase is Phase.ENDED:
            return
        self._leave(reason)
        if self._transport is None or not self._transport.can_write_eof():
            self._close()
            return
        self._transport.write_eof()
        self.read_on(True)
        self._owner.linger(self.number)

    def refuse(self, reason: str) -> None:
        """End the connection of a client that sent something invalid, and log the reason."""
        if self.phase is not Phase.ENDED:
            logger.warning("%s: disconnected: %s", self, reason)
        self.end(reason)

    def end(self, reason: str) -> None:
        """End the connection after all output is written."""
        if self.phase is not Phase.ENDED:
            self._leave(reason)
        self._close()

    def abort(self) -> None:
        """End the connection immediately."""
        if self.phase is not Phase.ENDED:
            self._leave("aborted")
        if self._transport is not None:
            self._transport.abort()

    def _leave(self, reason: str) -> None:
        logger.debug("%s: closed: %s", self, reason)
        self.phase = Phase.ENDED
        self.drop()
        self.flush()

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def __str__(self) -> str:
        return f"/{self.address}:{self.port}, session 0x{self.session % (1 << 64):x}"


class WriteQueue:
    """The channels with queued packets; `call_soon` runs a function at the end of this turn of the event loop."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], None]) -> None:
        self._call_soon = call_soon
        self._channels: list[Channel] = []

    def add(self, channel: Channel) -> None:
        """Add a channel, which is flushed at the end of this turn."""
        if not self._channels:
            self._call_soon(self._flush)
        self._channels.append(channel)

    def _flush(self) -> None:
        channels = tuple(self._channels)
        self._channels.clear()
        for channel in channels:
            channel.flush()
