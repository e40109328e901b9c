"""The election port: one connection with each peer, which carries votes in both directions.

Rules this module keeps:

- Between two servers one socket is kept, the one that the server with the larger id opened. The server with the smaller
  id connects, introduces itself, closes, and is called back.
- `spec.election.channel` decides which vote is queued, sent again on a new connection, or lost with an old one. A vote
  is in flight once the socket has it.
- A malformed frame ends the connection; a malformed vote is dropped. A peer must introduce itself soon, and the number
  of peers that have not is limited.
- When a server with a smaller id connects, it has lost its older socket, even if this side has not noticed. Only a new
  socket is kept: both sides have then connected simultaneously.
- The frames of one socket are handled a few in a turn of the event loop; it is not read while some wait. Servers that
  the configuration does not name are called back two at a time, so that their names do not keep others from being
  resolved.
- The log has the peers that cannot be reached, servers that no line names, and those at the address of another one.
  ZooKeeper logs each attempt to reach a peer, here it is a new reason.
- Every vote carries the configuration that was active when it was cast. The configuration in a vote that arrives goes
  to the protocol.

Source: `QuorumCnxManager` (`startConnection`, `handleConnection`, `SendWorker`, `RecvWorker`, `Listener`).
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable

from refimpl.jute import JuteError
from refimpl.listening import MAX_STRANGERS, Listener, ListenError, StreamTransport, bind, peer_of, stream_of
from refimpl.log_lines import RateLimit, Repeats, reason_of
from refimpl.membership import Membership
from refimpl.peers.quorum_socket import close_gracefully
from refimpl.tls import PeerStreams
from refimpl.wire.election import (
    Opening,
    OpeningDecoder,
    decode_notification,
    encode_notification,
    encode_opening,
    notifications,
)
from spec.config import Address, ServerLine
from spec.config.dynamic_files import versioned_text
from spec.election import channel as spec_channel
from spec.election.channel import Channel, Status
from spec.election.messages import Notification
from spec.quorum import Sid

logger = logging.getLogger("quorate.election")
logger.addFilter(RateLimit())

CONNECT_TIMEOUT = 5.0
"""Maximum time, in seconds, for a connection or an opening (`zookeeper.cnxTimeout`)."""
AT_ONCE = 20
"""Frames of one socket that are handled in one turn of the event loop."""
CROSSING = 1.0
"""Seconds until a socket no longer counts as new."""


class Link:
    """The connection with one peer, and the votes that wait for it."""

    def __init__(self, port: "ElectionSockets", sid: Sid) -> None:
        self.port, self.sid = port, sid
        self.channel = Channel()
        self.socket: ElectionSocket | None = None
        self._opened_at = 0.0
        self._connecting: asyncio.Task[None] | None = None

    def send(self, notification: Notification) -> None:
        """Queue the newest vote, and connect if necessary."""
        self.channel = spec_channel.send(self.channel, notification).channel
        if self.channel.status is Status.OPEN:
            self.drain()
        else:
            self.connect()

    def connect(self, addresses: tuple[Address, ...] = ()) -> None:
        """Open a connection unless one exists; `addresses` are the addresses that an unknown peer gave for itself."""
        if self.socket is None and (self._connecting is None or self._connecting.done()):
            self._connecting = asyncio.get_running_loop().create_task(self.port.open(self.sid, addresses))

    def call_back(self, addresses: tuple[Address, ...]) -> None:
        """Open a connection at the request of the peer, which has the smaller id."""
        if self.socket is not None and asyncio.get_running_loop().time() - self._opened_at > CROSSING:
            self._end_socket()
        self.connect(addresses)

    def opened(self, socket: "ElectionSocket") -> None:
        """Install a new socket; an older one ends."""
        self._end_socket()
        self.socket, self._opened_at = socket, asyncio.get_running_loop().time()
        self.channel = spec_channel.establish(spec_channel.reachable(self.channel))
        self.drain()

    def _end_socket(self) -> None:
        if self.socket is not None:
            older, self.socket = self.socket, None
            older.close()
            self.channel = spec_channel.peer_crashed(self.channel)

    def lost(self, socket: "ElectionSocket") -> None:
        """Handle the end of the socket; the last vote is sent again on the next one."""
        if self.socket is socket:
            self.socket = None
            self.channel = spec_channel.peer_crashed(self.channel)

    def drain(self) -> None:
        """Pass as many votes to the socket as it accepts."""
        while self.socket is not None and self.socket.is_ready:
            delivered = spec_channel.deliver(self.channel)
            if delivered is None:
                return
            self.channel = delivered.channel
            assert isinstance(delivered.message, Notification)
            self.socket.write(self.port.encoded(delivered.message))

    def close(self) -> None:
        """End the connection for good."""
        if self._connecting is not None:
            self._connecting.cancel()
        if self.socket is not None:
            self.socket.close()


class ElectionSocket(asyncio.Protocol):
    """One socket; `peer` is None until its opening has arrived."""

    def __init__(self, port: "ElectionSockets", peer: Sid | None) -> None:
        self.port, self.peer = port, peer
        self.is_ready = True
        self.has_complaint = False
        self.address = ""
        self.transport: StreamTransport | None = None
        self._opening = OpeningDecoder() if peer is None else None
        self._frames = notifications()
        self._waiting: deque[bytes] = deque()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the time within which an accepted peer must introduce itself."""
        self.transport = stream_of(transport)
        self.address = peer_of(self.transport)
        if self.peer is None:
            self.port.stranger_came(self)

    def data_received(self, data: bytes) -> None:
        """Decode the opening, then frames with a vote each."""
        try:
            if self._opening is not None:
                complete = self._opening.feed(data)
                if complete is None:
                    return
                self._opening = None
                opening, data = complete
                if not self.port.introduced(self, opening):
                    self.close()
                    return
            self._waiting.extend(self._frames.feed(data))
        except JuteError as error:
            logger.warning("election port: %s from %s; the connection ends", error, self.whose)
            self.close()
        self._work(is_reading=True)

    def _work(self, *, is_reading: bool = False) -> None:
        for _ in range(min(AT_ONCE, len(self._waiting))):
            self.port.received(self, self._waiting.popleft())
        if self._waiting:
            if is_reading and self.transport is not None and not self.transport.is_closing():
                self.transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._work)
        elif not is_reading and self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def connection_lost(self, _: Exception | None) -> None:
        """Handle the end of the connection; uvloop fails if its transport is used after this."""
        self.transport = None
        self.port.gone(self)

    def pause_writing(self) -> None:
        """Hold votes back, since the peer does not read; only the newest one waits."""
        self.is_ready = False

    def resume_writing(self) -> None:
        """Send votes again."""
        self.is_ready = True
        self.port.ready(self)

    def write(self, data: bytes) -> None:
        """Send bytes."""
        if self.transport is not None:
            self.transport.write(data)

    def close(self) -> None:
        """End the connection."""
        if self.transport is not None:
            close_gracefully(self.transport)

    @property
    def whose(self) -> str:
        """The peer, for a log line."""
        return f"{'a stranger' if self.peer is None else f'server {self.peer}'} at {self.address}"


