"""The effect of a transaction: its changes to the tree, the events for watches, and the reply to its client.

Rules of this module:

- Nothing is decided here that the leader has decided. A transaction applied to the tree that it was prepared for
  succeeds. It fails only when a log is replayed over a tree that already contains part of it; the missing part is then
  applied.
- Replaying transactions over a fuzzy snapshot, which contains some of them in part, results in the tree that has
  applied each of them once. Therefore the parent's counters only grow, and creating an existing znode or deleting a
  missing one still counts for the parent.
- All operations of a multi have one zxid and one time.
- Events are in the order in which watches fire. Each carries the ACL that restricts its recipients.

Where ZooKeeper differs: here every kind of create that finds its znode already present corrects the parent's counters;
ZooKeeper does so only for the oldest kind.

Source: `DataTree.processTxn`, `createNode`, `deleteNode`, `setData`, `setACL`, `killSession`, `setCversionPzxid`;
`FinalRequestProcessor.processRequest` for the replies.
"""

import enum
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from spec.tree import accounting
from spec.tree.checks import after
from spec.tree.data import CONTAINER_OWNER, MAX_TTL, OPEN_ACL_UNSAFE, Acl, Record, Znode, new_znode, stat_of, ttl_owner
from spec.tree.overlay import Overlay
from spec.tree.paths import ROOT, below, is_below_root, parent_of
from spec.tree.replies import (
    Code,
    Create2Reply,
    DataReply,
    ErrorReply,
    MultiReply,
    OperationResult,
    PathReply,
    StatReply,
)
from spec.tree.requests import OPCODE_OF, Check, Create, Create2, Delete, SetData
from spec.tree.store import EndSession, OpenSession, Operation, Put, Remove, Store
from spec.tree.txns import (
    Change,
    CheckVersionTxn,
    CloseSessionTxn,
    Create2Txn,
    CreateContainerTxn,
    CreateSessionTxn,
    CreateTtlTxn,
    CreateTxn,
    DeleteContainerTxn,
    DeleteTxn,
    ErrorTxn,
    MultiTxn,
    ReconfigTxn,
    SetAclTxn,
    SetDataTxn,
)


class EventType(enum.IntEnum):
    """The type of an event at a path (`Watcher.Event.EventType`)."""

    NODE_CREATED = 1
    NODE_DELETED = 2
    NODE_DATA_CHANGED = 3
    NODE_CHILDREN_CHANGED = 4


class Event(msgspec.Struct, frozen=True, gc=False):
    """An event at a path. Only clients with READ under `acl` may receive it."""

    type: EventType
    path: str
    acl: tuple[Acl, ...] = OPEN_ACL_UNSAFE


class TxnResult(msgspec.Struct, frozen=True):
    """The outcome of a transaction: operations for the store, events for the watches, and the reply to its client."""

    operations: tuple[Operation, ...] = ()
    events: tuple[Event, ...] = ()
    code: Code = Code.OK
    reply: Record | None = None


_NO_NODE = TxnResult(code=Code.NO_NODE)
_NOTHING = TxnResult()
_CREATED = EventType.NODE_CREATED
_DELETED = EventType.NODE_DELETED
_DATA_CHANGED = EventType.NODE_DATA_CHANGED
_CHILDREN_CHANGED = EventType.NODE_CHILDREN_CHANGED


def apply(view: Store, zxid: int, change: Change) -> TxnResult:
    """Return the outcome of a transaction on the store; `view` itself does not change."""
    return _RULES[type(change.record)](view, zxid, change, change.record)


def _create(view: Store, zxid: int, change: Change, txn: CreateTxn) -> TxnResult:
    return _new(view, zxid, change, txn, change.session if txn.ephemeral else 0)


def _create_container(view: Store, zxid: int, change: Change, txn: CreateContainerTxn) -> TxnResult:
    return _new(view, zxid, change, txn, CONTAINER_OWNER)


def _create_ttl(view: Store, zxid: int, change: Change, txn: CreateTtlTxn) -> TxnResult:
    if not 0 < txn.ttl <= MAX_TTL:
        return TxnResult(code=Code.BAD_ARGUMENTS)
    return _new(view, zxid, change, txn, ttl_owner(txn.ttl))


def _new(
    view: Store, zxid: int, change: Change, txn: CreateTxn | CreateContainerTxn | CreateTtlTxn, owner: int
) -> TxnResult:
    """`DataTree.createNode`."""
    path = txn.path
    if not is_below_root(path) and path != ROOT:
        # Only in a file: "" would be a child of the root, and its parent too.
        return TxnResult(code=Code.BAD_ARGUMENTS)
    above = parent_of(path)
    parent = view.node(above)
    if parent is None:
        return _NO_NODE
    cversion = txn.parent_cversion if txn.parent_cversion != -1 else after(parent.cversion)
    # A snapshot that contains later transactions has a higher cversion, and the pzxid that goes with it.
    parent_put = Put(above, _with_children(parent, cversion, zxid)) if cversion > parent.cversion else None
    if view.node(path) is not None:
        return TxnResult(() if parent_put is None else (parent_put,), code=Code.NODE_EXISTS)
    acl = OPEN_ACL_UNSAFE if txn.acl == OPEN_ACL_UNSAFE else txn.acl
    znode = new_znode(txn.data, acl, zxid, change.time, owner)
    put = Put(path, znode)
    operations = (put,) if parent_put is None else (parent_put, put)
    return TxnResult(
        accounting.counted(view, zxid, operations, path, 1, len(txn.data or b"")),
        (Event(_CREATED, path, acl), Event(_CHILDREN_CHANGED, above, parent.acl)),
        Code.OK,
        PathReply(path) if type(txn) is CreateTxn else Create2Reply(path, stat_of(znode, 0)),
    )


