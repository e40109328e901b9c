"""A client of a live server that executes a recipe on one socket, and counts its notifications and requests.

Client libraries have threads, and handle events in any of them; with fifty such clients in one process, the benchmark
would measure the threads. Here a client is a few fields and a socket, and the loop that reads the socket belongs to
`research.herd.client_group`.

Rules of this module:

- The counts are the notifications that the recipe gets (`Notified`) and the requests that it sends (`Ask`), as on the
  wire: one frame each.
- A *barrier* is a read that is not part of the recipe. When its reply arrives, all earlier messages of the server have
  arrived. It is counted separately. (It is not a sync: 3.8.0, with many of them in flight, sometimes leaves one
  unanswered.)
- One request at a time, as in a recipe: a request of the recipe during a barrier is sent after it.
- A client that has sent a closeSession request ignores all later frames.
- A lost connection is an error: the benchmark never breaks one.

Source: `ClientCnxn`; `spec.recipes.events`.
"""

import socket
import struct
import time

from harness.layouts import read, write
from harness.processes import LOOPBACK, ServerError
from refimpl.jute import decode, encode
from refimpl.wire.client import MAX_FRAME, NOTIFICATION_XID
from refimpl.wire.frames import Frames
from research.herd.model import Strategy
from spec.effects import Observe
from spec.recipes.events import Answered, Ask, Event, Failed, Holds, Join, Notified
from spec.recipes.member import MemberPhase
from spec.tree.apply import EventType
from spec.tree.data import Record
from spec.tree.replies import ChildrenReply, Code, Create2Reply, DataReply, PathReply, StatReply, WatcherEvent
from spec.tree.requests import (
    OPCODE_OF,
    CloseSession,
    Create2,
    Exists,
    GetChildren,
    GetData,
    Sync,
)

REPLIES: dict[type[Record], type[Record]] = {
    Create2: Create2Reply,
    GetChildren: ChildrenReply,
    GetData: DataReply,
    Exists: StatReply,
    Sync: PathReply,
}
"""The type of the reply to a request; other requests of a recipe have an empty reply."""
HEADER = struct.Struct(">ii")
REPLY = struct.Struct(">iqi")
LENGTH = struct.Struct(">i")
SECONDS = 20.0
CHUNK = 65536
RESTS = (MemberPhase.WAITING, MemberPhase.HOLDING)


class Candidate:
    """One client and its session, which is open after the constructor; `name` is its protection id."""

    def __init__(self, strategy: Strategy, root: str, name: str, port: int, time_out: int) -> None:
        self.name = name
        self.notifications = self.requests = self.barriers = 0
        self.knew: float | None = None
        """The time when it became the leader."""
        self.closing = self.ended = False
        self._strategy, self._root = strategy, root
        self._rules, self._state = strategy.rules(root), strategy.machine.initial
        self._frames = Frames(MAX_FRAME)
        self._xid = 0
        self._asked: tuple[int, Record] | None = None
        self._beside: int | None = None
        self._later: Record | None = None
        self.socket = socket.create_connection((LOOPBACK, port), timeout=SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opening = write("ililbt", (0, 0, time_out, 0, bytes(16), False))
        self.socket.sendall(LENGTH.pack(len(opening)) + opening)
        (_, granted, _, _), _ = read("iilb", self._first_frame())
        if not granted:
            raise ServerError(f"{name}: the server at port {port} gives no session")

    @property
    def holds(self) -> bool:
        """Whether the client believes that it leads."""
        return self._strategy.machine.holds(self._state)

    @property
    def rests(self) -> bool:
        """Whether the client leads or waits, and has no unanswered request."""
        unasked = self._asked is None and self._beside is None and self._later is None
        return unasked and self._strategy.machine.member(self._state).phase in RESTS

    def want(self) -> None:
        """Start the recipe."""
        self._hear(Join(self.name))

    def barrier(self) -> None:
        """Send the read of a barrier; only for a client that rests."""
        self.barriers += 1
        self._beside = self._send(Exists(self._root, False))

    def close(self) -> None:
        """Send the request to end the session."""
        self.closing = True
        self._send(CloseSession())

    def forget(self) -> None:
        """Reset the counts."""
        self.notifications = self.requests = self.barriers = 0
        self.knew = None

    def readable(self) -> None:
        """Read the frames that have arrived, and pass them to the recipe."""
        try:
            data = self.socket.recv(CHUNK)
        except ConnectionError:
            data = b""
        if not data:
            self.ended = True
            return
        for frame in self._frames.feed(data):
            self._frame(frame)

    def _frame(self, frame: bytes) -> None:
        xid, _, error = REPLY.unpack_from(frame)
        if self.closing:
            return
        if xid == NOTIFICATION_XID:
            event, _ = decode(WatcherEvent, frame, REPLY.size)
            self.notifications += 1
            self._hear(Notified(EventType(event.type), event.path))
        elif xid == self._beside:
            later, self._beside, self._later = self._later, None, None
            if later is not None:
                self._asked = self._send(later), later
        else:
            if self._asked is None or xid != self._asked[0]:
                raise ServerError(f"{self.name}: an answer to request {xid} that nobody waits for")
            kind = REPLIES.get(type(self._asked[1]))
            self._asked = None
            reply = None if error or kind is None else decode(kind, frame, REPLY.size)[0]
            self._hear(Answered(Code(error), reply))

    def _hear(self, event: Event) -> None:
        step = self._strategy.machine.step(self._rules, self._state, event)
        self._state = step.state
        for effect in step.effects:
            match effect:
                case Ask(record):
                    self.requests += 1
                    if self._beside is None:
                        self._asked = self._send(record), record
                    else:
                        self._later = record
                case Observe(Holds()):
                    self.knew = time.perf_counter()
                case Observe(Failed(code)):
                    raise ServerError(
                        f"{self.name}: the server answers {code.name} to the recipe {self._strategy.name!r}"
                    )

    def _send(self, record: Record) -> int:
        self._xid += 1
        body = HEADER.pack(self._xid, OPCODE_OF[type(record)]) + encode(record)
        self.socket.sendall(LENGTH.pack(len(body)) + body)
        return self._xid

    def _first_frame(self) -> bytes:
        while True:
            data = self.socket.recv(CHUNK)
            if not data:
                raise ServerError(f"{self.name}: the server ended the connection before the session was open")
            if frames := self._frames.feed(data):
                return frames[0]
