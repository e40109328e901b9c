"""What a server that serves does for its clients: on a leader, and on a learner.

Rules this module keeps:

- Both are what the client port talks to (`refimpl.clients.service.Service`), from the moment the server serves until it
  does not; then the object is thrown away.
- Answers never come from inside the call that asked, but in a later turn of the event loop.
- The sessions of the whole ensemble are the leader's to keep alive. With each PING a learner tells it whom it heard.

Source: `LeaderZooKeeperServer`, `LearnerZooKeeperServer`, `LeaderSessionTracker`, `LearnerSessionTracker`,
`FollowerRequestProcessor`, `Learner.validateSession`, `ping`.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from refimpl.clients.service import ServerStatus
from refimpl.clock import monotonic_ms, wall_ms
from refimpl.store import Tree
from refimpl.wire.packet import largest_data
from refimpl.wire.txn import encode_txn
from spec.quorum import Sid
from spec.service.sessions import Sessions
from spec.tree.apply import Applied
from spec.tree.containers import to_delete
from spec.tree.replies import Code
from spec.tree.requests import CloseSession, CreateSession, DeleteContainer, Request, Sync
from spec.tree.txns import Change, CloseSessionTxn, CreateSessionTxn, ErrorTxn, MultiTxn
from spec.txn import make_zxid
from spec.zab import leader as spec_leader
from spec.zab.events import ClientSync, ClientWrite, Receive, Tick
from spec.zab.packets import Request as ForwardedRequest
from spec.zab.state import Leader

if TYPE_CHECKING:
    from refimpl.node import Node


class _Common:
    """What leaders and learners do alike."""

    mode: str

    def __init__(self, node: Node) -> None:
        self.node = node

    @property
    def tree(self) -> Tree:
        """The znodes and sessions, with all that is applied."""
        return self.node.replica.tree

    @property
    def last_zxid(self) -> int:
        """The zxid of the last transaction applied."""
        return self.node.replica.zxid

    def status(self) -> ServerStatus:
        """What the four-letter words tell of this server."""
        data, log = self.node.storage.sizes()
        return ServerStatus(mode=self.mode, data_dir_size=data, log_dir_size=log)

    def _answer_synced(self, session: int, cxid: int) -> None:
        self._later(lambda: self.node.clients.synced(session, cxid))

    def _answer_revalidated(self, session: int, valid: bool) -> None:
        self._later(lambda: self.node.clients.revalidated(session, valid))

    def _later(self, work: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(self.node.submit, work)


class LeaderService(_Common):
    """A server that leads, or is alone: it turns requests into transactions, and keeps the sessions."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.mode = "leader" if node.settings.distributed else "standalone"
        self.sessions = Sessions(node.settings.tick_time, self.tree.sessions.items(), monotonic_ms())
        self._syncs: deque[tuple[int, int, int]] = deque()
        """The zxid of the proposal that an answer has to wait for, session and cxid."""
        loop = asyncio.get_running_loop()
        self._half_tick = node.settings.tick_time / 2000
        self._ticking = loop.call_later(self._half_tick, self._tick)
        self._containers_checked = loop.time()

    def end(self) -> None:
        """The server leads no more."""
        self._ticking.cancel()

    def status(self) -> ServerStatus:
        """What the four-letter words tell of a leader: its proposals and all sessions too."""
        now, since_1970 = monotonic_ms(), time.time()
        return replace(
            super().status(),
            proposals=self.node.storage.record_sizes,
            expiring=tuple((since_1970 + (when - now) / 1000, ids) for when, ids in self.sessions.by_expiry()),
        )

    @property
    def last_zxid(self) -> int:
        """The zxid of the last transaction applied; before the first one of its epoch, the epoch's own."""
        zab = self.node.server.zab
        return max(self.node.replica.zxid, make_zxid(zab.epoch) if zab is not None else 0)

    def write(self, request: Request, owner: Sid | None = None) -> None:
        """Proposes a request of a client of this server, or of the learner `owner`."""
        self.node.submit(lambda: self._propose(request, self.node.server.sid if owner is None else owner))

    def sync(self, session: int, cxid: int) -> None:
        """The leader has what it has committed; the answer comes behind the writes that were proposed before."""

        def ask() -> None:
            self.node.run(ClientSync())
            zab = self.node.server.zab
            if isinstance(zab, Leader) and zab.outstanding:
                self._syncs.append((zab.last_proposed, session, cxid))
            else:
                self._answer_synced(session, cxid)

        self.node.submit(ask)

    def revalidate(self, session: int, timeout: int) -> None:
        """Whether a session lives; it is connected to the leader from now on."""
        self._answer_revalidated(session, self.claim(session, timeout, self.node.server.sid))

    def claim(self, session: int, timeout: int, owner: Sid) -> bool:
        """Whether a session lives; if so it is connected to this server from now on."""
        return self.sessions.claim(session, owner) and self.sessions.touch(session, timeout, monotonic_ms())

    def touch(self, session: int, timeout: int) -> None:
        """A client of this session was heard."""
        self.sessions.touch(session, timeout, monotonic_ms())

    def applied(self, zxid: int, change: Change, outcome: Applied) -> None:
        """A transaction is applied: sessions begin and end, and the client that waits for it is answered."""
        if isinstance(change.record, CreateSessionTxn):
            self.sessions.open(change.session, change.record.time_out, monotonic_ms())
        elif isinstance(change.record, CloseSessionTxn):
            self.sessions.remove(change.session)
        self.node.clients.applied(change, outcome)
        while self._syncs and self._syncs[0][0] <= zxid:
            _, session, cxid = self._syncs.popleft()
            self.node.clients.synced(session, cxid)

    def requested(self, learner: Sid, request: Request) -> bool:
        """A learner forwards a request; False while the protocol cannot take it."""
        change = self._prepared(request, learner)
        return self._proposed(change, Receive(learner, ForwardedRequest(change)))

    def refused(self, learner: Sid, session: int, cxid: int, code: Code) -> bool:
        """A learner forwards what cannot be read: the client gets an error, in its place in the order."""
        change = Change(session, cxid, wall_ms(), ErrorTxn(code))
        return self._proposed(change, Receive(learner, ForwardedRequest(change)))

    def _propose(self, request: Request, owner: Sid) -> None:
        change = self._prepared(request, owner)
        self._proposed(change, ClientWrite(change))

    def _prepared(self, request: Request, owner: Sid) -> Change:
        change = self.node.replica.prepare(request, wall_ms(), self._check(request, owner))
        if not isinstance(change.record, CloseSessionTxn | MultiTxn) and len(getattr(change.record, "acl", ())) < 2:
            return change  # it is no larger than its request
        if len(encode_txn(0, change)) <= largest_data(self.node.settings.jute_maxbuffer):
            return change
        # No learner reads it. Who applies closeSession finds all that the session has, listed or not.
        closes = isinstance(change.record, CloseSessionTxn)
        return replace(change, record=CloseSessionTxn(()) if closes else ErrorTxn(Code.MARSHALLING_ERROR))

    def _proposed(self, change: Change, event: ClientWrite | Receive) -> bool:
        """The protocol takes the transaction, or cannot now."""
        zab = self.node.server.zab
        if isinstance(zab, Leader) and spec_leader.is_exhausted(zab):
            self.node.lose_quorum("the zxids of its epoch are used up")
            return False
        before = self._last_proposed()
        if not self.node.run(event):
            return False
        last = self._last_proposed()
        if last <= before:
            return True  # a learner has asked too early, and is cut off
        self.node.replica.proposed(last, change)
        if isinstance(change.record, CloseSessionTxn):
            self.sessions.close(change.session)
        return True

    def _last_proposed(self) -> int:
        zab = self.node.server.zab
        return zab.last_proposed if isinstance(zab, Leader) else -1

    def _check(self, request: Request, owner: Sid) -> Code:
        """Whether the session may ask: one that is to be opened, or that the leader itself ends, always may."""
        if isinstance(request.record, CreateSession | CloseSession | DeleteContainer):
            return Code.OK
        return self.sessions.check(request.session, owner)

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        self._ticking = loop.call_later(self._half_tick, self._tick)
        self.node.submit(lambda: self.node.run(Tick()))
        for session in self.sessions.expired(monotonic_ms()):
            self.write(Request(session, 0, CloseSession()))
        if loop.time() - self._containers_checked >= self.node.settings.container_check / 1000:
            self._containers_checked = loop.time()
            for path in to_delete(self.tree, wall_ms()):
                self.write(Request(0, 0, DeleteContainer(path)))