def _delete(view: Store, zxid: int, _change: Change, txn: DeleteTxn) -> TxnResult:
    """`DataTree.deleteNode`."""
    path = txn.path
    above = parent_of(path)
    parent = view.node(above)
    if parent is None:
        return _NO_NODE
    operations: tuple[Operation, ...] = ()
    if zxid > parent.pzxid:
        operations = (Put(above, _with_children(parent, parent.cversion, zxid)),)
    znode = view.node(path)
    if znode is None:
        return TxnResult(operations, code=Code.NO_NODE)
    if view.children(path):
        # Only in a replay: the snapshot contains the path's next znode, with children that later transactions create.
        operations += tuple(_remove_below(view, path))
    return TxnResult(
        accounting.counted(view, zxid, (*operations, Remove(path)), path, -1, -len(znode.data or b"")),
        (Event(_DELETED, path, znode.acl), Event(_CHILDREN_CHANGED, above, parent.acl)),
    )


def _remove_below(view: Store, path: str) -> Iterator[Remove]:
    paths = [path]
    for above in paths:
        paths.extend(below(above, name) for name in sorted(view.children(above)))
    return map(Remove, reversed(paths[1:]))


def _with_children(znode: Znode, cversion: int, pzxid: int) -> Znode:
    return Znode(
        znode.data,
        znode.acl,
        znode.czxid,
        znode.mzxid,
        znode.ctime,
        znode.mtime,
        znode.version,
        cversion,
        znode.aversion,
        znode.ephemeral_owner,
        pzxid,
    )


def _set_data(view: Store, zxid: int, change: Change, txn: SetDataTxn) -> TxnResult:
    path = txn.path
    was = view.node(path)
    if was is None:
        return _NO_NODE
    znode = Znode(
        txn.data,
        was.acl,
        was.czxid,
        zxid,
        was.ctime,
        change.time,
        txn.version,
        was.cversion,
        was.aversion,
        was.ephemeral_owner,
        was.pzxid,
    )
    reply = StatReply(stat_of(znode, len(view.children(path))))
    more = len(txn.data or b"") - len(was.data or b"")
    operations = accounting.counted(view, zxid, (Put(path, znode),), path, 0, more)
    return TxnResult(operations, (Event(_DATA_CHANGED, path, was.acl),), Code.OK, reply)


def _reconfig(view: Store, zxid: int, change: Change, txn: ReconfigTxn) -> TxnResult:
    """A setData, whose reply has the data too (`FinalRequestProcessor`, case reconfig)."""
    result = _set_data(view, zxid, change, txn)
    if not isinstance(result.reply, StatReply):
        return result
    return msgspec.structs.replace(result, reply=DataReply(txn.data, result.reply.stat))


def _set_acl(view: Store, _zxid: int, _change: Change, txn: SetAclTxn) -> TxnResult:
    was = view.node(txn.path)
    if was is None:
        return _NO_NODE
    acl = OPEN_ACL_UNSAFE if txn.acl == OPEN_ACL_UNSAFE else txn.acl
    znode = msgspec.structs.replace(was, acl=acl, aversion=txn.version)
    reply = StatReply(stat_of(znode, len(view.children(txn.path))))
    return TxnResult((Put(txn.path, znode),), reply=reply)


def _check(_view: Store, _zxid: int, _change: Change, _txn: CheckVersionTxn) -> TxnResult:
    return _NOTHING


def _error(_view: Store, _zxid: int, _change: Change, txn: ErrorTxn) -> TxnResult:
    return TxnResult(code=code_of(txn.err))


def code_of(number: int) -> Code:
    """The error code with this number; SYSTEM_ERROR for an unknown one, since a log may contain any number."""
    return _CODES.get(number, Code.SYSTEM_ERROR)


def _create_session(_view: Store, _zxid: int, change: Change, txn: CreateSessionTxn) -> TxnResult:
    return TxnResult((OpenSession(change.session, txn.time_out),))


