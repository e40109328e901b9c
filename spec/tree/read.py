"""The replies of a server to requests that do not change the tree, from the current state of its tree.

Rules of this module:

- A read is never refused because of its path: an invalid path has no znode. The exception is exists, which refuses a
  null character.
- Children and ephemeral znodes are returned in the order of their names; ZooKeeper returns them in no fixed order.
- `spec.tree.watches.watch_of` decides whether a read also registers a watch.
- The size of the reply to a multiRead is checked while it grows, because one request may read one znode any number of
  times. Every other reply is at most one znode, or the names of znodes.

Source: `FinalRequestProcessor.processRequest`, `handleGetChildrenRequest`, `handleGetDataRequest`.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from spec.tree.acl import client_info, hide_digests, permits
from spec.tree.checks import RefusedError
from spec.tree.data import Id, Perms, Record, Znode, stat_of
from spec.tree.options import DEFAULTS, Options
from spec.tree.paths import ROOT, below
from spec.tree.replies import (
    AclReply,
    Children2Reply,
    ChildrenReply,
    Code,
    DataReply,
    EphemeralsReply,
    ErrorReply,
    MultiReply,
    NumberReply,
    OperationResult,
    StatReply,
    WhoAmIReply,
)
from spec.tree.requests import (
    OPCODE_OF,
    Exists,
    GetAcl,
    GetAllChildrenNumber,
    GetChildren,
    GetChildren2,
    GetData,
    GetEphemerals,
    MultiRead,
    WhoAmI,
)
from spec.tree.store import Store

Answer: TypeAlias = tuple[Code, Record | None]

_HEADER, _LENGTH, _STAT = 9, 4, 68
"""Sizes in bytes on the wire: of a `MultiHeader`, of a length or an error code, and of a `Stat`."""


class _Asker(msgspec.Struct, frozen=True, gc=False):
    session: int
    auth: tuple[Id, ...]
    options: Options


def read(view: Store, record: Record, session: int, auth: tuple[Id, ...] = (), options: Options = DEFAULTS) -> Answer:
    """The answer to a request that does not change the tree; UNIMPLEMENTED for other requests.

    Raises RefusedError, with its reason, for a multiRead that is not answered.
    """
    rule = _RULES.get(type(record))
    if rule is None:
        return Code.UNIMPLEMENTED, None
    return rule(view, record, _Asker(session, auth, options))


def _readable(view: Store, path: str, asker: _Asker, perms: int = Perms.READ) -> tuple[Code, Znode | None]:
    znode = view.node(path)
    if znode is None:
        return Code.NO_NODE, None
    return (Code.OK, znode) if permits(znode.acl, perms, asker.auth, asker.options) else (Code.NO_AUTH, None)


def _exists(view: Store, request: Exists, asker: _Asker) -> Answer:
    path = request.path
    if "\0" in path:
        return Code.BAD_ARGUMENTS, None
    znode = view.node(path)
    if znode is None:
        return Code.NO_NODE, None
    if asker.options.exists_needs_read and not permits(znode.acl, Perms.READ, asker.auth, asker.options):
        return Code.NO_AUTH, None
    return Code.OK, StatReply(stat_of(znode, len(view.children(path))))


def _get_data(view: Store, request: GetData, asker: _Asker) -> Answer:
    code, znode = _readable(view, request.path, asker)
    if znode is None:
        return code, None
    return code, DataReply(znode.data, stat_of(znode, len(view.children(request.path))))


def _get_acl(view: Store, request: GetAcl, asker: _Asker) -> Answer:
    code, znode = _readable(view, request.path, asker, Perms.READ | Perms.ADMIN)
    if znode is None:
        return code, None
    administers = permits(znode.acl, Perms.ADMIN, asker.auth, asker.options)
    acl = znode.acl if administers else hide_digests(znode.acl)
    return code, AclReply(acl, stat_of(znode, len(view.children(request.path))))


def _get_children(view: Store, request: GetChildren, asker: _Asker) -> Answer:
    code, znode = _readable(view, request.path, asker)
    return code, None if znode is None else ChildrenReply(tuple(sorted(view.children(request.path))))


def _get_children2(view: Store, request: GetChildren2, asker: _Asker) -> Answer:
    code, znode = _readable(view, request.path, asker)
    if znode is None:
        return code, None
    names = tuple(sorted(view.children(request.path)))
    return code, Children2Reply(names, stat_of(znode, len(names)))


def _get_all_children_number(view: Store, request: GetAllChildrenNumber, asker: _Asker) -> Answer:
    code, znode = _readable(view, request.path, asker)
    return code, None if znode is None else NumberReply(_number_below(view, request.path))


def _number_below(view: Store, path: str) -> int:
    number = 0
    waiting = [path]
    while waiting:
        above = waiting.pop()
        names = view.children(above)
        number += len(names)
        waiting.extend(below(above, name) for name in names)
    return number


def _get_ephemerals(view: Store, request: GetEphemerals, asker: _Asker) -> Answer:
    prefix = request.prefix_path
    everywhere = prefix.strip() in {"", ROOT}
    paths = (path for path in view.ephemerals(asker.session) if everywhere or path.startswith(prefix))
    return Code.OK, EphemeralsReply(tuple(sorted(paths)))


def _who_am_i(_view: Store, _request: WhoAmI, asker: _Asker) -> Answer:
    return Code.OK, WhoAmIReply(client_info(asker.auth))


def _multi_read(view: Store, request: MultiRead, asker: _Asker) -> Answer:
    for operation in request.operations:
        if type(operation) not in {GetData, GetChildren}:
            reason = f"it contains {type(operation).__name__}, and only GetData and GetChildren are possible"
            raise RefusedError(Code.MARSHALLING_ERROR, reason)
    results, size = [], _HEADER  # the closing header
    for operation in request.operations:
        code, reply = _RULES[type(operation)](view, operation, asker)
        if reply is None:
            results.append(OperationResult(-1, ErrorReply(code)))
        else:
            results.append(OperationResult(OPCODE_OF[type(operation)], reply))
        size += _HEADER + _size(reply)
        if 0 < asker.options.max_multi_read < size:
            reason = f"its answer exceeds {asker.options.max_multi_read} bytes"
            raise RefusedError(Code.MARSHALLING_ERROR, reason)
    return Code.OK, MultiReply(tuple(results))


def _size(reply: Record | None) -> int:
    """The size of an operation's result on the wire in bytes, without its header."""
    match reply:
        case DataReply(data=data):
            return _LENGTH + len(data or b"") + _STAT
        case ChildrenReply(children=children):
            return _LENGTH + sum(_LENGTH + len(name.encode("utf-8", "surrogatepass")) for name in children)
        case _:
            return _LENGTH  # an error code


# Each rule takes one type of record; the type of this table cannot express that.
_RULES: dict[type[Record], Callable[[Store, Any, _Asker], Answer]] = {
    Exists: _exists,
    GetData: _get_data,
    GetAcl: _get_acl,
    GetChildren: _get_children,
    GetChildren2: _get_children2,
    GetAllChildrenNumber: _get_all_children_number,
    GetEphemerals: _get_ephemerals,
    WhoAmI: _who_am_i,
    MultiRead: _multi_read,
}
