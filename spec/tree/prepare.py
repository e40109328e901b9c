"""What a leader makes of a request: the transaction that carries it out, or the error that refuses it.

Rules this module keeps:

- `view` shows the tree as all outstanding transactions will leave it. So a transaction is right for the tree it is
  applied to, whenever that is.
- A request that is refused is a transaction as well, `ErrorTxn`.
- Checks are made in ZooKeeper's order, since a client sees which of two faults is reported. A session that has expired
  or moved is found by the tracker of sessions; `checked` is its verdict, heard where ZooKeeper asks for it.
- A multi is prepared operation by operation, each after what those before it will do. The first that fails stands as
  an error; those after it are RuntimeInconsistency; those before it stay, and whoever applies it skips them.

Where ZooKeeper differs: it deletes a plain znode too when asked to delete a container; and it asks for the highest
time to live only where a TTL znode is created by createTTL with another mode, which stops the server.

Source: `PrepRequestProcessor.pRequest`, `pRequest2Txn`, `pRequest2TxnCreate`, `validateCreateRequest`.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from spec.tree.acl import fix_up, permits
from spec.tree.apply import apply
from spec.tree.data import Acl, Id, Perms
from spec.tree.fields import Record
from spec.tree.options import DEFAULTS, Options
from spec.tree.overlay import Overlay
from spec.tree.paths import SPECIAL, fault_of, parent_of, sequential
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
from spec.tree.znode import MAX_TTL, Kind, Znode, kind_of

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

_HIGHEST_INT = (1 << 31) - 1


class _RefusedError(Exception):
    """A request is refused with this code."""

    def __init__(self, code: Code) -> None:
        self.code = code


class _Asker(msgspec.Struct, frozen=True, gc=False):
    """Who asks, what the tracker of sessions says of it, and what the operator allows."""

    session: int
    auth: tuple[Id, ...]
    checked: Code
    options: Options


def prepare(view: Store, request: Request, now: int, checked: Code = Code.OK, options: Options = DEFAULTS) -> Change:
    """The transaction for a request that reaches the leader at `now`, in milliseconds."""
    record = request.record
    asker = _Asker(request.session, request.auth, checked, options)
    txn: Record
    try:
        txn = _multi(view, record, asker, now) if isinstance(record, Multi) else _one(view, record, asker)
    except _RefusedError as refused:
        txn = ErrorTxn(refused.code)
    return Change(request.session, request.cxid, now, txn)


def _one(view: Store, record: Record, asker: _Asker) -> Record:
    rule = _RULES.get(type(record))
    if rule is None:
        raise _RefusedError(Code.UNIMPLEMENTED)
    return rule(view, record, asker)


def _multi(view: Store, multi: Multi, asker: _Asker, now: int) -> MultiTxn:
    operations = [_in_a_multi(operation) for operation in multi.operations]
    draft = Overlay(view)
    txns: list[Record] = []
    for operation in operations:
        try:
            txns.append(_one(draft, operation, asker))
        except _RefusedError as refused:
            txns.append(ErrorTxn(refused.code))
            left = len(operations) - len(txns)
            txns.extend([ErrorTxn(Code.RUNTIME_INCONSISTENCY)] * left)
            break
        # No check depends on a zxid, so any will do before Zab gives the real one.
        draft.carry_out(0, apply(draft, 0, Change(asker.session, 0, now, txns[-1])).operations)
    return MultiTxn(tuple(txns))


def _in_a_multi(operation: Record) -> Record:
    """The operation as a server reads it out of a multi, where the flags decide which kind of create it is.

    Source: `MultiOperationRecord.deserialize`, `Op.Create`.
    """
    if type(operation) not in _OPERATIONS:
        raise _RefusedError(Code.MARSHALLING_ERROR)
    if isinstance(operation, CreateTtl):
        if operation.flags in _TTL:
            return operation
        operation = Create(operation.path, operation.data, operation.acl, operation.flags)
    if isinstance(operation, Create):
        if operation.flags in _TTL or operation.flags not in _MODES:
            raise _RefusedError(Code.MARSHALLING_ERROR)
        if operation.flags == CreateMode.CONTAINER:
            return CreateContainer(operation.path, operation.data, operation.acl, operation.flags)
    return operation


def _create(view: Store, create: Create, asker: _Asker) -> Record:
    path, parent, acl = _place(view, create, -1, asker)
    cversion = _after(parent.cversion)
    if type(create) is CreateContainer:
        return CreateContainerTxn(path, create.data, acl, cversion)
    kind = Create2Txn if type(create) is Create2 else CreateTxn
    return kind(path, create.data, acl, create.flags in _EPHEMERAL, cversion)


def _create_ttl(view: Store, create: CreateTtl, asker: _Asker) -> CreateTtlTxn:
    path, parent, acl = _place(view, create, create.ttl, asker)
    if create.flags not in _TTL:
        raise _RefusedError(Code.BAD_ARGUMENTS)
    return CreateTtlTxn(path, create.data, acl, _after(parent.cversion), create.ttl)


def _place(view: Store, create: Create | CreateTtl, ttl: int, asker: _Asker) -> tuple[str, Znode, tuple[Acl, ...]]:
    """The path of the new znode, its parent, and its ACL."""
    path = create.path
    _check_mode(create.flags, ttl, asker)
    _check_session(asker)
    if "/" not in path or "\0" in path:
        raise _RefusedError(Code.BAD_ARGUMENTS)
    acl = fix_up(create.acl, asker.auth)
    if acl is None:
        raise _RefusedError(Code.INVALID_ACL)
    parent = _existing(view, parent_of(path))
    _check_acl(parent, Perms.CREATE, asker)
    if create.flags in _SEQUENTIAL:
        path = sequential(path, parent.cversion)
    _check_path(path)
    if view.node(path) is not None:
        raise _RefusedError(Code.NODE_EXISTS)
    if parent.ephemeral_owner and kind_of(parent.ephemeral_owner) is Kind.EPHEMERAL:
        raise _RefusedError(Code.NO_CHILDREN_FOR_EPHEMERALS)
    return path, parent, acl


def _check_mode(flags: int, ttl: int, asker: _Asker) -> None:
    if flags not in _MODES:
        raise _RefusedError(Code.BAD_ARGUMENTS)
    if flags not in _TTL:
        if ttl >= 0:
            raise _RefusedError(Code.BAD_ARGUMENTS)
        return
    if not asker.options.extended_types:
        raise _RefusedError(Code.UNIMPLEMENTED)
    if not 0 < ttl <= MAX_TTL:
        raise _RefusedError(Code.BAD_ARGUMENTS)


def _delete(view: Store, delete: Delete, asker: _Asker) -> DeleteTxn:
    _check_session(asker)
    path = delete.path
    _check_deletable(path)
    _check_acl(_existing(view, parent_of(path)), Perms.DELETE, asker)
    _check_version(_existing(view, path).version, delete.version)
    if view.children(path):
        raise _RefusedError(Code.NOT_EMPTY)
    return DeleteTxn(path)


def _delete_container(view: Store, delete: DeleteContainer, _asker: _Asker) -> DeleteContainerTxn:
    path = delete.path
    _check_deletable(path)
    znode = _existing(view, path)
    if view.children(path):
        raise _RefusedError(Code.NOT_EMPTY)
    if kind_of(znode.ephemeral_owner) not in (Kind.CONTAINER, Kind.TTL):
        raise _RefusedError(Code.BAD_VERSION)
    return DeleteContainerTxn(path)


def _set_data(view: Store, change: SetData, asker: _Asker) -> SetDataTxn:
    _check_session(asker)
    path = change.path
    _check_path(path)
    znode = _existing(view, path)
    _check_acl(znode, Perms.WRITE, asker)
    return SetDataTxn(path, change.data, _check_version(znode.version, change.version))


def _set_acl(view: Store, change: SetAcl, asker: _Asker) -> SetAclTxn:
    _check_session(asker)
    path = change.path
    _check_path(path)
    acl = fix_up(change.acl, asker.auth)
    if acl is None:
        raise _RefusedError(Code.INVALID_ACL)
    znode = _existing(view, path)
    _check_acl(znode, Perms.ADMIN, asker)
    return SetAclTxn(path, acl, _check_version(znode.aversion, change.version))


def _check(view: Store, check: Check, asker: _Asker) -> CheckVersionTxn:
    _check_session(asker)
    path = check.path
    _check_path(path)
    znode = _existing(view, path)
    _check_acl(znode, Perms.READ, asker)
    return CheckVersionTxn(path, _check_version(znode.version, check.version))


def _create_session(_view: Store, create: CreateSession, _asker: _Asker) -> CreateSessionTxn:
    return CreateSessionTxn(create.time_out)


def _close_session(view: Store, _close: CloseSession, asker: _Asker) -> CloseSessionTxn:
    return CloseSessionTxn(tuple(sorted(view.ephemerals(asker.session))))


def _reconfig(_view: Store, _reconfig: Reconfig, _asker: _Asker) -> Record:
    raise _RefusedError(Code.RECONFIG_DISABLED)


def _check_session(asker: _Asker) -> None:
    if asker.checked is not Code.OK:
        raise _RefusedError(asker.checked)


def _check_path(path: str) -> None:
    if fault_of(path) is not None:
        raise _RefusedError(Code.BAD_ARGUMENTS)


def _check_deletable(path: str) -> None:
    if "/" not in path or "\0" in path or path in SPECIAL:
        raise _RefusedError(Code.BAD_ARGUMENTS)


def _existing(view: Store, path: str) -> Znode:
    znode = view.node(path)
    if znode is None:
        raise _RefusedError(Code.NO_NODE)
    return znode


def _check_acl(znode: Znode, perms: Perms, asker: _Asker) -> None:
    if not permits(znode.acl, perms, asker.auth, asker.options):
        raise _RefusedError(Code.NO_AUTH)


def _check_version(current: int, expected: int) -> int:
    """The version after the change (`PrepRequestProcessor.checkAndIncVersion`)."""
    if expected not in (-1, current):
        raise _RefusedError(Code.BAD_VERSION)
    return _after(current)


def _after(version: int) -> int:
    """The next version; like Java's int it goes round."""
    return version + 1 if version != _HIGHEST_INT else -_HIGHEST_INT - 1


_OPERATIONS = frozenset({Create, Create2, CreateContainer, CreateTtl, Delete, SetData, Check})

# Each rule takes the record of its own type; a table of them cannot say so.
_RULES: dict[type[Record], Callable[[Store, Any, _Asker], Record]] = {
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