def _close_session(view: Store, zxid: int, change: Change, txn: CloseSessionTxn) -> TxnResult:
    """`DataTree.killSession`: delete the paths that the leader listed, then the session's other ephemeral znodes."""
    recorded = dict.fromkeys(txn.paths_to_delete)
    rest = sorted(path for path in view.ephemerals(change.session) if path not in recorded)
    if not recorded and not rest:
        return TxnResult((EndSession(change.session),))
    paths = [*recorded, *rest]
    # Children exist only in a replay. With quotas, one deletion changes what the next one finds.
    if view.children(accounting.QUOTA) or any(map(view.children, paths)):
        results = _one_by_one(view, zxid, change, map(DeleteTxn, paths))
        operations = [operation for result in results for operation in result.operations]
        events = [event for result in results for event in result.events]
    else:
        operations, events = _deleted(view, zxid, paths)
    return TxnResult((*operations, EndSession(change.session)), tuple(events))


def _deleted(view: Store, zxid: int, paths: Iterable[str]) -> tuple[list[Operation], list[Event]]:
    """The deletion of znodes without children, one after another: none changes what another one finds.

    Only the pzxid of a parent changes, with the first one. There may be very many znodes.
    """
    operations: list[Operation] = []
    events: list[Event] = []
    children_events: dict[str, Event] = {}
    removed: set[str] = set()
    for path in paths:
        above = parent_of(path)
        parent, znode = view.node(above), view.node(path)
        if parent is None or above in removed:
            continue
        if above not in children_events:
            children_events[above] = Event(_CHILDREN_CHANGED, above, parent.acl)
            if zxid > parent.pzxid:
                operations.append(Put(above, _with_children(parent, parent.cversion, zxid)))
        if znode is not None:
            removed.add(path)
            operations.append(Remove(path))
            events += (Event(_DELETED, path, znode.acl), children_events[above])
    return operations, events


def _multi(view: Store, zxid: int, change: Change, txn: MultiTxn) -> TxnResult:
    """All operations of a multi, or none of them if one is an error."""
    failed = next((place for place, part in enumerate(txn.txns) if type(part) is ErrorTxn), None)
    if failed is not None:
        return _failed_multi(txn.txns, failed)
    if any(type(part) not in _OPCODE_OF_RESULT for part in txn.txns):
        return TxnResult(code=Code.MARSHALLING_ERROR)  # no leader writes this, but a file may contain it
    results = _one_by_one(view, zxid, change, txn.txns)
    return TxnResult(
        tuple(operation for result in results for operation in result.operations),
        tuple(event for result in results for event in result.events),
        Code.OK,
        MultiReply(tuple(map(_result, txn.txns, results))),
    )


def _one_by_one(view: Store, zxid: int, change: Change, txns: Iterable[Record]) -> list[TxnResult]:
    """The outcome of each transaction, applied after the ones before it."""
    draft = Overlay(view)
    results: list[TxnResult] = []
    for txn in txns:
        results.append(_RULES[type(txn)](draft, zxid, change, txn))
        draft.carry_out(zxid, results[-1].operations)
    return results


def _failed_multi(txns: tuple[Record, ...], failed: int) -> TxnResult:
    """The reply to a failed multi: the error at its place, OK before it, RuntimeInconsistency after it.

    The reply as a whole is OK, unless the session has moved to another server: then it is SESSION_MOVED, and the
    client's connection to this server has to be closed.
    """
    results = []
    for place, txn in enumerate(txns):
        otherwise = Code.OK if place < failed else Code.RUNTIME_INCONSISTENCY
        code = code_of(txn.err) if isinstance(txn, ErrorTxn) else otherwise
        if code is Code.SESSION_MOVED:
            return TxnResult(code=code)
        results.append(OperationResult(-1, ErrorReply(code)))
    return TxnResult(reply=MultiReply(tuple(results)))


def _result(txn: Record, done: TxnResult) -> OperationResult:
    if done.code is not Code.OK:
        return OperationResult(-1, ErrorReply(done.code))
    return OperationResult(_OPCODE_OF_RESULT[type(txn)], done.reply)


_CODES = {code.value: code for code in Code}

# `OpResult`: a result with a Stat has the opcode of create2, for every kind of create.
_OPCODE_OF_RESULT: dict[type[Record], int] = {
    CreateTxn: OPCODE_OF[Create],
    Create2Txn: OPCODE_OF[Create2],
    CreateContainerTxn: OPCODE_OF[Create2],
    CreateTtlTxn: OPCODE_OF[Create2],
    DeleteTxn: OPCODE_OF[Delete],
    SetDataTxn: OPCODE_OF[SetData],
    CheckVersionTxn: OPCODE_OF[Check],
}

# Each rule takes one type of record; the type of this table cannot express that.
_RULES: dict[type[Record], Callable[[Store, int, Change, Any], TxnResult]] = {
    CreateTxn: _create,
    Create2Txn: _create,
    CreateContainerTxn: _create_container,
    CreateTtlTxn: _create_ttl,
    DeleteTxn: _delete,
    DeleteContainerTxn: _delete,
    SetDataTxn: _set_data,
    ReconfigTxn: _reconfig,
    SetAclTxn: _set_acl,
    CheckVersionTxn: _check,
    MultiTxn: _multi,
    ErrorTxn: _error,
    CreateSessionTxn: _create_session,
    CloseSessionTxn: _close_session,
}
