"""Has a kazoo client number its requests on over a lost connection, as Java's client does.

Kazoo begins anew with each connection. Apache's server knows a pending write by its session and number alone
(`CommitProcessor`): where a write of a lost connection is committed after the session has come back, its answer may be
given to the new request of the same number. The next answer then ends kazoo's connection thread ("xids do not match",
`IndexError: pop from an empty deque`), and the client with it. Seen on 3.8.0 in about a tenth of such races, and each
time where the lost write was held up until the client was back; the reference node answers the connection that asked.

Rules of this module: the client is changed only where its application asks for it, and before it is started.

Source: `kazoo.protocol.connection.ConnectionHandler._connect`, `ClientCnxn.getXid`.
"""

from typing import Any, TypeVar

from kazoo.protocol.connection import ConnectionHandler

Client = TypeVar("Client")


class _Counting(ConnectionHandler):  # type: ignore[misc]  # kazoo has no types
    """Kazoo sets its count to 0 for each connection, which is not heeded here."""

    @property
    def _xid(self) -> int:
        count: int = self.__dict__.get("_count", 0)
        return count

    @_xid.setter
    def _xid(self, number: int | None) -> None:
        if number:
            self.__dict__["_count"] = number


def keep_counting(client: Client) -> Client:
    """Have a client that is not yet started count on; the same client. TypeError for a connection that is not kazoo's.

    client = keep_counting(KazooClient("127.0.0.1:2181"))
    client.start()
    """
    connection: Any = getattr(client, "_connection", None)
    if type(connection) is not ConnectionHandler:
        raise TypeError(f"{client!r} has a connection of the type {type(connection).__name__}, which is not kazoo's")
    connection.__class__ = _Counting
    return client
