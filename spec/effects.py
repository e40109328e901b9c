"""The effects of a step, as data.

A step function returns `Step(state, effects)`: the new state, and the requested effects, in order. It performs none of
them. The checker turns effects into changes of channels and of the history of facts; the node turns them into bytes,
timers and files. Both must keep their order.

Rules of this module:

- An effect is a small frozen record and contains no time, no socket and no file.
- A timer has no length here. A node takes the length from `zoo.cfg`; in the checker an armed timer is an event that may
  happen now.
- Facts describe events in terms that invariants use. They never drive the protocol.

The parts of the specification add their own facts, messages and disk operations as subclasses of `Fact`, `Message` and
`DiskOperation`, so that this module does not depend on them.
"""

import enum
from typing import Generic, TypeAlias, TypeVar

import msgspec

from spec.quorum import Sid, View

S = TypeVar("S")
E = TypeVar("E")


class Message(msgspec.Struct, frozen=True):
    """A message from one server to another."""


class Fact(msgspec.Struct, frozen=True):
    """A statement about a step, for invariants and traces."""


class DiskOperation(msgspec.Struct, frozen=True):
    """An operation that a server requests from its disk, to make state durable."""


class Timer(enum.Enum):
    """The timers that a server can request.

    Both timers of the election are bounds on `recvqueue.poll`, so they run from the last notification that reached the
    queue: `Arm` on a running timer restarts it.
    """

    NOTIFICATION_TIMEOUT = "NotificationTimeout"
    """No notification for a while: send the vote again. From 200 ms, doubled each time it fires, to 60 s."""
    FINALIZE_WAIT = "FinalizeWait"
    """A quorum agrees: wait 200 ms for a better vote before deciding (`FastLeaderElection.finalizeWait`)."""


class Send(msgspec.Struct, frozen=True):
    """Hand a message for `peer` to the connection manager (`QuorumCnxManager.toSend`)."""

    peer: Sid
    message: Message


class Arm(msgspec.Struct, frozen=True):
    """Start a timer, or restart it."""

    timer: Timer


class Disarm(msgspec.Struct, frozen=True):
    """Stop a timer that has not fired."""

    timer: Timer


class Observe(msgspec.Struct, frozen=True):
    """Report a fact to the observers of the run."""

    fact: Fact


class Configure(msgspec.Struct, frozen=True):
    """Make `view` the configuration of this server, in memory and on disk.

    Source: `QuorumPeer.setQuorumVerifier` with `writeToDisk`. `spec.server` carries it out on the state, so only a node
    with a real file has further work to do.
    """

    view: View


class ConfigureNext(msgspec.Struct, frozen=True):
    """Make `view` the configuration that this server has seen last, in memory and in its file `.dynamic.next`.

    Source: `QuorumPeer.setLastSeenQuorumVerifier` with `writeToDisk`. `spec.server` carries it out on the state.
    """

    view: View


class ResetConnections(msgspec.Struct, frozen=True):
    """Close every election connection of this server and forget the messages queued or sent on them.

    Source: `FastLeaderElection.shutdown` calls `QuorumCnxManager.halt`, and a new manager takes its place. For a
    channel, this is the same as a crash and an immediate restart of this server.
    """


class Connect(msgspec.Struct, frozen=True):
    """Connect to the quorum port of `leader`, and send `first` as soon as it accepts (`Learner.connectToLeader`)."""

    leader: Sid
    first: Message


class Disconnect(msgspec.Struct, frozen=True):
    """Close the quorum connection with `peer`; with None all quorum connections, in either role."""

    peer: Sid | None = None


class Persist(msgspec.Struct, frozen=True):
    """Make this durable after all earlier requests; the event `Synced` reports the completion."""

    operation: DiskOperation


class WriteEpochs(msgspec.Struct, frozen=True):
    """Write acceptedEpoch and currentEpoch, each atomically and immediately (`QuorumPeer.writeLongToFile`)."""

    accepted: int
    current: int


class Truncate(msgspec.Struct, frozen=True):
    """Drop everything beyond `zxid` from the log, immediately (`ZKDatabase.truncateLog`)."""

    zxid: int


class Apply(msgspec.Struct, frozen=True):
    """Apply the logged transactions up to `zxid` to the tree, and answer the clients that wait for them."""

    zxid: int


Effect: TypeAlias = (
    Send
    | Arm
    | Disarm
    | Observe
    | Configure
    | ConfigureNext
    | ResetConnections
    | Connect
    | Disconnect
    | Persist
    | WriteEpochs
    | Truncate
    | Apply
)

Effects: TypeAlias = tuple[Effect, ...]
"""Effects in their required order."""


class Step(msgspec.Struct, Generic[S, E], frozen=True):
    """The outcome of one event: the new state, and the effects in their required order.

    The effects `E` of a server are `Effect`; those of a recipe are its requests and reports.
    """

    state: S
    effects: tuple[E, ...] = ()


ServerStep: TypeAlias = Step[S, Effect]
"""The outcome of one event of a server, or of a part of it."""
