"""One connection on the quorum port: packets in order, and a snapshot among them; and its end.

Rules this module keeps:

- Packets are kept until the server can take them. While a peer has too many of them, or too many bytes, reading from it
  pauses.
- A snapshot is accepted only from a leader; otherwise any peer could fill the memory with one.
- Output behind a snapshot waits until the snapshot is written. The snapshot is written as fast as the peer reads it. A
  peer that does not read is disconnected when too much output waits.
- Output goes to the socket in one write, at the end of a turn of the event loop.
- At the end the peer may still read the pending output for a short time. Then the connection ends and the rest is
  dropped: a peer that never reads would otherwise hold the connection for ever.

Source: `LearnerHandler.run`, `sendPackets`; `Learner.readPacket`, `syncWithLeader`; `SO_LINGER` in
`QuorumCnxManager.setSockOpts` (off), `LearnerHandler.shutdown`.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from refimpl.disk.body import BodyReader
from refimpl.disk.files import DataError
from refimpl.jute import JuteError
from refimpl.listening import StreamTransport, peer_of, stream_of
from refimpl.tree import Tree
from refimpl.wire.packet import Packet, PacketDecoder, PacketType
from spec.quorum import Sid

LINGER = 5.0
"""Seconds for a peer to read the output that is pending when its connection is closed."""


def close_gracefully(transport: StreamTransport) -> None:
    """End a connection; immediately if the output buffer is empty."""
    if not transport.is_closing() and transport.get_write_buffer_size():
        asyncio.get_running_loop().call_later(LINGER, transport.abort)
    transport.close()


SIGNATURE = b"\x00\x00\x00\x0aBenWasHere"
"""The signature after a snapshot on the wire."""
MOST_WAITING, MOST_WAITING_BYTES = 1000, 16 << 20
"""The number of packets, and of bytes in them, that may wait for the server before reading from the peer pauses."""
MOST_UNSENT = 256 << 20
"""The number of bytes, without snapshots, that may wait for a peer to read them before its connection is closed."""


class Owner(Protocol):
    """The owner of a socket, which handles its events."""

    def opened(self, socket: "QuorumSocket") -> None:
        """Handle the opening of the connection."""

    def arrived(self, socket: "QuorumSocket") -> None:
        """Handle packets in its inbox."""

    def gone(self, socket: "QuorumSocket") -> None:
        """Handle the end of the connection."""

    def broken(self, socket: "QuorumSocket", why: str) -> None:
        """Handle malformed input, or too much waiting output; the connection is being closed."""


class QuorumSocket(asyncio.Protocol):
    """A connection; `peer` is None until a learner has introduced itself, and is set from the start for a leader.

    `began` and `last_heard` are times of the event loop.
    """

    def __init__(self, owner: Owner, peer: Sid | None, max_buffer: int) -> None:
        self.owner, self.peer = owner, peer
        self.inbox: deque[Packet] = deque()
        self.snapshot: Tree | None = None
        self.has_complaint = False
        self.began = self.last_heard = asyncio.get_running_loop().time()
        self._decoder = PacketDecoder(max_buffer, of_stranger=peer is None)
        self._leads = peer is not None
        self._snap: Packet | None = None
        self._reader: BodyReader | None = None
        self._tail: bytes | None = None
        self._transport: StreamTransport | None = None
        self.address = ""
        self._held = 0
        self._unsent: list[bytes] = []
        self._behind: deque[bytes] = deque()
        self._behind_size = 0
        self._stream: Iterator[bytes] | None = None
        self._may_write = True

    # Input.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Report the new connection to the owner."""
        self._transport = stream_of(transport)
        self.address = peer_of(self._transport)
        self.owner.opened(self)

    def data_received(self, data: bytes) -> None:
        """Decode packets, or a part of a snapshot."""
        self.last_heard = asyncio.get_running_loop().time()
        try:
            self._take(self._decoder.feed(data))
        except (JuteError, DataError) as error:
            self.close()
            self.owner.broken(self, str(error))
            return
        if self.inbox:
            self.owner.arrived(self)

    def _take(self, packets: list[Packet]) -> None:
        while True:
            for packet in packets:
                if packet.type == PacketType.SNAP:
                    if not self._leads or self.snapshot is not None:
                        raise DataError(
                            "a snapshot, which only a leader may send" if not self._leads else "a second snapshot"
                        )
                    self.snapshot = Tree(())
                    self._reader = BodyReader(self.snapshot, packet.zxid)
                    self._snap = packet
                else:
                    self.inbox.append(packet)
                    self._held += len(packet.data or b"")
            if self._has_enough() and self._transport is not None:
                self._transport.pause_reading()
            rest = self._rest_of_snapshot()
            if rest is None:
                return
            packets = self._decoder.resume(rest)

    def _has_enough(self) -> bool:
        if not self.inbox:
            self._held = 0
        if len(self.inbox) > MOST_WAITING:
            return True
        if self._held > MOST_WAITING_BYTES:  # counted since the inbox was empty, so some of them may be handled
            self._held = sum(len(packet.data or b"") for packet in self.inbox)
        return self._held > MOST_WAITING_BYTES

    def _rest_of_snapshot(self) -> bytes | None:
        if self._reader is None:
            return None
        data = self._decoder.take()
        self._tail = self._reader.feed(data) if self._tail is None else self._tail + data
        if self._tail is None or len(self._tail) < len(SIGNATURE):
            return None
        if not self._tail.startswith(SIGNATURE) or self._snap is None:
            raise DataError("a snapshot does not end with its signature, BenWasHere")
        rest = self._tail[len(SIGNATURE) :]
        self.inbox.append(self._snap)
        self._snap = self._reader = self._tail = None
        return rest

    def drained(self) -> None:
        """Resume reading if the server has taken enough packets."""
        if self._transport is not None and not self._has_enough() and not self._transport.is_closing():
            self._transport.resume_reading()

    @property
    def is_open(self) -> bool:
        """Whether the connection is open."""
        return self._transport is not None

    def connection_lost(self, _: Exception | None) -> None:
        """Handle the end of the connection; uvloop fails if its transport is used after this."""
        self._transport = None
        self._unsent.clear()
        self._end_stream()
        self.owner.gone(self)

    # Output.

    def write(self, data: bytes) -> None:
        """Send bytes, after all earlier output; does nothing if the connection has ended."""
        if self._transport is None:
            return
        if self._stream is not None:
            self._behind.append(data)
            self._behind_size += len(data)
            if self._behind_size > MOST_UNSENT:
                self._cut_off()
            return
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self.flush)
        self._unsent.append(data)

    def flush(self) -> None:
        """Pass the collected output to the socket."""
        if self._transport is None or not self._unsent:
            return
        self._transport.write(b"".join(self._unsent))
        self._unsent.clear()
        if self._stream is None and self._transport.get_write_buffer_size() > MOST_UNSENT:
            self._cut_off()

    def _cut_off(self) -> None:
        self._end_stream()
        if self._transport is not None:
            self._transport.abort()
        self.owner.broken(self, f"more than {MOST_UNSENT} bytes wait to be read by it")

    def _end_stream(self) -> None:
        self._stream, self._behind_size = None, 0
        self._behind.clear()

    def stream(self, chunks: Iterator[bytes]) -> None:
        """Send a snapshot, piece by piece; all later output follows it."""
        self.flush()
        self._stream = chunks
        self._pump()

    def _pump(self) -> None:
        """Write one piece of a snapshot, if the peer keeps up, then return to the event loop."""
        if self._stream is None or self._transport is None or not self._may_write:
            return
        chunk = next(self._stream, None)
        if chunk is not None:
            self._transport.write(chunk)
            asyncio.get_running_loop().call_soon(self._pump)
            return
        self._transport.write(SIGNATURE)
        behind = tuple(self._behind)
        self._end_stream()
        for data in behind:
            self.write(data)

    def pause_writing(self) -> None:
        """Pause the snapshot, since the peer reads slowly."""
        self._may_write = False

    def resume_writing(self) -> None:
        """Resume the snapshot, since the peer has caught up."""
        self._may_write = True
        self._pump()

    def close(self) -> None:
        """End the connection, after the pending output; a snapshot in progress stops."""
        self._end_stream()
        if self._transport is not None:
            self.flush()
            close_gracefully(self._transport)
