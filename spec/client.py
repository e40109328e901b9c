"""The client library as a state machine: its connection, the last zxid it has seen, its watches and open requests.

Rules of this module:

- The library has seen a zxid when it has handed a reply with that zxid to the application. A notification does not
  count. The library sends the last zxid seen when it connects, and a server accepts it only if the server has seen at
  least as much.
- Replies arrive in the order of the requests. When a connection ends, every unanswered request fails, oldest first.
- The reply to a read registers the watch that the read asked for. The first notification that explains the watch
  removes it.
- A library that keeps its watches registers them again on a new connection of the same session. It sends the last zxid
  seen along, so that the server immediately reports the events in between. A new session starts without watches. kazoo
  instead forgets its watches with every connection.

Source: `ClientCnxn.SendThread` (`readResponse`, `primeConnection`, `onConnected`), `ZKWatchManager.materialize`,
`ZooKeeper.WatchRegistration`.
"""

import enum
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from spec.tree.apply import EventType
from spec.tree.data import Record
from spec.tree.replies import Code
from spec.tree.requests import SessionId, SetWatches
from spec.tree.watches import WatchKind, watch_of


class SessionState(enum.Enum):
    """The state of a library's session, as far as the library knows."""

    CONNECTED = "connected"
    CONNECTING = "connecting"  # the connection was lost, and the session may still be alive
    EXPIRED = "expired"  # the session is known to have expired; the next connection asks for a new one
    CLOSED = "closed"  # by the application, or because its process ended


class Awaits(enum.Enum):
    """The event that a watch of the library waits for."""

    DATA = "data"
    CREATION = "exist"  # the watch of an exists that found no znode
    CHILDREN = "children"


Watch: TypeAlias = tuple[Awaits, str]


class Library(msgspec.Struct, frozen=True):
    """A library: its `outstanding` requests, oldest first, and its registered watches."""

    phase: SessionState = SessionState.CONNECTED
    session: SessionId = 0
    seen: int = 0
    watches: frozenset[Watch] = frozenset()
    outstanding: tuple[Record, ...] = ()

    @property
    def set_watches(self) -> SetWatches | None:
        """The request that registers all watches again; None if there are no watches."""
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
"""The watches that a notification of each event type fires (`ZKWatchManager.materialize`)."""


def submit(library: Library, record: Record) -> Library:
    """Record a request that the application sends on the connection."""
    return replace(library, outstanding=(*library.outstanding, record))


def answered(library: Library, asked: Record, code: Code, zxid: int) -> Library:
    """Record the reply to a request."""
    watches = library.watches
    watch = awaited(asked, code)
    if watch is not None:
        watches = watches | {watch}
    return replace(
        library, seen=max(library.seen, zxid), watches=watches, outstanding=_without(library.outstanding, asked)
    )


def awaited(asked: Record, code: Code) -> Watch | None:
    """The watch that this reply to a read registers; None if the read asked for none or the reply grants none."""
    match watch_of(asked, code):
        case None:
            return None
        case WatchKind.CHILDREN:
            kind = Awaits.CHILDREN
        case _:
            kind = Awaits.CREATION if code is Code.NO_NODE else Awaits.DATA
    return kind, asked.path  # type: ignore[attr-defined]  # every request that sets a watch has a path


def _without(outstanding: tuple[Record, ...], asked: Record) -> tuple[Record, ...]:
    """The requests without this one. A closed library has none, and a reply that matches none changes nothing."""
    place = outstanding.index(asked) if asked in outstanding else len(outstanding)
    return outstanding[:place] + outstanding[place + 1 :]


def notified(library: Library, type_: EventType, path: str) -> Library:
    """Record a notification: the watches that it fires are removed."""
    fired = {(kind, path) for kind in EXPLAINED[type_]}
    return replace(library, watches=library.watches - fired) if library.watches & fired else library


def lost(library: Library, *, keeps_watches: bool) -> Library:
    """Record the loss of the connection: all outstanding requests are dropped."""
    watches = library.watches if keeps_watches else frozenset()
    return replace(library, phase=SessionState.CONNECTING, watches=watches, outstanding=())


def connected(library: Library, session: SessionId) -> Library:
    """Record that a server accepted the client. A new session starts without watches."""
    watches = library.watches if session == library.session else frozenset()
    return replace(library, phase=SessionState.CONNECTED, session=session, watches=watches)


def expired(library: Library) -> Library:
    """Record that the session has expired. The last zxid seen does not constrain a later session."""
    return Library(SessionState.EXPIRED, library.session)


def closed() -> Library:
    """A closed library, without the state of the old one."""
    return Library(SessionState.CLOSED)
