"""The words that the actors of the service say to one another, and to clients: messages, operations, facts.

Two words with equal fields are never equal, since each is a record of its own class.
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
    """The answer to a request; `zxid` is the transaction's, or the last one that the server had applied by then."""

    asked: Record
    code: Code
    reply: Record | None
    zxid: int


class Notice(msgspec.Struct, frozen=True):
    """A watch has fired."""

    type: EventType
    path: str


class Broken(msgspec.Struct, frozen=True):
    """The server has closed the connection; the last message of one."""


Message: TypeAlias = Reply | Notice | Broken


# What a client hears.


class Heard(msgspec.Struct, frozen=True):
    """A message has arrived (never Broken)."""

    message: Reply | Notice


class Disconnected(msgspec.Struct, frozen=True):
    """The connection is gone, and no answer will come to what is outstanding."""


class Connected(msgspec.Struct, frozen=True):
    """There is a connection, to a server that has applied `zxid`; `resumed`: with the session from before."""

    resumed: bool
    session: SessionId
    zxid: int


class Expired(msgspec.Struct, frozen=True):
    """A server has said that the session is no more."""


class Crash(msgspec.Struct, frozen=True):
    """The client's process ends here and now; it hears nothing any more."""


# What is said to a link.


class Ask(msgspec.Struct, frozen=True):
    """The client sends a request. Only on a connection: anything else is a defect of the client's model."""

    record: Record


class Arrive(msgspec.Struct, frozen=True):
    """The request at this place of those on their way, usually the first, reaches the server."""

    place: int = 0


class ArriveLate(msgspec.Struct, frozen=True):
    """The oldest request of a connection that is gone reaches its old server."""


class Deliver(msgspec.Struct, frozen=True):
    """The message at this place of those on their way, usually the first, reaches the client."""

    place: int = 0


class Push(msgspec.Struct, frozen=True):
    """The server sends a message; only by a variant `ahead` of the notices that it sent last."""

    message: Reply | Notice
    ahead: bool = False


class Established(msgspec.Struct, frozen=True):
    """The new session that the client asked for is open at its server, which has applied `zxid`."""

    session: SessionId
    zxid: int


class Cut(msgspec.Struct, frozen=True):
    """A server has applied the end of a session, and closes the connection of it that it has, if it has one."""

    server: int | None  # None: whichever has it
    session: SessionId


class Break(msgspec.Struct, frozen=True):
    """The connection is lost, with all that is on its way to the client."""


class Die(msgspec.Struct, frozen=True):
    """The client's process ends."""


class Lapse(msgspec.Struct, frozen=True):
    """The leader ends the session; `Cut` says it to a connection."""


class Reconnect(msgspec.Struct, frozen=True):
    """A server that has applied `zxid` gives the client its session back."""

    server: int
    zxid: int


class Refuse(msgspec.Struct, frozen=True):
    """A server says that the session is no more."""


class Open(msgspec.Struct, frozen=True):
    """The client asks this server for a new session."""

    server: int


# What is said to a library, beside Heard, Disconnected, Expired and Crash.


class Submit(msgspec.Struct, frozen=True):
    """The application asks."""

    record: Record


class Linked(msgspec.Struct, frozen=True):
    """A server has taken the client in."""

    server: int
    told: Connected


# What is said to the leader and to the servers.


class Origin(msgspec.Struct, frozen=True):
    """Who is to be answered, through which server, and what was asked."""

    server: int
    client: int
    asked: Record


class Propose(msgspec.Struct, frozen=True):
    """Make a transaction of this; `view` is the tree that it is checked against, None for the leader's own."""

    session: SessionId
    record: Record
    origin: Origin | None = None
    view: FrozenStore | None = None


class DropEphemerals(msgspec.Struct, frozen=True):
    """Delete the ephemeral znodes of a session that goes on: what only a variant asks for, and no client."""

    session: SessionId


class Commit(msgspec.Struct, frozen=True):
    """A transaction is committed; without any effect on the tree it is known to its origin's server alone."""

    zxid: int
    change: Change
    origin: Origin | None = None


class Marker(msgspec.Struct, frozen=True):
    """The place of a sync among what is to be applied."""

    origin: Origin


class Request(msgspec.Struct, frozen=True):
    """A request reaches a server; without a client, one of a connection that is gone."""

    session: SessionId
    record: Record
    client: int | None


class Apply(msgspec.Struct, frozen=True):
    """Apply what is oldest of what waits."""


class Forget(msgspec.Struct, frozen=True):
    """A client's connection is gone: nothing of it is to be answered or told."""

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
    """This has happened to the tree of the watches' server."""

    event: Event


class Spend(msgspec.Struct, frozen=True):
    """Take one from a budget; impossible if there is none."""

    budget: str


# Facts for whoever observes.


class Committed(msgspec.Struct, frozen=True):
    """A transaction is committed; `store` is the tree of the leader afterwards, `events` what may be told of it."""

    zxid: int
    change: Change
    store: FrozenStore
    events: tuple[Event, ...] = ()


class Fired(msgspec.Struct, frozen=True):
    """An event has met the watches of a server, and this many of its clients are told."""

    path: str
    told: int
