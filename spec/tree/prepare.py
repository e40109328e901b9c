"""The preparation of a request by the leader: the transaction that carries it out, or the error that refuses it.

Rules of this module:

- `view` shows the tree after all outstanding transactions. A transaction is therefore correct for the tree that it is
  applied to, no matter when.
- A refused request is also a transaction, `ErrorTxn`.
- Checks run in ZooKeeper's order, since a client sees which of two faults is reported. The session tracker detects an
  expired or moved session; `checked` is its verdict, evaluated at the point where ZooKeeper asks the tracker.
- A multi is prepared operation by operation, each after the effects of those before it. The first failure is kept as an
  error, and those after it are RuntimeInconsistency. Those before it stay in the transaction, and are skipped when it
  is applied.

Where ZooKeeper differs: its deletion of a container also deletes a plain znode; and a createTTL of a plain znode with a
negative time to live, which is refused here, stops its server (seen on 3.8.0).

Source: `PrepRequestProcessor.pRequest`, `pRequest2Txn`, `pRequest2TxnCreate`, `validateCreateRequest`.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from spec.tree.acl import fix_up
from spec.tree.apply import apply
from spec.tree.checks import (
    Asker,
    RefusedError,
    after,
    check_acl,
    check_deletable,
    check_path,
    check_quota,
    check_session,
    check_version,
    existing,
)
from spec.tree.data import MAX_TTL, Acl, Kind, Perms, Record, Znode, kind_of
from spec.tree.options import DEFAULTS, Options
from spec.tree.overlay import Overlay
from spec.tree.paths import parent_of, sequential
from spec.tree.replies import Code
from spec.tree.requests import (
    Check,
    CloseSession,
    Create,
    Create2,
    CreateContainer,
    CreateMode,
    CreateSession,
    CreateTtl,
    Delete,
    DeleteContainer,
    Multi,
    Reconfig,
    Request,
    SetAcl,
    SetData,
)
from spec.tree.store import Store
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
    SetAclTxn,
    SetDataTxn,
)

_EPHEMERAL = frozenset({CreateMode.EPHEMERAL, CreateMode.EPHEMERAL_SEQUENTIAL})
_SEQUENTIAL = frozenset(
    {
        CreateMode.PERSISTENT_SEQUENTIAL,
        CreateMode.EPHEMERAL_SEQUENTIAL,
        CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL,
    }
)
_TTL = frozenset({CreateMode.PERSISTENT_WITH_TTL, CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL})
_MODES = frozenset(map(int, CreateMode))


def prepare(view: Store, request: Request, now: int, checked: Code = Code.OK, options: Options = DEFAULTS) -> Change:
    """The transaction for a request that reaches the leader at `now`, in milliseconds."""
    record = request.record
    asker = Asker(request.session, request.auth, checked, options, view)
    txn: Record
    try:
        txn = _multi(view, record, asker, now) if isinstance(record, Multi) else _one(view, record, asker)
    except RefusedError as refused:
        txn = ErrorTxn(refused.code)
    return Change(request.session, request.cxid, now, txn)


def fitted(change: Change, size: int, limit: int) -> Change:
    """The transaction itself, or one in its place if its `size` in bytes exceeds the `limit` of a learner's packets.

    No learner could read it, and all of them would leave: the ephemerals of a session, the transactions of a multi, and
    several ACL entries are not in the request, or are shorter there. The request is refused with MarshallingError; a
    closeSession is replaced by one without paths, since applying it deletes all ephemerals of the session, listed or
    not. ZooKeeper has no such check: its learners end at `BinaryInputArchive.checkLength`.
    """
    if size <= limit:
        return change
    closes = isinstance(change.record, CloseSessionTxn)
    return replace(change, record=CloseSessionTxn(()) if closes else ErrorTxn(Code.MARSHALLING_ERROR), digest=None)


def _one(view: Store, record: Record, asker: Asker) -> Record:
    rule = _RULES.get(type(record))
    if rule is None:
        raise RefusedError(Code.UNIMPLEMENTED)
    return rule(view, record, asker)


def _multi(view: Store, multi: Multi, asker: Asker, now: int) -> MultiTxn:
    operations = [_in_a_multi(operation) for operation in multi.operations]
    draft = Overlay(view)
    txns: list[Record] = []
    for operation in operations:
        try:
            txns.append(_one(draft, operation, asker))
        except RefusedError as refused:
            txns.append(ErrorTxn(refused.code))
            rest = len(operations) - len(txns)
            txns.extend([ErrorTxn(Code.RUNTIME_INCONSISTENCY)] * rest)
            break
        # No check depends on a zxid, so any value works until Zab assigns the real one.
        draft.carry_out(0, apply(draft, 0, Change(asker.session, 0, now, txns[-1])).operations)
    return MultiTxn(tuple(txns))


def _in_a_multi(operation: Record) -> Record:
    """The operation as a server reads it from a multi, where the flags decide the kind of create.

    Source: `MultiOperationRecord.deserialize`, `Op.Create`.
    """
    if type(operation) not in _OPERATIONS:
        raise RefusedError(Code.MARSHALLING_ERROR)
    if isinstance(operation, CreateTtl):
        if operation.flags in _TTL:
            return operation
        operation = Create(operation.path, operation.data, operation.acl, operation.flags)
    if isinstance(operation, Create):
        if operation.flags in _TTL or operation.flags not in _MODES:
            raise RefusedError(Code.MARSHALLING_ERROR)
        if operation.flags == CreateMode.CONTAINER:
            return CreateContainer(operation.path, operation.data, operation.acl, operation.flags)
    return operation


def _create(view: Store, create: Create, asker: Asker) -> Record:
    path, parent, acl = _place(view, create, -1, asker)
    cversion = after(parent.cversion)
    if type(create) is CreateContainer:
        return CreateContainerTxn(path, create.data, acl, cversion)
    kind = Create2Txn if type(create) is Create2 else CreateTxn
    return kind(path, create.data, acl, create.flags in _EPHEMERAL, cversion)


def _create_ttl(view: Store, create: CreateTtl, asker: Asker) -> CreateTtlTxn:
    path, parent, acl = _place(view, create, create.ttl, asker)
    if create.flags not in _TTL:
        raise RefusedError(Code.BAD_ARGUMENTS)
    return CreateTtlTxn(path, create.data, acl, after(parent.cversion), create.ttl)


def _place(view: Store, create: Create | CreateTtl, ttl: int, asker: Asker) -> tuple[str, Znode, tuple[Acl, ...]]:
    """The path of the new znode, its parent, and its ACL."""
    path = create.path
    _check_mode(create.flags, ttl, asker)
    check_session(asker)
    if "/" not in path or "\0" in path:
        raise RefusedError(Code.BAD_ARGUMENTS)
    acl = fix_up(create.acl, asker.auth, asker.options)
    if acl is None:
        raise RefusedError(Code.INVALID_ACL)
    parent = existing(view, parent_of(path))
    check_acl(parent, Perms.CREATE, asker)
    if create.flags in _SEQUENTIAL:
        path = sequential(path, parent.cversion)
    check_path(path)
    if view.node(path) is not None:
        raise RefusedError(Code.NODE_EXISTS)
    if parent.ephemeral_owner and kind_of(parent.ephemeral_owner) is Kind.EPHEMERAL:
        raise RefusedError(Code.NO_CHILDREN_FOR_EPHEMERALS)
    check_quota(asker, path, 1, len(create.data or b""))
    return path, parent, acl


def _check_mode(flags: int, ttl: int, asker: Asker) -> None:
    if flags not in _MODES:
        raise RefusedError(Code.BAD_ARGUMENTS)
    if flags not in _TTL:
        if ttl >= 0:
            raise RefusedError(Code.BAD_ARGUMENTS)
        return
    if not asker.options.extended_types:
        raise RefusedError(Code.UNIMPLEMENTED)
    if not 0 < ttl <= MAX_TTL:
        raise RefusedError(Code.BAD_ARGUMENTS)


def _delete(view: Store, delete: Delete, asker: Asker) -> DeleteTxn:
    check_session(asker)
    path = delete.path
    check_deletable(path)
    check_acl(existing(view, parent_of(path)), Perms.DELETE, asker)
    check_version(existing(view, path).version, delete.version)
    if view.children(path):
        raise RefusedError(Code.NOT_EMPTY)
    return DeleteTxn(path)


def _delete_container(view: Store, delete: DeleteContainer, _asker: Asker) -> DeleteContainerTxn:
    path = delete.path
    check_deletable(path)
    znode = existing(view, path)
    if view.children(path):
        raise RefusedError(Code.NOT_EMPTY)
    if kind_of(znode.ephemeral_owner) not in (Kind.CONTAINER, Kind.TTL):
        raise RefusedError(Code.BAD_VERSION)
    return DeleteContainerTxn(path)


def _set_data(view: Store, change: SetData, asker: Asker) -> SetDataTxn:
    check_session(asker)
    path = change.path
    check_path(path)
    znode = existing(view, path)
    check_acl(znode, Perms.WRITE, asker)
    check_quota(asker, path, 0, len(change.data or b"") - len(znode.data or b""))
    return SetDataTxn(path, change.data, check_version(znode.version, change.version))


def _set_acl(view: Store, change: SetAcl, asker: Asker) -> SetAclTxn:
    check_session(asker)
    path = change.path
    check_path(path)
    acl = fix_up(change.acl, asker.auth, asker.options)
    if acl is None:
        raise RefusedError(Code.INVALID_ACL)
    znode = existing(view, path)
    check_acl(znode, Perms.ADMIN, asker)
    return SetAclTxn(path, acl, check_version(znode.aversion, change.version))


def _check(view: Store, check: Check, asker: Asker) -> CheckVersionTxn:
    check_session(asker)
    path = check.path
    check_path(path)
    znode = existing(view, path)
    check_acl(znode, Perms.READ, asker)
    return CheckVersionTxn(path, check_version(znode.version, check.version))


def _create_session(_view: Store, create: CreateSession, _asker: Asker) -> CreateSessionTxn:
    return CreateSessionTxn(create.time_out)


def _close_session(view: Store, _close: CloseSession, asker: Asker) -> CloseSessionTxn:
    return CloseSessionTxn(tuple(sorted(view.ephemerals(asker.session))))


def _reconfig(_view: Store, _reconfig: Reconfig, _asker: Asker) -> Record:
    """Refuse: only an ensemble with `reconfigEnabled` is reconfigured (`spec.service.reconfig_request`)."""
    raise RefusedError(Code.RECONFIG_DISABLED)


_OPERATIONS = frozenset({Create, Create2, CreateContainer, CreateTtl, Delete, SetData, Check})

# Each rule takes one type of record; the type of this table cannot express that.
_RULES: dict[type[Record], Callable[[Store, Any, Asker], Record]] = {
    Create: _create,
    Create2: _create,
    CreateContainer: _create,
    CreateTtl: _create_ttl,
    Delete: _delete,
    DeleteContainer: _delete_container,
    SetData: _set_data,
    SetAcl: _set_acl,
    Check: _check,
    CreateSession: _create_session,
    CloseSession: _close_session,
    Reconfig: _reconfig,
}
