"""The links between servers, routed through proxies so that they can be cut, silenced and healed.

Server A's `zoo.cfg` names, in place of server B's quorum and election ports, those of the proxies of the pair (A, B). A
server also sends its election address when it opens a connection, and the peer connects back to it. The proxy replaces
it with the address of the way back, so no connection bypasses the proxies.

Rules of this module:

- A cut link closes open connections and refuses new ones. A silent one keeps every connection and carries nothing; when
  it heals, the waiting bytes are carried, in order, as TCP does after a loss.
- Both directions of a pair are cut or silenced together unless one is named.
- The proxies carry bytes and read only the opening of the election port.

Source: `QuorumCnxManager.InitialMessage`, `.startConnection`, `.handleConnection`.
"""

import asyncio
import contextlib
import itertools
import struct
from collections.abc import Iterable
from dataclasses import replace as replaced
from types import TracebackType
from typing import Self

from harness.ensemble import Ensemble
from harness.processes import LOOPBACK, free_ports
from harness.zoo_cfg import View, write_zoo_cfg

CHUNK = 65536
ATTEMPTS = 5
RETRY = 0.1
OPENING = struct.Struct("!qqi")
"""The opening of the election port: protocol version, id of the sender, length of its address."""

Pair = tuple[int, int]


class Proxy:
    """A proxy that carries connections from one port to another, as long as its link allows it."""

    def __init__(self, target: int, calls_back: int | None = None) -> None:
        self.target = target
        self.calls_back = calls_back
        """The port where the sender says that it can be reached; only for the election port."""
        self._open = asyncio.Event()
        self._open.set()
        self._cut = False
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._carrying: set[asyncio.Task[None]] = set()

    async def listen(self, port: int) -> None:
        """Begin to accept connections."""
        self._server = await asyncio.start_server(self._begin, LOOPBACK, port)

    def cut(self) -> None:
        """Close every connection, and refuse new ones."""
        self._cut = True
        for writer in list(self._writers):
            writer.transport.abort()

    def silence(self) -> None:
        """Keep every connection, and carry nothing."""
        self._open.clear()

    def heal(self) -> None:
        self._cut = False
        self._open.set()

    async def close(self) -> None:
        """Stop accepting, close everything, and wait until it has ended."""
        if self._server is not None:
            self._server.close()
        self.cut()
        self._open.set()
        if self._carrying:
            await asyncio.wait(self._carrying)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._accepted(reader, writer))
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        onward: asyncio.StreamWriter | None = None
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await self._open.wait()
            if not self._cut:
                back, onward = await self._onward()
                self._writers.add(onward)
                if self.calls_back is not None:
                    onward.write(await _opening(reader, self.calls_back))
                await asyncio.gather(self._carry(reader, onward), self._carry(back, writer))
        for end in (writer, onward):
            if end is not None:
                end.transport.abort()
                self._writers.discard(end)

    async def _onward(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The connection to the target. Raises OSError.

        A server whose connection is refused tries again (`Learner.connectToLeader`: five times, 100 ms apart). A proxy
        has accepted by then, so it tries in the server's place.
        """
        for _ in range(ATTEMPTS - 1):
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(LOOPBACK, self.target)
            await asyncio.sleep(RETRY)
        return await asyncio.open_connection(LOOPBACK, self.target)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One direction; the end of either direction ends the connection."""
        try:
            while data := await reader.read(CHUNK):
                await self._open.wait()
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()


async def _opening(reader: asyncio.StreamReader, port: int) -> bytes:
    """The opening of an election connection, with this port as the address of the sender."""
    version, sid, length = OPENING.unpack(await reader.readexactly(OPENING.size))
    await reader.readexactly(length)
    address = f"{LOOPBACK}:{port}".encode()
    return OPENING.pack(version, sid, len(address)) + address


class Links:
    """The proxies of every pair of servers of an ensemble that does not run yet."""

    def __init__(self, ensemble: Ensemble, view: View) -> None:
        self._ensemble = ensemble
        self._view = view
        pairs = list(itertools.permutations(ensemble.sids, 2))
        ports = iter(free_ports(2 * len(pairs)))
        self._ports = {pair: (next(ports), next(ports)) for pair in pairs}
        self._proxies: dict[Pair, tuple[Proxy, Proxy]] = {}

    async def __aenter__(self) -> Self:
        for (near, far), (quorum, election) in self._ports.items():
            member = self._ensemble.member(far)
            back = self._ports[far, near][1]
            self._proxies[near, far] = Proxy(member.quorum_port), Proxy(member.election_port, back)
            await self._proxies[near, far][0].listen(quorum)
            await self._proxies[near, far][1].listen(election)
        for sid in self._ensemble.sids:
            self._write(sid)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for proxies in self._proxies.values():
            for proxy in proxies:
                await proxy.close()

    def _write(self, sid: int) -> None:
        """Write a server's file: the other servers have the addresses of the proxies."""
        own = self._ensemble.member(sid)
        others = [
            replaced(self._ensemble.member(far), quorum_port=quorum, election_port=election)
            for (near, far), (quorum, election) in self._ports.items()
            if near == sid
        ]
        listed = tuple(sorted([own, *others], key=lambda member: member.sid))
        write_zoo_cfg(replaced(self._view, members=listed), own, self._ensemble.directory / f"server-{sid}")

    def around(self, sid: int) -> list[Pair]:
        return [pair for pair in self._proxies if sid in pair]

    def between(self, one: int, other: int) -> list[Pair]:
        """Both directions of one link."""
        return [(one, other), (other, one)]

    def cut(self, pairs: Iterable[Pair]) -> None:
        """Close the connections that the first of each pair opened to the second, and refuse new ones."""
        for proxy in self._of(pairs):
            proxy.cut()

    def silence(self, pairs: Iterable[Pair]) -> None:
        """Carry nothing on the connections that the first of each pair opened to the second."""
        for proxy in self._of(pairs):
            proxy.silence()

    def heal(self) -> None:
        for proxy in self._of(self._proxies):
            proxy.heal()

    def _of(self, pairs: Iterable[Pair]) -> list[Proxy]:
        return [proxy for pair in pairs for proxy in self._proxies[pair]]
