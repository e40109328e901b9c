"""The observations of a scripted client: its record of replies and notifications, for properties.

The client makes no decision by it. Rules of this module:

- A part is kept only if a property of the run needs its `Note`: every additional part adds states.
- A violation is kept as the values that show it, once; the first one is enough.
- A new session has no memory of the reads of the old one: the guarantees hold within one session. The record of
  accepted and refused updates remains.
- A client that is gone keeps only the parts that other clients can still contradict.
- An expected answer is data that a scenario states. It comes from ZooKeeper's documentation or from a real server, so
  that it does not depend on the specification under test. The first answer that differs is kept, with the request.

Source: `KeeperException.Code`, `ZooDefs.OpCode`, the records of `zookeeper.jute`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from checker.models.service.messages import Reply, WatchNotification
from spec.client import EXPLAINED, Awaits, awaited
from spec.tree.data import Record, Stat
from spec.tree.replies import Code, ErrorReply, OperationResult
from spec.tree.requests import Create, CreateMode, Exists, GetChildren2, GetData, Multi, SetData, Sync
from spec.tree.store import Store

READS = (Exists, GetData, GetChildren2)


class Note(enum.Enum):
    """The notes that properties need. A client keeps the first seven and the last, `history` keeps the others.

    `history` also keeps a part for CREATED and for EVENTS.
    """

    CREATED = "which paths were created, and who was told so"
    ACCEPTED = "which of its updates were accepted"
    NEWEST = "the newest state it saw"
    FRESHNESS = "what was committed when it asked"
    WATCHES = "what it waits for"
    NOTICED = "what it was told has changed, and has not read since"
    EVENTS = "what it was told, and what happened"
    NUMBERS = "the sequential names that were given"
    EPHEMERALS = "the ephemeral znodes that were created"
    ORDER = "the last update of each client"
    COMMITTED = "the updates that were committed"
    ANSWERS = "the first answer that is not the expected one"


WatchedState: TypeAlias = tuple[int, int] | None
"""The state that a watch observes: the czxid of the znode, and the mzxid of its data (or the pzxid of its children).

None if the znode is absent.
"""
PendingWatch: TypeAlias = tuple[Awaits, str, WatchedState]


class Observations(msgspec.Struct, frozen=True):
    """The observations of a client. `asked_at` has the leader's zxid at the time of each outstanding request."""

    created: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()
    accepted: frozenset[bytes] = frozenset()
    newest: int = 0
    went_back: tuple[int, int] | None = None  # from this zxid to that one
    asked_at: tuple[int, ...] = ()
    synced: int = 0
    stale: tuple[str, int, int] | None = None  # the path of a read, the leader's zxid at its request, the zxid it saw
    behind: tuple[str, int, int] | None = None  # the same, with the leader's zxid at the request of an earlier sync
    watches: frozenset[PendingWatch] = frozenset()
    # The path, its old and its new state, without a notification in between.
    unheard: tuple[str, WatchedState, WatchedState] | None = None
    unasked: tuple[str, str] | None = None  # a notification of this type and path without a watch for it
    noticed: frozenset[PendingWatch] = frozenset()
    # The path was read in its state before the notification of its change.
    outdated: tuple[str, WatchedState] | None = None
    heard: tuple[tuple[str, str], ...] | None = ()  # None: after a disconnection events come in another order
    compared: bool = False  # an answer was compared with the expected one
    unexpected: tuple[Record, str] | None = None  # the request, and the part of its answer that is not as expected


def after_request(memory: Observations, notes: frozenset[Note], zxid: int) -> Observations:
    """The memory after a request, sent while the leader is at this zxid."""
    return replace(memory, asked_at=(*memory.asked_at, zxid)) if Note.FRESHNESS in notes else memory


def after_reply(memory: Observations, notes: frozenset[Note], answer: Reply, place: int) -> Observations:
    """The memory after the reply to the outstanding request at this place."""
    for note, record in _RECORDERS.items():
        if note in notes:
            memory = record(memory, answer, place)
    return memory


