"""The servers: the leader with the single order of all commits, and the servers that apply them.

With lag, every commit is sent to every server, which applies it later. Without lag, the leader's tree is the tree of
all servers, and their clients get their replies in the same move; `server k` is then an actor over the leader's column,
and has no column. The agreement on the order by Zab is checked elsewhere.

Rules of this module:

- Pending transactions are applied in the order of their commits. A refusal or a sync with nothing before it is answered
  in the same move.
- A transaction first sends the notifications of its watches, then the reply to its request. All messages to a client
  use its one link, so a client gets the notification of a change before it can see the change.
- When the end of a session is applied, the connection of the session to this server is closed.
- A sync waits for every transaction that was committed before the sync arrived, and for nothing else.
- Reads are answered from the tree of this server. `link` lets a read arrive only when its connection has no request
  that waits.
- Times are 0, since nothing here depends on them. A change without an effect is a refusal, or consists of checks only.
  It takes no zxid, so that refusals add no states.
- Several events of one transaction meet the watches one after the other, in their order; each client gets one
  notification of an event. Variants: a watch remains after it has fired; the newest event is sent first.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from checker.engine import Actor, Outcome, Send
from checker.models.service.messages import (
    AddWatch,
    CloseConnection,
    Commit,
    CommitFact,
    DropEphemerals,
    FireWatches,
    ForgetClient,
    Origin,
    Propose,
    RegisterWatches,
    Reply,
    SendMessage,
    ServeRequest,
    ServiceAction,
    StartSession,
    SyncMarker,
    WatchFact,
    WatchNotification,
)
from checker.models.service.setup import (
    IDENTITIES,
    LEADER,
    ServiceSetup,
    client_of,
    link_name,
    server_name,
    watches_name,
)
from spec.client import Library
from spec.service.connection import ROUTES, Route
from spec.service.handshake import ConnectClaims, Limits, Rejection, present
from spec.service.sessions import password
from spec.tree.apply import TxnResult, apply
from spec.tree.data import Record
from spec.tree.overlay import Overlay
from spec.tree.paths import parent_of, sequential
from spec.tree.prepare import prepare
from spec.tree.read import read
from spec.tree.replies import Code, PathReply
from spec.tree.requests import CheckWatches, CloseSession, Create, CreateMode, CreateSession, Request, SessionId, Sync
from spec.tree.store import EndSession, FrozenStore, Remove
from spec.tree.txns import Change, CloseSessionTxn, CreateTxn, DeleteTxn, ErrorTxn, MultiTxn
from spec.tree.watches import WatcherType, Watches, WatchKind, watch_of
from spec.variants import Variant

_SEQUENTIAL = (CreateMode.PERSISTENT_SEQUENTIAL, CreateMode.EPHEMERAL_SEQUENTIAL)


_LIMITS = Limits(0, 0)


def accepts_session(session: SessionId, seen: int, zxid: int) -> bool:
    """Whether a server that has applied `zxid` accepts a client that has seen `seen`, if its session is open."""
    presented = ConnectClaims(seen, 0, session, password(session))
    return not isinstance(present(presented, _LIMITS, zxid), Rejection)


class ServerLogic:
    """The conversion of requests to transactions by a leader, and of transactions to changes of a tree by a server."""

    def __init__(self, variants: frozenset[Variant]) -> None:
        self._variants = variants

    def transaction_of(self, store: FrozenStore, propose: Propose) -> Change:
        """The transaction for a request. A request of a session that is not open is refused as expired."""
        session, record = propose.session, propose.record
        open_ = store.timeout(session) is not None
        if Variant.REUSED_SEQUENCE_NUMBER in self._variants and isinstance(record, Create):
            record = _numbered_by_siblings(store, record)
        view = store if propose.view is None else propose.view
        change = prepare(view, Request(session, 0, record, IDENTITIES), 0, Code.OK if open_ else Code.SESSION_EXPIRED)
        if Variant.HALF_A_MULTI in self._variants and isinstance(change.record, MultiTxn):
            change = replace(change, record=_up_to_the_error(change.record))
        return change

    def effect_of(self, store: FrozenStore, zxid: int, change: Change) -> TxnResult:
        """The effect of a transaction on a tree."""
        txn = change.record
        if Variant.EPHEMERAL_OUTLIVES_SESSION in self._variants and isinstance(txn, CloseSessionTxn):
            return TxnResult((EndSession(change.session),))
        if Variant.TWO_CREATORS in self._variants and isinstance(txn, CreateTxn) and store.node(txn.path) is not None:
            free = Overlay(store)
            free.carry_out(zxid, (Remove(txn.path),))
            return apply(free, zxid, change)
        return apply(store, zxid, change)


def replicated(record: Record) -> bool:
    """Whether the leader makes a transaction of a request."""
    return ROUTES[type(record)] is Route.WRITE or isinstance(record, CreateSession)


def answered_early(record: Record) -> bool:
    """Whether a server answers a request before its commit, with the variant `ANSWERED_BEFORE_COMMIT`."""
    return ROUTES[type(record)] is Route.WRITE and not isinstance(record, CloseSession)


def _numbered_by_siblings(store: FrozenStore, create: Create) -> Create:
    if create.flags not in _SEQUENTIAL:
        return create
    number = len(store.children(parent_of(create.path)))
    return replace(create, path=sequential(create.path, number), flags=create.flags - 2)


def _up_to_the_error(multi: MultiTxn) -> MultiTxn:
    changes = tuple(txn for txn in multi.txns if not isinstance(txn, ErrorTxn))
    return multi if len(changes) == len(multi.txns) else MultiTxn(changes)


Watching: TypeAlias = frozenset[tuple[int, WatchKind, str]]
"""The watches as (client, kind, path)."""


def watches_actor(server: int, setup: ServiceSetup) -> Actor:
    """The watches of a server. Its operations are AddWatch, FireWatches and ForgetClient."""
    stays = Variant.WATCH_FIRES_TWICE in setup.variants
    ahead = Variant.EVENTS_OUT_OF_ORDER in setup.variants

    def step(values: tuple[Any, ...], asked: AddWatch | FireWatches | ForgetClient) -> Outcome:
        watching: Watching = values[0]
        match asked:
            case AddWatch(client, kind, path):
                return Outcome((watching | {(client, kind, path)},))
            case ForgetClient(client):
                return Outcome((frozenset(watch for watch in watching if watch[0] != client),))
            case FireWatches(event):
                fired = _matches(watching, asked)
                clients = dict.fromkeys(client for client, _, _ in fired)
                facts = tuple(Send(name, WatchFact(event.path, len(clients))) for name in setup.observe_watches)
                notice = SendMessage(WatchNotification(event.type, event.path), ahead)
                notices = tuple(Send(link_name(client), notice) for client in clients)
                return Outcome((watching if stays else watching - set(fired),), (*(facts if notices else ()), *notices))

    name = watches_name(server)
    return Actor(name, (name,), step)


def _matches(watching: Watching, fire: FireWatches) -> list[tuple[int, WatchKind, str]]:
    table: Watches[tuple[int, WatchKind]] = Watches()
    for client, kind, path in sorted(watching, key=lambda each: (each[0], each[2], each[1].value)):
        table.add(kind, path, (client, kind))
    return [(client, kind, fire.event.path) for (client, kind), _, _ in table.fire(fire.event)]


class LaggingServer(msgspec.Struct, frozen=True):
    """A server's tree, the last zxid it has applied, and its pending transactions and syncs, oldest first."""

    store: FrozenStore
    zxid: int = 0
    pending: tuple[Commit | SyncMarker, ...] = ()


