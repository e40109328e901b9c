"""The roles of a server: the work of a leader and of a learner for their clients.

Rules this module keeps:

- Both implement the interface of the client port (`refimpl.clients.backend.Backend`) from the moment the server serves
  until it stops serving; then the object is discarded.
- An answer never comes from inside the call of its request, but in a later turn of the event loop.
- The leader keeps the sessions of the whole ensemble alive. With each PING a learner reports the active ones. A pause
  of the leader's process counts as one tick, since it heard nobody meanwhile.

Source: `LeaderZooKeeperServer`, `LearnerZooKeeperServer`, `LeaderSessionTracker`, `LearnerSessionTracker`,
`FollowerRequestProcessor`, `Learner.validateSession`, `ping`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec.structs import replace

from refimpl.clients.backend import Frontend, ServerStatus
from refimpl.disk.storage import Storage
from refimpl.log_lines import RateLimit
from refimpl.replica import Replica
from refimpl.settings import Settings
from refimpl.system import system
from refimpl.tree import Tree
from refimpl.wire.packet import largest_data
from refimpl.wire.txn import TxnEncoder
from spec.election.vote import is_observer
from spec.quorum import Reconfiguration, Sid, change_of
from spec.server import Event, Server
from spec.service import reconfig_request
from spec.service.expiry import AttendedTime
from spec.service.sessions import Sessions
from spec.text import place_of
from spec.tree.apply import TxnResult
from spec.tree.prepare import fitted
from spec.tree.replies import Code
from spec.tree.requests import CloseSession, DeleteContainer, Reconfig, Request, Sync
from spec.tree.store import to_delete
from spec.tree.txns import Change, CloseSessionTxn, CreateSessionTxn, ErrorTxn, ReconfigTxn
from spec.txn import counter_of, is_last, make_zxid
from spec.zab.events import ClientSync, ClientWrite, Receive, Tick
from spec.zab.packets import QuorumRequest as ForwardedRequest
from spec.zab.state import Leader
from spec.zab.timeouts import Resignation

logger = logging.getLogger("quorate.roles")
logger.addFilter(RateLimit())


class Core(Protocol):
    """The node, as a role sees it: work that is done one piece at a time, and the events of the protocol."""

    @property
    def server(self) -> Server:
        """The state of the protocol."""

    @property
    def encoder(self) -> TxnEncoder:
        """Encodes transactions, for their preparation, for the log and for learners."""

    def submit(self, work: Callable[[], object]) -> None:
        """Does this now, or after the work in progress."""

    def run(self, event: Event) -> bool:
        """Runs one event as part of the work in progress; returns False if it is impossible now."""

    def run_all(self, events: Sequence[Event]) -> int:
        """Runs several events, and stops at the first impossible one; returns the number of possible ones."""

    def resign(self, reason: Resignation) -> bool:
        """Gives up leading."""

    def revalidate(self, session: int, timeout: int) -> None:
        """Asks the leader whether a session is alive."""


class _Role:
    mode: str

    def __init__(self, core: Core, settings: Settings, replica: Replica, storage: Storage, clients: Frontend) -> None:
        self._core, self._settings = core, settings
        self._replica, self._storage, self._clients = replica, storage, clients
        self._requests: list[Request] = []
        """Requests of clients that have arrived in this turn of the event loop; they are handled together."""
        self._ended = False

    def end(self) -> None:
        """The server stops serving; requests that have not been handled are dropped, with their connections."""
        self._ended = True
        self._requests.clear()

    def write(self, request: Request) -> None:
        """Replicates a request of a client of this server, with the others of this turn of the event loop."""
        self._requests.append(request)
        if len(self._requests) == 1:
            self._later(self._write_gathered)

    def _write_gathered(self) -> None:
        raise NotImplementedError

    @property
    def tree(self) -> Tree:
        return self._replica.tree

    @property
    def last_zxid(self) -> int:
        return self._replica.zxid

    def read_only(self, _session: int) -> None:
        """There is a quorum, so there are no rules of a read-only server."""

    def status(self) -> ServerStatus:
        data, log = self._storage.sizes()
        return ServerStatus(
            mode=self.mode,
            data_dir_size=data,
            log_dir_size=log,
            membership=self._replica.membership_text,
            digests=tuple(self._replica.digest_log),
            monitored=(("digest_mismatches_count", self._replica.digest_mismatches),),
        )

    def _answer_synced(self, session: int, cxid: int) -> None:
        self._later(lambda: self._clients.synced(session, cxid))

    def _answer_revalidated(self, session: int, valid: bool) -> None:
        self._later(lambda: self._clients.revalidated(session, valid))

    def _later(self, work: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(self._core.submit, work)


class LeaderRole(_Role):
    """The service of a leader or a standalone server: it turns requests into transactions, and keeps the sessions."""

    def __init__(self, core: Core, settings: Settings, replica: Replica, storage: Storage, clients: Frontend) -> None:
        super().__init__(core, settings, replica, storage, clients)
        self.mode = "leader" if settings.distributed else "standalone"
        self._time = AttendedTime(settings.tick_time, system().monotonic_ms())
        self.sessions = Sessions(settings.tick_time, self.tree.sessions.items(), self._now())
        zab = core.server.zab
        self._first_zxid = make_zxid(zab.epoch) if zab is not None else 0
        self._syncs: deque[tuple[int, int, int]] = deque()
        """Pending syncs: the zxid of the proposal that the answer must follow, the session, and the cxid."""
        loop = asyncio.get_running_loop()
        self._half_tick = settings.tick_time / 2000
        self._ticking = loop.call_later(self._half_tick, self._tick)
        self._containers_checked = loop.time()

    def _now(self) -> int:
        """The time of sessions, in milliseconds: without the pauses of this process."""
        return self._time.at(system().monotonic_ms())

    def end(self) -> None:
        """The server stops leading."""
        super().end()
        self._ticking.cancel()

    def status(self) -> ServerStatus:
        """The figures of a leader for the four-letter words, including its proposals and all sessions."""
        milliseconds, since_1970 = self._now(), system().wall_ms() / 1000
        return replace(
            super().status(),
            proposals=self._storage.record_sizes,
            expiring=tuple((since_1970 + (when - milliseconds) / 1000, ids) for when, ids in self.sessions.by_expiry()),
        )

    @property
    def last_zxid(self) -> int:
        """The zxid of the last transaction applied; before the first one of its epoch, the epoch's own."""
        zxid, first = self._replica.zxid, self._first_zxid
        return zxid if zxid > first else first  # `max` is a call, for every answer of the server

    def sync(self, session: int, cxid: int) -> None:
        """Answers a sync, after the writes that were proposed before it; a leader has all committed transactions."""

        def ask() -> None:
            self._write_gathered()
            self._core.run(ClientSync())
            zab = self._core.server.zab
            if isinstance(zab, Leader) and zab.outstanding:
                self._syncs.append((zab.last_proposed, session, cxid))
            else:
                self._answer_synced(session, cxid)

        self._core.submit(ask)

    def revalidate(self, session: int, timeout: int) -> None:
        """Answers whether a session is alive; if so, the leader becomes its owner."""
        self._answer_revalidated(session, self.claim(session, timeout, self._core.server.sid))

    def claim(self, session: int, timeout: int, owner: Sid) -> bool:
        """Whether a session is alive; if so, `owner` becomes its owner."""
        return self.sessions.claim(session, owner) and self.sessions.touch(session, timeout, self._now())

    def touch(self, session: int, timeout: int) -> None:
        """A client of this session has sent something."""
        self.sessions.touch(session, timeout, self._now())

    def applied(self, zxid: int, change: Change, outcome: TxnResult) -> None:
        """A transaction is applied: sessions begin and end, and the client that waits for it gets its answer."""
        record = change.record
        if isinstance(record, CreateSessionTxn):
            self.sessions.open(change.session, record.time_out, self._now())
        elif isinstance(record, CloseSessionTxn):
            self.sessions.remove(change.session)
        self._clients.applied(change, outcome)
        while self._syncs and self._syncs[0][0] <= zxid:
            _, session, cxid = self._syncs.popleft()
            self._clients.synced(session, cxid)

    def requested(self, learner: Sid, request: Request) -> bool:
        """Proposes a request that a learner forwards; returns False while the protocol cannot accept it."""
        value = self._prepared(request, learner, self._last_proposed() + 1)
        return self._proposed(value, Receive(learner, ForwardedRequest(value)))

    def refused(self, learner: Sid, session: int, cxid: int, code: Code) -> bool:
        """Handles an unreadable request from a learner: its client gets an error, in the order of its requests."""
        change = self._foreseen(self._last_proposed() + 1, Change(session, cxid, system().wall_ms(), ErrorTxn(code)))
        return self._proposed(change, Receive(learner, ForwardedRequest(change)))

    def _write_gathered(self) -> None:
        """Proposes the gathered requests in one step, each prepared after the ones before it.

        A reconfiguration, and the end of an epoch, need a step each.
        """
        requests, self._requests = self._requests, []
        owner, last = self._core.server.sid, self._last_proposed()
        events: list[ClientWrite] = []
        for request in requests:
            if isinstance(request.record, Reconfig) or counter_of(last + 1) == 0:
                self._run_writes(events)
                events = []
                value = self._prepared(request, owner, last + 1)
                self._proposed(value, ClientWrite(value))
                if self._ended:
                    return
                last = self._last_proposed()
                continue
            last += 1
            value = self._prepared(request, owner, last)
            self._note(last, value)
            events.append(ClientWrite(value))
        self._run_writes(events)

    def _run_writes(self, events: Sequence[ClientWrite]) -> None:
        if events and self._core.run_all(events) != len(events):
            raise AssertionError("a leader that serves refused a write, which is prepared already")

    def _prepared(self, request: Request, owner: Sid, zxid: int) -> Change | Reconfiguration:
        """The transaction of a request that is proposed next, with this zxid.

        It is applied to the tree ahead and encoded before it is proposed, since no server survives a proposal that
        fails later. A request for which that fails is refused (`PrepRequestProcessor.pRequestHelper`).
        """
        try:
            if isinstance(request.record, Reconfig) and self._settings.reconfigurable:
                return self._reconfiguration(request, owner, zxid)
            change = self._replica.prepare(request, system().wall_ms(), self.sessions.check_request(request, owner))
            return self._foreseen(zxid, change)
        except Exception as error:
            name = type(request.record).__name__
            logger.error("session 0x%x: its %s is refused: %s", request.session % 2**64, name, place_of(error))  # noqa: TRY400 - one line
            refused = Change(request.session, request.cxid, system().wall_ms(), ErrorTxn(Code.MARSHALLING_ERROR))
            return self._foreseen(zxid, refused)

    def _foreseen(self, zxid: int, change: Change) -> Change:
        """A transaction whose outcome and bytes are known, and which every learner can read."""
        foreseen = self._replica.foreseen(zxid, change)
        size = len(self._core.encoder.encoded(zxid, foreseen))
        fitting = fitted(foreseen, size, largest_data(self._settings.jute_maxbuffer))
        return foreseen if fitting is foreseen else self._replica.foreseen(zxid, fitting)

    def _reconfiguration(self, request: Request, owner: Sid, zxid: int) -> Change | Reconfiguration:
        """A change of the members, prepared for the next zxid; a standalone server has none."""
        peer, zab, wall_ms = self._core.server.peer, self._core.server.zab, system().wall_ms()
        if not self._settings.distributed or not isinstance(zab, Leader):
            refused = Change(request.session, request.cxid, wall_ms, ErrorTxn(Code.UNIMPLEMENTED))
            return self._foreseen(zxid, refused)
        checked, options = self.sessions.check_request(request, owner), self._replica.options
        prepared = reconfig_request.prepare(peer, zab, self._replica.overlay, request, wall_ms, checked, options)
        if prepared.reason:
            logger.warning("a reconfiguration is refused: %s", prepared.reason)
        change = self._foreseen(zxid, change_of(prepared.value))
        if isinstance(prepared.value, Reconfiguration) and isinstance(change.record, ReconfigTxn):
            return replace(prepared.value, change=change)
        return change

    def _proposed(self, value: Change | Reconfiguration, event: ClientWrite | Receive) -> bool:
        """Passes a transaction to the protocol; returns False if that is impossible now."""
        zab = self._core.server.zab
        if isinstance(zab, Leader) and is_last(zab.last_proposed):
            self._core.resign(Resignation.ZXIDS_EXHAUSTED)
            return False
        before = self._last_proposed()
        if not self._core.run_all((event,)):
            return False
        last = self._last_proposed()
        if last <= before:
            return True  # a learner has sent its request too early, and is disconnected
        self._note(last, value)
        return True

    def _note(self, zxid: int, value: Change | Reconfiguration) -> None:
        """Notes the zxid of a proposal: what is prepared later sees its effect."""
        self._replica.proposed(zxid)
        change: Change = change_of(value)
        if isinstance(change.record, CloseSessionTxn):
            self.sessions.close(change.session)

    def _last_proposed(self) -> int:
        zab = self._core.server.zab
        return zab.last_proposed if isinstance(zab, Leader) else -1

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        self._ticking = loop.call_later(self._half_tick, self._tick)
        self._core.submit(lambda: self._core.run(Tick()))
        for session in self.sessions.expired(self._time.tick(system().monotonic_ms())):
            self.write(Request(session, 0, CloseSession()))
        if loop.time() - self._containers_checked >= self._settings.container_check / 1000:
            self._containers_checked = loop.time()
            for path in sorted(to_delete(self.tree, system().wall_ms())):
                self.write(Request(0, 0, DeleteContainer(path)))


