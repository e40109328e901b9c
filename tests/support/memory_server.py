"""A standalone server that keeps everything in memory, for the tests of the client port.

Rules of this module:

- It decides as a leader does, with the same functions of `spec`. No other server has to agree.
- Requests take effect in the order in which they arrive: immediately, or, while the server is held, when `let_go` is
  called. So a test can look between a request and its commit.

Source: `ZooKeeperServer` (standalone).
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from refimpl.clients.backend import ServerStatus
from refimpl.clients.client_port import ClientPort
from refimpl.tree import Tree
from spec.service.sessions import Sessions
from spec.tree.apply import apply
from spec.tree.prepare import prepare
from spec.tree.requests import CloseSession, Request, SessionId
from spec.tree.txns import Change, CloseSessionTxn, CreateSessionTxn

_OWNER = "this server"


class MemoryServer:
    """The `Backend` of one client port. While `held` is true, requests wait until `let_go`."""

    def __init__(self, clients: ClientPort, tick: int = 2000) -> None:
        self.tree = Tree()
        self.last_zxid = 0
        self.sessions = Sessions(tick)
        self.held = False
        self._clients = clients
        self._line: deque[Callable[[], None]] = deque()
        self._busy = False

    def write(self, request: Request) -> None:
        self._ask(lambda: self._commit(self._prepare(request)))

    def sync(self, session: SessionId, cxid: int) -> None:
        """Report a sync as done after all earlier requests."""
        self._ask(lambda: self._clients.synced(session, cxid))

    def revalidate(self, session: SessionId, timeout: int) -> None:
        """Report whether a session is alive."""
        self._ask(lambda: self._clients.revalidated(session, self.sessions.touch(session, timeout, _now())))

    def read_only(self, _session: SessionId) -> None:
        """The server is never read-only."""

    def touch(self, session: SessionId, timeout: int) -> None:
        """Record activity of a session."""
        self.sessions.touch(session, timeout, _now())

    def status(self) -> ServerStatus:
        """The status of a standalone server without files."""
        elapsed = time.time() - _now() / 1000
        expiring = tuple((when / 1000 + elapsed, sessions) for when, sessions in self.sessions.by_expiry())
        return ServerStatus(mode="standalone", expiring=expiring)

    def expire(self, now: int | None = None) -> None:
        for session in self.sessions.expired(_now() if now is None else now):
            self.write(Request(session, 0, CloseSession()))

    def let_go(self, count: int | None = None) -> None:
        """Execute the waiting requests, at most `count` of them. Requests that these cause are executed too."""
        while self._line and count != 0:
            self._line.popleft()()
            count = None if count is None else count - 1

    def _ask(self, work: Callable[[], None]) -> None:
        self._line.append(work)
        if self.held or self._busy:
            return
        self._busy = True
        try:
            self.let_go()
        finally:
            self._busy = False

    def _prepare(self, request: Request) -> Change:
        checked = self.sessions.check_request(request, _OWNER)
        if isinstance(request.record, CloseSession):
            self.sessions.close(request.session)
        return prepare(self.tree, request, time.time_ns() // 1_000_000, checked)

    def _commit(self, change: Change) -> None:
        self.last_zxid += 1
        applied = apply(self.tree, self.last_zxid, change)
        self.tree.carry_out(applied.operations)
        if isinstance(change.record, CreateSessionTxn):
            self.sessions.open(change.session, change.record.time_out, _now())
        elif isinstance(change.record, CloseSessionTxn):
            self.sessions.remove(change.session)
        self._clients.applied(change, applied)


def _now() -> int:
    return time.monotonic_ns() // 1_000_000


class Wire(asyncio.Transport):
    """A transport that records the writes of a connection; a peer that does not read leaves `unread` bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.protocol: Any = None
        self.written = bytearray()
        self.writes = 0
        self.unread = 0
        self.reading, self.closed, self.ended = True, False, False

    def write(self, data: Any) -> None:
        self.written += data
        self.writes += 1

    def get_write_buffer_size(self) -> int:
        return self.unread

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            if self.protocol is not None:
                self.protocol.connection_lost(None)

    abort = close

    @property
    def over(self) -> bool:
        return self.closed or self.ended