def lagging_server_actor(server: int, setup: ServiceSetup) -> Actor:
    """A server. Its operations are Commit, ServiceAction.APPLY, ServeRequest, RegisterWatches and ForgetClient."""
    name = server_name(server)
    return Actor(name, (name,), _ServerSteps(server, setup.variants).step)


class _ServerSteps:
    def __init__(self, server: int, variants: frozenset[Variant]) -> None:
        self._server, self._variants = server, variants
        self._logic = ServerLogic(variants)

    def step(self, values: tuple[Any, ...], asked: Any) -> Outcome | None:
        replica: LaggingServer = values[0]
        match asked:
            case Commit():
                return self._receive(replica, asked)
            case ServiceAction.APPLY:
                return self._apply(replica) if replica.pending else None
            case ForgetClient(client):
                return Outcome((replace(replica, pending=tuple(_without(client, replica.pending))),))
            case ServeRequest(session, record, client):
                origin = None if client is None else Origin(self._server, client, record)
                return self._serve(replica, session, record, origin, asked)
            case _:
                return Outcome(values, tuple(sync_or_read(self._server, replica.store, replica.zxid, asked)))

    def _serve(
        self, replica: LaggingServer, session: int, record: Record, origin: Origin | None, asked: ServeRequest
    ) -> Outcome | None:
        if isinstance(record, Sync) and replica.pending and Variant.SYNC_WITHOUT_WAITING not in self._variants:
            if origin is None:
                return Outcome((replica,))
            return Outcome((replace(replica, pending=(*replica.pending, SyncMarker(origin))),))
        if origin is not None and Variant.ANSWERED_BEFORE_COMMIT in self._variants and answered_early(record):
            change = self._logic.transaction_of(replica.store, Propose(session, record))
            applied = self._logic.effect_of(replica.store, replica.zxid, change)
            return Outcome((replica,), reply_to(replica.zxid, change, applied, origin))
        if replicated(record):
            view = replica.store if Variant.TWO_CREATORS in self._variants else None
            return Outcome((replica,), (Send(LEADER, Propose(session, record, origin, view)),))
        return Outcome((replica,), tuple(sync_or_read(self._server, replica.store, replica.zxid, asked)))

    def _receive(self, replica: LaggingServer, commit: Commit) -> Outcome:
        """A transaction always becomes pending; a refusal does so only behind other pending ones."""
        waits = replace(replica, pending=(*replica.pending, commit))
        if replica.pending or commit.zxid > replica.zxid:
            return Outcome((waits,))
        return self._apply(waits)

    def _apply(self, replica: LaggingServer) -> Outcome:
        """Apply the oldest transaction, then answer the refusals and syncs directly behind it."""
        first, pending = replica.pending[0], replica.pending[1:]
        assert isinstance(first, Commit), "a sync waits behind a transaction"
        applied = self._logic.effect_of(replica.store, first.zxid, first.change)
        store, zxid = replica.store.carry_out(applied.operations), first.zxid
        sends = list(self._consequences(first, applied))
        while pending and (isinstance(pending[0], SyncMarker) or pending[0].zxid == zxid):
            behind, pending = pending[0], pending[1:]
            if isinstance(behind, SyncMarker):
                sends.append(_sync_reply(behind.origin, zxid))
            elif behind.origin is not None:
                applied = self._logic.effect_of(store, behind.zxid, behind.change)
                sends += reply_to(behind.zxid, behind.change, applied, behind.origin)
        return Outcome((LaggingServer(store, zxid, pending),), tuple(sends))

    def _consequences(self, commit: Commit, applied: TxnResult) -> Iterator[Send]:
        for event in applied.events:
            yield Send(watches_name(self._server), FireWatches(event))
        if commit.origin is not None:
            yield from reply_to(commit.zxid, commit.change, applied, commit.origin)
        if isinstance(commit.change.record, CloseSessionTxn):
            session = commit.change.session
            yield Send(link_name(client_of(session)), CloseConnection(self._server, session))


