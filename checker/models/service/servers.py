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
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from checker.engine import Actor, Outcome, Send
from checker.models.service.messages import (
    AddWatch,
    ApplyNext,
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
    StartSession,
    SyncMarker,
    WatchNotification,
)
from checker.models.service.server_logic import ServerLogic, answered_early, replicated
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
from spec.tree.apply import TxnResult
from spec.tree.data import Record
from spec.tree.read import read
from spec.tree.replies import Code, PathReply
from spec.tree.requests import CheckWatches, CreateSession, SessionId, Sync
from spec.tree.store import FrozenStore
from spec.tree.txns import Change, CloseSessionTxn, DeleteTxn, MultiTxn
from spec.tree.watches import WatcherType, Watches, WatchKind, watch_of
from spec.variants import Variant


class LaggingServer(msgspec.Struct, frozen=True):
    """A server's tree, the last zxid it has applied, and its pending transactions and syncs, oldest first."""

    store: FrozenStore
    zxid: int = 0
    pending: tuple[Commit | SyncMarker, ...] = ()


def lagging_server_actor(server: int, setup: ServiceSetup) -> Actor:
    """A server. Its operations are Commit, ApplyNext, ServeRequest, RegisterWatches and ForgetClient."""
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
            case ApplyNext():
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
    for each in pending:
        mine = each.origin is not None and each.origin.client == client
        if isinstance(each, SyncMarker):
            if not mine:
                yield each
        elif not mine:
            last = each.zxid
            yield each
        elif each.zxid != last:
            last = each.zxid
            yield replace(each, origin=None)


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
    wanted = (
        (WatchKind.DATA, WatcherType.DATA, dict.fromkeys((*request.data_watches, *request.exist_watches))),
        (WatchKind.CHILDREN, WatcherType.CHILDREN, request.child_watches),
    )
    for kind, type_, paths in wanted:
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
                here = origin if origin is not None and origin.server == server else None
                yield Send(server_name(server), Commit(leader.zxid, change, here))
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
