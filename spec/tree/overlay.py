"""A store as it will be when all outstanding transactions have been applied to it.

A leader prepares a request against the tree that its proposals will produce, but the tree itself changes only when they
are committed. The overlay therefore keeps the changes of the outstanding transactions, and asks the store below for
everything else. A multi has a separate overlay, so that its second operation sees the effect of its first.

Rules of this module:

- Each entry carries the zxid of the last outstanding transaction that changed it. When that transaction is settled, the
  entry is removed, because the store below holds the same value by then.
- Transactions are carried out in the order of their zxids, and settled in that order.
- The cost of the number of children and of each operation does not depend on the number of children or of outstanding
  transactions.

Source: `ZooKeeperServer.outstandingChanges`, `outstandingChangesForPath`, `ChangeRecord`;
`PrepRequestProcessor.getRecordForPath`; `FinalRequestProcessor.applyRequest` for settling.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from spec.tree.data import Kind, Znode, kind_of
from spec.tree.paths import below, name_of, parent_of
from spec.tree.store import EndSession, OpenSession, Operation, Put, Remove, Store

_Outstanding: TypeAlias = tuple[int, Sequence[Operation], list[tuple[int, str]]]
"""A zxid, its transaction's operations, and the owners and paths of the ephemeral znodes that it adds or removes."""


class Overlay:
    """A `Store` over another one, with the effects of outstanding transactions."""

    __slots__ = ("_base", "_counts", "_nodes", "_outstanding", "_owned", "_sessions")

    def __init__(self, base: Store) -> None:
        self._base = base
        self._nodes: dict[str, tuple[int, Znode | None]] = {}
        self._counts: dict[str, tuple[int, int]] = {}
        self._owned: dict[int, dict[str, tuple[int, bool]]] = {}
        self._sessions: dict[int, tuple[int, int | None]] = {}
        self._outstanding: deque[_Outstanding] = deque()

    def __len__(self) -> int:
        return len(self._outstanding)

    def node(self, path: str) -> Znode | None:
        """The znode at a path."""
        entry = self._nodes.get(path)
        return self._base.node(path) if entry is None else entry[1]

    def children(self, path: str) -> AbstractSet[str]:
        """The names of the children of a znode."""
        entry = self._counts.get(path)
        return self._base.children(path) if entry is None else _Children(self, path, entry[1])

    def timeout(self, session: int) -> int | None:
        """The timeout of a session."""
        entry = self._sessions.get(session)
        return self._base.timeout(session) if entry is None else entry[1]

    def ephemerals(self, session: int) -> AbstractSet[str]:
        """The paths of a session's ephemeral znodes."""
        changed = self._owned.get(session)
        if not changed:
            return self._base.ephemerals(session)
        base = {path for path in self._base.ephemerals(session) if path not in changed}
        return base | {path for path, (_, present) in changed.items() if present}

    def carry_out(self, zxid: int, operations: Sequence[Operation]) -> None:
        """Add an outstanding transaction with these operations."""
        self._outstanding.append((zxid, operations, []))
        for operation in operations:
            if type(operation) is Put:
                self._put(zxid, operation.path, operation.znode)
            elif type(operation) is Remove:
                self._remove(zxid, operation.path)
            elif type(operation) is OpenSession:
                self._sessions[operation.session] = (zxid, operation.timeout)
            elif type(operation) is EndSession:
                self._sessions[operation.session] = (zxid, None)

    def settled(self, zxid: int) -> None:
        """Remove every transaction up to this one: the store below has carried them out."""
        outstanding = self._outstanding
        while outstanding and outstanding[0][0] <= zxid:
            settled, operations, owned = outstanding.popleft()
            for operation in operations:
                self._forget(settled, operation)
            for owner, path in owned:
                paths = self._owned.get(owner, {})
                entry = paths.get(path)
                if entry is not None and entry[0] == settled:
                    del paths[path]
                    if not paths:
                        del self._owned[owner]

    def _put(self, zxid: int, path: str, znode: Znode) -> None:
        former = self.node(path)
        self._nodes[path] = (zxid, znode)
        if former is None:
            self._count(zxid, path, 1)
        elif former.ephemeral_owner != znode.ephemeral_owner:
            self._owns(zxid, path, former.ephemeral_owner, False)
        else:
            return
        self._owns(zxid, path, znode.ephemeral_owner, True)

    def _remove(self, zxid: int, path: str) -> None:
        former = self.node(path)
        if former is None:
            return
        self._nodes[path] = (zxid, None)
        self._count(zxid, path, -1)
        self._owns(zxid, path, former.ephemeral_owner, False)

    def _count(self, zxid: int, path: str, more: int) -> None:
        parent = parent_of(path)
        entry = self._counts.get(parent)
        number = len(self._base.children(parent)) if entry is None else entry[1]
        self._counts[parent] = (zxid, number + more)

    def _owns(self, zxid: int, path: str, owner: int, present: bool) -> None:
        if owner and kind_of(owner) is Kind.EPHEMERAL:
            self._owned.setdefault(owner, {})[path] = (zxid, present)
            self._outstanding[-1][2].append((owner, path))

    def _forget(self, zxid: int, operation: Operation) -> None:
        if type(operation) is Put or type(operation) is Remove:
            path = operation.path
            entry = self._nodes.get(path)
            if entry is not None and entry[0] == zxid:
                del self._nodes[path]
            parent = parent_of(path)
            count = self._counts.get(parent)
            if count is not None and count[0] == zxid:
                del self._counts[parent]
        elif type(operation) is OpenSession or type(operation) is EndSession:
            session = self._sessions.get(operation.session)
            if session is not None and session[0] == zxid:
                del self._sessions[operation.session]

    def _names(self, path: str) -> Iterator[str]:
        """The names of the children of a znode. This is slow, and rare: it visits every outstanding change."""
        before = self._base.children(path)
        yield from (name for name in before if self.node(below(path, name)) is not None)
        for changed, (_, znode) in self._nodes.items():
            if znode is not None and parent_of(changed) == path and name_of(changed) not in before and changed != path:
                yield name_of(changed)


class _Children(AbstractSet[str]):
    """The names of the children of a znode, with their number known in advance."""

    __slots__ = ("_number", "_overlay", "_path")

    def __init__(self, overlay: Overlay, path: str, number: int) -> None:
        self._overlay = overlay
        self._path = path
        self._number = number

    def __len__(self) -> int:
        return self._number

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._overlay.node(below(self._path, name)) is not None

    def __iter__(self) -> Iterator[str]:
        return self._overlay._names(self._path)
