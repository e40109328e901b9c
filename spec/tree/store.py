"""The interface to the znodes and sessions, and its smallest implementation.

Rules of this module:

- Decisions read through `Store` and write nothing. Their result is a list of operations, which a store then carries
  out. The checker's store is a value, the node's a dictionary; both carry out the same operations.
- A znode is in a store if and only if its name is among the children of its parent.
- The root is `/` and always exists.
- The leader deletes containers left empty, and expired TTL znodes, on its own initiative. Only a znode without children
  is deleted; the preparation of its deletion checks this again. A container that never had a child stays, unless the
  operator sets a time limit.

Source: `DataTree` (its maps of nodes, ephemerals, sessions); `ContainerManager.getCandidates`.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Protocol, TypeAlias

import msgspec

from spec.tree.data import OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, Kind, Znode, kind_of, ttl_of
from spec.tree.paths import CONFIG, ROOT


class Store(Protocol):
    """The queries on the tree and the sessions."""

    def node(self, path: str) -> Znode | None:
        """The znode at a path."""

    def children(self, path: str) -> AbstractSet[str]:
        """The names of the children of a znode; empty if it does not exist."""

    def timeout(self, session: int) -> int | None:
        """The timeout of a session in milliseconds, None if the session is not open."""

    def ephemerals(self, session: int) -> AbstractSet[str]:
        """The paths of a session's ephemeral znodes."""


class Put(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Create a znode, or replace it; its children stay."""

    path: str
    znode: Znode


class Remove(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Remove a znode that has no children."""

    path: str


class OpenSession(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Open a session, or change its timeout, in milliseconds."""

    session: int
    timeout: int


class EndSession(msgspec.Struct, frozen=True, gc=False, tag=True):
    """End a session; separate operations remove its ephemeral znodes."""

    session: int


Operation: TypeAlias = Put | Remove | OpenSession | EndSession

_FRESH = Znode(b"", OPEN_ACL_UNSAFE, 0, 0, 0, 0, 0, 0, 0, 0, 0)
_FIRST_CONFIG = Znode(b"", READ_ACL_UNSAFE, 0, 0, 0, 0, 0, 0, -1, 0, 0)

FIRST_ZNODES: tuple[Put, ...] = (
    Put(ROOT, _FRESH),
    Put("/zookeeper", _FRESH),
    Put(CONFIG, _FIRST_CONFIG),
    Put("/zookeeper/quota", _FRESH),
)
"""The tree of a server without any transaction (`DataTree`'s constructor), parents first."""


def configured(view: Store, text: bytes, version: int, time: int) -> Put:
    """`/zookeeper/config` as a server writes it when it starts: its own view of the ensemble, and that view's version.

    This is not a transaction: each server does it at its own `time`.

    Source: `ZKDatabase.initConfigInZKDatabase`.
    """
    znode = view.node(CONFIG) or _FIRST_CONFIG
    return Put(CONFIG, msgspec.structs.replace(znode, data=text, version=-1, mzxid=version, mtime=time))


class FrozenStore(msgspec.Struct, frozen=True):
    """A store as an immutable value, for trees of a few znodes. It is hashable, and a change makes a new one.

    `nodes` is sorted by path and `sessions` by session, so that equal contents are equal values.
    """

    nodes: tuple[tuple[str, Znode], ...] = tuple((put.path, put.znode) for put in FIRST_ZNODES)
    sessions: tuple[tuple[int, int], ...] = ()

    def node(self, path: str) -> Znode | None:
        """The znode at a path."""
        place = bisect_left(self.nodes, (path,))
        return self.nodes[place][1] if place < len(self.nodes) and self.nodes[place][0] == path else None

    def children(self, path: str) -> AbstractSet[str]:
        """The names of the children of a znode."""
        return frozenset(self._names(ROOT if path == ROOT else path + "/"))

    def _names(self, prefix: str) -> Iterator[str]:
        for place in range(bisect_left(self.nodes, (prefix,)), len(self.nodes)):
            path = self.nodes[place][0]
            if not path.startswith(prefix):
                return
            name = path[len(prefix) :]
            if name and "/" not in name:
                yield name

    def timeout(self, session: int) -> int | None:
        """The timeout of a session."""
        return dict(self.sessions).get(session)

    def ephemerals(self, session: int) -> AbstractSet[str]:
        """The paths of a session's ephemeral znodes."""
        return frozenset(
            path
            for path, znode in self.nodes
            if znode.ephemeral_owner == session and kind_of(session) is Kind.EPHEMERAL
        )

    def carry_out(self, operations: Iterable[Operation]) -> "FrozenStore":
        """The store after these operations, in their order."""
        nodes = dict(self.nodes)
        sessions = dict(self.sessions)
        for operation in operations:
            match operation:
                case Put(path, znode):
                    nodes[path] = znode
                case Remove(path):
                    nodes.pop(path, None)
                case OpenSession(session, timeout):
                    sessions[session] = timeout
                case EndSession(session):
                    sessions.pop(session, None)
        return FrozenStore(tuple(sorted(nodes.items())), tuple(sorted(sessions.items())))


# The znodes that the leader deletes on its own initiative.


class Expiring(Store, Protocol):
    """A store that lists the znodes that may expire."""

    @property
    def containers(self) -> AbstractSet[str]:
        """The paths of the containers."""

    @property
    def ttls(self) -> AbstractSet[str]:
        """The paths of the TTL znodes."""


def to_delete(store: Expiring, now: int, never_used: int = 0) -> list[str]:
    """The paths of the containers and TTL znodes that are due for deletion at `now`, in milliseconds.

    `never_used` is the time that a container without any child so far is kept, in milliseconds; 0 means forever.
    """
    return [
        path
        for path in chain(store.containers, store.ttls)
        if (znode := store.node(path)) is not None
        and not store.children(path)
        and _has_had_its_time(znode, now - znode.mtime, never_used)
    ]


def _has_had_its_time(znode: Znode, age: int, never_used: int) -> bool:
    if kind_of(znode.ephemeral_owner) is Kind.CONTAINER:
        return znode.cversion > 0 or 0 < never_used < age
    return age > ttl_of(znode.ephemeral_owner)
