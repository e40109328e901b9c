"""The load generator: one session, one socket, a fixed number of outstanding requests; the rate, and each latency.

Rules of this module:

- Nothing is parsed or computed while the clock runs: there is only a loop of `recv_into` and `sendall`, with the time
  of each. The latencies are computed and the replies are checked afterwards.
- One reply that is missing, late or wrong makes the whole run void, with the reason.
- Times are taken when bytes leave and arrive here; replies that arrive together have the same time.
"""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from benchmarks.node.requests import CLOSE_SESSION, CREATE, OPEN, VALUE, Batch, first_wrong, opening, request
from benchmarks.outcome import NotMeasured
from harness.processes import LOOPBACK
from harness.session import receive_exactly

SECONDS = 20.0
"""The limit for one reply, in seconds."""
NODE_EXISTS = -110
CHUNK = 4096


class RunVoid(NotMeasured):
    """A run without a figure, because a reply was missing, late or wrong."""


@dataclass(frozen=True)
class Run:
    """`seconds` from the first byte out to the last byte in, and the latency of each request in seconds."""

    count: int
    seconds: float
    latencies: NDArray[np.float64]

    @property
    def rate(self) -> float:
        """Replies per second."""
        return self.count / self.seconds

    def percentile(self, percent: float) -> float:
        """The latency that this percentage of the requests did not exceed, in seconds."""
        return float(np.percentile(self.latencies, percent))


@contextmanager
def session(port: int) -> Iterator[socket.socket]:
    """Open a session with the server at this client port, and close it at the end.

    A session that is left to expire would be a write in the middle of a later run. Raises RunVoid if the server grants
    none.
    """
    try:
        connection = socket.create_connection((LOOPBACK, port), timeout=SECONDS)
    except OSError as error:
        raise RunVoid(f"no session at {LOOPBACK}:{port} ({error})") from error
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            connection.sendall(opening())
            _frame(connection)
        except OSError as error:
            raise RunVoid(f"no session at {LOOPBACK}:{port} ({error})") from error
        yield connection
        with suppress(OSError):
            connection.sendall(request(0, CLOSE_SESSION))
            while connection.recv(CHUNK):
                pass


def make(connection: socket.socket, path: str) -> None:
    """Create a znode unless it exists."""
    connection.sendall(request(1, CREATE, path, VALUE, OPEN, 0))
    error = int.from_bytes(_frame(connection)[12:16], "big", signed=True)
    if error not in {0, NODE_EXISTS}:
        raise RunVoid(f"{path} could not be created: error {error}")


def drive(connection: socket.socket, batch: Batch, outstanding: int) -> Run:
    """Send every request, with at most `outstanding` of them unanswered. Raises RunVoid."""
    size, answer = batch.size, batch.answer_size
    requests, received = memoryview(batch.data), bytearray(batch.count * answer)
    room = memoryview(received)
    requested, answered, filled = min(outstanding, batch.count), 0, 0
    sends: list[tuple[float, int]] = [(time.perf_counter(), requested)]
    receives: list[tuple[float, int]] = []
    try:
        connection.sendall(requests[: requested * size])
        while answered < batch.count:
            arrived = connection.recv_into(room[filled:])
            if not arrived:
                break
            clock = time.perf_counter()
            filled += arrived
            whole = filled // answer
            if whole > answered:
                receives.append((clock, whole))
                answered = whole
                goal = min(answered + outstanding, batch.count)
                if goal > requested:
                    sends.append((clock, goal))
                    connection.sendall(requests[requested * size : goal * size])
                    requested = goal
    except OSError as error:
        wrong = first_wrong(batch, np.frombuffer(received, np.uint8)[:filled])
        raise RunVoid(f"{batch.operation}: {wrong} ({error})") from error
    if wrong := first_wrong(batch, np.frombuffer(received, np.uint8)[:filled]):
        raise RunVoid(f"{batch.operation}: {wrong}")
    return Run(batch.count, receives[-1][0] - sends[0][0], latencies(sends, receives))


def latencies(sends: list[tuple[float, int]], receives: list[tuple[float, int]]) -> NDArray[np.float64]:
    """The latency of each request, from two lists of (time, number of requests sent or answered by then)."""
    return _times(receives) - _times(sends)


def _times(events: list[tuple[float, int]]) -> NDArray[np.float64]:
    counts = [later - earlier for earlier, later in pairwise([0, *(total for _, total in events)])]
    return np.repeat(np.array([moment for moment, _ in events]), counts)


def _frame(connection: socket.socket) -> bytes:
    length = int.from_bytes(receive_exactly(connection, 4), "big")
    return receive_exactly(connection, length)