class LearnerService(_Common):
    """A server that follows or observes: it forwards what changes anything, and answers the rest itself."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.mode = "observer" if node.settings.observes else "follower"
        self._syncs: deque[Request] = deque()
        self._touched: dict[int, int] = {}

    def end(self) -> None:
        """The server has lost its leader."""

    def write(self, request: Request) -> None:
        """Forwards a request to the leader."""
        self.node.submit(lambda: self.node.run(ClientWrite(request)))

    def sync(self, session: int, cxid: int) -> None:
        """Asks the leader, whose answer comes behind every commit it has sent before."""

        def ask() -> None:
            self._syncs.append(Request(session, cxid, Sync("/")))
            self.node.run(ClientSync())

        self.node.submit(ask)

    @property
    def newest_sync(self) -> Request:
        """The sync that was asked for last."""
        return self._syncs[-1]

    def synced(self) -> None:
        """The leader has answered the oldest sync."""
        if self._syncs:
            answered = self._syncs.popleft()
            # At once: a commit that has come with this answer is applied next, and is to answer behind it.
            self.node.clients.synced(answered.session, answered.cxid)

    def revalidate(self, session: int, timeout: int) -> None:
        """Asks the leader whether a session lives."""
        port = self.node.quorum_port
        assert port is not None
        self.node.submit(lambda: port.revalidate(session, timeout))

    def revalidated(self, session: int, valid: bool) -> None:
        """The leader has answered that."""
        self._answer_revalidated(session, valid)

    def touch(self, session: int, timeout: int) -> None:
        """The leader is told with the next PING."""
        self._touched[session] = timeout

    def take_touched(self) -> tuple[tuple[int, int], ...]:
        """The sessions heard of since the last PING, with their time-outs."""
        touched, self._touched = tuple(self._touched.items()), {}
        return touched

    def applied(self, _: int, change: Change, outcome: Applied) -> None:
        """A transaction is applied: the client that waits for it is answered."""
        self.node.clients.applied(change, outcome)
