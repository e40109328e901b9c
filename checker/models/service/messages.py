"""The messages, operations and facts that the actors of the service and the clients exchange.

A write, in a model with lag (c is a client, k its server):

    client c          link c               server k            leader          watches k
       | SendRequest    |                     |                   |                |
       |--------------->| (DeliverRequest)    |                   |                |
       |                | ServeRequest        |                   |                |
       |                |-------------------->| Propose           |                |
       |                |                     |------------------>|                |
       |                |                     |            Commit |                |
       |                |                     |<------------------|                |
       |                |             (APPLY) | FireWatches       |                |
       |                |                     |----------------------------------->|
       |                |                     |        SendMessage(WatchNotification)
       |                |<---------------------------------------------------------|
       |                |  SendMessage(Reply) |                   |                |
       |                |<--------------------|                   |                |
       |       Delivery | (DeliverMessage)    |                   |                |
       |<---------------|                     |                   |                |

Rules send the operations in parentheses, one for each step; some actions are operations too. The library of a client,
if it has one, stands between the client and its link. Two messages with equal fields are never equal, since each has a
separate class.
"""

from typing import TypeAlias

import msgspec

from checker.kit.actions import Action, FaultAction, Traits
from spec.client import Library
from spec.tree.apply import Event, EventType
from spec.tree.data import Record
from spec.tree.replies import Code
from spec.tree.requests import SessionId
from spec.tree.store import FrozenStore
from spec.tree.txns import Change
from spec.tree.watches import WatchKind


class ServiceAction(Action):
    """The actions of a service, each with (client, server) or one of the two; some are operations too."""

    ARRIVE = "arrive"  # the first request in flight reaches the server
    ARRIVE_LATE = "arrive late"  # a request of a lost connection reaches the old server
    APPLY = "apply"  # a server that lags applies its oldest pending transaction
    DELIVER = "deliver"  # the first message in flight reaches the client
    RECONNECT = "reconnect", Traits(noted=True)  # a client is accepted, or learns that its session is over
    OPEN = "open", Traits(noted=True)  # a client whose session is over requests a new one
    LAPSE = "lapse", Traits(noted=True)  # the session of a client that is gone ends: no fault, since it must happen
    # Faults.
    DISCONNECT = "disconnect", Traits(fair=False, fault=True, budget="disconnects", noted=True)
    EXPIRE = (
        "expire",
        Traits(fair=False, fault=True, budget="expiries", caption="the session of {} expires", noted=True),
    )
    CRASH = FaultAction.CRASH.entry


# Messages from a server to a client.


class Reply(msgspec.Struct, frozen=True):
    """The reply to a request; `zxid` is the transaction's, or the last one that the server had applied by then."""

    asked: Record
    code: Code
    reply: Record | None
    zxid: int


class WatchNotification(msgspec.Struct, frozen=True):
    """A watch has fired."""

    type: EventType
    path: str


class ConnectionClosed(msgspec.Struct, frozen=True):
    """The server has closed the connection; this is its last message."""


ServerMessage: TypeAlias = Reply | WatchNotification | ConnectionClosed


# Messages to a client.


class Delivery(msgspec.Struct, frozen=True):
    """A message has arrived (never ConnectionClosed)."""

    message: Reply | WatchNotification


class ConnectionLoss(msgspec.Struct, frozen=True):
    """The connection is lost, and outstanding requests get no reply."""


class ConnectionStart(msgspec.Struct, frozen=True):
    """There is a connection, to a server that has applied `zxid`; `resumed`: with the previous session."""

    resumed: bool
    session: SessionId
    zxid: int


class SessionExpiry(msgspec.Struct, frozen=True):
    """A server has reported that the session is over."""


class ClientCrash(msgspec.Struct, frozen=True):
    """The client's process ends; it receives nothing after this."""


# Operations of a link.


class SendRequest(msgspec.Struct, frozen=True):
    """The client sends a request. It needs a connection: anything else is a defect of the client's model."""

    record: Record


class DeliverRequest(msgspec.Struct, frozen=True):
    """The request at this place of those in flight, usually the first, reaches the server."""

    place: int = 0


class DeliverMessage(msgspec.Struct, frozen=True):
    """The message at this place of those in flight, usually the first, reaches the client."""

    place: int = 0


class SendMessage(msgspec.Struct, frozen=True):
    """The server sends a message. With `ahead`, which only a variant uses, it overtakes the last notifications."""

    message: Reply | WatchNotification
    ahead: bool = False


class StartSession(msgspec.Struct, frozen=True):
    """The new session that the client requested is open at its server, which has applied `zxid`."""

    session: SessionId
    zxid: int


class CloseConnection(msgspec.Struct, frozen=True):
    """A server has applied the end of a session, and closes the connection of the session if it has one."""

    server: int | None  # None: the server with the connection
    session: SessionId


class ResumeSession(msgspec.Struct, frozen=True):
    """A server that has applied `zxid` gives the client its session back."""

    server: int
    zxid: int


class RefuseSession(msgspec.Struct, frozen=True):
    """A server reports that the session is over."""


class RequestSession(msgspec.Struct, frozen=True):
    """The client requests a new session from this server."""

    server: int


# Operations of a library, in addition to Delivery, ConnectionLoss, SessionExpiry and ClientCrash.


class SubmitRequest(msgspec.Struct, frozen=True):
    """The application sends a request."""

    record: Record


class Acceptance(msgspec.Struct, frozen=True):
    """A server has accepted the client."""

    server: int
    told: ConnectionStart


# Operations of the leader and of the servers.


class Origin(msgspec.Struct, frozen=True):
    """The client that gets the reply, the server that sends it, and the request."""

    server: int
    client: int
    asked: Record


class Propose(msgspec.Struct, frozen=True):
    """Make a transaction of this; `view` is the tree for its checks, None for the leader's."""

    session: SessionId
    record: Record
    origin: Origin | None = None
    view: FrozenStore | None = None


class DropEphemerals(msgspec.Struct, frozen=True):
    """Delete the ephemeral znodes of a session that remains open; only a variant does this."""

    session: SessionId


class Commit(msgspec.Struct, frozen=True):
    """A transaction is committed; only its origin's server gets one without an effect on the tree."""

    zxid: int
    change: Change
    origin: Origin | None = None


class SyncMarker(msgspec.Struct, frozen=True):
    """The place of a sync among the pending transactions."""

    origin: Origin


class ServeRequest(msgspec.Struct, frozen=True):
    """A request reaches a server; without a client it is a request of a lost connection."""

    session: SessionId
    record: Record
    client: int | None


class ForgetClient(msgspec.Struct, frozen=True):
    """A client's connection is lost: it gets no replies or notifications from this server."""

    client: int


class RegisterWatches(msgspec.Struct, frozen=True):
    """A library registers its watches again (`Library.set_watches`)."""

    client: int
    library: Library


class AddWatch(msgspec.Struct, frozen=True):
    """Register a watch."""

    client: int
    kind: WatchKind
    path: str


class FireWatches(msgspec.Struct, frozen=True):
    """An event of the tree of this server."""

    event: Event


# Facts for observers.


class CommitFact(msgspec.Struct, frozen=True):
    """A transaction is committed; `store` is the leader's tree after it, `events` are its events for watches."""

    zxid: int
    change: Change
    store: FrozenStore
    events: tuple[Event, ...] = ()


class WatchFact(msgspec.Struct, frozen=True):
    """An event has met watches of a server; `told` is the number of its clients that are notified."""

    path: str
    told: int
