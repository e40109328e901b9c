"""One end of a simulated TCP connection: the transport of a protocol.

Rules this module keeps:

- The bytes of one direction arrive in order. A read returns any number of the bytes that have arrived.
- Bytes over a cut link are held back, and sent when it works again.
- A machine answers packets for a connection that it does not know with a reset. One without power answers nothing.
- A socket that is closed with unread input resets its connection, as on Linux.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
from collections.abc import Callable
from typing import Any, Protocol

from simulation.world.loop import Process, SimulatedLoop

KERNEL_BUFFER = 64 << 10
"""Bytes that a connection takes before its sender has to wait."""


class Links(Protocol):
    """The network, as an end of a connection sees it."""

    loop: SimulatedLoop
    random: random.Random

    def is_cut(self, source: str, target: str) -> bool:
        """Whether packets of this link are held back."""

    def is_off(self, host: str) -> bool:
        """Whether a machine has no power."""

    def time_of(self, source: str, target: str) -> float:
        """A latency, in seconds."""

    def delivers(self, data: bytes) -> None:
        """Note bytes that arrive."""

    def forget(self, end: End) -> None:
        """Forget an end."""


class End(asyncio.Transport):
    """One end of a connection, which is its transport.

    `broken`: the other end is gone, or was reset, and this end may not know it yet.
    """

    def __init__(self, network: Links, process: Process, host: str, peer_host: str, name: tuple[str, int]) -> None:
        super().__init__()
        self.process, self.host, self.peer_host, self.name = process, host, peer_host, name
        self.peer: End | None = None
        self.broken = False
        self._network, self._loop = network, network.loop
        self._protocol: asyncio.Protocol | None = None
        self._next_arrival = 0.0
        self._held: list[bytes | None] = []
        self._in_flight = 0
        self._received = bytearray()
        self._ended = self._was_reset = False
        self._reading = self._notified = False
        self._closing = self._closed = self._sent_end = self._paused_writing = False

    @property
    def protocol(self) -> asyncio.Protocol | None:
        """The protocol, from `begin` until the connection has ended."""
        return self._protocol

    async def begin(self, protocol: asyncio.Protocol) -> None:
        """Connects the transport with its protocol; closes it if the task is cancelled meanwhile, as asyncio does."""
        self._protocol = protocol
        waiter = self._loop.create_future()
        self._loop.call_soon(protocol.connection_made, self)
        self._loop.call_soon(self.resume_reading)
        self._loop.call_soon(_wake, waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            self.close()
            raise

    # The network.

    def _send(self, data: bytes | None) -> None:
        """Sends bytes, or the end of the stream."""
        if self._held or self._network.is_cut(self.host, self.peer_host):
            self._held.append(data)
            return
        self._next_arrival = max(self._next_arrival, self._loop.now) + 1e-6
        arrival = max(self._next_arrival, self._loop.now + self._network.time_of(self.host, self.peer_host))
        self._next_arrival = arrival
        self._loop.outside(arrival - self._loop.now, self._deliver, data)

    def released(self) -> None:
        """The link works again."""
        packets, self._held = self._held, []
        for data in packets:
            self._send(data)

    def _deliver(self, data: bytes | None) -> None:
        peer = self.peer
        if self._network.is_off(self.peer_host):
            self._held.append(data)  # repeated until the machine is on, which then answers with a reset
            self._loop.outside(1.0, self.released)
            return
        if peer is None or peer._closed:
            if data is not None:
                self._loop.outside(self._network.time_of(self.peer_host, self.host), self.was_reset)
            return
        if data is None:
            peer._ended = True
        else:
            self._network.delivers(data)
            peer._received += data
        peer._notify()
        self._drained(len(data) if data is not None else 0)

    def _drained(self, size: int) -> None:
        if self.peer is not None and self.peer._received and not self.peer._reading and size:
            return  # the peer does not read: its buffer is full at some point
        self._in_flight = max(0, self._in_flight - size)
        if self._paused_writing and self.get_write_buffer_size() <= 16 << 10:
            self._paused_writing = False
            self._inside(self._resume_writing)
        if self._closing and not self._closed and not self.get_write_buffer_size():
            self._inside(self._finish, None)

    def _inside(self, callback: Callable[..., Any], *args: Any) -> None:
        if self.process.alive:
            self._loop.inside(self.process, callback, *args)

    def was_reset(self) -> None:
        """A reset has arrived."""
        if not self._closed:
            self.broken = self._was_reset = True
            self._received.clear()
            self._notify()

    def vanish(self, *, silent: bool) -> None:
        """The process of this end has ended; `silent`: the other end gets no packet."""
        if self._closed:
            return
        self._closed = True
        self._network.forget(self)
        if self.peer is not None and not silent:
            self.peer.broken = True
            if self._received:
                self._loop.outside(self._network.time_of(self.host, self.peer_host), self.peer.was_reset)
            else:
                self._send(None)

    # Reading.

    def _notify(self) -> None:
        if self._reading and not self._notified and not self._closed and self.process.alive:
            self._notified = True
            self._loop.inside(self.process, self._read)

    def _read(self) -> None:
        self._notified = False
        if self._closed or not self._reading or self._protocol is None:
            return
        if self._was_reset:
            self._finish(ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))
            return
        if self._received:
            size = len(self._received)
            if size > 1 and self._network.random.random() < 0.05:
                size = 1 + int(self._network.random.random() * (size - 1))
            data = bytes(self._received[:size])
            del self._received[:size]
            self._protocol.data_received(data)
            if self.peer is not None and self._reading:
                self.peer._acknowledged()
        if not self._received and self._ended:
            if not self._closing and not self._closed:
                self._protocol.eof_received()
                self.close()
        elif self._received:
            self._notify()

    def _acknowledged(self) -> None:
        """The peer has read: all that is not on its way has arrived."""
        if not self._closed and self._in_flight and self.peer is not None and not self.peer._received:
            self._in_flight = sum(len(packet) for packet in self._held if packet is not None)
            self._drained(0)

    def pause_reading(self) -> None:
        """Stops reading."""
        self._reading = False

    def resume_reading(self) -> None:
        """Reads again."""
        if not self._closing and not self._closed:
            self._reading = True
            if self._received or self._ended or self._was_reset:
                self._notify()

    # Writing.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends bytes."""
        if self._closed or self._sent_end or not data:
            return
        self._in_flight += len(data)
        self._send(bytes(data))
        if not self._paused_writing and self.get_write_buffer_size() > 64 << 10 and self._protocol is not None:
            self._paused_writing = True
            self._protocol.pause_writing()

    def _resume_writing(self) -> None:
        if self._protocol is not None and not self._closed and not self._paused_writing:
            self._protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        """The bytes that the kernel has not accepted."""
        return max(0, self._in_flight - KERNEL_BUFFER)

    def can_write_eof(self) -> bool:
        """Always."""
        return True

    def write_eof(self) -> None:
        """Ends the stream to the peer."""
        if not self._sent_end and not self._closed:
            self._sent_end = True
            self._send(None)

    def is_closing(self) -> bool:
        """Whether the connection is closed or being closed."""
        return self._closing or self._closed

    def close(self) -> None:
        """Closes the connection, after the bytes that wait."""
        if self._closing or self._closed:
            return
        self._closing, self._reading = True, False
        if not self.get_write_buffer_size():
            self._loop.call_soon(self._finish, None)

    def abort(self) -> None:
        """Closes the connection immediately."""
        if not self._closed:
            self._closing, self._reading = True, False
            self._loop.call_soon(self._finish, None)

    def _finish(self, error: Exception | None) -> None:
        if self._closed:
            return
        if self._sent_end:
            self._closed = True
            self._network.forget(self)
        else:
            self.vanish(silent=False)
        protocol, self._protocol = self._protocol, None
        self._closing = True
        if protocol is not None:
            protocol.connection_lost(error)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """The name of the peer."""
        return self.name if name == "peername" else default


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
