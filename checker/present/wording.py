"""Requests, replies and transactions as short text, in two vocabularies.

Scenarios of the service use the words of ZooKeeper's command line: `create -e /a`. Recipes use the names of its API,
with short paths: `create c1-lock-0`. Rules of the second vocabulary (`short_path` and the functions after it):

- A path is shown as its last name, with a slash before it if its parent is the root. A sequence number is shown without
  leading zeros, and a protected name without its `_c_`.
- A caption shows a reply without the path of its request (`brief`); a diagram shows requests and replies in full.
"""

import re
from typing import Any

from checker.models.service.messages import (
    Commit,
    ConnectionClosed,
    Reply,
    ServerMessage,
    SyncMarker,
    WatchNotification,
)
from checker.models.service.setup import client_of
from spec.tree.apply import EventType
from spec.tree.data import Record
from spec.tree.paths import name_of, parent_of
from spec.tree.replies import ChildrenReply, Code, Create2Reply, DataReply
from spec.tree.requests import (
    Check,
    CloseSession,
    Create,
    CreateMode,
    CreateSession,
    CreateTtl,
    Delete,
    Exists,
    GetAcl,
    GetAllChildrenNumber,
    GetChildren,
    GetChildren2,
    GetData,
    GetEphemerals,
    Multi,
    SessionId,
    SetAcl,
    SetData,
    Sync,
)
from spec.tree.txns import (
    Change,
    CloseSessionTxn,
    CreateContainerTxn,
    CreateSessionTxn,
    CreateTtlTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    MultiTxn,
    SetAclTxn,
    SetDataTxn,
)

_MODES = {
    CreateMode.PERSISTENT: "",
    CreateMode.EPHEMERAL: "-e ",
    CreateMode.PERSISTENT_SEQUENTIAL: "-s ",
    CreateMode.EPHEMERAL_SEQUENTIAL: "-e -s ",
    CreateMode.CONTAINER: "-c ",
}
_EVENTS = {
    EventType.NODE_CREATED: "{} was created",
    EventType.NODE_DELETED: "{} was deleted",
    EventType.NODE_DATA_CHANGED: "{} has new data",
    EventType.NODE_CHILDREN_CHANGED: "{} has other children",
}


def request(record: Record) -> str:
    """A request: `create -e /a`, `get -w /a`, `set /a 1.2`."""
    match record:
        case Create(path, data, _, flags):
            return f"create {_MODES.get(CreateMode(flags), '')}{path}{_data(data)}"
        case CreateTtl(path, data, _, flags, ttl):
            sequential = "-s " if flags == CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL else ""
            return f"create {sequential}-t {ttl} {path}{_data(data)}"
        case GetAcl(path) | SetAcl(path) | GetAllChildrenNumber(path) | GetEphemerals(path):
            name = type(record).__name__
            return f"{name[0].lower()}{name[1:]} {path}"
        case SetData(path, data, version):
            return f"set {'' if version == -1 else f'-v {version} '}{path}{_data(data)}"
        case Delete(path, version):
            return f"delete {'' if version == -1 else f'-v {version} '}{path}"
        case GetData(path, watch):
            return f"get {'-w ' if watch else ''}{path}"
        case Exists(path, watch):
            return f"stat {'-w ' if watch else ''}{path}"
        case GetChildren(path, watch) | GetChildren2(path, watch):
            return f"ls {'-w ' if watch else ''}{path}"
        case Sync(path):
            return f"sync {path}"
        case Check(path, version):
            return f"check -v {version} {path}"
        case Multi(operations):
            return f"multi [{', '.join(map(request, operations))}]"
        case CloseSession():
            return "close"
        case CreateSession():
            return "new session"
    return type(record).__name__


def _data(data: bytes | None) -> str:
    return f" {data.decode(errors='backslashreplace')}" if data else ""


def message(said: ServerMessage) -> str:
    """A message from a server to a client."""
    match said:
        case WatchNotification(type_, path):
            return _EVENTS[type_].format(path)
        case ConnectionClosed():
            return "connection closed"
        case Reply():
            return _answer(said)