class ElectionSockets:
    """The election port of one server; `deliver` is called with each vote that arrives."""

    def __init__(
        self,
        own: ServerLine,
        membership: Membership,
        deliver: Callable[[Sid, Notification], None],
        streams: PeerStreams,
        *,
        reads_views: bool = True,
    ) -> None:
        self._own, self._membership, self._deliver, self._reads_views = own, membership, deliver, reads_views
        self._callbacks = asyncio.Semaphore(2)
        self._streams = streams
        self._opening = encode_opening(Opening(own.sid, _election_addresses(own)[:1]))
        self._links: dict[Sid, Link] = {}
        self._strangers: dict[ElectionSocket, asyncio.TimerHandle] = {}
        self._listening: list[Listener] = []
        self._repeats = Repeats(asyncio.get_running_loop().time)

    def listen(self) -> None:
        """Accept peers, on every address of this server's line. Raises ListenError."""
        for address in _election_addresses(self._own):
            try:
                bound = bind(address.host, address.port)
                self._listening.append(self._streams.serve(bound, lambda: ElectionSocket(self, None)))
            except (OSError, ValueError) as error:
                raise ListenError(f"cannot listen for the election at {address}: {reason_of(error)}") from None

    def close(self) -> None:
        """Stop listening, and end every connection."""
        for listener in self._listening:
            listener.close()
        for socket in tuple(self._strangers):
            socket.close()
        self.reset()

    def reset(self) -> None:
        """End the connections with all peers, and forget the votes that wait for them."""
        links = tuple(self._links.values())
        self._links.clear()
        for link in links:
            link.close()

    @property
    def _servers(self) -> dict[Sid, ServerLine]:
        return self._membership.servers

    def send(self, peer: Sid, notification: Notification) -> None:
        """Pass a notification to the connection with a peer."""
        self._link(peer).send(notification)

    def encoded(self, notification: Notification) -> bytes:
        """Encode a notification, with a configuration, which is always sent."""
        config = notification.config
        text = self._membership.first_text if config is None else versioned_text(config)
        return encode_notification(notification, text)

    async def open(self, sid: Sid, addresses: tuple[Address, ...]) -> None:
        """Connect to a peer; if it has a larger id, only to be called back."""
        server = self._servers.get(sid)
        async with self._callbacks if server is None else contextlib.nullcontext():
            for address in addresses if server is None else _election_addresses(server):
                if await self._open_at(sid, address):
                    return
        if server is None and sid in self._links and self._links[sid].socket is None:
            del self._links[sid]

    async def _open_at(self, sid: Sid, address: Address) -> bool:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                socket = await self._streams.connect(lambda: ElectionSocket(self, sid), address.host, address.port)
        except (OSError, TimeoutError, ValueError) as error:  # ValueError: an IDNA error of the host name
            reason = reason_of(error)
            if self._repeats.is_due((sid, address), reason):
                logger.warning("server %d cannot be reached at its election port %s: %s", sid, address, reason)
            return False
        if self._repeats.forget((sid, address)):
            logger.info("server %d is reached at its election port %s", sid, address)
        socket.write(self._opening)
        if sid > self._own.sid:
            socket.close()
        else:
            self._link(sid).opened(socket)
        return True

    # The callbacks of the sockets.

    def stranger_came(self, socket: ElectionSocket) -> None:
        """Handle the connection of an unknown peer; it is refused if there are too many."""
        if len(self._strangers) >= MAX_STRANGERS:
            self._refuse(socket, f"{MAX_STRANGERS} others have not said who they are either")
            return
        why = f"no opening within {CONNECT_TIMEOUT:g} s"
        self._strangers[socket] = asyncio.get_running_loop().call_later(CONNECT_TIMEOUT, self._refuse, socket, why)

    def _refuse(self, socket: ElectionSocket, why: str) -> None:
        logger.warning("election port: %s from %s; the connection ends", why, socket.whose)
        socket.close()

    def introduced(self, socket: ElectionSocket, opening: Opening) -> bool:
        """Handle the introduction of an unknown peer; return whether its socket is kept."""
        self._known(socket)
        strange = opening.sid not in self._servers and opening.sid not in self._links
        if opening.sid == self._own.sid:
            text = "election port: %s says that it is server %d, as this one is: two machines have this myid; refused"
            logger.warning(text, socket.whose, opening.sid)
            return False
        if strange and len(self._links) >= len(self._servers) + MAX_STRANGERS:
            logger.warning("election port: server %d at %s is refused: too many others", opening.sid, socket.address)
            return False
        self._warn_of(opening, socket)
        if opening.sid < self._own.sid:
            self._link(opening.sid).call_back(opening.addresses)
            return False
        socket.peer = opening.sid
        self._link(opening.sid).opened(socket)
        return True

    def _warn_of(self, opening: Opening, socket: ElectionSocket) -> None:
        sid, places = opening.sid, ", ".join(map(str, opening.addresses))
        owners = [s for s, line in self._servers.items() if {*opening.addresses} & {*_election_addresses(line)}]
        if sid not in self._servers:
            fact = f"is not in this server's configuration, which names {', '.join(map(str, sorted(self._servers)))}"
        elif owners and sid not in owners:
            fact = f"says that it is at {places}, where server {owners[0]} should be: is its myid that of another one?"
        else:
            return
        if self._repeats.is_due(sid, fact):
            logger.warning("election port: server %d, connected from %s, %s", sid, socket.address, fact)

    def received(self, socket: ElectionSocket, frame: bytes) -> None:
        """Handle a frame: a vote, or a malformed message, which is dropped."""
        assert socket.peer is not None
        try:
            notification = decode_notification(frame, reads_view=self._reads_views)
        except JuteError as error:
            if not socket.has_complaint:  # one line for each connection
                socket.has_complaint = True
                logger.warning("election port: %s from %s; such messages are dropped", error, socket.whose)
            return
        self._deliver(socket.peer, notification)

    def ready(self, socket: ElectionSocket) -> None:
        """Send the queued votes to a socket that accepts bytes again."""
        if socket.peer is not None:
            self._link(socket.peer).drain()

    def gone(self, socket: ElectionSocket) -> None:
        """Handle the end of a socket."""
        self._known(socket)
        if socket.peer is None or socket.peer not in self._links:
            return
        link = self._links[socket.peer]
        link.lost(socket)
        if link.socket is None and socket.peer not in self._servers:
            del self._links[socket.peer]

    def _known(self, socket: ElectionSocket) -> None:
        handle = self._strangers.pop(socket, None)
        if handle is not None:
            handle.cancel()

    def _link(self, sid: Sid) -> Link:
        return self._links.setdefault(sid, Link(self, sid))


def _election_addresses(server: ServerLine) -> tuple[Address, ...]:
    return tuple(Address(address.host, address.election_port) for address in server.addresses)