def _without(client: int, pending: Iterable[Commit | SyncMarker]) -> Iterator[Commit | SyncMarker]:
    """The pending items without this client as an origin.

    Its syncs and refusals are removed, since they only wait for a reply; its transactions remain.
    """
    last = None
    for transaction in pending:
        mine = transaction.origin is not None and transaction.origin.client == client
        if isinstance(transaction, SyncMarker):
            if not mine:
                yield transaction
        elif not mine:
            last = transaction.zxid
            yield transaction
        elif transaction.zxid != last:
            last = transaction.zxid
            yield replace(transaction, origin=None)


def _sync_reply(origin: Origin, zxid: int) -> Send:
    path = origin.asked.path if isinstance(origin.asked, Sync) else ""
    return Send(link_name(origin.client), SendMessage(Reply(origin.asked, Code.OK, PathReply(path), zxid)))


def reply_to(zxid: int, change: Change, applied: TxnResult, origin: Origin) -> tuple[Send, ...]:
    """The reply to the request of a transaction."""
    if isinstance(origin.asked, CreateSession):
        return (Send(link_name(origin.client), StartSession(change.session, zxid)),)
    reply = Reply(origin.asked, applied.code, applied.reply, zxid)
    return (Send(link_name(origin.client), SendMessage(reply)),)


def sync_or_read(server: int, store: FrozenStore, zxid: int, asked: ServeRequest | RegisterWatches) -> Iterator[Send]:
    """The replies from a server's present tree: to reads, to syncs that need not wait, and to `RegisterWatches`."""
    if isinstance(asked, RegisterWatches):
        yield from _register(store, server, asked.client, asked.library)
        return
    if asked.client is None:
        return  # a late request: there is no client to answer or to notify
    link, record = link_name(asked.client), asked.record
    if isinstance(record, Sync):
        yield Send(link, SendMessage(Reply(record, Code.OK, PathReply(record.path), zxid)))
        return
    code, reply = read(store, record, asked.session, IDENTITIES)
    kind = watch_of(record, code)
    if kind is not None:
        yield Send(watches_name(server), AddWatch(asked.client, kind, record.path))  # type: ignore[attr-defined]
    yield Send(link, SendMessage(Reply(record, code, reply, zxid)))


