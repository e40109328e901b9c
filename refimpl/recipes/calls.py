"""A record as a call of kazoo, and kazoo's result as an answer: translation, and nothing else.

Rules of this module:

- Paths are the application's. A client's chroot is put before them by kazoo, and taken off its answers.
- No call blocks: each gives an `IAsyncResult` of kazoo.
- The open ACL of a record means the client's `default_acl`, which is open unless the application has set one.
- An error that says that the connection or the session is gone is no answer (None): the outcome is unknown. Neither
  is an answer that kazoo cannot read, which a server may give to one of two connections of one session.

Source: `kazoo.client.KazooClient`, `kazoo.exceptions`.
"""

import logging
from collections.abc import Callable
from typing import Any

from kazoo.exceptions import AuthFailedError, ZookeeperError
from kazoo.protocol.states import EventType as KazooEventType
from kazoo.security import ACL, Id

from spec.recipes.events import Answered, Notified
from spec.tree.apply import EventType
from spec.tree.data import OPEN_ACL_UNSAFE, Acl, Stat
from spec.tree.fields import Record
from spec.tree.paths import fault_of, parent_of
from spec.tree.replies import ChildrenReply, Code, Create2Reply, DataReply, PathReply, StatReply
from spec.tree.requests import Create2, CreateMode, Delete, Exists, GetChildren, GetData, Sync

logger = logging.getLogger("quorate.recipes")

UNKNOWN = frozenset(
    {
        Code.CONNECTION_LOSS,
        Code.OPERATION_TIMEOUT,
        Code.SESSION_EXPIRED,
        Code.SESSION_MOVED,
        Code.REQUEST_TIMEOUT,
        Code.THROTTLED_OP,
    }
)
"""Errors after which nobody knows, or nobody but a later request can tell, whether it was done."""

EVENT_TYPES = {
    KazooEventType.CREATED: EventType.NODE_CREATED,
    KazooEventType.DELETED: EventType.NODE_DELETED,
    KazooEventType.CHANGED: EventType.NODE_DATA_CHANGED,
    KazooEventType.CHILD: EventType.NODE_CHILDREN_CHANGED,
}
"""NONE is not among them: it says that the connection is lost, which the state listener says too."""

_EPHEMERAL = {CreateMode.EPHEMERAL, CreateMode.EPHEMERAL_SEQUENTIAL}
_SEQUENTIAL = {CreateMode.PERSISTENT_SEQUENTIAL, CreateMode.EPHEMERAL_SEQUENTIAL}


def valid(path: str) -> str:
    """The path itself; ValueError if no znode can be there."""
    if fault := fault_of(path):
        raise ValueError(fault)
    return path


def send(client: Any, record: Record, watcher: Callable[[Any], None]) -> Any:
    """Hand a request to kazoo; `watcher` is called by kazoo when a watch that the request sets has fired.

    ValueError or TypeError if kazoo finds the request impossible.
    """
    match record:
        case Create2(path, data, acl, flags):
            mode = CreateMode(flags)
            return client.create_async(
                path,
                data,
                acl=_acl(acl),
                ephemeral=mode in _EPHEMERAL,
                sequence=mode in _SEQUENTIAL,
                include_data=True,
            )
        case Delete(path, version):
            return client.delete_async(path, version)
        case Exists(path, watch):
            return client.exists_async(path, watch=watcher if watch else None)
        case GetData(path, watch):
            return client.get_async(path, watch=watcher if watch else None)
        case GetChildren(path, watch):
            return client.get_children_async(path, watch=watcher if watch else None)
        case Sync(path):
            return client.sync_async(path)
        case _:
            raise ValueError(f"no recipe asks for {type(record).__name__}")


def _acl(acl: tuple[Acl, ...]) -> list[ACL] | None:
    return None if acl == OPEN_ACL_UNSAFE else [ACL(each.perms, Id(each.id.scheme, each.id.id)) for each in acl]


def answer(record: Record, result: Any) -> Answered | None:
    """What kazoo's finished result says of this request; None if the outcome is unknown."""
    if not result.successful():
        return refusal(result.exception)
    reply = _reply(record, result.value)
    missing = reply is None and isinstance(record, Exists)  # which is no error to kazoo
    return Answered(Code.NO_NODE if missing else Code.OK, reply)


def refusal(error: BaseException) -> Answered | None:
    """What an exception says; None if the outcome is unknown."""
    if isinstance(error, AuthFailedError):
        return None  # the client is closed by it
    if not isinstance(error, ZookeeperError):
        logger.error("kazoo has failed with a request: %r", error, exc_info=error)
        return Answered(Code.BAD_ARGUMENTS) if isinstance(error, TypeError | ValueError) else None
    try:
        code = Code(error.code)
    except ValueError:
        code = Code.SYSTEM_ERROR  # an error that ZooKeeper 3.8 does not have
    return None if code in UNKNOWN else Answered(code)


def _reply(record: Record, value: Any) -> Record | None:
    match record:
        case Create2():
            path, stat = value
            return Create2Reply(path, Stat(*stat))
        case Exists() if value is not None:
            return StatReply(Stat(*value))
        case GetData():
            data, stat = value
            return DataReply(data, Stat(*stat))
        case GetChildren():
            return ChildrenReply(tuple(value))
        case Sync():
            return PathReply(value)
        case _:
            return None


def notice(event: Any) -> Notified | None:
    """What kazoo's `WatchedEvent` says; None for the loss of the connection."""
    kind = EVENT_TYPES.get(event.type)
    return None if kind is None else Notified(kind, event.path)


def needs(record: Record) -> str | None:
    """The path that has to be there for this request to make sense: the queue that it is about."""
    match record:
        case Create2(path):
            return parent_of(path)
        case GetChildren(path):
            return path
        case _:
            return None
