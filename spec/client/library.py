"""The client library as a state machine: the connection, the last zxid seen, the watches it has, what is awaited.

Rules this module keeps:

- The library has seen a zxid when an answer with that zxid was handed to the application; a notice counts for nothing.
  It tells a server what it has seen when it connects, and is taken in only by one that has seen as much.
- Answers come in the order of the requests. When a connection ends, whatever is unanswered is told so, oldest first.
- A watch is registered by the answer to the read that asked for it, and gone with the first notice that it explains.
- A library that keeps its watches registers them anew on a connection of the same session, and says what it had seen,
  so that it is told at once what it missed. A new session begins without watches. kazoo forgets them instead, with
  every connection.

Source: `ClientCnxn.SendThread` (`readResponse`, `primeConnection`, `onConnected`), `ZKWatchManager.materialize`,
`ZooKeeper.WatchRegistration`.
"""

import enum
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from spec.tree.apply import EventType
from spec.tree.fields import Record
from spec.tree.replies import Code
from spec.tree.requests import SessionId, SetWatches
from spec.tree.watches import WatchKind, watch_of


class Phase(enum.Enum):
    """Where a library stands with its session."""

    CONNECTED = "connected"
    CONNECTING = "connecting"  # there was a connection, and the session may live
    EXPIRED = "expired"  # the session is known to be gone; the next connection asks for a new one
    CLOSED = "closed"  # by the application, or with its process


class Awaits(enum.Enum):
    """What the library's own watch at a path waits for."""

    DATA = "data"
    CREATION = "exist"  # of an exists that found nothing
    CHILDREN = "children"


Watch: TypeAlias = tuple[Awaits, str]


class Library(msgspec.Struct, frozen=True):
    """A library: `outstanding` requests oldest first, and the watches that wait."""

    phase: Phase = Phase.CONNECTED
    session: SessionId = 0
    seen: int = 0
    watches: frozenset[Watch] = frozenset()
    outstanding: tuple[Record, ...] = ()

    @property
    def set_watches(self) -> SetWatches | None:
        """The request that registers all watches anew; None if there are none."""
        if not self.watches:
            return None
        paths = {kind: tuple(sorted(path for had, path in self.watches if had is kind)) for kind in Awaits}
        return SetWatches(self.seen, paths[Awaits.DATA], paths[Awaits.CREATION], paths[Awaits.CHILDREN])


EXPLAINED = {
    EventType.NODE_CREATED: (Awaits.DATA, Awaits.CREATION),
    EventType.NODE_DATA_CHANGED: (Awaits.DATA, Awaits.CREATION),
    EventType.NODE_CHILDREN_CHANGED: (Awaits.CHILDREN,),
    EventType.NODE_DELETED: (Awaits.DATA, Awaits.CREATION, Awaits.CHILDREN),
}
"""The watches that an event explains (`ZKWatchManager.materialize`)."""


def submit(library: Library, record: Record) -> Library:
    """The application asks for something, on a connection."""
    return replace(library, outstanding=(*library.outstanding, record))


def answered(library: Library, asked: Record, code: Code, zxid: int) -> Library:
    """The answer to a request has come."""
    watches = library.watches
    watch = awaited(asked, code)
    if watch is not None:
        watches = watches | {watch}
    return replace(
        library, seen=max(library.seen, zxid), watches=watches, outstanding=_without(library.outstanding, asked)
    )


def awaited(asked: Record, code: Code) -> Watch | None:
    """What a library waits for after this answer to a read; None if the read asked for no watch, or got none."""
    match watch_of(asked, code):
        case None:
            return None
        case WatchKind.CHILDREN:
            kind = Awaits.CHILDREN
        case _:
            kind = Awaits.CREATION if code is Code.NO_NODE else Awaits.DATA
    return kind, asked.path  # type: ignore[attr-defined]  # whatever is watched has a path


def _without(outstanding: tuple[Record, ...], asked: Record) -> tuple[Record, ...]:
    """The rest; an answer that nothing waits for changes nothing (the library of an application ends then)."""
    at = outstanding.index(asked) if asked in outstanding else len(outstanding)
    return outstanding[:at] + outstanding[at + 1 :]


def notified(library: Library, type_: EventType, path: str) -> Library:
    """A notice has come: the watches that it explains are gone."""
    gone = {(kind, path) for kind in EXPLAINED[type_]}
    return replace(library, watches=library.watches - gone) if library.watches & gone else library


def lost(library: Library, *, keeps_watches: bool) -> Library:
    """The connection is gone, and with it whatever is outstanding."""
    watches = library.watches if keeps_watches else frozenset()
    return replace(library, phase=Phase.CONNECTING, watches=watches, outstanding=())


def connected(library: Library, session: SessionId) -> Library:
    """A server has taken the client in; with a new session there is nothing to watch yet."""
    watches = library.watches if session == library.session else frozenset()
    return replace(library, phase=Phase.CONNECTED, session=session, watches=watches)


def expired(library: Library) -> Library:
    """The servers say that the session is no more; what it had seen binds no session after it."""
    return Library(Phase.EXPIRED, library.session)


def closed() -> Library:
    """Nothing of it matters any more."""
    return Library(Phase.CLOSED)
