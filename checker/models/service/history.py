"""The column `history`: the facts about committed transactions that a property of the run needs.

Updates are recognised by their data (see `scripts`), sequential names by their ten digits.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from checker.engine import Actor, Outcome
from checker.models.service.messages import CommitFact
from checker.models.service.observations import Note
from checker.models.service.scripts import step_of_tag
from spec.tree.apply import Event, EventType
from spec.tree.data import Record
from spec.tree.paths import parent_of
from spec.tree.requests import SessionId
from spec.tree.txns import CreateContainerTxn, CreateTtlTxn, CreateTxn, DeleteTxn, MultiTxn, SetDataTxn

HISTORY = "history"
_SEQUENTIAL = re.compile(r"\d{10}$").search


class CommitHistory(msgspec.Struct, frozen=True):
    """The facts about committed transactions.

    A sequential name is kept with the czxid of its parent, since the counter of a new parent starts again.
    """

    creations: tuple[tuple[str, int], ...] = ()  # the number of creations of each path
    alive: frozenset[str] = frozenset()  # the created paths that exist
    again: str | None = None  # a path that was created although it existed
    numbers: frozenset[tuple[int, str]] = frozenset()
    twice: str | None = None  # a sequential name that was assigned twice
    ephemerals: frozenset[tuple[SessionId, str, int]] = frozenset()  # owner, path, zxid
    last: tuple[tuple[int, int], ...] = ()  # the last step of each client that took effect
    overtaken: tuple[int, int, int] | None = None  # a client, a step, and an earlier step that took effect after it
    committed: frozenset[bytes] = frozenset()
    events: tuple[tuple[str, str], ...] = ()


def history_actor(notes: frozenset[Note]) -> Actor:
    """The history; its operation is CommitFact."""

    def step(values: tuple[Any, ...], fact: CommitFact) -> Outcome:
        history: CommitHistory = values[0]
        for txn in parts_of(fact.change.record):
            if isinstance(txn, DeleteTxn) and fact.change.session:
                history = _record_deletion(history, txn)
            if isinstance(txn, CreateTxn):
                history = _record_creation(history, fact, txn, notes)
            if isinstance(txn, CreateTxn | CreateContainerTxn | CreateTtlTxn | SetDataTxn) and txn.data:
                history = _record_update(history, txn.data, notes)
        if Note.CREATED in notes:
            for event in fact.events:
                history = _record_event(history, event)
        if Note.EVENTS in notes:
            events = tuple((event.type.name, event.path) for event in fact.events)
            history = replace(history, events=(*history.events, *events))
        return Outcome((history,))

    return Actor(HISTORY, (HISTORY,), step)


def parts_of(record: Record) -> Iterator[Record]:
    """The parts of a multi transaction; any other transaction is its only part."""
    if isinstance(record, MultiTxn):
        yield from record.txns
    else:
        yield record


def _record_event(history: CommitHistory, event: Event) -> CommitHistory:
    path = event.path
    if event.type is EventType.NODE_DELETED:
        return replace(history, alive=history.alive - {path})
    if event.type is not EventType.NODE_CREATED:
        return history
    creations = dict(history.creations)
    creations[path] = creations.get(path, 0) + 1
    again = path if history.again is None and path in history.alive else history.again
    return replace(history, creations=tuple(sorted(creations.items())), alive=history.alive | {path}, again=again)


def _record_creation(history: CommitHistory, fact: CommitFact, txn: CreateTxn, notes: frozenset[Note]) -> CommitHistory:
    path = txn.path
    if Note.NUMBERS in notes and _SEQUENTIAL(path):
        parent = fact.store.node(parent_of(path))
        number = (0 if parent is None else parent.czxid, path)
        if number in history.numbers:
            return replace(history, twice=path)
        history = replace(history, numbers=history.numbers | {number})
    if Note.EPHEMERALS in notes and txn.ephemeral:
        ephemerals = history.ephemerals | {(fact.change.session, path, fact.zxid)}
        history = replace(history, ephemerals=ephemerals)
    return history


def _record_deletion(history: CommitHistory, txn: DeleteTxn) -> CommitHistory:
    """The history after a client's request has deleted a znode.

    Deletions by the servers have no session, or are the end of one, and do not come here.
    """
    rest = frozenset(ephemeral for ephemeral in history.ephemerals if ephemeral[1] != txn.path)
    return replace(history, ephemerals=rest)


def _record_update(history: CommitHistory, data: bytes, notes: frozenset[Note]) -> CommitHistory:
    if Note.COMMITTED in notes:
        history = replace(history, committed=history.committed | {data})
    if Note.ORDER in notes:
        client, number = step_of_tag(data)
        last = dict(history.last)
        if last.get(client, 0) > number and history.overtaken is None:
            history = replace(history, overtaken=(client, last[client], number))
        last[client] = number
        history = replace(history, last=tuple(sorted(last.items())))
    return history