def after_comparison(memory: Observations, expected: Expected | None, answer: Reply) -> Observations:
    """The memory after an answer is compared with the expected one."""
    if expected is None or memory.unexpected is not None:
        return memory
    differs = difference(expected, answer)
    wrong = None if differs is None else (answer.asked, differs)
    return replace(memory, compared=True, unexpected=wrong)


def _record_creation(memory: Observations, answer: Reply, _place: int) -> Observations:
    create = answer.asked
    if not isinstance(create, Create) or create.flags not in (CreateMode.PERSISTENT, CreateMode.EPHEMERAL):
        return memory
    if answer.code is Code.OK:
        return replace(memory, created=memory.created | {create.path})
    return replace(memory, refused=memory.refused | {create.path}) if answer.code is Code.NODE_EXISTS else memory


def _record_update(memory: Observations, answer: Reply, _place: int) -> Observations:
    data = tags_of(answer.asked) if succeeded(answer) else frozenset()
    return replace(memory, accepted=memory.accepted | data) if data else memory


def _record_zxid(memory: Observations, answer: Reply, _place: int) -> Observations:
    if answer.zxid < memory.newest and memory.went_back is None:
        memory = replace(memory, went_back=(memory.newest, answer.zxid))
    return replace(memory, newest=max(memory.newest, answer.zxid))


def _record_freshness(memory: Observations, answer: Reply, place: int) -> Observations:
    zxid = memory.asked_at[place]
    memory = replace(memory, asked_at=memory.asked_at[:place] + memory.asked_at[place + 1 :])
    if isinstance(answer.asked, Sync):
        return replace(memory, synced=max(memory.synced, zxid))
    if not isinstance(answer.asked, READS):
        return memory
    if memory.stale is None and answer.zxid < zxid:
        memory = replace(memory, stale=(answer.asked.path, zxid, answer.zxid))
    if memory.behind is None and answer.zxid < memory.synced:
        memory = replace(memory, behind=(answer.asked.path, memory.synced, answer.zxid))
    return memory


def _record_watch(memory: Observations, answer: Reply, _place: int) -> Observations:
    request = answer.asked
    if not isinstance(request, READS) or answer.code not in (Code.OK, Code.NO_NODE):
        return memory
    is_, children = state_in_reply(answer), isinstance(request, GetChildren2)
    for awaits, path, was in sorted(memory.watches, key=repr):
        alike = path == request.path and (awaits is Awaits.CHILDREN) is children
        if alike and was != is_ and memory.unheard is None:
            memory = replace(memory, unheard=(path, was, is_))
    notices = {waiting for waiting in memory.noticed if waiting[1] == request.path}
    if any(was == is_ and (awaits is Awaits.CHILDREN) is children for awaits, _, was in notices):
        memory = replace(memory, outdated=(request.path, is_))
    memory = replace(memory, noticed=memory.noticed - notices) if notices else memory
    watch = awaited(request, answer.code)
    return memory if watch is None else replace(memory, watches=memory.watches | {(*watch, is_)})


def state_in_reply(answer: Reply) -> WatchedState:
    """The state of a path in the reply to a read."""
    stat: Stat | None = None if answer.reply is None else answer.reply.stat  # type: ignore[attr-defined]
    if stat is None:
        return None
    return stat.czxid, stat.pzxid if isinstance(answer.asked, GetChildren2) else stat.mzxid


def state_in_store(store: Store, awaits: Awaits, path: str) -> WatchedState:
    """The state of a path in a store."""
    znode = store.node(path)
    if znode is None:
        return None
    return znode.czxid, znode.pzxid if awaits is Awaits.CHILDREN else znode.mzxid


def explains(notice: WatchNotification, waiting: PendingWatch) -> bool:
    """Whether a notification reports the change that a watch waits for."""
    awaits, path, _ = waiting
    return path == notice.path and awaits in EXPLAINED[notice.type]


def after_notification(memory: Observations, notes: frozenset[Note], notice: WatchNotification) -> Observations:
    """The memory after a notification."""
    event = (notice.type.name, notice.path)
    if Note.EVENTS in notes and memory.heard is not None:
        memory = replace(memory, heard=(*memory.heard, event))
    if Note.WATCHES not in notes:
        return memory
    met = {waiting for waiting in memory.watches if explains(notice, waiting)}
    if not met and memory.unasked is None:
        return replace(memory, unasked=event)
    noticed = memory.noticed | met if Note.NOTICED in notes else memory.noticed
    return replace(memory, watches=memory.watches - met, noticed=noticed)


