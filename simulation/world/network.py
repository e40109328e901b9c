"""A simulated network of TCP connections: latency, cuts, resets, and the ends of machines.

Rules this module keeps:

- Connections are independent of each other.
- A cut link holds bytes back, as retransmission does; they arrive after the cut ends. An attempt to connect over a cut
  link is repeated, and fails after `CONNECT_TIMEOUT`.
- The kernel of a machine closes the connections of a process that ends; a machine without power does not.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
import zlib
from collections import deque
from collections.abc import Callable
from typing import Any

from simulation.world.loop import Process, SimulatedLoop
from simulation.world.transport import End

CONNECT_TIMEOUT = 60.0
LONGEST_LATENCY = 5.0
"""Seconds that a packet takes at most, so that none is on its way long after a slow link is healed."""
_BACKLOG = 128


class Network:
    """All links and connections. `delay` multiplies the latency of a link; `slow_share` of all packets are slow."""

    def __init__(self, loop: SimulatedLoop, seed: str) -> None:
        self.loop = loop
        loop.network = self
        self.random = random.Random(f"{seed}/network")
        self.latency = 0.0002 + 0.002 * self.random.random()
        self.slow_share = self.random.choice((0.0, 0.01, 0.05))
        self.digest = 0
        self.delay: dict[tuple[str, str], float] = {}
        self._cuts: dict[tuple[str, str], int] = {}
        self._listening: dict[tuple[str, int], ListeningSocket] = {}
        self._ends: dict[End, None] = {}
        self._running: dict[str, Process] = {}
        self._off: set[str] = set()
        self._ports = 40_000

    # Faults.

    def cut(self, source: str, target: str) -> None:
        """Holds all packets from one machine to another back."""
        self._cuts[source, target] = self._cuts.get((source, target), 0) + 1

    def heal(self, source: str, target: str) -> None:
        """Ends one cut."""
        cuts = self._cuts.get((source, target), 0) - 1
        if cuts > 0:
            self._cuts[source, target] = cuts
            return
        self._cuts.pop((source, target), None)
        for end in tuple(self._ends):
            if (end.host, end.peer_host) == (source, target):
                end.released()

    def is_cut(self, source: str, target: str) -> bool:
        """Whether packets of this link are held back."""
        return (source, target) in self._cuts

    def reset(self, one: str, other: str) -> int:
        """Resets all connections between two machines; returns their number."""
        ends = [end for end in self._ends if end.host == one and end.peer_host == other]
        for end in ends:
            end.was_reset()
            if end.peer is not None:
                end.peer.was_reset()
        return len(ends)

    # Machines.

    def started(self, host: str, process: Process) -> None:
        """A machine is on, and runs a process."""
        self._off.discard(host)
        self._running[host] = process

    def ended(self, host: str, process: Process, *, silent: bool) -> None:
        """A process has ended; `silent`: the machine has lost its power."""
        self._running.pop(host, None)
        if silent:
            self._off.add(host)
        for key, listening in tuple(self._listening.items()):
            if listening.process is process:
                del self._listening[key]
                listening.refuse_all(silent=silent)
        for end in tuple(self._ends):
            if end.process is process:
                end.vanish(silent=silent)

    def is_off(self, host: str) -> bool:
        """Whether a machine has no power."""
        return host in self._off

    # Packets.

    def time_of(self, source: str, target: str) -> float:
        """A latency, in seconds."""
        chance = self.random.random
        seconds = self.latency * (0.5 + chance())
        if self.slow_share and chance() < self.slow_share:
            seconds += 0.2 * chance()
        return min(LONGEST_LATENCY, seconds * self.delay.get((source, target), 1.0))

    # Connections.

    def listen(self, socket: ListeningSocket) -> None:
        """Registers a listening socket. Raises OSError if its address is in use."""
        if socket.address in self._listening:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        self._listening[socket.address] = socket

    def stop_listening(self, socket: ListeningSocket) -> None:
        """Forgets a listening socket."""
        if self._listening.get(socket.address) is socket:
            del self._listening[socket.address]

    def is_taken(self, address: tuple[str, int]) -> bool:
        """Whether an address is in use."""
        return address in self._listening

    async def connect(
        self, process: Process, factory: Callable[[], asyncio.Protocol], host: str, port: int
    ) -> tuple[End, asyncio.Protocol]:
        """Connects a process to an address. Raises OSError."""
        source = next((name for name, candidate in self._running.items() if candidate is process), process.name)
        future: asyncio.Future[End] = self.loop.create_future()
        attempt = _Attempt(self, process, source, (host, port), future)
        attempt.send()
        try:
            end = await future
        except asyncio.CancelledError:
            attempt.cancel()
            raise
        protocol = factory()
        await end.begin(protocol)
        return end, protocol

    def make_pair(self, process: Process, source: str, listening: ListeningSocket) -> tuple[End, End]:
        """Makes the two ends of a connection."""
        self._ports += 1
        near = End(self, process, source, listening.address[0], (source, self._ports))
        far = End(self, listening.process, listening.address[0], source, (source, self._ports))
        near.peer, far.peer = far, near
        self._ends[near] = self._ends[far] = None
        return near, far

    def listener(self, address: tuple[str, int]) -> ListeningSocket | None:
        """The listening socket at an address."""
        return self._listening.get(address)

    def delivers(self, data: bytes) -> None:
        """Notes bytes that arrive."""
        self.digest = zlib.crc32(data, self.digest ^ int(self.loop.now * 1e6))

    def forget(self, end: End) -> None:
        """Forgets an end."""
        self._ends.pop(end, None)

    def ends_of(self, process: Process) -> list[End]:
        """The ends of connections that a process has."""
        return [end for end in self._ends if end.process is process]


class _Attempt:
    """An attempt to connect: a SYN, repeated while the link is cut or the machine is off."""

    def __init__(
        self, network: Network, process: Process, source: str, address: tuple[str, int], future: asyncio.Future[End]
    ) -> None:
        self._network, self._process, self._source = network, process, source
        self._address, self._future = address, future
        self._deadline = network.loop.now + CONNECT_TIMEOUT
        self._again = 1.0
        self._end: End | None = None

    def send(self) -> None:
        network, target = self._network, self._address[0]
        if self._future.cancelled() or not self._process.alive:
            return
        if network.is_cut(self._source, target) or network.is_cut(target, self._source) or network.is_off(target):
            if network.loop.now + self._again > self._deadline:
                self._fail(errno.ETIMEDOUT)
            else:
                network.loop.outside(self._again, self.send)
                self._again *= 2
            return
        network.loop.outside(network.time_of(self._source, target), self._arrive)

    def _arrive(self) -> None:
        network, target = self._network, self._address[0]
        if network.is_off(target):
            network.loop.outside(self._again, self.send)
            return
        listening, delay = network.listener(self._address), network.time_of(target, self._source)
        if listening is None or not listening.is_listening:
            network.loop.outside(delay, self._fail, errno.ECONNREFUSED)
            return
        near, far = network.make_pair(self._process, self._source, listening)
        self._end = near
        listening.arrived(far)
        network.loop.outside(delay, self._succeed, near)

    def _succeed(self, end: End) -> None:
        if not self._process.alive or self._future.done():
            end.vanish(silent=False)
        elif end.broken:
            self._fail(errno.ECONNRESET)
        else:
            self._network.loop.inside(self._process, _settle, self._future, end)

    def _fail(self, number: int) -> None:
        if self._process.alive:
            self._network.loop.inside(self._process, _settle, self._future, OSError(number, os.strerror(number)))

    def cancel(self) -> None:
        if self._end is not None:
            self._end.vanish(silent=False)


def _settle(future: asyncio.Future[End], result: End | OSError) -> None:
    if future.done():
        if isinstance(result, End):
            result.vanish(silent=False)
    elif isinstance(result, End):
        future.set_result(result)
    else:
        future.set_exception(result)


class ListeningSocket:
    """A socket that is bound, and then listens; it has the methods that `refimpl.listening` uses."""

    def __init__(self, network: Network, process: Process, host: str) -> None:
        self._network, self.process = network, process
        self.address = (host, 0)
        self.is_listening = False
        self._waiting: deque[End] = deque()
        self._reader: tuple[Callable[..., Any], tuple[Any, ...]] | None = None
        self._notified = False

    def __enter__(self) -> ListeningSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def setsockopt(self, *_: Any) -> None:
        """Options have no effect."""

    def setblocking(self, _: bool) -> None:
        """Simulated sockets never block."""

    def bind(self, address: tuple[str, int]) -> None:
        """Binds the socket. Raises OSError if the address is in use."""
        if self._network.is_taken(address):
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        self.address = address

    def listen(self, _: int) -> None:
        """Starts to listen."""
        self._network.listen(self)
        self.is_listening = True

    def getsockname(self) -> tuple[str, int]:
        """The address."""
        return self.address

    def close(self) -> None:
        """Stops listening; the connections that wait are reset."""
        self.is_listening = False
        self._network.stop_listening(self)
        self.refuse_all(silent=False)

    def refuse_all(self, *, silent: bool) -> None:
        """Ends the connections that were not accepted."""
        while self._waiting:
            self._waiting.popleft().vanish(silent=silent)

    def accept(self) -> tuple[AcceptedSocket, tuple[str, int]]:
        """The next connection. Raises BlockingIOError."""
        while self._waiting:
            end = self._waiting.popleft()
            if not end.broken:
                return AcceptedSocket(end), end.name
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def watch(self, callback: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Calls back while connections wait (`add_reader`)."""
        self._reader = (callback, args)
        self._notify()

    def unwatch(self) -> bool:
        """Ends `watch`."""
        had, self._reader = self._reader is not None, None
        return had

    def arrived(self, end: End) -> None:
        """A connection waits to be accepted."""
        if len(self._waiting) >= _BACKLOG:
            end.vanish(silent=False)
            return
        self._waiting.append(end)
        self._notify()

    def _notify(self) -> None:
        if self._reader is not None and self._waiting and not self._notified:
            self._notified = True
            self._network.loop.inside(self.process, self._call)

    def _call(self) -> None:
        self._notified = False
        if self._reader is not None:
            callback, args = self._reader
            callback(*args)
            self._notify()


class AcceptedSocket:
    """The socket of an accepted connection."""

    def __init__(self, end: End) -> None:
        self._end = end

    def setblocking(self, _: bool) -> None:
        """Simulated sockets never block."""

    def fileno(self) -> int:
        """A low descriptor: their number is not simulated."""
        return 16

    def close(self) -> None:
        """Closes the connection."""
        self._end.vanish(silent=False)

    async def attach(self, factory: Callable[[], asyncio.Protocol]) -> tuple[End, asyncio.Protocol]:
        """Makes the transport of the connection."""
        protocol = factory()
        await self._end.begin(protocol)
        return self._end, protocol
