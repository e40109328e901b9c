"""What a scripted client remembers of what it heard, for properties to look at: it decides nothing by it.

Rules of this module:

- A part is kept only if a property of the run asks for its `Note`: every further memory tells states apart.
- What went wrong is kept as the values that show it, once; the first is enough.
- A new session remembers nothing of what the old one saw: the guarantees are those of one session. What was accepted
  from a client, or refused, stays so.
- A client that is gone keeps only what others can still contradict.
"""

from __future__ import annotations

import enum
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from checker.models.service import telling
from checker.models.service.expected import Expected, difference
from checker.models.service.words import Notice, Reply
from spec.client.library import EXPLAINED, Awaits, awaited
from spec.tree.data import Stat
from spec.tree.fields import Record
from spec.tree.replies import Code
from spec.tree.requests import Create, CreateMode, Exists, GetChildren2, GetData, Multi, SetData, Sync
from spec.tree.store import Store

READS = (Exists, GetData, GetChildren2)


class Note(enum.Enum):
    """The notes that properties ask for. A client keeps the first seven and the last, `history` keeps the others."""

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


At: TypeAlias = tuple[int, int] | None
"""What a watch looks at: when the znode came to be, and when its data (or children) last changed; None: no znode."""
Waiting: TypeAlias = tuple[Awaits, str, At]


class Memory(msgspec.Struct, frozen=True):
    """What a client remembers. `asked_at` are zxids of the leader, one for each request that is outstanding."""

    created: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()
    accepted: frozenset[bytes] = frozenset()
    newest: int = 0
    went_back: tuple[int, int] | None = None  # from this zxid to that one
    asked_at: tuple[int, ...] = ()
    synced: int = 0
    stale: tuple[str, int, int] | None = None  # a read of this path, when the leader was at, saw only
    behind: tuple[str, int, int] | None = None  # the same, after a sync that was asked when the leader was at
    watches: frozenset[Waiting] = frozenset()
    unheard: tuple[str, At, At] | None = None  # this path changed from that to that, and no notice came before
    unasked: tuple[str, str] | None = None  # a notice of this type and path, for which there was no watch
    noticed: frozenset[Waiting] = frozenset()
    outdated: tuple[str, At] | None = None  # this path was read as it was before the notice of its change
    heard: tuple[tuple[str, str], ...] | None = ()  # None: after a reconnection events come in another order
    compared: bool = False  # an answer was compared with the expected one
    unexpected: tuple[str, str] | None = None  # the request, and the part of its answer that is not as expected


def asked(memory: Memory, notes: frozenset[Note], zxid: int) -> Memory:
    """A request is sent, while the leader is at this zxid."""
    return replace(memory, asked_at=(*memory.asked_at, zxid)) if Note.FRESHNESS in notes else memory


def replied(memory: Memory, notes: frozenset[Note], answer: Reply, place: int) -> Memory:
    """The answer to the request at this place of the outstanding ones."""
    for note, kept in _KEPT.items():
        if note in notes:
            memory = kept(memory, answer, place)
    return memory


def compared(memory: Memory, expected: Expected | None, answer: Reply) -> Memory:
    """An answer is compared with the expected one."""
    if expected is None or memory.unexpected is not None:
        return memory
    differs = difference(expected, answer)
    wrong = None if differs is None else (telling.request(answer.asked), differs)
    return replace(memory, compared=True, unexpected=wrong)


def _created(memory: Memory, answer: Reply, _place: int) -> Memory:
    create = answer.asked
    if not isinstance(create, Create) or create.flags not in (CreateMode.PERSISTENT, CreateMode.EPHEMERAL):
        return memory
    if answer.code is Code.OK:
        return replace(memory, created=memory.created | {create.path})
    return replace(memory, refused=memory.refused | {create.path}) if answer.code is Code.NODE_EXISTS else memory


def _accepted(memory: Memory, answer: Reply, _place: int) -> Memory:
    data = tags_of(answer.asked) if succeeded(answer) else frozenset()
    return replace(memory, accepted=memory.accepted | data) if data else memory


def _newest(memory: Memory, answer: Reply, _place: int) -> Memory:
    if answer.zxid < memory.newest and memory.went_back is None:
        memory = replace(memory, went_back=(memory.newest, answer.zxid))
    return replace(memory, newest=max(memory.newest, answer.zxid))


