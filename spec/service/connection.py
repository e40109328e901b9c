"""The requests of one connection, and the order in which they are answered.

Reads are answered from this server's tree. Writes are replicated and come back as transactions. A client may send
many requests without waiting, and is promised their answers in the order in which it asked.

Rules this module keeps:

- A read waits for the earlier writes and syncs of its own connection, and for nobody else's.
- The first request that waits is always a write or a sync, and a transaction answers it only if session and xid are
  its own. Any other transaction of the session (its expiry, a write of an earlier connection) answers nobody.
- Authentication is answered when it arrives, ahead of what waits; it holds for the requests that follow.
- Waiting requests are a value, so the same rules run in the checker and in the node.

Source: `CommitProcessor.run`, `needCommit`; `ZooKeeperServer.processPacket`, `submitRequestNow`, `shouldThrottle`;
`FinalRequestProcessor.processRequest`; `UnimplementedRequestProcessor`.
"""

import enum
from typing import TypeAlias

import msgspec

from spec.tree import requests
from spec.tree.data import Id
from spec.tree.fields import Record
from spec.tree.replies import Code


class Route(enum.Enum):
    """What a server does with a request."""

    READ = "answer it here, in its place"
    WRITE = "replicate it; its transaction answers it"
    SYNC = "catch up with the leader, then answer it"
    AUTH = "answer it at once"
    UNIMPLEMENTED = "answer Unimplemented, in its place"
    MALFORMED = "answer MarshallingError, in its place"
    REFUSED = "answer Unimplemented, at once, and end the connection"


_READS: tuple[type[Record], ...] = (
    requests.Exists,
    requests.GetData,
    requests.GetAcl,
    requests.GetChildren,
    requests.GetChildren2,
    requests.GetEphemerals,
    requests.GetAllChildrenNumber,
    requests.MultiRead,
    requests.CheckWatches,
    requests.RemoveWatches,
    requests.SetWatches,
    requests.SetWatches2,
    requests.AddWatch,
    requests.Ping,
    requests.WhoAmI,
)
_WRITES: tuple[type[Record], ...] = (
    requests.Create,
    requests.Create2,
    requests.CreateContainer,
    requests.CreateTtl,
    requests.Delete,
    requests.SetData,
    requests.SetAcl,
    requests.Check,
    requests.Multi,
    requests.CloseSession,
)
# Servers ask for these two among themselves. ZooKeeper lets a client send them too, and then answers createSession
# with a second ConnectResponse; no client is known to do so.
_INTERNAL: tuple[type[Record], ...] = (requests.CreateSession, requests.DeleteContainer)

ROUTES: dict[type[Record], Route] = (
    dict.fromkeys(_READS, Route.READ)
    | dict.fromkeys(_WRITES, Route.WRITE)
    | dict.fromkeys(_INTERNAL, Route.REFUSED)
    | {
        requests.Sync: Route.SYNC,
        requests.SetAuth: Route.AUTH,
        requests.Reconfig: Route.UNIMPLEMENTED,
        requests.Sasl: Route.UNIMPLEMENTED,
    }
)
"""What is done with each request of `OPCODES`; every one is named here. Any other opcode is refused."""


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A request that waits for its answer; `auth` are the identities its connection had when it arrived.

    `record` is None if the body could not be read (MALFORMED), or is of no known kind (REFUSED).
    """

    xid: int
    record: Record | None
    route: Route
    auth: tuple[Id, ...] = ()


Waiting: TypeAlias = tuple[Asked, ...]
"""The requests of a connection that wait, oldest first."""

_IN_FLIGHT = frozenset({Route.WRITE, Route.SYNC})
_AT_ONCE = frozenset({Route.AUTH, Route.REFUSED})


def arrive(waiting: Waiting, asked: Asked) -> tuple[Waiting, bool]:
    """A request has arrived: what waits now, and whether this one is to be answered without waiting."""
    route = asked.route
    if route in _AT_ONCE or (not waiting and route not in _IN_FLIGHT):
        return waiting, True
    return (*waiting, asked), False


def settle(waiting: Waiting, xid: int, route: Route, *, closes: bool = False) -> tuple[Waiting, Waiting]:
    """A transaction of this session (or the end of a sync) with this xid: what waits now, and what is answered now.

    The first of those answered is the write itself, the rest are the reads that waited behind it. None are
    answered if the write is not this connection's next. One that `closes` the session may have been asked for by
    another connection of it, under the same xid; then it answers nothing here.
    """
    if not waiting or waiting[0].xid != xid or waiting[0].route is not route:
        return waiting, ()
    if closes and type(waiting[0].record) is not requests.CloseSession:
        return waiting, ()
    end = 1
    while end < len(waiting) and waiting[end].route not in _IN_FLIGHT:
        end += 1
    return waiting[end:], waiting[:end]


class Ending(enum.Enum):
    """What an answer does to its connection."""

    STAYS = "the answer is sent and the connection stays"
    ENDS = "the answer is sent, then the connection ends"
    DROPPED = "the connection ends without an answer"


def ending(asked: Asked, code: Code) -> Ending:
    """What becomes of the connection with this answer.

    A client that has moved to another server is not told so: the error would reach it there, as if its new
    connection had failed (ZOOKEEPER-710).
    """
    if code is Code.SESSION_MOVED:
        return Ending.DROPPED
    failed_auth = asked.route is Route.AUTH and code is not Code.OK
    if failed_auth or asked.route is Route.REFUSED or type(asked.record) is requests.CloseSession:
        return Ending.ENDS
    return Ending.STAYS


def throttled(outstanding: int, in_process: int, global_limit: int) -> bool:
    """Whether a connection with `outstanding` requests must wait until it may send another one.

    Over the limit of the whole server each connection may still have one, so that none starves.
    """
    return in_process > global_limit and outstanding > 0
