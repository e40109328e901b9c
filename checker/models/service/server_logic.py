"""The decisions of the servers, by `spec.tree` and `spec.service`, their watches, and the variants of both.

Rules of this module: times are 0, since nothing here depends on them. A change without an effect is a refusal, or
consists of checks only. It takes no zxid, so that refusals add no states. Several
events of one transaction meet the watches one after the other, in their order; each client gets one notification of an
event. Variants: a watch remains after it has fired; the newest event is sent first.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec.structs import replace

from checker.engine import Actor, Outcome, Send
from checker.models.service.messages import (
    AddWatch,
    FireWatches,
    ForgetClient,
    Propose,
    SendMessage,
    WatchFact,
    WatchNotification,
)
from checker.models.service.setup import IDENTITIES, ServiceSetup, link_name, watches_name
from spec.service.connection import ROUTES, Route
from spec.service.handshake import ConnectClaims, Limits, Rejection, present
from spec.service.sessions import password
from spec.tree.apply import TxnResult, apply
from spec.tree.data import Record
from spec.tree.overlay import Overlay
from spec.tree.paths import parent_of, sequential
from spec.tree.prepare import prepare
from spec.tree.replies import Code
from spec.tree.requests import CloseSession, Create, CreateMode, CreateSession, Request, SessionId
from spec.tree.store import EndSession, FrozenStore, Remove
from spec.tree.txns import Change, CloseSessionTxn, CreateTxn, ErrorTxn, MultiTxn
from spec.tree.watches import Watches, WatchKind
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
    kept = tuple(txn for txn in multi.txns if not isinstance(txn, ErrorTxn))
    return multi if len(kept) == len(multi.txns) else MultiTxn(kept)


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
                return Outcome((frozenset(each for each in watching if each[0] != client),))
            case FireWatches(event):
                fired = _matches(watching, asked)
                clients = dict.fromkeys(client for client, _, _ in fired)
                facts = tuple(Send(name, WatchFact(event.path, len(clients))) for name in setup.observe_watches)
                notice = SendMessage(WatchNotification(event.type, event.path), ahead)
                told = tuple(Send(link_name(client), notice) for client in clients)
                return Outcome((watching if stays else watching - set(fired),), (*(facts if told else ()), *told))

    name = watches_name(server)
    return Actor(name, (name,), step)


def _matches(watching: Watching, fire: FireWatches) -> list[tuple[int, WatchKind, str]]:
    table: Watches[tuple[int, WatchKind]] = Watches()
    for client, kind, path in sorted(watching, key=lambda each: (each[0], each[2], each[1].value)):
        table.add(kind, path, (client, kind))
    return [(client, kind, fire.event.path) for (client, kind), _, _ in table.fire(fire.event)]