def _fresh(memory: Memory, answer: Reply, place: int) -> Memory:
    at = memory.asked_at[place]
    memory = replace(memory, asked_at=memory.asked_at[:place] + memory.asked_at[place + 1 :])
    if isinstance(answer.asked, Sync):
        return replace(memory, synced=max(memory.synced, at))
    if not isinstance(answer.asked, READS):
        return memory
    if memory.stale is None and answer.zxid < at:
        memory = replace(memory, stale=(answer.asked.path, at, answer.zxid))
    if memory.behind is None and answer.zxid < memory.synced:
        memory = replace(memory, behind=(answer.asked.path, memory.synced, answer.zxid))
    return memory


def _watched(memory: Memory, answer: Reply, _place: int) -> Memory:
    read = answer.asked
    if not isinstance(read, READS) or answer.code not in (Code.OK, Code.NO_NODE):
        return memory
    is_, children = at_of(answer), isinstance(read, GetChildren2)
    for awaits, path, was in sorted(memory.watches, key=repr):
        alike = path == read.path and (awaits is Awaits.CHILDREN) is children
        if alike and was != is_ and memory.unheard is None:
            memory = replace(memory, unheard=(path, was, is_))
    told = {waiting for waiting in memory.noticed if waiting[1] == read.path}
    if any(was == is_ and (awaits is Awaits.CHILDREN) is children for awaits, _, was in told):
        memory = replace(memory, outdated=(read.path, is_))
    memory = replace(memory, noticed=memory.noticed - told) if told else memory
    watch = awaited(read, answer.code)
    return memory if watch is None else replace(memory, watches=memory.watches | {(*watch, is_)})


def at_of(answer: Reply) -> At:
    """What a read says of its path."""
    stat: Stat | None = None if answer.reply is None else answer.reply.stat  # type: ignore[attr-defined]
    if stat is None:
        return None
    return stat.czxid, stat.pzxid if isinstance(answer.asked, GetChildren2) else stat.mzxid


def at_in(store: Store, awaits: Awaits, path: str) -> At:
    """What a store says of a path."""
    znode = store.node(path)
    if znode is None:
        return None
    return znode.czxid, znode.pzxid if awaits is Awaits.CHILDREN else znode.mzxid


def explains(notice: Notice, waiting: Waiting) -> bool:
    """Whether a notice tells what a watch waits for."""
    awaits, path, _ = waiting
    return path == notice.path and awaits in EXPLAINED[notice.type]


def noticed(memory: Memory, notes: frozenset[Note], notice: Notice) -> Memory:
    """A notice is heard."""
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


def disconnected(memory: Memory, notes: frozenset[Note], *, keeps_watches: bool) -> Memory:
    """The connection is lost."""
    watches = memory.watches if keeps_watches else frozenset()
    heard = None if Note.EVENTS in notes else memory.heard
    return replace(memory, asked_at=(), watches=watches, heard=heard)


def expired(memory: Memory) -> Memory:
    """The session is over."""
    return replace(memory, newest=0, asked_at=(), synced=0, watches=frozenset(), noticed=frozenset())


def gone(memory: Memory) -> Memory:
    """The client will hear nothing any more."""
    return replace(memory, newest=0, asked_at=(), synced=0, watches=frozenset(), noticed=frozenset())


def tags_of(record: Record) -> frozenset[bytes]:
    """The data that an update writes: in a script, no two updates write the same."""
    if isinstance(record, Multi):
        return frozenset[bytes]().union(*map(tags_of, record.operations))
    return frozenset({record.data}) if isinstance(record, Create | SetData) and record.data else frozenset()


def succeeded(answer: Reply) -> bool:
    """Whether an update was done. A multi that fails is answered OK, with an error for each operation."""
    results = getattr(answer.reply, "results", ())
    return answer.code is Code.OK and all(result.type != -1 for result in results)


_KEPT = {
    Note.CREATED: _created,
    Note.ACCEPTED: _accepted,
    Note.NEWEST: _newest,
    Note.FRESHNESS: _fresh,
    Note.WATCHES: _watched,
}
