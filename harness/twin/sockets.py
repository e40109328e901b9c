"""The sockets of the model's servers: their election ports and quorum ports, for the server under test.

Rules of this module:

- There is one thread: sockets are read in `pump`, which waits for at most the given time.
- A peer has at most one quorum connection with the server under test. A learner's connection is opened by the peer when
  its first packet is sent; a leader's by the server under test.
- A connection ends with all that was sent read by the other side.

Source: `QuorumCnxManager`, `Learner.connectToLeader`, `LearnerCnxAcceptor`.
"""

import contextlib
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.processes import LOOPBACK, ServerError
from harness.reproduce.proxies import split_packet
from harness.zoo_cfg import Member
from refimpl.wire.election import (
    Opening,
    OpeningDecoder,
    decode_notification,
    encode_notification,
    encode_opening,
    notifications,
)
from refimpl.wire.frames import Frames
from refimpl.wire.packet import HEAD, Packet, PacketDecoder, PacketType
from spec.config import Address
from spec.election.messages import Notification
from spec.election.vote import ServerState
from spec.quorum import Sid

CONNECT_SECONDS = 10.0


@dataclass
class QuorumWire:
    """A quorum connection of a peer; `arrived` are the packets that have been read from it."""

    socket: socket.socket
    received: bytes = b""
    arrived: list[Packet] = field(default_factory=list)
    ended: bool = False


@dataclass
class ElectionWire:
    """An election connection of a peer; `opening` decodes the first bytes of one that was accepted."""

    socket: socket.socket
    opening: OpeningDecoder | None = None
    frames: Frames = field(default_factory=notifications)


