"""Proxies between real servers: quorum connections packet by packet, election connections as a whole.

Each server's `zoo.cfg` names proxies for the other servers' ports, so one listener belongs to one ordered pair.

Rules of this module:

- A quorum connection has a queue in each direction. A packet waits there until `release`, unless the network is open
  or `passes` lets its type through; those that the model does not have overtake waiting ones.
- A side that ends is not reported to the other side until the packets for that side are read, as on a network.
  A learner's side stays open even then, until `drop`.
- An election connection exists while its pair is allowed. The opening of a connection contains the address of the
  sender, which is replaced by the address of its proxy; otherwise the answer would bypass the proxy.
- Every listener is on a loopback address: 127.0.0.1 and a free port for each pair, or, with `hosts`, the address of the
  pair and the port of the real server, so that all servers may have one configuration with the same ports.
- `record` receives every packet and its fate.

Source: `Leader` and `Learner` (the quorum port), `QuorumCnxManager` (the election port).
"""

import contextlib
import itertools
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Protocol

from harness.processes import LOOPBACK, free_ports
from harness.zoo_cfg import Member
from refimpl.wire.election import Opening, OpeningDecoder, encode_opening
from refimpl.wire.packet import PacketType
from spec.config import Address
from spec.quorum import Sid

HEAD = struct.Struct(">iqi")
COUNT = struct.Struct(">i")
SNAPSHOT_END = b"\x00\x00\x00\x0aBenWasHere"
UNMODELLED = frozenset({PacketType.PING, PacketType.REVALIDATE})
"""The types about sessions alone, which the model does not have."""
FIRST_TO_LEARNERS = frozenset({PacketType.DIFF, PacketType.TRUNC, PacketType.SNAP})
CONNECT_SECONDS = 30.0
ABORT = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset


class Way(Enum):
    """A direction on a quorum connection."""

    UP = "up"  # learner to leader
    DOWN = "down"


class Fate(Enum):
    """The event of a packet at a proxy."""

    ARRIVED = "arrived"  # at the proxy
    RELEASED = "released"
    LOST = "lost"
    PASSED = "passed"  # for a `Tap`: ARRIVED and RELEASED together


@dataclass(frozen=True)
class WirePacket:
    """A packet as it was read: its type, its zxid as an unsigned number, and its bytes. A SNAP has its snapshot."""

    type: int
    zxid: int
    raw: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """The name of the type, as in ZooKeeper."""
        return PacketType(self.type).name if self.type in set(PacketType) else str(self.type)


Record = Callable[[Sid, Sid, "WirePacket", Fate], None]


class Tap(Protocol):
    """A listener at all quorum connections. A packet is reported before it is delivered."""

    def opened(self, link: "Link") -> None:
        """A connection exists."""

    def packet(self, link: "Link", way: Way, packet: "WirePacket", fate: "Fate") -> None:
        """A packet has met its fate. PASSED: it has arrived, and is delivered without a delay."""

    def closed(self, link: "Link") -> None:
        """A connection has ended."""


def split_packet(received: bytes) -> tuple[WirePacket, bytes] | None:
    """Split the first complete packet from the bytes received; None if it is incomplete."""
    if len(received) < HEAD.size:
        return None
    kind, zxid, length = HEAD.unpack_from(received)
    end = HEAD.size + max(length, 0)
    if len(received) < end + COUNT.size:
        return None
    (identities,) = COUNT.unpack_from(received, end)
    end += COUNT.size
    for _ in range(2 * max(identities, 0)):
        if len(received) < end + COUNT.size:
            return None
        end += COUNT.size + max(COUNT.unpack_from(received, end)[0], 0)
    if kind == PacketType.SNAP:
        mark = received.find(SNAPSHOT_END, end)
        if mark < 0:
            return None
        end = mark + len(SNAPSHOT_END)
    if len(received) < end:
        return None
    return WirePacket(kind, zxid & (1 << 64) - 1, received[:end]), received[end:]


