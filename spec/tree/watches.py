"""The watches of one server's clients: their registration, and the clients to notify of each event.

Rules of this module:

- A STANDARD watch is removed when it fires; a persistent one stays until a client removes it.
- A client is notified once of an event, however many of its watches match.
- A recursive watch matches its path and everything below it, but never a NodeChildrenChanged.
- A watcher is any hashable value. Watchers are notified in the order of their registration at the path.
- A reconnecting client is notified immediately of the events that it missed. Its other watches are registered again.

One client may have watches of several modes at one path, each with a separate lifetime, as in ZooKeeper since 3.9.
Before that, a new watch replaced the others (ZOOKEEPER-4466). This table does not check permissions: `Event.acl` does.

Source: `WatchManager`, `WatchStats`, `PathParentIterator`; `DataTree.setWatches`, `addWatch`, `containsWatcher`,
`removeWatch`.
"""

import enum
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeAlias, TypeVar

from spec.tree.apply import Event, EventType
from spec.tree.data import Record, Znode
from spec.tree.paths import ROOT, parent_of
from spec.tree.replies import Code
from spec.tree.requests import (
    AddWatch,
    CheckWatches,
    Exists,
    GetChildren,
    GetChildren2,
    GetData,
    RemoveWatches,
    SetWatches,
    SetWatches2,
)
from spec.tree.store import Store

W = TypeVar("W", bound=Hashable)
Notification: TypeAlias = tuple[W, EventType, str]
"""A notification: its recipient, the type of the event, and the path."""


class WatchKind(enum.Enum):
    """The kind of events that a client watches at a path."""

    DATA = "data"
    CHILDREN = "children"
    PERSISTENT = "persistent"
    PERSISTENT_RECURSIVE = "persistent recursive"


class WatcherType(enum.IntEnum):
    """The watches that checkWatches and removeWatches refer to (`Watcher.WatcherType`)."""

    CHILDREN = 1
    DATA = 2
    ANY = 3
    PERSISTENT = 4
    PERSISTENT_RECURSIVE = 5


_ADD_WATCH_MODES = {0: WatchKind.PERSISTENT, 1: WatchKind.PERSISTENT_RECURSIVE}
_TYPES = {kind.value: kind for kind in WatcherType}

# The modes of one client's watches at one path (`WatcherMode`), as bits.
_STANDARD = 1
_PERSISTENT = 2
_RECURSIVE = 4
_SIZE_OF_A_WATCH = 200
"""The bytes of a watch without its path, about: the entries of three dictionaries."""
_EVERY_MODE = _STANDARD | _PERSISTENT | _RECURSIVE


def watch_of(request: Record, code: Code) -> WatchKind | None:
    """The watch that a read with the outcome `code` registers at its path.

    An exists may wait for a znode that does not exist yet.
    """
    if isinstance(request, Exists):
        return WatchKind.DATA if request.watch and code in (Code.OK, Code.NO_NODE) else None
    if code is not Code.OK:
        return None
    if isinstance(request, GetData):
        return WatchKind.DATA if request.watch else None
    if isinstance(request, GetChildren | GetChildren2):
        return WatchKind.CHILDREN if request.watch else None
    return None


