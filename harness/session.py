"""A ZooKeeper session with one request in flight: the order of its events and replies is the order on the wire.

Client libraries pass events to separate threads, and register watches and reconnect automatically. A comparison of two
servers byte by byte must avoid all of this.

Rules of this module:

- There is one thread, and one request in flight: `ask` sends a request and reads until its reply. Events that arrive
  before the reply are kept in `events`, in the order of the wire.
- Nothing is retried. If the server ends the connection, DisconnectedError is raised, and `connect` can attach the
  session again to any server.
- Every wait is bounded, by `SECONDS` unless the caller chooses another bound.
- ZooKeeper 3.6.0 to 3.8.0 may hold an answer until another request comes (ZOOKEEPER-4537). A session that `wakes` makes
  such a request after the bound, and waits once more. It makes it in another session, since a server ignores any
  request that follows the end of a session, and reads none before a session has begun.

Source: `ClientCnxn`, `CommitProcessor.run`; ZooKeeper Programmer's Guide, sessions.
"""

import select
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, NoReturn

from harness.layouts import read, read_answer, write, write_request
from harness.processes import Place, ServerError, address_of

SECONDS = 15.0
REPLY = struct.Struct("!iqi")
EVENT_XID = -1
AUTH_XID = -4
SPECIAL_XIDS = {11: -2, 100: AUTH_XID, 101: -8, 105: -8}
CLOSE_SESSION = -11
PING = 11


def receive_exactly(connection: socket.socket, count: int) -> bytes:
    """This number of bytes. Raises ConnectionResetError if the server ends the connection, and OSError."""
    received = bytearray()
    while len(received) < count:
        part = connection.recv(count - len(received))
        if not part:
            raise ConnectionResetError("the server ended the connection")
        received += part
    return bytes(received)


class DisconnectedError(ServerError):
    """The server ended the connection."""


class Answer(NamedTuple):
    """A reply: its error code (0: no error), the zxid in its header, and its values (empty after an error)."""

    err: int
    zxid: int
    values: tuple[Any, ...]


class Event(NamedTuple):
    """A watch event as sent: `EventType`, `KeeperState`, path."""

    type: int
    state: int
    path: str


@contextmanager
def other_session(place: Place, seconds: float) -> Iterator[None]:
    """A short session that begins before the context, and has ended after it if the server answers. Raises OSError."""
    with socket.create_connection(address_of(place), timeout=seconds) as connection:
        frames = (write("ililbt", (0, 0, 1, 0, bytes(16), False)), struct.pack("!ii", 1, CLOSE_SESSION))
        connection.sendall(b"".join(struct.pack("!i", len(frame)) + frame for frame in frames))
        yield
        with suppress(OSError):
            while connection.recv(1 << 10):
                pass