class Link:
    """One quorum connection of a learner with a leader, through the proxy of their pair."""

    def __init__(self, network: "Network", learner: Sid, leader: Sid, up: socket.socket, down: socket.socket) -> None:
        self.learner, self.leader = learner, leader
        self.number = network.next_number()
        self.ended: set[Way] = set()  # the directions whose sender has closed
        self.dropped = False
        self.held: set[Way] = set()  # the directions that are held although the network is open
        self._network = network
        self._queues: dict[Way, deque[WirePacket]] = {way: deque() for way in Way}
        self._sockets = {Way.UP: up, Way.DOWN: down}  # the socket that a direction is read from
        self._lock = threading.RLock()
        if network.tap is not None:
            network.tap.opened(self)
        for way in Way:
            threading.Thread(target=self._pump, args=(way,), daemon=True).start()

    def waiting(self, way: Way) -> tuple[WirePacket, ...]:
        """The packets in flight in this direction, oldest first."""
        with self._lock:
            return tuple(self._queues[way])

    def release(self, way: Way) -> WirePacket:
        """Deliver the oldest packet of a direction. Raises IndexError if none is in flight."""
        with self._lock:
            packet = self._queues[way].popleft()
            self._tell(way, packet, Fate.RELEASED)
            self._deliver(way, packet)
            self._close_if_read(way)
            return packet

    def hold(self, way: Way) -> None:
        """Hold the packets of a direction from now on, except the unmodelled ones, whatever the network does."""
        with self._lock:
            self.held.add(way)

    def free(self, way: Way) -> None:
        """End `hold`, and deliver what waits."""
        with self._lock:
            self.held.discard(way)
            while self._queues[way]:
                self.release(way)

    def flush(self) -> None:
        """Deliver everything in flight; the network has been opened."""
        with self._lock:
            for way in Way:
                while self._queues[way]:
                    self.release(way)
                self._close_if_read(way)

    def drop(self) -> None:
        """End both sides with a reset; packets in flight are lost."""
        with self._lock:
            if self.dropped:
                return
            self.dropped = True
            for way in Way:
                for packet in self._queues[way]:
                    self._tell(way, packet, Fate.LOST)
                    self._note(way, packet, Fate.LOST)
                self._queues[way].clear()
            if self._network.tap is not None:
                self._network.tap.closed(self)
            for end in self._sockets.values():
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
                    end.shutdown(socket.SHUT_RDWR)
                end.close()

    def _pump(self, way: Way) -> None:
        received = b""
        with contextlib.suppress(OSError):
            while part := self._sockets[way].recv(1 << 16):
                received += part
                while (split := split_packet(received)) is not None:
                    packet, received = split
                    self._arrive(way, packet)
        with self._lock:
            self.ended.add(way)
            self._close_if_read(way)

    def _arrive(self, way: Way, packet: WirePacket) -> None:
        with self._lock:
            if self.dropped:
                return
            self._note(way, packet, Fate.ARRIVED)
            queue = self._queues[way]
            if packet.type in UNMODELLED and (queue or way in self.held):
                if not any(waiting.type in FIRST_TO_LEARNERS for waiting in queue):
                    self._deliver(way, packet)
            elif not queue and way not in self.held and self._network.passes(packet):
                self._tell(way, packet, Fate.PASSED)
                self._deliver(way, packet)
            else:
                self._tell(way, packet, Fate.ARRIVED)
                queue.append(packet)

    def _tell(self, way: Way, packet: WirePacket, fate: Fate) -> None:
        if self._network.tap is not None and packet.type != PacketType.PING:
            self._network.tap.packet(self, way, packet, fate)

    def _deliver(self, way: Way, packet: WirePacket) -> None:
        self._note(way, packet, Fate.RELEASED)
        back = Way.DOWN if way is Way.UP else Way.UP
        with contextlib.suppress(OSError):
            self._sockets[back].sendall(packet.raw)

    def _close_if_read(self, way: Way) -> None:
        """Report the end of a sender: immediately on an open network; otherwise only to a leader that has read all."""
        if way in self.ended and not self._queues[way] and (self._network.is_open or way is Way.UP):
            self.drop()

    def _note(self, way: Way, packet: WirePacket, fate: Fate) -> None:
        ends = (self.learner, self.leader) if way is Way.UP else (self.leader, self.learner)
        self._network.record(*ends, packet, fate)


