"""The messages, operations and facts that the actors of the service and the clients exchange.

Two messages with equal fields are never equal, since each has a separate class.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from spec.client.library import Library
from spec.tree.apply import Event, EventType
from spec.tree.fields import Record
from spec.tree.replies import Code
from spec.tree.requests import SessionId
from spec.tree.store import FrozenStore
from spec.tree.txns import Change
from spec.tree.watches import WatchKind

# Messages from a server to a client.


class Reply(msgspec.Struct, frozen=True):
    """The reply to a request; `zxid` is the transaction's, or the last one that the server had applied by then."""

    asked: Record
    code: Code
    reply: Record | None
    zxid: int


class Notice(msgspec.Struct, frozen=True):
    """A watch has fired."""

    type: EventType
    path: str


class Broken(msgspec.Struct, frozen=True):
    """The server has closed the connection; this is its last message."""


Message: TypeAlias = Reply | Notice | Broken


# Messages to a client.


class Heard(msgspec.Struct, frozen=True):
    """A message has arrived (never Broken)."""

    message: Reply | Notice


class Disconnected(msgspec.Struct, frozen=True):
    """The connection is lost, and outstanding requests get no reply."""


class Connected(msgspec.Struct, frozen=True):
    """There is a connection, to a server that has applied `zxid`; `resumed`: with the previous session."""

    resumed: bool
    session: SessionId
    zxid: int


class Expired(msgspec.Struct, frozen=True):
    """A server has reported that the session is over."""


class Crash(msgspec.Struct, frozen=True):
    """The client's process ends; it receives nothing after this."""


# Operations of a link.


class Ask(msgspec.Struct, frozen=True):
    """The client sends a request. It needs a connection: anything else is a defect of the client's model."""

    record: Record


class Arrive(msgspec.Struct, frozen=True):
    """The request at this place of those in flight, usually the first, reaches the server."""

    place: int = 0


class ArriveLate(msgspec.Struct, frozen=True):
    """The oldest request of a lost connection reaches its old server."""


class Deliver(msgspec.Struct, frozen=True):
    """The message at this place of those in flight, usually the first, reaches the client."""

    place: int = 0


class Push(msgspec.Struct, frozen=True):
    """The server sends a message. With `ahead`, which only a variant uses, it overtakes the last notifications."""

    message: Reply | Notice
    ahead: bool = False


class Established(msgspec.Struct, frozen=True):
    """The new session that the client requested is open at its server, which has applied `zxid`."""

    session: SessionId
    zxid: int


class Cut(msgspec.Struct, frozen=True):
    """A server has applied the end of a session, and closes the connection of the session if it has one."""

    server: int | None  # None: the server with the connection
    session: SessionId


class Break(msgspec.Struct, frozen=True):
    """The connection is lost, with every message in flight to the client."""


class Die(msgspec.Struct, frozen=True):
    """The client's process ends."""


class Lapse(msgspec.Struct, frozen=True):
    """The leader ends the session; a connection learns of it by `Cut`."""


class Reconnect(msgspec.Struct, frozen=True):
    """A server that has applied `zxid` gives the client its session back."""

    server: int
    zxid: int


class Refuse(msgspec.Struct, frozen=True):
    """A server reports that the session is over."""


class Open(msgspec.Struct, frozen=True):
    """The client requests a new session from this server."""

    server: int


# Operations of a library, in addition to Heard, Disconnected, Expired and Crash.


class Submit(msgspec.Struct, frozen=True):
    """The application sends a request."""

    record: Record


class Linked(msgspec.Struct, frozen=True):
    """A server has accepted the client."""

    server: int
    told: Connected


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


class Marker(msgspec.Struct, frozen=True):
    """The place of a sync among the pending transactions."""

    origin: Origin


class Request(msgspec.Struct, frozen=True):
    """A request reaches a server; without a client it is a request of a lost connection."""

    session: SessionId
    record: Record
    client: int | None


class Apply(msgspec.Struct, frozen=True):
    """Apply the oldest pending transaction."""


class Forget(msgspec.Struct, frozen=True):
    """A client's connection is lost: it gets no replies or notifications from this server."""

    client: int


class Register(msgspec.Struct, frozen=True):
    """A library registers its watches again (`Library.set_watches`)."""

    client: int
    library: Library


class Add(msgspec.Struct, frozen=True):
    """Register a watch."""

    client: int
    kind: WatchKind
    path: str


class Fire(msgspec.Struct, frozen=True):
    """An event of the tree of this server."""

    event: Event


class Spend(msgspec.Struct, frozen=True):
    """Take one from a budget; impossible if it is exhausted."""

    budget: str


# Facts for observers.


class Committed(msgspec.Struct, frozen=True):
    """A transaction is committed; `store` is the leader's tree after it, `events` are its events for watches."""

    zxid: int
    change: Change
    store: FrozenStore
    events: tuple[Event, ...] = ()


class Fired(msgspec.Struct, frozen=True):
    """An event has met watches of a server; `told` is the number of its clients that are notified."""

    path: str
    told: int