class PeerSockets:
    """The sockets of the peers of `tested`; `accepts` says whether a peer lets a learner connect now."""

    def __init__(self, tested: Member, peers: tuple[Member, ...]) -> None:
        self._tested = tested
        self._peers = {peer.sid: peer for peer in peers}
        self._selector = selectors.DefaultSelector()
        self._listeners: list[socket.socket] = []
        self._elections: dict[Sid, ElectionWire] = {}
        self.quorum: dict[Sid, QuorumWire] = {}
        self.accepts: Callable[[Sid], bool] = lambda _: True
        self.looking: Notification | None = None  # the last one of an election in progress
        for peer in peers:
            self._listen(peer.election_port, self._election_opened, peer.sid)
            self._listen(peer.quorum_port, self._quorum_opened, peer.sid)

    def _listen(self, port: int, opened: Callable[[Sid, socket.socket], None], sid: Sid) -> None:
        listener = socket.create_server((LOOPBACK, port))
        self._listeners.append(listener)

        def accept() -> None:
            accepted, _ = listener.accept()
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opened(sid, accepted)

        self._selector.register(listener, selectors.EVENT_READ, accept)

    def pump(self, seconds: float) -> None:
        """Read all arrived bytes; wait for the first ones for at most this time."""
        for key, _ in self._selector.select(seconds):
            key.data()

    def shut_down(self) -> None:
        """Close everything."""
        self.reset()
        for listener in self._listeners:
            self._selector.unregister(listener)
            listener.close()
        self._selector.close()

    def reset(self) -> None:
        """Forget the process of the server under test, which has ended."""
        for sid in list(self.quorum):
            self.end(sid)
        for sid in list(self._elections):
            self._end_election(sid)
        self.looking = None

    # --- elections

    def notify(self, sid: Sid, notification: Notification, config: str) -> None:
        """Send a notification of a peer, with a configuration, as soon as there is a connection.

        Raises ServerError without one.
        """
        deadline = time.monotonic() + CONNECT_SECONDS
        while sid not in self._elections or self._elections[sid].opening is not None:
            if time.monotonic() > deadline:
                raise ServerError(f"server {self._tested.sid} has no election connection with server {sid}")
            self.pump(0.05)
            if sid > self._tested.sid and sid not in self._elections:
                self._call_back(sid)  # the server under test may not try again for a long time
        with contextlib.suppress(OSError):
            self._elections[sid].socket.sendall(encode_notification(notification, config))

    def forget_election(self) -> None:
        """Wait until the server under test has ended its election object, with all of its connections.

        Raises ServerError if it does not. Source: `FastLeaderElection.shutdown`.
        """
        old, deadline = list(self._elections.items()), time.monotonic() + CONNECT_SECONDS
        while any(self._elections.get(sid) is wire for sid, wire in old):
            if time.monotonic() > deadline:
                raise ServerError(f"server {self._tested.sid} does not begin its election again")
            self.pump(0.01)
        self.looking = None

    def _election_opened(self, sid: Sid, accepted: socket.socket) -> None:
        self._install(sid, ElectionWire(accepted, OpeningDecoder()))

    def _install(self, sid: Sid, wire: ElectionWire) -> None:
        self._end_election(sid)
        self._elections[sid] = wire
        self._selector.register(wire.socket, selectors.EVENT_READ, lambda: self._read_election(sid, wire))

    def _end_election(self, sid: Sid) -> None:
        wire = self._elections.pop(sid, None)
        if wire is not None:
            self._selector.unregister(wire.socket)
            wire.socket.close()

    def _read_election(self, sid: Sid, wire: ElectionWire) -> None:
        received = _received(wire.socket)
        if not received:
            self._end_election(sid)
            return
        if wire.opening is not None:
            opened = wire.opening.feed(received)
            if opened is None:
                return
            wire.opening, received = None, opened[1]
            if self._tested.sid < sid:
                self._call_back(sid)  # the server with the larger id keeps only a connection that it opened itself
                return
        for frame in wire.frames.feed(received) if received else ():
            heard = decode_notification(frame)
            last = self.looking
            # A repeated notification of an earlier round may come later than the next round by another connection.
            if heard.state is ServerState.LOOKING and (last is None or heard.election_epoch >= last.election_epoch):
                self.looking = heard

    def _call_back(self, sid: Sid) -> None:
        peer = self._peers[sid]
        with contextlib.suppress(OSError):
            onward = socket.create_connection((LOOPBACK, self._tested.election_port), CONNECT_SECONDS)
            onward.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            onward.sendall(encode_opening(Opening(sid, (Address(LOOPBACK, peer.election_port),))))
            self._install(sid, ElectionWire(onward))

    # --- quorum connections

    def send(self, sid: Sid, data: bytes) -> None:
        """Send bytes from a peer; without a connection it connects. Raises ServerError without a listener."""
        if sid not in self.quorum:
            self._install_quorum(sid, self._connected())
        with contextlib.suppress(OSError):
            self.quorum[sid].socket.sendall(data)

    def _connected(self) -> socket.socket:
        deadline = time.monotonic() + CONNECT_SECONDS
        while True:
            try:
                onward = socket.create_connection((LOOPBACK, self._tested.quorum_port), CONNECT_SECONDS)
            except OSError as error:
                if time.monotonic() > deadline:
                    raise ServerError(f"server {self._tested.sid} does not listen for learners: {error}") from None
                self.pump(0.01)
                continue
            onward.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return onward

    def end(self, sid: Sid) -> None:
        """End the quorum connection of a peer, if there is one; the other side can still read all packets."""
        wire = self.quorum.pop(sid, None)
        if wire is not None:
            if not wire.ended:
                self._selector.unregister(wire.socket)
            with contextlib.suppress(OSError):
                wire.socket.shutdown(socket.SHUT_WR)
            wire.socket.close()

    def _quorum_opened(self, sid: Sid, accepted: socket.socket) -> None:
        if not self.accepts(sid):
            accepted.close()
            return
        self.end(sid)
        self._install_quorum(sid, accepted)

    def _install_quorum(self, sid: Sid, end: socket.socket) -> None:
        wire = self.quorum[sid] = QuorumWire(end)
        self._selector.register(end, selectors.EVENT_READ, lambda: self._read_quorum(wire))

    def _read_quorum(self, wire: QuorumWire) -> None:
        received = _received(wire.socket)
        if not received:
            wire.ended = True
            self._selector.unregister(wire.socket)
            return
        wire.received += received
        while (split := split_packet(wire.received)) is not None:
            packet, wire.received = split
            if packet.type == PacketType.SNAP:
                wire.arrived.append(Packet(packet.type, HEAD.unpack_from(packet.raw)[1]))
            else:
                wire.arrived += PacketDecoder().feed(packet.raw)


def _received(end: socket.socket) -> bytes:
    try:
        return end.recv(1 << 16)
    except OSError:
        return b""