class _Table(Generic[W]):
    """The watchers of each path, with their modes (`WatchManager`)."""

    __slots__ = ("_paths", "_recursive", "_sizes", "_watchers")

    def __init__(self) -> None:
        self._sizes: dict[W, int] = {}
        self._watchers: dict[str, dict[W, int]] = {}
        self._paths: dict[W, set[str]] = {}
        self._recursive = 0

    def __len__(self) -> int:
        return sum(map(len, self._watchers.values()))

    @property
    def is_watched(self) -> bool:
        return bool(self._watchers)

    def by_path(self) -> Iterator[tuple[str, tuple[W, ...]]]:
        for path, watchers in self._watchers.items():
            yield path, tuple(watchers)

    def add(self, path: str, watcher: W, mode: int) -> None:
        watchers = self._watchers.setdefault(path, {})
        modes = watchers.get(watcher, 0)
        watchers[watcher] = modes | mode
        if not modes:
            self._paths.setdefault(watcher, set()).add(path)
            self._sizes[watcher] = self._sizes.get(watcher, 0) + _size(path)
        self._recursive += bool(mode & ~modes & _RECURSIVE)

    def has(self, path: str, watcher: W, modes: int) -> bool:
        return bool(self._watchers.get(path, {}).get(watcher, 0) & modes)

    def remove(self, path: str, watcher: W, modes: int) -> bool:
        """Remove these watches, and return whether there were any."""
        watchers = self._watchers.get(path, {})
        had = watchers.get(watcher, 0)
        if not had & modes:
            return False
        self._recursive -= bool(had & modes & _RECURSIVE)
        rest = had & ~modes
        if rest:
            watchers[watcher] = rest
        else:
            self._drop(path, watcher)
        return True

    def forget(self, watcher: W) -> None:
        for path in tuple(self._paths.get(watcher, ())):
            self.remove(path, watcher, _EVERY_MODE)

    def fire(self, path: str) -> dict[W, None]:
        """Return the watchers of an event at a path, in order, and remove the watches that fire once."""
        watching: dict[W, None] = {}
        watchers = self._watchers.get(path)
        if watchers:
            watching = dict.fromkeys(watchers)
            for watcher in watching:
                self.remove(path, watcher, _STANDARD)
        if self._recursive:
            for above in _above(path):
                for watcher, modes in self._watchers.get(above, {}).items():
                    if modes & _RECURSIVE:
                        watching[watcher] = None
        return watching

    def _drop(self, path: str, watcher: W) -> None:
        watchers = self._watchers[path]
        del watchers[watcher]
        if not watchers:
            del self._watchers[path]
        paths = self._paths[watcher]
        paths.discard(path)
        self._sizes[watcher] -= _size(path)
        if not paths:
            del self._paths[watcher]
            del self._sizes[watcher]

    def size(self, watcher: W) -> int:
        """The bytes that the watches of a client take, about."""
        return self._sizes.get(watcher, 0)


def _size(path: str) -> int:
    return _SIZE_OF_A_WATCH + len(path)


def _above(path: str) -> Iterator[str]:
    while path != ROOT:
        path = parent_of(path)
        yield path


