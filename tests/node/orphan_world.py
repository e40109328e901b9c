"""Relays that hold bytes, servers behind them, and a Curator program: a setup that creates an orphan on purpose.

Rules of this module:

- A relay holds bytes as a slow network does, in order, and changes none.
- Waits end when the bytes that prove an event arrive at a relay.
"""

import contextlib
import queue
import re
import socket
import struct
import subprocess
import threading
import time

from kazoo.client import KazooClient

from harness.ensemble import Ensemble
from harness.processes import LOOPBACK, wait_until
from tests.node.recipes import WAIT, Running

TICK = 2000
"""The servers' tick in milliseconds: so long that held bytes end neither a server's membership nor a session."""
CHUNK = 65536
FLUSH = 3.2
ATTEMPTS, RETRY = 5, 0.1
BURDEN, BURDEN_EACH = 100, 1000
TAKES, LEADS, READS = 1, 2, 3
"""The servers: the one that takes the creation; the leader; the one that the client reaches after the loss."""


class Relay:
    """A relay of connections to a port that can hold the bytes in the way back."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.asked = b""
        """The bytes carried to the target on the newest connection."""
        self.told = b""
        """The bytes carried back on it."""
        self.waiting = b""
        """The bytes that have arrived from the target since `hold`, and were not carried back."""
        self._flows = threading.Event()
        self._flows.set()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def hold(self) -> None:
        """Carry nothing back."""
        self.waiting = b""
        self._flows.clear()

    def release(self) -> None:
        """Carry back the waiting bytes, and all later ones."""
        self._flows.set()

    def move(self, target: int) -> None:
        """Close the open connections with all waiting bytes; new ones go to another port."""
        self.target, self.asked, self.told = target, b"", b""
        self._end()
        self._flows.set()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._end()
        self._flows.set()

    def _end(self) -> None:
        _shut(*list(self._open))

    def _onward(self) -> socket.socket:
        """Connect to the target. A refused server tries again, so the relay does in its place."""
        for _ in range(ATTEMPTS - 1):
            with contextlib.suppress(OSError):
                return socket.create_connection((LOOPBACK, self.target))
            time.sleep(RETRY)
        return socket.create_connection((LOOPBACK, self.target))

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                with contextlib.suppress(OSError):
                    far = self._onward()
                    self._open |= {near, far}
                    self.asked = self.told = b""
                    parts = queue.SimpleQueue[bytes]()
                    for run, ends in (
                        (self._up, (near, far)),
                        (self._down, (far, parts)),
                        (self._back, (parts, far, near)),
                    ):
                        threading.Thread(target=run, args=ends, daemon=True).start()
                    continue
                near.close()

    def _up(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while part := source.recv(CHUNK):
                self.asked += part
                sink.sendall(part)
        _shut(source, sink)

    def _down(self, source: socket.socket, parts: queue.SimpleQueue[bytes]) -> None:
        with contextlib.suppress(OSError):
            while part := source.recv(CHUNK):
                if not self._flows.is_set():
                    self.waiting += part
                parts.put(part)
        parts.put(b"")

    def _back(self, parts: queue.SimpleQueue[bytes], source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while part := parts.get():
                self._flows.wait()
                sink.sendall(part)
                self.told += part
        _shut(source, sink)


def _shut(*ends: socket.socket) -> None:
    for each in ends:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


class World:
    """Three servers, relays from the leader to each of the others, and one between the client and its server."""

    def __init__(self, ensemble: Ensemble, relays: dict[int, Relay], reader: KazooClient, path: str) -> None:
        self.ensemble, self.relays, self.path = ensemble, relays, path
        self._reader = reader
        self.client = Relay(ensemble.client_port(TAKES))
        reader.create(path)

    def created(self, sid: int) -> list[str]:
        """Return the creations in the leader's bytes for a server that the server has not yet received."""
        found: list[bytes] = re.findall(rb"%b/(_c_[0-9a-f-]{36}-)" % self.path.encode(), self.relays[sid].waiting)
        return [each.decode() for each in found]

    def wait_created(self, sid: int, number: int) -> None:
        """Wait until this number of creations wait for a server."""
        wait_until(lambda: len(self.created(sid)) >= number, WAIT, f"{number} creations wait for server {sid}")

    def wait_valid(self, session: int) -> None:
        """Wait until a creation, and after it the validity of the session, wait for the server that reads."""
        told, created = struct.pack("!q", session), f"{self.path}/_c_".encode()
        relay = self.relays[READS]
        wait_until(lambda: told in relay.waiting.rpartition(created)[2], WAIT, "the session is found valid")

    def lose(self, sid: int = READS) -> None:
        """Close the client's connection; its next one goes to this server."""
        self.client.move(self.ensemble.client_port(sid))

    def znodes(self) -> dict[str, int]:
        """Return the names and owners of the znodes at the leader, in the order of the queue."""
        self._reader.sync(self.path)
        names = sorted(self._reader.get_children(self.path), key=lambda name: int(name[-10:]))
        return {name: self._reader.get(f"{self.path}/{name}")[1].ephemeralOwner for name in names}

    def wait_znodes(self, number: int) -> dict[str, int]:
        wait_until(lambda: len(self.znodes()) == number, WAIT, f"{number} znodes")
        return self.znodes()

    def burden(self) -> None:
        """Write transactions that take long to apply, so that a server that was held has a backlog afterwards."""
        written = []
        for _ in range(BURDEN):
            transaction = self._reader.transaction()
            for _ in range(BURDEN_EACH):
                transaction.set_data("/", b"")
            written.append(transaction.commit_async())
        for each in written:
            each.get(timeout=WAIT)

    def delete(self, name: str) -> None:
        self._reader.delete(f"{self.path}/{name}")


class Curator:
    """The running Java program; it has a session when the constructor returns."""

    def __init__(self, command: list[str], at: World) -> None:
        command = [*command, at.client.address, at.path]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.session = int(self._line())

    def acquire(self) -> Running:
        """Make it take the lock; the result is the return value of `acquire`."""
        assert self._process.stdin is not None
        print(file=self._process.stdin, flush=True)
        return Running(self._line)

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()