class Session:
    """One session; `connect` opens it, or attaches it to another server.

    `late` says that an answer came only after the request of another session.
    """

    def __init__(self, timeout: int, seconds: float = SECONDS, *, wakes: bool = False) -> None:
        self.timeout = timeout
        self.late = False
        self._seconds = seconds
        self._wakes = wakes
        self.session_id = 0
        self.password = bytes(16)
        self.last_zxid = 0
        self.events: list[Event] = []
        self._socket: socket.socket | None = None
        self._xid = 0

    @property
    def connected(self) -> bool:
        """Whether the session has a connection that has not been found broken."""
        return self._socket is not None

    def connect(self, place: Place) -> int:
        """Open or attach the session; return the granted timeout in milliseconds, 0 if the session has expired."""
        self.drop()
        self._place = place
        self._socket = socket.create_connection(address_of(place), timeout=self._seconds)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._send(write("ililbt", (0, self.last_zxid, self.timeout, self.session_id, self.password, False)))
        answer = self._receive()
        (_, timeout, session_id, password), _ = read("iilb", answer)
        if timeout == 0:
            self.drop()
            return 0
        self.session_id, self.password = session_id, password
        return int(timeout)

    def drop(self) -> None:
        """Close the connection and leave the session to its timeout."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def ask(self, opcode: int, *values: Any) -> Answer:
        """Send a request and wait for its reply. Raises DisconnectedError if the connection ends first."""
        self.send(opcode, *values)
        return self.receive(opcode)

    def send(self, opcode: int, *values: Any) -> None:
        """Send a request; the next `receive` must be for it."""
        self.send_raw(opcode, write_request(opcode, values))

    def send_raw(self, opcode: int, body: bytes) -> None:
        """Send a request with a body of raw bytes."""
        self._xid += 1
        self._expected = SPECIAL_XIDS.get(opcode, self._xid)
        self._send(struct.pack("!ii", self._expected, opcode) + body)

    def receive(self, opcode: int) -> Answer:
        """Read the reply to the last request, which has this opcode."""
        while True:
            frame = self._receive()
            xid, zxid, err = REPLY.unpack_from(frame)
            body = frame[REPLY.size :]
            if xid == EVENT_XID:
                self.events.append(Event(*read("iis", body)[0]))
                continue
            if xid != self._expected:
                raise ServerError(f"an answer to request {xid} came where that to {self._expected} was due")
            # The zxid of an event may be -1, and so may that of the reply to auth.
            self.last_zxid = max(self.last_zxid, zxid)
            # The reply to a failed multi has a body; an error of any other request has none.
            return Answer(err, zxid, read_answer(opcode, body) if body or not err else ())

    def readable(self, seconds: float = 0) -> bool:
        """Whether a frame, or the end of the connection, has arrived, or arrives within this time."""
        if self._socket is None:
            return False
        poll = select.poll()  # `select` fails where the descriptor is above 1,023, as after many runs in one process
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def receive_raw(self) -> tuple[int, int]:
        """Read the next reply, without a layout: return its error and the length of its body."""
        frame = self._receive()
        _, _, err = REPLY.unpack_from(frame)
        return err, len(frame) - REPLY.size

    def wait_event(self, seconds: float) -> Event | None:
        """Wait for the next event without a request; None after `seconds`. Raises ServerError for any other frame."""
        if self._socket is None:
            raise DisconnectedError("the session has no connection")
        if not self.readable(seconds):
            return None
        frame = self._receive()
        xid, _, _ = REPLY.unpack_from(frame)
        if xid != EVENT_XID:
            raise ServerError(f"an answer to request {xid} came where an event was due")
        return Event(*read("iis", frame[REPLY.size :])[0])

    def take_events(self) -> tuple[Event, ...]:
        """The events since the last call."""
        events = tuple(self.events)
        self.events.clear()
        return events

    def close(self) -> None:
        """End the session, if it is connected, and the connection."""
        if self.connected:
            try:
                self.ask(CLOSE_SESSION)
            finally:
                self.drop()

    def _send(self, frame: bytes) -> None:
        if self._socket is None:
            raise DisconnectedError("the session has no connection")
        try:
            self._socket.sendall(struct.pack("!i", len(frame)) + frame)
        except (BrokenPipeError, ConnectionResetError) as error:
            self._broken(error)

    def _receive(self) -> bytes:
        if self._wakes and self.connected and not self.readable(self._seconds):
            with other_session(self._place, self._seconds):
                if not self.readable(self._seconds):
                    raise ServerError(f"no answer from the server within {2 * self._seconds:g} s")
            self.late = True
        (length,) = struct.unpack("!i", self._exactly(4))
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        if self._socket is None:
            raise DisconnectedError("the session has no connection")
        try:
            return receive_exactly(self._socket, count)
        except TimeoutError:
            raise ServerError(f"no answer from the server within {self._seconds:g} s") from None
        except ConnectionResetError as error:
            self._broken(error)

    def _broken(self, error: OSError) -> NoReturn:
        self.drop()
        raise DisconnectedError("the server ended the connection") from error
