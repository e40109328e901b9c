"""The node's store: a million znodes in dictionaries, changed in place.

Rules this module keeps:

- It applies operations and makes no decisions.
- The cost of an operation does not depend on the number of znodes, children or sessions.
- Equal ACLs share one object. The number of remembered ACLs is bounded, so that a client that creates a new one for
  each znode costs only its znodes.
- `preorder` may be read over a long time while the tree changes: each znode is yielded in its state at that moment,
  after its parent. Replaying the transactions since the first one was yielded gives the current tree.

Source: `DataTree`, `NodeHashMapImpl`, `ReferenceCountedACLCache`; `DataTree.serializeNode` for the order.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

import msgspec

from spec.tree.data import OPEN_ACL_UNSAFE, Acl, Kind, Znode, kind_of
from spec.tree.paths import ROOT
from spec.tree.store import FIRST_ZNODES, EndSession, OpenSession, Operation, Put, Remove

_ACLS_REMEMBERED = 4096
_NONE: dict[str, None] = {}

ROOT_AGAIN = 1
"""ZooKeeper counts the root twice: its map has it as "" and as "/" (`DataTree.nodes`)."""


class Tree:
    """The znodes and the sessions of one server.

    `containers` and `ttls` are the paths of the znodes that the leader may delete without a request; `bytes_of_data` is
    the size of all data.
    """

    __slots__ = ("_acls", "_children", "_ephemerals", "_nodes", "bytes_of_data", "containers", "sessions", "ttls")

    def __init__(self, first: Iterable[Operation] = FIRST_ZNODES) -> None:
        self._nodes: dict[str, Znode] = {}
        self._children: dict[str, dict[str, None]] = {}
        self._ephemerals: dict[int, set[str]] = {}
        self._acls: dict[tuple[Acl, ...], tuple[Acl, ...]] = {}
        self.sessions: dict[int, int] = {}
        self.containers: set[str] = set()
        self.ttls: set[str] = set()
        self.bytes_of_data = 0
        self.carry_out(first)

    def __len__(self) -> int:
        return len(self._nodes)

    def node(self, path: str) -> Znode | None:
        """The znode at a path."""
        return self._nodes.get(path)

    def children(self, path: str) -> AbstractSet[str]:
        """The names of the children of a znode, in the order of creation: a view, which changes with the tree."""
        return self._children.get(path, _NONE).keys()

    def timeout(self, session: int) -> int | None:
        """The timeout of a session in milliseconds."""
        return self.sessions.get(session)

    def ephemerals(self, session: int) -> AbstractSet[str]:
        """The paths of a session's ephemeral znodes: the set itself, which changes with the tree."""
        return self._ephemerals.get(session, frozenset())

    def owners(self) -> AbstractSet[int]:
        """The sessions that have ephemeral znodes."""
        return self._ephemerals.keys()

    def carry_out(self, operations: Iterable[Operation]) -> None:
        """Apply operations to the tree, in order."""
        for operation in operations:
            if type(operation) is Put:
                self._put(operation.path, operation.znode)
            elif type(operation) is Remove:
                self._remove(operation.path)
            elif type(operation) is OpenSession:
                self.sessions[operation.session] = operation.timeout
            elif type(operation) is EndSession:
                self.sessions.pop(operation.session, None)

    def znodes(self) -> Iterable[tuple[str, Znode]]:
        """Every znode with its path, in no particular order; the tree must not change meanwhile."""
        return self._nodes.items()

    def preorder(self) -> Iterator[tuple[str, Znode]]:
        """Yield every znode with its path, after its parent; the tree may change between two of them."""
        waiting = [iter((ROOT,))]
        while waiting:
            path = next(waiting[-1], None)
            if path is None:
                waiting.pop()
                continue
            znode = self._nodes.get(path)
            if znode is None:
                continue
            yield path, znode
            names = self._children.get(path)
            if names:
                prefix = ROOT if path == ROOT else path + "/"
                waiting.append(map(prefix.__add__, tuple(names)))

    def _put(self, path: str, znode: Znode) -> None:
        if znode.acl is not OPEN_ACL_UNSAFE:
            shared = self._acls.get(znode.acl)
            if shared is None:
                if len(self._acls) >= _ACLS_REMEMBERED:
                    self._acls.clear()
                self._acls[znode.acl] = OPEN_ACL_UNSAFE if znode.acl == OPEN_ACL_UNSAFE else znode.acl
                shared = self._acls[znode.acl]
            znode = znode if shared is znode.acl else msgspec.structs.replace(znode, acl=shared)
        former = self._nodes.get(path)
        self._nodes[path] = znode
        self.bytes_of_data += len(znode.data or b"")
        if former is not None:
            self.bytes_of_data -= len(former.data or b"")
            if former.ephemeral_owner == znode.ephemeral_owner:
                return
            self._disown(path, former.ephemeral_owner)
        elif path != ROOT:
            parent, _, name = path.rpartition("/")
            names = self._children.get(parent or ROOT)
            if names is None:
                self._children[parent or ROOT] = {name: None}
            else:
                names[name] = None
        if znode.ephemeral_owner:
            self._own(path, znode.ephemeral_owner)

    def _remove(self, path: str) -> None:
        former = self._nodes.pop(path, None)
        if former is None:
            return
        self.bytes_of_data -= len(former.data or b"")
        parent, _, name = path.rpartition("/")
        names = self._children.get(parent or ROOT)
        if names is not None:
            names.pop(name, None)
            if not names:
                del self._children[parent or ROOT]
        if former.ephemeral_owner:
            self._disown(path, former.ephemeral_owner)

    def _own(self, path: str, owner: int) -> None:
        kind = kind_of(owner)
        if kind is Kind.EPHEMERAL:
            self._ephemerals.setdefault(owner, set()).add(path)
        else:
            (self.containers if kind is Kind.CONTAINER else self.ttls).add(path)

    def _disown(self, path: str, owner: int) -> None:
        self.containers.discard(path)
        self.ttls.discard(path)
        paths = self._ephemerals.get(owner)
        if paths is not None:
            paths.discard(path)
            if not paths:
                del self._ephemerals[owner]
