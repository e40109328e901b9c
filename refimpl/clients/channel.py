"""The way to one client: what it is sent, when it is read from, and how the connection ends.

Rules this module keeps:

- What is sent in one turn of the event loop leaves in one write, in the order in which it was made.
- A connection that is refused leaves one line in the log, under a rate limit.
- What a client has not read is bounded: who does not read is told no more (`full`), and who still has too much
  unread, since events are not asked for, is disconnected.

Source: `NIOServerCnxn.sendBuffer`, `handleWrite`, `close`; `NettyServerCnxn`.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, cast

from refimpl.clients.statistics import ConnectionStatistics
from refimpl.rate_limit import RateLimit
from spec.tree.requests import SessionId

if TYPE_CHECKING:
    from refimpl.clients.server import Clients

logger = logging.getLogger("quorate.clients")
logger.addFilter(RateLimit())

MAX_BATCH = 256 * 1024
"""Bytes after which a client is sent what there is before more is made for it."""


class Phase(enum.Enum):
    """How far a connection has come."""

    FRESH = "nothing is known of the client"
    PRESENTED = "it waits for its session"
    SERVING = "it has a session"
    ENDED = "it is closed, or is when all is written"


class Channel(asyncio.Protocol, ABC):
    """The transport's side of a connection; `Connection` is the other one."""

    def __init__(self, clients: Clients, number: int) -> None:
        self.clients = clients
        self.number = number
        self.phase = Phase.FRESH
        self.address, self.port = "", 0
        self.descriptor = -1
        self.session: SessionId = 0
        self.statistics = ConnectionStatistics()
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._unsent = 0
        self._unwritable = self._paused = False

    # What the other side does.

    @abstractmethod
    def work(self) -> None:
        """Goes on with what was stopped."""

    @abstractmethod
    def drop(self) -> None:
        """Forgets what is not done yet."""

    @property
    @abstractmethod
    def stopped(self) -> bool:
        """Whether there is something to go on with."""

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername") or ("", 0)
        self.address, self.port = peer[0], peer[1]
        opened = transport.get_extra_info("socket")
        self.descriptor = -1 if opened is None else opened.fileno()

    def pause_writing(self) -> None:
        """The client does not read: it is told no more until it does."""
        self._unwritable = True

    def resume_writing(self) -> None:
        """The client has read."""
        self._unwritable = False
        self.work()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """The connection is over."""
        self.phase = Phase.ENDED
        self._transport = None
        self._out.clear()
        self.drop()

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
        """Gives the transport what is to be sent, and goes on with what waited for that."""
        if not self._out or self._transport is None:
            return
        data = b"".join(self._out)
        self._out.clear()
        self._unsent = 0
        self._transport.write(data)
        if self._unwritable and self.unread() > self.clients.settings.max_unsent:
            logger.warning("%s: disconnected: it does not read what it is sent", self)
            self.abort()
        elif self._paused or self.stopped:
            self.work()

    def full(self) -> bool:
        """Whether the client has to read before it is told more."""
        return self._unwritable or self._unsent > MAX_BATCH

    def unread(self) -> int:
        """How many bytes the client has not taken yet."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    # Reading, and the end.

    def interest(self) -> int:
        """What the connection waits for, as `cons` shows it: 1 to read, 4 to write."""
        reading = not self._paused and self.phase in (Phase.PRESENTED, Phase.SERVING)
        return int(reading) | (4 if self.unread() else 0)

    def read_on(self, wanted: bool) -> None:
        """Reads from the client, or does not."""
        if self._transport is None or wanted is not self._paused or self._transport.is_closing():
            return
        self._paused = not wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

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
        self.read_on(True)
        self.clients.linger(self.number)

    def refuse(self, reason: str) -> None:
        """Ends the connection for what its client has sent, with a line in the log."""
        if self.phase is not Phase.ENDED:
            logger.warning("%s: disconnected: %s", self, reason)
        self.end(reason)

    def end(self, reason: str) -> None:
        """Ends the connection when all is written that was to be sent."""
        if self.phase is not Phase.ENDED:
            self._leave(reason)
        self._close()

    def abort(self) -> None:
        """Ends the connection at once."""
        if self.phase is not Phase.ENDED:
            self._leave("aborted")
        if self._transport is not None:
            self._transport.abort()

    def _leave(self, reason: str) -> None:
        """The client is sent what there is, and served no more."""
        logger.debug("%s: closed: %s", self, reason)
        self.phase = Phase.ENDED
        self.drop()
        self.flush()

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def __str__(self) -> str:
        return f"/{self.address}:{self.port}, session 0x{self.session % (1 << 64):x}"