def _register(store: FrozenStore, server: int, client: int, library: Library) -> Iterator[Send]:
    """The watches of a library that the server registers again, and notifications of the missed events."""
    request = library.set_watches
    if request is None:
        return
    table: Watches[int] = Watches()
    missed = table.set_watches(store, request, client)
    registrations = (
        (WatchKind.DATA, WatcherType.DATA, dict.fromkeys((*request.data_watches, *request.exist_watches))),
        (WatchKind.CHILDREN, WatcherType.CHILDREN, request.child_watches),
    )
    for kind, type_, paths in registrations:
        for path in paths:
            if table.check(CheckWatches(path, type_), client) is Code.OK:
                yield Send(watches_name(server), AddWatch(client, kind, path))
    for _, event, path in missed:
        yield Send(link_name(client), SendMessage(WatchNotification(event, path)))


class Leader(msgspec.Struct, frozen=True):
    """The tree after every committed transaction, and the zxid of the last one."""

    store: FrozenStore
    zxid: int = 0


def open_sessions(leader: Leader) -> tuple[SessionId, ...]:
    """The sessions that have not ended."""
    return tuple(session for session, _ in leader.store.sessions)


def leader_actor(setup: ServiceSetup) -> Actor:
    """The leader. Its operations are Propose and, with a variant, DropEphemerals."""
    decisions = ServerLogic(setup.variants)

    def step(values: tuple[Any, ...], asked: Propose | DropEphemerals) -> Outcome:
        leader: Leader = values[0]
        if isinstance(asked, DropEphemerals):
            paths = sorted(leader.store.ephemerals(asked.session))
            return _commit(leader, Change(0, 0, 0, MultiTxn(tuple(map(DeleteTxn, paths)))), None)
        return _commit(leader, decisions.transaction_of(leader.store, asked), asked.origin)

    def _commit(leader: Leader, change: Change, origin: Origin | None) -> Outcome:
        applied = decisions.effect_of(leader.store, leader.zxid + 1, change)
        store = leader.store.carry_out(applied.operations)
        if store == leader.store:
            return Outcome((leader,), tuple(_refuse(leader, change, applied, origin)))
        after = Leader(store, leader.zxid + 1)
        fact = CommitFact(after.zxid, change, after.store, applied.events)
        facts = tuple(Send(name, fact) for name in setup.observe_commits)
        return Outcome((after,), (*facts, *_distribute(after, change, applied, origin)))

    def _refuse(leader: Leader, change: Change, applied: TxnResult, origin: Origin | None) -> Iterable[Send]:
        if origin is None:
            return ()
        if setup.lag:
            return (Send(server_name(origin.server), Commit(leader.zxid, change, origin)),)
        return reply_to(leader.zxid, change, applied, origin)

    def _distribute(leader: Leader, change: Change, applied: TxnResult, origin: Origin | None) -> Iterable[Send]:
        if setup.lag:
            for server in setup.server_ids:
                local_origin = origin if origin is not None and origin.server == server else None
                yield Send(server_name(server), Commit(leader.zxid, change, local_origin))
            return
        for event in applied.events:
            yield from (Send(watches_name(server), FireWatches(event)) for server in setup.server_ids)
        if origin is not None:
            yield from reply_to(leader.zxid, change, applied, origin)
        if isinstance(change.record, CloseSessionTxn):
            yield Send(link_name(client_of(change.session)), CloseConnection(None, change.session))

    return Actor(LEADER, (LEADER,), step)


def server_without_lag(server: int) -> Actor:
    """A server whose tree is the leader's."""

    def step(values: tuple[Any, ...], asked: ServeRequest | RegisterWatches | ForgetClient) -> Outcome:
        leader: Leader = values[0]
        match asked:
            case ForgetClient():
                return Outcome(values)
            case ServeRequest(session, record, client) if replicated(record):
                origin = None if client is None else Origin(server, client, record)
                return Outcome(values, (Send(LEADER, Propose(session, record, origin)),))
            case _:
                return Outcome(values, tuple(sync_or_read(server, leader.store, leader.zxid, asked)))

    return Actor(server_name(server), (LEADER,), step)