class LearnerRole(_Role):
    """The service of a follower or observer: it forwards requests that change state, and answers the others."""

    def __init__(self, core: Core, settings: Settings, replica: Replica, storage: Storage, clients: Frontend) -> None:
        super().__init__(core, settings, replica, storage, clients)
        self.mode = "observer" if is_observer(core.server.sid, core.server.view) else "follower"
        self._syncs: deque[Request] = deque()
        self._touched: dict[int, int] = {}

    def _write_gathered(self) -> None:
        requests, self._requests = self._requests, []
        self._core.run_all(tuple(map(ClientWrite, requests)))

    def sync(self, session: int, cxid: int) -> None:
        """Sends a sync to the leader, whose answer follows every commit that it has sent before."""

        def ask() -> None:
            self._write_gathered()
            self._syncs.append(Request(session, cxid, Sync("/")))
            self._core.run(ClientSync())

        self._core.submit(ask)

    @property
    def newest_sync(self) -> Request:
        """The request of the most recent sync."""
        return self._syncs[-1]

    def synced(self) -> None:
        """The leader has answered the oldest sync."""
        if self._syncs:
            answered = self._syncs.popleft()
            # Immediately: a commit that arrived with this answer is applied next, and its answer must come after it.
            self._clients.synced(answered.session, answered.cxid)

    def revalidate(self, session: int, timeout: int) -> None:
        """Asks the leader whether a session is alive."""
        self._core.submit(lambda: self._core.revalidate(session, timeout))

    def revalidated(self, session: int, valid: bool) -> None:
        """The leader has answered whether a session is alive."""
        self._answer_revalidated(session, valid)

    def touch(self, session: int, timeout: int) -> None:
        """Marks a session as active, for the next PING to the leader."""
        self._touched[session] = timeout

    def take_touched(self) -> tuple[tuple[int, int], ...]:
        """The sessions that were active since the last PING, with their timeouts."""
        touched, self._touched = tuple(self._touched.items()), {}
        return touched

    def applied(self, _: int, change: Change, outcome: TxnResult) -> None:
        """A transaction is applied: the client that waits for it gets its answer."""
        self._clients.applied(change, outcome)
