"""The common part of both ends of the quorum port: packets are read in order, and wait where they must.

Rules this module keeps:

- Every packet becomes an event of the server. One that is impossible now stays where it is, with all behind it, until
  something else has happened.
- A packet that cannot be read, or that this side never gets, ends the connection; an unknown type is passed over.

Source: `LearnerHandler.run`, `Learner.readPacket`.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from refimpl.jute import JuteError
from refimpl.peers.quorum_socket import QuorumSocket
from refimpl.rate_limit import RateLimit
from refimpl.wire import quorum as wire
from refimpl.wire.packet import Packet
from refimpl.wire.request import BadRequestError

if TYPE_CHECKING:
    from refimpl.node import Node

logger = logging.getLogger("quorate.quorum")
logger.addFilter(RateLimit())


READ_FIRST = 0.01
"""Seconds between the end of half a tick and the check for silent peers."""


class Side(ABC):
    """One end of the quorum port: a leader's, or a learner's."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.loop = asyncio.get_running_loop()
        self.waiting: set[QuorumSocket] = set()
        self._look_again: asyncio.TimerHandle | None = None

    # The difference between the ends.

    @abstractmethod
    def opened(self, found: QuorumSocket) -> None:
        """There is a connection."""

    @abstractmethod
    def gone(self, found: QuorumSocket) -> None:
        """A connection has ended."""

    @abstractmethod
    def take(self, found: QuorumSocket, message: wire.QuorumMessage) -> bool:
        """Makes an event of a message; False while it is impossible."""

    @abstractmethod
    def refuse(self, found: QuorumSocket, error: BadRequestError) -> bool:
        """Handles a REQUEST that cannot be read; False while that is impossible."""

    @abstractmethod
    def look(self) -> None:
        """Half a tick is over: the check for silent peers."""

    # Reading.

    def socket(self, peer: int | None) -> QuorumSocket:
        """A new end of a connection."""
        return QuorumSocket(self, peer, self.node.settings.jute_maxbuffer)

    def arrived(self, found: QuorumSocket) -> None:
        """Packets have come."""
        self.node.submit(lambda: self.read(found))

    def read(self, found: QuorumSocket) -> None:
        """Handles the packets that have come, as far as possible now."""
        self.waiting.discard(found)
        while found.inbox:
            if not self._take(found, found.inbox[0]):
                self.waiting.add(found)
                break
            if found.inbox:  # else the connection was dropped, and all that it had
                found.inbox.popleft()
        found.drained()

    def retry(self) -> None:
        """Offers the waiting packets again."""
        for found in tuple(self.waiting):
            self.read(found)

    def _take(self, found: QuorumSocket, packet: Packet) -> bool:
        try:
            message = wire.decode_packet(packet)
        except BadRequestError as error:
            return self.refuse(found, error)
        except wire.UnknownPacketError as error:
            if found.peer is None:
                return self.drop(found, str(error))
            logger.warning("quorum port: %s", error)
            return True
        except JuteError as error:
            return self.drop(found, str(error))
        return self.take(found, message)

    def drop(self, found: QuorumSocket, why: str) -> bool:
        """Ends a connection, with all that has come by it. Always True: the packet is dealt with."""
        self.broken(found, why)
        found.inbox.clear()
        found.close()
        return True

    def broken(self, found: QuorumSocket, why: str) -> None:
        """A peer sent malformed bytes, or does not read; the connection is being closed."""
        whose = "a peer that has not said who it is" if found.peer is None else f"server {found.peer}"
        logger.warning("quorum port: %s: %s; the connection ends", whose, why)

    # Time.

    def begin(self) -> None:
        """The server has this role from now on."""
        self._look_again = self.loop.call_later(self.node.settings.tick_time / 2000, self._tick)

    def end(self) -> None:
        """The role is over."""
        self.waiting.clear()
        if self._look_again is not None:
            self._look_again.cancel()
            self._look_again = None

    def _tick(self) -> None:
        self._look_again = self.loop.call_later(self.node.settings.tick_time / 2000, self._tick)
        # Later: after a pause of this process the packets of its peers wait to be read.
        self.loop.call_later(READ_FIRST, self.look)

    def limit(self, synced: bool) -> float:
        """Seconds of silence that are allowed: syncLimit once a learner is brought up to date, initLimit before."""
        return (self.node.settings.sync_time if synced else self.node.settings.init_time) / 1000
