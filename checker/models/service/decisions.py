"""What the servers decide, by `spec.tree` and `spec.service`, and what the variants have them decide wrongly.

Rules of this module: times are 0, since nothing here depends on them. A change without an effect is a refusal, or asks
for nothing but checks; it takes no zxid, so that refusals do not tell states apart.
"""

from __future__ import annotations

from msgspec.structs import replace

from checker.models.service.setup import IDENTITIES
from checker.models.service.words import Propose
from spec.service.connecting import Limits, Presented, TurnedAway, present
from spec.service.connection import ROUTES, Route
from spec.service.sessions import password
from spec.tree.apply import Applied, apply
from spec.tree.fields import Record
from spec.tree.overlay import Overlay
from spec.tree.paths import parent_of, sequential
from spec.tree.prepare import prepare
from spec.tree.replies import Code
from spec.tree.requests import CloseSession, Create, CreateMode, CreateSession, Request, SessionId
from spec.tree.store import EndSession, FrozenStore, Remove
from spec.tree.txns import Change, CloseSessionTxn, CreateTxn, ErrorTxn, MultiTxn
from spec.variants import Variant

_SEQUENTIAL = (CreateMode.PERSISTENT_SEQUENTIAL, CreateMode.EPHEMERAL_SEQUENTIAL)


_LIMITS = Limits(0, 0)


def takes_in(session: SessionId, seen: int, zxid: int) -> bool:
    """Whether a server that has applied `zxid` takes in a client that has seen so much, if its session lives."""
    presented = Presented(seen, 0, session, password(session))
    return not isinstance(present(presented, _LIMITS, zxid), TurnedAway)


class Decisions:
    """What a leader makes of requests, and what a server makes of transactions."""

    def __init__(self, variants: frozenset[Variant]) -> None:
        self._variants = variants

    def prepared(self, store: FrozenStore, propose: Propose) -> Change:
        """The transaction for a request. One of a session that is not open is refused as expired."""
        session, record = propose.session, propose.record
        open_ = store.timeout(session) is not None
        if Variant.REUSED_SEQUENCE_NUMBER in self._variants and isinstance(record, Create):
            record = _numbered_by_siblings(store, record)
        view = store if propose.view is None else propose.view
        change = prepare(view, Request(session, 0, record, IDENTITIES), 0, Code.OK if open_ else Code.SESSION_EXPIRED)
        if Variant.HALF_A_MULTI in self._variants and isinstance(change.record, MultiTxn):
            change = replace(change, record=_up_to_the_error(change.record))
        return change

    def applied(self, store: FrozenStore, zxid: int, change: Change) -> Applied:
        """What a transaction does to a tree."""
        txn = change.record
        if Variant.EPHEMERAL_OUTLIVES_SESSION in self._variants and isinstance(txn, CloseSessionTxn):
            return Applied((EndSession(change.session),))
        if Variant.TWO_CREATORS in self._variants and isinstance(txn, CreateTxn) and store.node(txn.path) is not None:
            free = Overlay(store)
            free.carry_out(zxid, (Remove(txn.path),))
            return apply(free, zxid, change)
        return apply(store, zxid, change)


def replicated(record: Record) -> bool:
    """Whether a request is for the leader to make a transaction of."""
    return ROUTES[type(record)] is Route.WRITE or isinstance(record, CreateSession)


def answered_early(record: Record) -> bool:
    """What a server answers before it is committed, by a variant."""
    return ROUTES[type(record)] is Route.WRITE and not isinstance(record, CloseSession)


def _numbered_by_siblings(store: FrozenStore, create: Create) -> Create:
    if create.flags not in _SEQUENTIAL:
        return create
    number = len(store.children(parent_of(create.path)))
    return replace(create, path=sequential(create.path, number), flags=create.flags - 2)


def _up_to_the_error(multi: MultiTxn) -> MultiTxn:
    kept = tuple(txn for txn in multi.txns if not isinstance(txn, ErrorTxn))
    return multi if len(kept) == len(multi.txns) else MultiTxn(kept)