class Watches(Generic[W]):
    """All watches of the clients of one server.

    A recursive watch is only in the table of data watches. The table of children watches would only add the
    NodeChildrenChanged that a recursive watch must not receive.
    """

    __slots__ = ("_children", "_data")

    def __init__(self) -> None:
        self._data: _Table[W] = _Table()
        self._children: _Table[W] = _Table()

    def __len__(self) -> int:
        return len(self._data) + len(self._children)

    def size(self, watcher: W) -> int:
        """The bytes that the watches of a client take, about: a server bounds them."""
        return self._data.size(watcher) + self._children.size(watcher)

    @property
    def is_empty(self) -> bool:
        """Whether no client watches anything."""
        return not self._data.is_watched and not self._children.is_watched

    def data_watches(self) -> Iterator[tuple[str, tuple[W, ...]]]:
        """Each path with data watches, and its watchers: the output of the words `wchs`, `wchc` and `wchp`."""
        return self._data.by_path()

    def add(self, kind: WatchKind, path: str, watcher: W) -> None:
        """Register a watch."""
        match kind:
            case WatchKind.DATA:
                self._data.add(path, watcher, _STANDARD)
            case WatchKind.CHILDREN:
                self._children.add(path, watcher, _STANDARD)
            case WatchKind.PERSISTENT:
                self._data.add(path, watcher, _PERSISTENT)
                self._children.add(path, watcher, _PERSISTENT)
            case WatchKind.PERSISTENT_RECURSIVE:
                self._data.add(path, watcher, _RECURSIVE)

    def add_watch(self, request: AddWatch, watcher: W) -> Code:
        """Register the watch of an addWatch; an unknown mode is a MARSHALLING_ERROR."""
        kind = _ADD_WATCH_MODES.get(request.mode)
        if kind is None:
            return Code.MARSHALLING_ERROR
        self.add(kind, request.path, watcher)
        return Code.OK

    def fire(self, event: Event) -> list[Notification[W]]:
        """Return the notifications of an event, in order, and remove the watches that fire once."""
        if event.type is EventType.NODE_CHILDREN_CHANGED:
            watching = self._children.fire(event.path)
        else:
            watching = self._data.fire(event.path)
            if event.type is EventType.NODE_DELETED:
                watching |= self._children.fire(event.path)
        return [(watcher, event.type, event.path) for watcher in watching]

    def check(self, request: CheckWatches, watcher: W) -> Code:
        """Return OK if such a watch exists, NO_WATCHER if not; an unknown type is a MARSHALLING_ERROR."""
        chosen = self._chosen(request.type)
        if chosen is None:
            return Code.MARSHALLING_ERROR
        exists = any(table.has(request.path, watcher, modes) for table, modes in chosen)
        return Code.OK if exists else Code.NO_WATCHER

    def remove(self, request: RemoveWatches, watcher: W) -> Code:
        """Remove such watches: OK, or NO_WATCHER if there were none; an unknown type is a MARSHALLING_ERROR."""
        chosen = self._chosen(request.type)
        if chosen is None:
            return Code.MARSHALLING_ERROR
        removed = [table.remove(request.path, watcher, modes) for table, modes in chosen]
        return Code.OK if any(removed) else Code.NO_WATCHER

    def _chosen(self, number: int) -> tuple[tuple[_Table[W], int], ...] | None:
        match _TYPES.get(number):
            case WatcherType.CHILDREN:
                return ((self._children, _STANDARD),)
            case WatcherType.DATA:
                return ((self._data, _STANDARD),)
            case WatcherType.PERSISTENT:
                return ((self._data, _PERSISTENT), (self._children, _PERSISTENT))
            case WatcherType.PERSISTENT_RECURSIVE:
                return ((self._data, _RECURSIVE),)
            case WatcherType.ANY:
                return ((self._data, _EVERY_MODE), (self._children, _EVERY_MODE))
            case None:
                return None

    def forget(self, watcher: W) -> None:
        """Remove all watches of a client that has disconnected."""
        self._data.forget(watcher)
        self._children.forget(watcher)

    def set_watches(self, view: Store, request: SetWatches | SetWatches2, watcher: W) -> list[Notification[W]]:
        """Register the watches of a reconnecting client again; return the notifications missed since its last zxid."""
        missed: list[Notification[W]] = []

        def settle(kind: WatchKind, paths: Iterable[str], missing: Callable[[Znode | None], EventType | None]) -> None:
            for path in paths:
                event = missing(view.node(path))
                if event is None:
                    self.add(kind, path, watcher)
                else:
                    missed.append((watcher, event, path))

        last_zxid = request.relative_zxid
        settle(WatchKind.DATA, request.data_watches, lambda znode: _missed_data(znode, last_zxid))
        settle(WatchKind.DATA, request.exist_watches, lambda znode: None if znode is None else EventType.NODE_CREATED)
        settle(WatchKind.CHILDREN, request.child_watches, lambda znode: _missed_children(znode, last_zxid))
        if isinstance(request, SetWatches2):
            for path in request.persistent_watches:
                self.add(WatchKind.PERSISTENT, path, watcher)
            for path in request.persistent_recursive_watches:
                self.add(WatchKind.PERSISTENT_RECURSIVE, path, watcher)
        return missed


def _missed_data(znode: Znode | None, seen: int) -> EventType | None:
    if znode is None:
        return EventType.NODE_DELETED
    return EventType.NODE_DATA_CHANGED if znode.mzxid > seen else None


def _missed_children(znode: Znode | None, seen: int) -> EventType | None:
    if znode is None:
        return EventType.NODE_DELETED
    return EventType.NODE_CHILDREN_CHANGED if znode.pzxid > seen else None
