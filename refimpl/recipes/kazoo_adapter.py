"""Translation of a record to a kazoo call, and of kazoo's result to an answer.

`preserve_xids` makes a kazoo client continue its request numbers after a lost connection, as the Java client does.
Kazoo restarts its numbers with each connection. Apache's server identifies a pending write by session and number only
(`CommitProcessor`). If a write of a lost connection is committed after the session has reconnected, its answer may go
to the new request with the same number. The next answer then terminates kazoo's connection thread ("xids do not match",
`IndexError: pop from an empty deque`), and with it the client. On 3.8.0 this happened in about a tenth of such races,
and only if the lost write was delayed until the client was back. The reference node answers the connection that made
the request.

Rules of this module:

- Paths are the application's. Kazoo prepends a client's chroot, and removes it from its answers.
- No call blocks: each returns a kazoo `IAsyncResult`.
- The open ACL of a record means the client's `default_acl`, which is open unless the application has set one.
- An error that means the loss of the connection or of the session is not an answer (None): the outcome is unknown.
  The same holds for an answer that kazoo cannot parse, which a server may send to one of two connections of a session.
- The client is changed only if its application asks for it, and before it is started.

Source: `kazoo.client.KazooClient`, `kazoo.exceptions`; `kazoo.protocol.connection.ConnectionHandler._connect`,
`ClientCnxn.getXid`.
"""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from kazoo.exceptions import AuthFailedError, ZookeeperError
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.states import EventType as KazooEventType
from kazoo.security import ACL, Id

from spec.recipes.events import Answered, Notified
from spec.tree.apply import EventType
from spec.tree.data import OPEN_ACL_UNSAFE, Record, Stat
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
"""Errors that leave the outcome unknown, or known only through a later request."""

EVENT_TYPES = {
    KazooEventType.CREATED: EventType.NODE_CREATED,
    KazooEventType.DELETED: EventType.NODE_DELETED,
    KazooEventType.CHANGED: EventType.NODE_DATA_CHANGED,
    KazooEventType.CHILD: EventType.NODE_CHILDREN_CHANGED,
}
"""NONE is absent: it reports the loss of the connection, which the state listener reports too."""

_EPHEMERAL = {CreateMode.EPHEMERAL, CreateMode.EPHEMERAL_SEQUENTIAL}
_SEQUENTIAL = {CreateMode.PERSISTENT_SEQUENTIAL, CreateMode.EPHEMERAL_SEQUENTIAL}


def valid(path: str) -> str:
    """Return the path; raise ValueError if it is not a valid znode path."""
    if fault := fault_of(path):
        raise ValueError(fault)
    return path


def send(client: Any, record: Record, watcher: Callable[[Any], None]) -> Any:
    """Pass a request to kazoo, which calls `watcher` when a watch that the request sets fires.

    Raises ValueError or TypeError if kazoo rejects the request.
    """
    match record:
        case Create2(path, data, acl, flags):
            mode = CreateMode(flags)
            entries = [ACL(entry.perms, Id(entry.id.scheme, entry.id.id)) for entry in acl]
            return client.create_async(
                path,
                data,
                acl=None if acl == OPEN_ACL_UNSAFE else entries,
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


def answer(record: Record, result: Any) -> Answered | None:
    """Translate kazoo's finished result of this request; None if the outcome is unknown."""
    if not result.successful():
        return refusal(result.exception)
    reply = _reply(record, result.value)
    missing = reply is None and isinstance(record, Exists)  # kazoo does not report this as an error
    return Answered(Code.NO_NODE if missing else Code.OK, reply)


def refusal(error: BaseException) -> Answered | None:
    """Translate an exception; None if the outcome is unknown."""
    if isinstance(error, AuthFailedError):
        return None  # kazoo closes the client on this error
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
    """Translate kazoo's `WatchedEvent`; None for the loss of the connection."""
    kind = EVENT_TYPES.get(event.type)
    return None if kind is None else Notified(kind, event.path)


def needs(record: Record) -> str | None:
    """Return the path that must exist for this request to succeed: the root of its queue."""
    match record:
        case Create2(path):
            return parent_of(path)
        case GetChildren(path):
            return path
        case _:
            return None


Client = TypeVar("Client")


class _XidPreservingConnection(ConnectionHandler):  # type: ignore[misc]  # kazoo has no types
    """A connection that ignores kazoo's reset of the request number to 0."""

    @property
    def _xid(self) -> int:
        count: int = self.__dict__.get("_count", 0)
        return count

    @_xid.setter
    def _xid(self, number: int | None) -> None:
        if number:
            self.__dict__["_count"] = number


def keep_counting(client: Client) -> Client:
    """Make a client that is not yet started keep its numbers; return the same client.

    Raises TypeError if the connection is not kazoo's own.

    client = keep_counting(KazooClient("127.0.0.1:2181"))
    client.start()
    """
    connection: Any = getattr(client, "_connection", None)
    if type(connection) is not ConnectionHandler:
        raise TypeError(f"{client!r} has a connection of the type {type(connection).__name__}, which is not kazoo's")
    connection.__class__ = _XidPreservingConnection
    return client
