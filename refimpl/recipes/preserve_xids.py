"""Makes a kazoo client continue its request numbers after a lost connection, as the Java client does.

Kazoo restarts its numbers with each connection. Apache's server identifies a pending write by session and number only
(`CommitProcessor`). If a write of a lost connection is committed after the session has reconnected, its answer may go
to the new request with the same number. The next answer then terminates kazoo's connection thread ("xids do not match",
`IndexError: pop from an empty deque`), and with it the client. On 3.8.0 this happened in about a tenth of such races,
and only if the lost write was delayed until the client was back. The reference node answers the connection that made
the request.

Rules of this module: the client is changed only if its application asks for it, and before it is started.

Source: `kazoo.protocol.connection.ConnectionHandler._connect`, `ClientCnxn.getXid`.
"""

from typing import Any, TypeVar

from kazoo.protocol.connection import ConnectionHandler

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
