"""The leader: the single order of all commits. The agreement on this order by Zab is checked elsewhere.

With lag, every commit is sent to every server, which applies it later. Without lag, the leader's tree is the tree of
all servers, and their clients get their replies in the same move; `server k` is then an actor over the leader's column,
and has no column.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from checker.engine import Actor, Outcome, Send
from checker.models.service.lagging_server import answers, marker_or_read
from checker.models.service.messages import (
    CloseConnection,
    Commit,
    CommitFact,
    DropEphemerals,
    FireWatches,
    ForgetClient,
    Origin,
    Propose,
    RegisterWatches,
    ServeRequest,
)
from checker.models.service.server_logic import ServerLogic, replicated
from checker.models.service.setup import LEADER, ServiceSetup, client_of, link_name, server_name, watches_name
from spec.tree.apply import Applied
from spec.tree.requests import SessionId
from spec.tree.store import FrozenStore
from spec.tree.txns import Change, CloseSessionTxn, DeleteTxn, MultiTxn


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
            return _committed(leader, Change(0, 0, 0, MultiTxn(tuple(map(DeleteTxn, paths)))), None)
        return _committed(leader, decisions.prepared(leader.store, asked), asked.origin)

    def _committed(leader: Leader, change: Change, origin: Origin | None) -> Outcome:
        applied = decisions.applied(leader.store, leader.zxid + 1, change)
        store = leader.store.carry_out(applied.operations)
        if store == leader.store:
            return Outcome((leader,), tuple(_refused(leader, change, applied, origin)))
        after = Leader(store, leader.zxid + 1)
        fact = CommitFact(after.zxid, change, after.store, applied.events)
        facts = tuple(Send(name, fact) for name in setup.observe_commits)
        return Outcome((after,), (*facts, *_told(after, change, applied, origin)))

    def _refused(leader: Leader, change: Change, applied: Applied, origin: Origin | None) -> Iterable[Send]:
        if origin is None:
            return ()
        if setup.lag:
            return (Send(server_name(origin.server), Commit(leader.zxid, change, origin)),)
        return answers(leader.zxid, change, applied, origin)

    def _told(leader: Leader, change: Change, applied: Applied, origin: Origin | None) -> Iterable[Send]:
        if setup.lag:
            for server in setup.server_ids:
                here = origin if origin is not None and origin.server == server else None
                yield Send(server_name(server), Commit(leader.zxid, change, here))
            return
        for event in applied.events:
            yield from (Send(watches_name(server), FireWatches(event)) for server in setup.server_ids)
        if origin is not None:
            yield from answers(leader.zxid, change, applied, origin)
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
                return Outcome(values, tuple(marker_or_read(server, leader.store, leader.zxid, asked)))

    return Actor(server_name(server), (LEADER,), step)