class Network:
    """All proxies of an ensemble. `quorum_ports` and `election_ports` are the real ports of the servers."""

    def __init__(
        self,
        quorum_ports: dict[Sid, int],
        election_ports: dict[Sid, int],
        record: Record,
        hosts: Mapping[tuple[Sid, Sid], str] | None = None,
    ) -> None:
        self.record = record
        self.tap: Tap | None = None
        self.connect_seconds = CONNECT_SECONDS
        self.is_open = True
        self._numbers = itertools.count(1)
        self.transparent: frozenset[int] = frozenset()  # types that are not held on a closed network
        self.links: list[Link] = []
        self.refusals = dict.fromkeys(quorum_ports, 0)  # refused election connections, by the server that tries
        self._quorum_ports, self._election_ports = quorum_ports, election_ports
        self._listeners: list[socket.socket] = []
        self._elections: dict[frozenset[Sid], list[socket.socket]] = {}
        self._severed: set[frozenset[Sid]] = set()  # pairs without election connections
        self._cut: set[frozenset[Sid]] = set()  # pairs without any connection
        self._mutes: dict[frozenset[Sid], Sid] = {}  # pairs of which one server is not heard by the other
        pairs = [(learner, leader) for learner in quorum_ports for leader in quorum_ports if learner != leader]
        self._hosts = dict.fromkeys(pairs, LOOPBACK) if hosts is None else hosts
        if hosts is None:
            ports = iter(free_ports(2 * len(pairs)))
            self.quorum_proxies = {pair: next(ports) for pair in pairs}
            self.election_proxies = {pair: next(ports) for pair in pairs}
        else:
            self.quorum_proxies = {pair: quorum_ports[pair[1]] for pair in pairs}
            self.election_proxies = {pair: election_ports[pair[1]] for pair in pairs}
        for pair in pairs:
            self._listen(self.quorum_proxies[pair], self._connect_quorum, pair)
            self._listen(self.election_proxies[pair], self._connect_election, pair)

    def next_number(self) -> int:
        """The number of the next connection, from 1."""
        return next(self._numbers)

    def passes(self, packet: WirePacket) -> bool:
        """Whether a packet is not held."""
        return self.is_open or packet.type in self.transparent

    def open(self) -> None:
        """Hold nothing from now on, allow all connections, and deliver everything in flight."""
        self.is_open = True
        self._cut.clear()
        self._severed.clear()
        for link in list(self.links):
            link.flush()

    def close(self, transparent: frozenset[int]) -> None:
        """Hold packets from now on, except those of these types."""
        self.is_open, self.transparent = False, transparent

    def link(self, one: Sid, other: Sid) -> Link | None:
        """The present quorum connection of two servers; the newest, if an old one is not dropped yet."""
        ends = {one, other}
        links = [link for link in self.links if {link.learner, link.leader} == ends and not link.dropped]
        return links[-1] if links else None

    def cut(self, one: Sid, other: Sid) -> None:
        """End all connections of two servers, and refuse new ones until `heal`."""
        self._cut.add(frozenset((one, other)))
        self.sever_election(one, other)
        for link in list(self.links):
            if {link.learner, link.leader} == {one, other}:
                link.drop()

    def heal(self) -> None:
        """Allow the connections that `cut` refuses."""
        self._cut.clear()

    def sever_election(self, one: Sid, other: Sid) -> None:
        """End the election connections of two servers, and refuse new ones until `join_election`."""
        pair = frozenset((one, other))
        self._severed.add(pair)
        for election in self._elections.pop(pair, ()):
            with contextlib.suppress(OSError):
                election.shutdown(socket.SHUT_RDWR)
            election.close()

    def join_election(self, one: Sid, other: Sid, mute: Sid | None = None) -> None:
        """Allow election connections of two servers, unless they are cut. The notifications of `mute` are lost."""
        pair = frozenset((one, other))
        self._severed.discard(pair)
        self._mutes.pop(pair, None)
        if mute is not None:
            self._mutes[pair] = mute

    def behind_proxies(self, reader: Sid, member: Member) -> Member:
        """A member as a server sees it: by the proxies between them, unless it is that server."""
        if member.sid == reader:
            return member
        pair = (reader, member.sid)
        return replace(member, quorum_port=self.quorum_proxies[pair], election_port=self.election_proxies[pair])

    def shut_down(self) -> None:
        """Close every listener and connection."""
        for listener in self._listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # a thread that waits in accept() does not notice close()
            listener.close()
        for link in list(self.links):
            link.drop()
        for pair in list(self._elections):
            self.sever_election(*pair)

    def _listen(self, port: int, connect: Callable[[Sid, Sid, socket.socket], None], pair: tuple[Sid, Sid]) -> None:
        listener = socket.create_server((self._hosts[pair], port))
        self._listeners.append(listener)

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    accepted, _ = listener.accept()
                    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=connect, args=(*pair, accepted), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()

    def _connect_quorum(self, learner: Sid, leader: Sid, accepted: socket.socket) -> None:
        """Connect a learner with a leader, which may not listen yet."""
        deadline = time.monotonic() + self.connect_seconds
        while time.monotonic() < deadline and frozenset((learner, leader)) not in self._cut:
            with contextlib.suppress(OSError):
                onward = socket.create_connection((LOOPBACK, self._quorum_ports[leader]), CONNECT_SECONDS)
                onward.settimeout(None)
                onward.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.links.append(Link(self, learner, leader, accepted, onward))
                return
            time.sleep(0.02)
        accepted.close()

    def _connect_election(self, source: Sid, destination: Sid, accepted: socket.socket) -> None:
        pair = frozenset((source, destination))
        try:
            if pair in self._severed or pair in self._cut:
                raise ConnectionRefusedError
            onward = socket.create_connection((LOOPBACK, self._election_ports[destination]), CONNECT_SECONDS)
        except OSError:
            accepted.close()
            self.refusals[source] += 1
            return
        onward.settimeout(None)
        self._elections.setdefault(pair, []).extend((accepted, onward))
        decoder, opened, mute = OpeningDecoder(), None, self._mutes.get(pair)
        with contextlib.suppress(OSError):
            while opened is None:
                opened = decoder.feed(accepted.recv(1 << 16) or _ended())
            opening, rest = opened
            back = (destination, source)
            proxy = Address(self._hosts[back], self.election_proxies[back])
            onward.sendall(encode_opening(Opening(opening.sid, (proxy,))) + (b"" if mute == source else rest))
            threading.Thread(target=_copy, args=(onward, accepted, mute == destination), daemon=True).start()
        _copy(accepted, onward, mute == source)


def _ended() -> bytes:
    raise ConnectionResetError


def _copy(source: socket.socket, destination: socket.socket, mute: bool) -> None:
    with contextlib.suppress(OSError):
        while part := source.recv(1 << 16):
            if not mute:
                destination.sendall(part)
    for end in (source, destination):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
