"""A client's session on the simulated network, with ZooKeeper's own bytes: requests, answers, pings and watch events.

Rules of this module:

- A missing answer is a `NoAnswerError`, and the connection is closed with it. The outcome is then unknown.
- Requests may be sent without waiting for earlier answers; answers must come in the order of the requests.
- A session sends the newest zxid that it has seen when it is attached again.

Source: `ClientCnxn.SendThread`.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from refimpl.jute import decode, encode
from refimpl.wire.client import PING_XID
from refimpl.wire.frames import Frames
from simulation.world.loop import SimulatedLoop
from spec.tree.data import Record
from spec.tree.replies import ChildrenReply, Create2Reply, DataReply, MultiReply, PathReply, StatReply, WatcherEvent
from spec.tree.requests import (
    OPCODE_OF,
    CloseSession,
    Create2,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Ping,
    Reconfig,
    SetData,
    SetWatches,
    Sync,
)

_HEADER = struct.Struct(">ii")
_REPLY = struct.Struct(">iqi")
_LENGTH = struct.Struct(">i")
_OPENING = struct.Struct(">iqiqi16s?")
_OPENED = struct.Struct(">iiqi16s?")
_REPLIES: dict[type[Record], type[Record] | None] = {
    Create2: Create2Reply,
    Delete: None,
    SetData: StatReply,
    GetData: DataReply,
    GetChildren: ChildrenReply,
    Exists: StatReply,
    SetWatches: None,
    Sync: PathReply,
    Multi: MultiReply,
    Reconfig: DataReply,
    CloseSession: None,
    Ping: None,
}


class NoAnswerError(Exception):
    """The answer has not arrived, and will not."""


class SessionExpiredError(NoAnswerError):
    """The session has expired or was closed."""


class Answer(NamedTuple):
    """A reply: its error code (0 means success), the zxid of its header, and its record."""

    err: int
    zxid: int
    record: Any


class ClientSession(asyncio.Protocol):
    """One session, attached to one server at a time; `watched` is called with each event.

    `protocol_error` describes a violation of the protocol by a server; empty without one.
    """

    def __init__(
        self,
        loop: SimulatedLoop,
        timeout: int,
        patience: float,
        watched: Callable[[int, str], None] = lambda _kind, _path: None,
    ) -> None:
        self._loop, self.patience, self._watched = loop, patience, watched
        self.timeout = timeout
        self.session = 0
        self.last_zxid = 0
        self.protocol_error = ""
        self._password = bytes(16)
        self._transport: Any = None
        self._frames = Frames(1 << 24)
        self._xid = 0
        self._opened: asyncio.Future[bytes] | None = None
        self._waiting: deque[tuple[int, type[Record], asyncio.Future[Answer]]] = deque()
        self._pinging: Any = None

    @property
    def attached(self) -> bool:
        """Whether there is a connection that has not been found broken."""
        return self._transport is not None

    async def attach(self, host: str, port: int) -> None:
        """Opens the session, or moves it to this server. Raises NoAnswerError."""
        self.drop()
        try:
            async with asyncio.timeout(self.patience):
                self._transport, _ = await self._loop.create_connection(lambda: self, host, port)
                self._opened = self._loop.create_future()
                opening = _OPENING.pack(0, self.last_zxid, self.timeout, self.session, 16, self._password, False)
                self._transport.write(_LENGTH.pack(len(opening)) + opening)
                frame = await self._opened
        except (OSError, TimeoutError, NoAnswerError) as error:
            self.drop()
            raise NoAnswerError(str(error)) from None
        _, timeout, session, _, password, _ = _OPENED.unpack(frame)
        if not timeout:
            self.drop()
            raise SessionExpiredError
        if self.session and session != self.session:
            self.protocol_error = f"session {self.session:#x} was asked for, and {session:#x} given"
        self.session, self._password = session, password
        self._pinging = self._loop.call_later(timeout / 3000, self._ping, timeout / 3000)

    def send(self, record: Record) -> asyncio.Future[Answer]:
        """Sends a request, and returns its future answer."""
        future: asyncio.Future[Answer] = self._loop.create_future()
        if self._transport is None:
            future.set_exception(NoAnswerError("not attached"))
            future.exception()
            return future
        self._xid += 1
        self._write(self._xid, record, future)
        return future

    def _write(self, xid: int, record: Record, future: asyncio.Future[Answer]) -> None:
        body = _HEADER.pack(xid, OPCODE_OF[type(record)]) + encode(record)
        self._waiting.append((xid, type(record), future))
        self._transport.write(_LENGTH.pack(len(body)) + body)

    async def ask(self, record: Record) -> Answer:
        """Sends a request, and waits for its answer. Raises NoAnswerError."""
        future = self.send(record)
        try:
            async with asyncio.timeout(self.patience):
                return await future
        except (TimeoutError, NoAnswerError) as error:
            self.drop()
            raise NoAnswerError(str(error)) from None

    async def close(self) -> None:
        """Ends the session, if it is attached. Raises NoAnswerError."""
        try:
            await self.ask(CloseSession())
        finally:
            self.drop()

    def forget(self) -> None:
        """Starts anew, without a session."""
        self.drop()
        self.session, self.last_zxid, self._password = 0, 0, bytes(16)

    def drop(self) -> None:
        """Closes the connection; the session ends by its timeout."""
        transport, self._transport = self._transport, None
        if self._pinging is not None:
            self._pinging.cancel()
            self._pinging = None
        if transport is not None:
            transport.abort()
        self._fail()

    def _fail(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        for _, _, future in waiting:
            if not future.done():
                future.set_exception(NoAnswerError("the connection has ended"))
                future.exception()
        if self._opened is not None and not self._opened.done():
            self._opened.set_exception(NoAnswerError("the connection has ended"))
        self._opened = None

    def _ping(self, interval: float) -> None:
        if self._transport is not None:
            self._pinging = self._loop.call_later(interval, self._ping, interval)
            self._write(PING_XID, Ping(), self._loop.create_future())

    # The callbacks of asyncio.

    def connection_made(self, _: asyncio.BaseTransport) -> None:
        """The connection is open."""
        self._frames = Frames(1 << 24)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """The connection has ended."""
        if self._transport is not None:
            self.drop()

    def data_received(self, data: bytes) -> None:
        """Handles answers and events."""
        for frame in self._frames.feed(data):
            if self._opened is not None:
                opened, self._opened = self._opened, None
                if not opened.done():
                    opened.set_result(frame)
                continue
            if self._transport is None:
                return
            xid, zxid, err = _REPLY.unpack_from(frame)
            if xid == -1:
                event, _ = decode(WatcherEvent, frame, _REPLY.size)
                # A coroutine that waits for an answer before it in these bytes continues first.
                self._loop.call_soon(self._watched, event.type, event.path)
                continue
            self._answered(xid, zxid, err, frame)

    def _answered(self, xid: int, zxid: int, err: int, frame: bytes) -> None:
        if not self._waiting or self._waiting[0][0] != xid:
            due = self._waiting[0][0] if self._waiting else "none"
            self.protocol_error = f"an answer to request {xid} where that to {due} was due"
            self.drop()
            return
        _, kind, future = self._waiting.popleft()
        if zxid > 0:
            if zxid < self.last_zxid:
                self.protocol_error = f"zxid {zxid:#x} in an answer after {self.last_zxid:#x}"
            self.last_zxid = max(self.last_zxid, zxid)
        reply = _REPLIES[kind]
        body = len(frame) > _REPLY.size
        record = (
            decode(reply, frame, _REPLY.size)[0] if reply is not None and body and (not err or kind is Multi) else None
        )
        if not future.done():
            future.set_result(Answer(err, zxid, record))
