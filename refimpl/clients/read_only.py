"""The service of a server without a leader, to clients that ask for a read-only server.

A part of an ensemble without a quorum can still answer reads from its trees.

Rules this module keeps:

- It begins when the server has been LOOKING for a while, and ends with that: the connections end, and clients look for
  a server with a quorum.
- Its sessions are local: no other server knows them, so they need `localSessionsEnabled`, as in ZooKeeper. A session of
  the ensemble is refused without an answer. Its sessions end with the service.
- Every request that changes something is answered with NotReadOnly, and so is sync.

Source: `QuorumPeer.run` (LOOKING), `ReadOnlyZooKeeperServer`, `ReadOnlyRequestProcessor`, `LearnerSessionTracker`.
"""

import asyncio
import logging
from typing import Protocol

from refimpl.clients.backend import Frontend, ServerStatus
from refimpl.system import system
from refimpl.tree import Tree
from spec.service.expiry import ExpiryQueue
from spec.service.handshake import ReadOnlyRules
from spec.tree.apply import TxnResult
from spec.tree.replies import Code
from spec.tree.requests import CloseSession, CreateSession, Request, SessionId
from spec.tree.txns import Change, CloseSessionTxn, CreateSessionTxn, ErrorTxn

logger = logging.getLogger("quorate.clients")

_LEAST_PATIENCE = 2000
"""Milliseconds; a shorter tick does not make the service begin earlier (`QuorumPeer.run`)."""


class CommittedState(Protocol):
    """The copy of the replicated state that this server has: its tree, and the last transaction in it."""

    tree: Tree
    zxid: int

    @property
    def membership_text(self) -> str:
        """The active configuration with its version."""


class ReadOnlyService:
    """The `Backend` of a client port while its server is LOOKING. Times are in milliseconds."""

    def __init__(self, state: CommittedState, clients: Frontend, tick: int, *, local_sessions: bool) -> None:
        self._state, self._clients = state, clients
        self._patience = max(_LEAST_PATIENCE, tick)
        self._local_sessions = local_sessions
        self._tick = tick
        self._sessions = ExpiryQueue(tick)
        self._waiting: asyncio.TimerHandle | None = None
        self._serves = False

    def looking(self) -> None:
        """The server begins to look for a leader."""
        self._waiting = asyncio.get_running_loop().call_later(self._patience / 1000, self._begin)

    def end(self) -> None:
        """The server has found a leader, leads, or stops."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if self._serves:
            self._serves = False
            self._clients.end()

    def _begin(self) -> None:
        self._serves = True
        self._sessions = ExpiryQueue(self._tick)
        logger.info("there is no quorum: read-only clients are served, last zxid 0x%x", self._state.zxid)
        self._clients.begin(self)

    # The client port's view (`Backend`).

    @property
    def tree(self) -> Tree:
        """The znodes and sessions, after all applied transactions."""
        return self._state.tree

    @property
    def last_zxid(self) -> int:
        """The zxid of the last transaction applied."""
        return self._state.zxid

    def read_only(self, session: SessionId) -> ReadOnlyRules:
        """The rules for a client that presents this session."""
        return ReadOnlyRules(self._local_sessions, is_global=self.tree.timeout(session) is not None)

    def write(self, request: Request) -> None:
        """Open or close a local session; refuse any other request."""
        time, session, record = system().monotonic_ms(), request.session, request.record
        if isinstance(record, CreateSession):
            self._sessions.update(session, record.time_out, time)
            self._answer(
                Change(session, request.cxid, system().wall_ms(), CreateSessionTxn(record.time_out)), TxnResult()
            )
        elif isinstance(record, CloseSession):
            self._sessions.remove(session)
            self._answer(Change(session, request.cxid, system().wall_ms(), CloseSessionTxn(())), TxnResult())
        else:
            refused = Code.NOT_READONLY
            self._answer(Change(session, request.cxid, system().wall_ms(), ErrorTxn(refused)), TxnResult(code=refused))

    def sync(self, session: SessionId, cxid: int) -> None:
        """Refuse a sync, because the server has no leader."""
        asyncio.get_running_loop().call_soon(self._clients.synced, session, cxid, Code.NOT_READONLY)

    def revalidate(self, session: SessionId, timeout: int) -> None:
        """Answer whether a local session is alive."""
        self._sessions.expired(system().monotonic_ms())
        valid = session in self._sessions
        self.touch(session, timeout)
        asyncio.get_running_loop().call_soon(self._clients.revalidated, session, valid)

    def touch(self, session: SessionId, timeout: int) -> None:
        """A client of this session has sent something."""
        if session in self._sessions:
            self._sessions.update(session, timeout, system().monotonic_ms())

    def status(self) -> ServerStatus:
        """The figures of a read-only server for the four-letter words."""
        return ServerStatus(mode="read-only", membership=self._state.membership_text)

    def _answer(self, change: Change, outcome: TxnResult) -> None:
        asyncio.get_running_loop().call_soon(self._clients.applied, change, outcome)
