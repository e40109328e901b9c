"""The requests of a run, encoded before the clock starts, and the expected replies.

Rules of this module:

- All requests of a run have the same size, and so do all replies: names are padded, values have 100 bytes. The load
  generator then counts bytes, and needs no parser.
- The xids of a run are 1 to n, in order.

Source: `zookeeper.jute` (CreateRequest, SetDataRequest, GetDataRequest and their responses).
"""

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.layouts import write, write_request

OPERATIONS = ("create", "set", "get")
CREATE, GET, SET, CLOSE_SESSION = 1, 4, 5, -11
OPEN = ((31, "world", "anyone"),)
VALUE = b"x" * 100
HEADER = struct.Struct("!iqi")
"""The header of a reply: xid, zxid, error."""
LENGTH = 4
STAT_SIZE = 68
CONNECT = (0, 0, 30_000, 0, bytes(16), False)

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Batch:
    """`count` requests one after another in `data`, each of `size` bytes; a reply has `answer_size` bytes."""

    operation: str
    count: int
    data: bytes
    answer_size: int

    @property
    def size(self) -> int:
        """The size of one request in bytes."""
        return len(self.data) // self.count


def framed(body: bytes) -> bytes:
    """A frame: the length of the body, and the body."""
    return struct.pack("!i", len(body)) + body


def opening() -> bytes:
    """The ConnectRequest of a new session."""
    return framed(write("ililbt", CONNECT))


def request(xid: int, opcode: int, *values: object) -> bytes:
    """One request as a frame."""
    return framed(struct.pack("!ii", xid, opcode) + write_request(opcode, values))


def batch(operation: str, count: int, parent: str) -> Batch:
    """`count` requests: children of `parent` are created, or `parent` itself is set or read."""
    if operation == "create":
        template = request(0, CREATE, f"{parent}/{0:08d}", VALUE, OPEN, 0)
        answer = LENGTH + HEADER.size + LENGTH + len(f"{parent}/{0:08d}")
    elif operation == "set":
        template, answer = request(0, SET, parent, VALUE, -1), LENGTH + HEADER.size + STAT_SIZE
    elif operation == "get":
        template, answer = request(0, GET, parent, False), LENGTH + HEADER.size + LENGTH + len(VALUE) + STAT_SIZE
    else:
        raise ValueError(f"no operation is called {operation!r}; there are {', '.join(OPERATIONS)}")
    rows = np.tile(np.frombuffer(template, np.uint8), (count, 1))
    rows[:, LENGTH : LENGTH + 4] = _big_endian(np.arange(1, count + 1))
    if operation == "create":
        digits = template.index(b"/00000000") + 1
        rows[:, digits : digits + 8] = _decimal(count)
    return Batch(operation, count, rows.tobytes(), answer)


def answers(requests: Batch) -> bytes:
    """Replies that a server could give, for the stub: correct lengths and xids, and no error."""
    rows = np.zeros((requests.count, requests.answer_size), np.uint8)
    rows[:, :LENGTH] = _big_endian(np.array([requests.answer_size - LENGTH]))
    rows[:, LENGTH : LENGTH + 4] = _big_endian(np.arange(1, requests.count + 1))
    return rows.tobytes()


def first_wrong(requests: Batch, received: Bytes) -> str | None:
    """Describe the first unexpected reply, by length, xid and error; None if all replies are as expected."""
    whole = len(received) // requests.answer_size
    rows = received[: whole * requests.answer_size].reshape(whole, requests.answer_size)
    lengths = _integers(rows[:, :LENGTH])
    xids = _integers(rows[:, LENGTH : LENGTH + 4])
    errors = _integers(rows[:, LENGTH + 12 : LENGTH + HEADER.size])
    good = (lengths == requests.answer_size - LENGTH) & (xids == np.arange(1, whole + 1)) & (errors == 0)
    if good.all() and whole == requests.count:
        return None
    index = int(np.argmin(good)) if not good.all() else whole
    offset = index * requests.answer_size + LENGTH
    if offset + HEADER.size > len(received):
        return f"{index:,} of {requests.count:,} answers came"
    xid, _, error = HEADER.unpack(received[offset : offset + HEADER.size].tobytes())
    return f"answer {index + 1:,} of {requests.count:,} has xid {xid} and error {error}"


def _big_endian(numbers: NDArray[np.int64]) -> Bytes:
    return numbers.astype(">i4").view(np.uint8).reshape(len(numbers), 4)


def _integers(columns: Bytes) -> NDArray[np.int64]:
    return np.ascontiguousarray(columns).view(">i4").reshape(len(columns)).astype(np.int64)


def _decimal(count: int) -> Bytes:
    powers = 10 ** np.arange(7, -1, -1)
    return (np.arange(count)[:, None] // powers % 10 + ord("0")).astype(np.uint8)