def _answer(said: Reply) -> str:
    request, reply = said.asked, said.reply
    if said.code is not Code.OK:
        return f"{_short(request)}: {said.code.name}"
    match request:
        case Create():
            return f"created {reply.path}"  # type: ignore[union-attr]
        case GetData(path):
            return f"{path} = {(reply.data or b'').decode(errors='backslashreplace') or 'empty'}"  # type: ignore[union-attr]
        case GetChildren(path) | GetChildren2(path):
            return f"{path} has [{', '.join(reply.children)}]"  # type: ignore[union-attr]
        case Exists(path):
            return f"{path} exists"
        case Multi():
            codes = [result.record.err for result in reply.results if result.type == -1]  # type: ignore[union-attr]
            failed = next((Code(err).name for err in codes if err not in (0, Code.RUNTIME_INCONSISTENCY)), None)
            return "multi: done" if failed is None else f"multi: {failed}"
    return f"{_short(request)}: done"


def _short(asked: Record) -> str:
    if isinstance(asked, Multi):
        return "multi"
    return request(asked).replace("-w ", "").split(" ", 2)[0] + (f" {path}" if (path := path_of(asked)) else "")


def path_of(record: Record) -> str:
    """The path of a request; empty if it has none."""
    return str(getattr(record, "path", ""))


def transaction(change: Change) -> str:
    """A transaction: `create /a`, `end session 1.1`."""
    match change.record:
        case CreateTxn(path, data, _, ephemeral):
            return f"create {'-e ' if ephemeral else ''}{path}{_data(data)}"
        case CreateContainerTxn(path, data):
            return f"create -c {path}{_data(data)}"
        case CreateTtlTxn(path, data, _, _, ttl):
            return f"create -t {ttl} {path}{_data(data)}"
        case SetAclTxn(path):
            return f"setAcl {path}"
        case SetDataTxn(path, data):
            return f"set {path}{_data(data)}"
        case DeleteTxn(path):
            return f"delete {path}"
        case ErrorTxn(err):
            return Code(err).name
        case CreateSessionTxn():
            return f"open {session(change.session)}"
        case CloseSessionTxn():
            return f"end {session(change.session)}"
        case MultiTxn(txns):
            inner = (transaction(Change(change.session, 0, 0, txn)) for txn in txns)
            return f"multi [{', '.join(inner)}]"
    return type(change.record).__name__


def session(number: SessionId) -> str:
    """A session: `session 1.2` is the second one of client 1."""
    return f"session {client_of(number)}.{number % 16}"


# The names of the API, with short paths.

_SHORT_EVENTS = {
    EventType.NODE_CREATED: "created",
    EventType.NODE_DELETED: "deleted",
    EventType.NODE_DATA_CHANGED: "changed",
    EventType.NODE_CHILDREN_CHANGED: "children changed",
}
_NUMBER = re.compile(r"0{1,9}(\d+)$")
_PROTECTED = "_c_"


def short_path(path: str) -> str:
    """A path as its last name, with a short sequence number."""
    name = _short_name(name_of(path))
    return f"/{name}" if parent_of(path) in ("", "/") and path.startswith("/") else name


def _short_name(name: str) -> str:
    return _NUMBER.sub(r"\1", name.removeprefix(_PROTECTED))


def _api_name(record: Record) -> str:
    word = type(record).__name__.removesuffix("Txn").removesuffix("2")
    return f"{word[0].lower()}{word[1:]}"


def api_request(record: Record) -> str:
    """A request, or the operation of a transaction: its name, its short path, and whether it sets a watch."""
    path = getattr(record, "path", None)
    watch = " and watch" if getattr(record, "watch", False) else ""
    return f"{_api_name(record)}{f' {short_path(path)}' if path is not None else ''}{watch}"


def api_message(message: ServerMessage, *, brief: bool = False) -> str:
    """A reply or a notification; brief: a reply with only the name of its request."""
    match message:
        case WatchNotification(type_, path):
            return f"{short_path(path)} {_SHORT_EVENTS[type_]}"
        case Reply(asked, code, reply):
            return f"{_api_name(asked) if brief else api_request(asked)}: {_api_reply(code, reply)}"
        case ConnectionClosed():
            return "the connection is closed"


def api_commit(pending: Commit | SyncMarker) -> str:
    """The transaction or sync that a lagging server applies."""
    return api_request(pending.origin.asked if isinstance(pending, SyncMarker) else pending.change.record)


def _api_reply(code: Code, reply: Any) -> str:
    if code is not Code.OK:
        return code.name
    match reply:
        case Create2Reply(path):
            return short_path(path)
        case ChildrenReply(children):
            return ", ".join(map(_short_name, children)) or "none"
        case DataReply(data) if data:
            return data.decode(errors="replace")
        case _:
            return "OK"
