"""The common part of both ends of the quorum port: packets are read in order, and wait when necessary.

Rules this module keeps:

- Every packet becomes an event of the server. One that is impossible now stays in the inbox, with all packets behind
  it, until another event has occurred.
- A packet that is malformed, or that this side never receives, ends the connection; an unknown type is skipped.

Source: `LearnerHandler.run`, `Learner.readPacket`.
"""

import asyncio
import logging
from abc import ABC, abstractmethod

from refimpl.jute import JuteError
from refimpl.log_lines import RateLimit
from refimpl.peers.ports import QuorumCore
from refimpl.peers.quorum_socket import QuorumSocket
from refimpl.wire import quorum as wire
from refimpl.wire.packet import Packet, PacketType
from refimpl.wire.request import BadRequestError
from spec.zab.events import Receive
from spec.zab.timeouts import TimeLimits

logger = logging.getLogger("quorate.quorum")
logger.addFilter(RateLimit())


TOGETHER = frozenset({PacketType.PROPOSAL, PacketType.ACK, PacketType.COMMIT, PacketType.INFORM})
"""The packets that are only an event of the server, so that many of them are handled in one step."""
AT_ONCE = 100
"""Packets of a connection, or groups of `TOGETHER`, that are handled in one turn of the event loop."""
READ_FIRST = 0.01
"""Seconds between the end of half a tick and the check for silent peers."""


class QuorumEndpoint(ABC):
    """One end of the quorum port: a leader's, or a learner's."""

    def __init__(self, core: QuorumCore) -> None:
        self._core = core
        self.loop = asyncio.get_running_loop()
        self.limits = TimeLimits(core.settings.init_time / 1000, core.settings.sync_time / 1000)
        self.waiting: dict[QuorumSocket, None] = {}
        self._look_again: asyncio.TimerHandle | None = None

    # The part that differs between the ends.

    @abstractmethod
    def opened(self, socket: QuorumSocket) -> None:
        """Handle a new connection."""

    @abstractmethod
    def gone(self, socket: QuorumSocket) -> None:
        """Handle the end of a connection."""

    @abstractmethod
    def take(self, socket: QuorumSocket, message: wire.QuorumMessage) -> bool:
        """Make an event of a message; return False while the event is impossible."""

    @abstractmethod
    def refuse(self, socket: QuorumSocket, error: BadRequestError) -> bool:
        """Handle an unreadable REQUEST; return False while that is impossible."""

    @abstractmethod
    def look(self) -> None:
        """Check for silent peers, after half a tick."""

    @abstractmethod
    def event_of(self, socket: QuorumSocket, packet: Packet) -> Receive | None:
        """Return the event of a packet of `TOGETHER`; None if it is more than an event here. Raises JuteError."""

    @abstractmethod
    def decode(self, packet: Packet) -> wire.QuorumMessage:
        """Convert a packet of the other end. Raises what `wire.decode_packet` raises."""

    # Reading.

    def socket(self, peer: int | None) -> QuorumSocket:
        """Return a new end of a connection."""
        return QuorumSocket(self, peer, self._core.settings.jute_maxbuffer)

    def arrived(self, socket: QuorumSocket) -> None:
        """Handle the arrival of packets."""
        self._core.submit(lambda: self.read(socket))

    def read(self, socket: QuorumSocket) -> None:
        """Handle the packets that have arrived, as far as possible now."""
        self.waiting.pop(socket, None)
        for _ in range(AT_ONCE):
            if not socket.inbox:
                break
            # As many of the oldest packets as can be handled together.
            events: list[Receive] = []
            for packet in socket.inbox:
                try:
                    event = self.event_of(socket, packet) if packet.type in TOGETHER else None
                except JuteError:
                    break  # it is reported when its turn comes
                if event is None:
                    break
                events.append(event)
            if events:
                count = self._core.run_all(events)
                for _ in range(min(count, len(socket.inbox))):  # a dropped connection has lost its inbox
                    socket.inbox.popleft()
                if count < len(events):
                    self.waiting[socket] = None
                    break
            elif not self._take(socket, socket.inbox[0]):
                self.waiting[socket] = None
                break
            elif socket.inbox:  # otherwise the connection was dropped, with its inbox
                socket.inbox.popleft()
        else:
            self.loop.call_soon(self.arrived, socket)
        socket.drained()

    def retry(self) -> None:
        """Offer the waiting packets again."""
        for socket in tuple(self.waiting):
            self.read(socket)

    def _take(self, socket: QuorumSocket, packet: Packet) -> bool:
        try:
            message = self.decode(packet)
        except BadRequestError as error:
            return self.refuse(socket, error)
        except wire.UnknownPacketError as error:
            if not socket.has_complaint:  # one line for each connection
                socket.has_complaint = True
                text = "quorum port: server %s at %s: %s; such packets are passed over"
                logger.warning(text, socket.peer, socket.address, error)
            return True
        except JuteError as error:
            return self.drop(socket, str(error))
        return self.take(socket, message)

    def drop(self, socket: QuorumSocket, why: str) -> bool:
        """End a connection and discard its packets. Always returns True: the packet is handled."""
        self.broken(socket, why)
        socket.inbox.clear()
        socket.close()
        return True

    def broken(self, socket: QuorumSocket, why: str) -> None:
        """Log that a peer sent malformed bytes, or does not read; the connection is being closed."""
        whose = "a stranger" if socket.peer is None else f"server {socket.peer}"
        logger.warning("quorum port: %s at %s: %s; the connection ends", whose, socket.address, why)

    # Time.

    def begin(self) -> None:
        """Start the role of this end."""
        self._look_again = self.loop.call_later(self._core.settings.tick_time / 2000, self._tick)

    def end(self) -> None:
        """End the role."""
        self.waiting.clear()
        if self._look_again is not None:
            self._look_again.cancel()
            self._look_again = None

    def _tick(self) -> None:
        self._look_again = self.loop.call_later(self._core.settings.tick_time / 2000, self._tick)
        # Later: after a pause of this process the packets of its peers have yet to be read.
        self.loop.call_later(READ_FIRST, self.look)
