"""The requests of one connection, and the order of their replies.

Reads are answered from this server's tree. Writes are replicated and return as transactions. A client may send many
requests without waiting, and receives the replies in the order of its requests.

Rules of this module:

- A read waits for the earlier writes and syncs of its own connection only.
- The first waiting request is always a write or a sync. A transaction answers it only if session and xid match. Any
  other transaction of the session (its expiry, a write of an earlier connection) answers no request.
- Authentication is answered when it arrives, ahead of the waiting requests; it applies to the requests that follow.
- Where clients must authenticate themselves, a request of another kind before that ends the connection.
- The caller has the waiting requests, oldest first, and a request that is not answered at once is the newest of them.

Source: `CommitProcessor.run`, `needCommit`; `AuthenticationHelper.enforceAuthentication`;
`ZooKeeperServer.processPacket`, `processSasl`, `submitRequestNow`, `shouldThrottle`;
`FinalRequestProcessor.processRequest`; `UnimplementedRequestProcessor`.
"""

import enum
from collections.abc import Sequence

import msgspec

from spec.tree import requests
from spec.tree.data import Id, Record
from spec.tree.replies import Code


class Route(enum.Enum):
    """The way a server handles a request."""

    READ = "answer it here, in its place"
    WRITE = "replicate it; its transaction answers it"
    SYNC = "catch up with the leader, then answer it"
    AUTH = "answer it at once"
    UNIMPLEMENTED = "answer Unimplemented, in its place"
    MALFORMED = "answer MarshallingError, in its place"
    UNAUTHENTICATED = "answer SessionClosedRequireSaslAuth, at once, and end the connection"
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
    requests.Reconfig,
    requests.CloseSession,
)
# Servers send these two among themselves. ZooKeeper also accepts them from a client, and then answers createSession
# with a second ConnectResponse; no client is known to do so.
_INTERNAL: tuple[type[Record], ...] = (requests.CreateSession, requests.DeleteContainer)

ROUTES: dict[type[Record], Route] = (
    dict.fromkeys(_READS, Route.READ)
    | dict.fromkeys(_WRITES, Route.WRITE)
    | dict.fromkeys(_INTERNAL, Route.REFUSED)
    | {
        requests.Sync: Route.SYNC,
        requests.SetAuth: Route.AUTH,
        requests.Sasl: Route.AUTH,
    }
)
"""The route of each request of `OPCODES`; every request is listed here. Any other opcode is refused."""


class PendingRequest(msgspec.Struct, frozen=True, gc=False):
    """A request that waits for its reply; `auth` are the identities of its connection when it arrived.

    `record` is None if the body could not be decoded (MALFORMED), or if the opcode is unknown (REFUSED).
    """

    xid: int
    record: Record | None
    route: Route
    auth: tuple[Id, ...] = ()


_ENDING = (Route.REFUSED, Route.UNAUTHENTICATED)


def demanded(asked: PendingRequest, schemes: frozenset[str]) -> PendingRequest:
    """The request itself, or its refusal if its client must first prove an identity of one of these schemes."""
    if asked.route is Route.AUTH or any(identity.scheme in schemes for identity in asked.auth):
        return asked
    return PendingRequest(asked.xid, None, Route.UNAUTHENTICATED)


def answered_at_once(asked: PendingRequest, *, behind_others: bool) -> bool:
    """Whether a new request is answered immediately; otherwise it waits, `behind_others` or for its transaction."""
    route = asked.route
    if route is Route.WRITE or route is Route.SYNC:
        return False
    return not behind_others or route is Route.AUTH or route in _ENDING


def number_settled(waiting: Sequence[PendingRequest], xid: int, route: Route, *, closes: bool = False) -> int:
    """The number of the oldest waiting requests that a transaction of this session, or the end of a sync, answers.

    They are the request with this xid on this route, and the requests behind it, up to the next write or sync. None is
    answered if the transaction is not that of this connection's next request. One that `closes` the session may be the
    request of another connection of the session, with the same xid; then it answers nothing here.
    """
    if not waiting or waiting[0].xid != xid or waiting[0].route is not route:
        return 0
    if closes and type(waiting[0].record) is not requests.CloseSession:
        return 0
    end = 1
    while end < len(waiting) and waiting[end].route not in (Route.WRITE, Route.SYNC):
        end += 1
    return end


class Ending(enum.Enum):
    """The effect of a reply on its connection."""

    STAYS = "the answer is sent and the connection stays"
    ENDS = "the answer is sent, then the connection ends"
    DROPPED = "the connection ends without an answer"


def ending(asked: PendingRequest, code: Code) -> Ending:
    """The effect of this reply on its connection.

    A client that has moved to another server gets no reply: the error would reach it there, as if its new connection
    had failed (ZOOKEEPER-710).
    """
    # A sasl with a null token ends the connection (`ZooKeeperServer.processSasl`).
    record, is_auth = asked.record, asked.route is Route.AUTH
    if code is Code.SESSION_MOVED or (is_auth and isinstance(record, requests.Sasl) and record.token is None):
        return Ending.DROPPED
    if (is_auth and code is not Code.OK) or asked.route in _ENDING or type(record) is requests.CloseSession:
        return Ending.ENDS
    return Ending.STAYS


def throttled(outstanding: int, in_process: int, global_limit: int) -> bool:
    """Whether a connection with `outstanding` requests must wait before it may send another one.

    When the whole server is over its limit, each connection may still have one request, so that none starves.
    """
    return in_process > global_limit and outstanding > 0