def after_loss(memory: Observations, notes: frozenset[Note], *, keeps_watches: bool) -> Observations:
    """The memory after the loss of the connection."""
    watches = memory.watches if keeps_watches else frozenset()
    heard = None if Note.EVENTS in notes else memory.heard
    return replace(memory, asked_at=(), watches=watches, heard=heard)


def without_session(memory: Observations) -> Observations:
    """The memory after the end of the session, or of the client."""
    return replace(memory, newest=0, asked_at=(), synced=0, watches=frozenset(), noticed=frozenset())


def tags_of(record: Record) -> frozenset[bytes]:
    """The data that an update writes; all updates of the scripts write different data."""
    if isinstance(record, Multi):
        return frozenset[bytes]().union(*map(tags_of, record.operations))
    return frozenset({record.data}) if isinstance(record, Create | SetData) and record.data else frozenset()


def succeeded(answer: Reply) -> bool:
    """Whether an update was carried out. A failed multi has the code OK, and an error for each operation."""
    results = getattr(answer.reply, "results", ())
    return answer.code is Code.OK and all(result.type != -1 for result in results)


_RECORDERS = {
    Note.CREATED: _record_creation,
    Note.ACCEPTED: _record_update,
    Note.NEWEST: _record_zxid,
    Note.FRESHNESS: _record_freshness,
    Note.WATCHES: _record_watch,
}


UNSIGNED = 1 << 64


class Expected(msgspec.Struct, frozen=True):
    """The correct answers: any of these codes, and with OK these fields, in the notation of `field_of`."""

    codes: tuple[Code, ...]
    fields: tuple[tuple[str, str], ...] = ()


def difference(expected: Expected, answer: Reply) -> str | None:
    """The part of an answer that differs from the expectation; None if there is no difference."""
    if answer.code not in expected.codes:
        return answer.code.name
    if answer.code is not Code.OK or answer.reply is None:
        return None
    for name, value in expected.fields:
        if (text := field_of(answer.reply, name)) != value:
            return f"{name}={text}"
    return None


def _result(result: OperationResult) -> str:
    return Code(result.record.err).name if isinstance(result.record, ErrorReply) else Code.OK.name


_OF: Mapping[str, Mapping[str, Callable[[Any], str]]] = {
    "stat": {
        "version": lambda stat: str(stat.version),
        "cversion": lambda stat: str(stat.cversion),
        "aversion": lambda stat: str(stat.aversion),
        "length": lambda stat: str(stat.data_length),
        "count": lambda stat: str(stat.num_children),
        "owner": lambda stat: f"{stat.ephemeral_owner % UNSIGNED:#x}",
        "created": lambda stat: str(stat.czxid),
        "modified": lambda stat: str(stat.mzxid),
        "children-modified": lambda stat: str(stat.pzxid),
    },
    "path": {"path": str},
    "data": {"data": lambda data: (data or b"").decode()},
    "children": {"children": lambda children: ",".join(sorted(children))},
    "ephemerals": {"ephemerals": lambda paths: ",".join(sorted(paths))},
    "total_number": {"number": str},
    "acl": {"acl": lambda acl: ",".join(f"{each.id.scheme}:{each.id.id}:{each.perms}" for each in acl)},
    "results": {"results": lambda results: ",".join(map(_result, results))},
}
"""The fields of each attribute of a reply, each as text."""

_ATTRIBUTE = {name: attribute for attribute, fields in _OF.items() for name in fields}


def fields_of(reply: type[Record]) -> frozenset[str]:
    """The fields that a kind of reply has."""
    return frozenset(name for attribute in reply.__struct_fields__ for name in _OF.get(attribute, ()))


def field_of(reply: Record, name: str) -> str:
    """A field of a reply that has it, as text."""
    attribute = _ATTRIBUTE[name]
    return _OF[attribute][name](getattr(reply, attribute))
