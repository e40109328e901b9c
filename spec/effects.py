"""What a step asks the world to do, as data.

A step function returns `Step(state, effects)`: the new state, and what is to be done about it, in order. It
does nothing itself. The checker turns effects into changes of channels and of the history of facts; the node
turns them into bytes, timers and files; both must keep their order.

Rules this module keeps:

- An effect is a small frozen record and names no time, no socket and no file.
- A timer has no length here. A node takes the length from `zoo.cfg`; in the checker an armed timer is an
  event that may happen now.
- Facts say what happened in words that invariants use. They never drive the protocol.

The parts of the specification add their own facts, messages and disk operations as subclasses of `Fact`,
`Message` and `DiskOperation`, so that this module knows none of them.
"""

import enum
from typing import Generic, TypeAlias, TypeVar

import msgspec

from spec.quorum import Sid, View

S = TypeVar("S")


class Message(msgspec.Struct, frozen=True):
    """Anything that one server sends to another."""


class Fact(msgspec.Struct, frozen=True):
    """Anything that an invariant or a trace may want to know about a step."""


class DiskOperation(msgspec.Struct, frozen=True):
    """Anything that a server asks its disk to make durable."""


class Timer(enum.Enum):
    """The timers a server can ask for.

    Both timers of the election are bounds on `recvqueue.poll`, so they run from the last notification that
    reached the queue: `Arm` on a timer that runs already starts it again.
    """

    NOTIFICATION_TIMEOUT = "NotificationTimeout"
    """Nothing heard for a while: send the vote again. From 200 ms, doubled each time it fires, to 60 s."""
    FINALIZE_WAIT = "FinalizeWait"
    """A quorum agrees: wait 200 ms for a better vote before deciding (`FastLeaderElection.finalizeWait`)."""


class Send(msgspec.Struct, frozen=True):
    """Hand a message for `peer` to the connection manager (`QuorumCnxManager.toSend`)."""

    peer: Sid
    message: Message


class Arm(msgspec.Struct, frozen=True):
    """Start a timer, or start it again from the beginning."""

    timer: Timer


class Disarm(msgspec.Struct, frozen=True):
    """Stop a timer that has not fired."""

    timer: Timer


class Observe(msgspec.Struct, frozen=True):
    """Report a fact to whoever watches."""

    fact: Fact


class Configure(msgspec.Struct, frozen=True):
    """Make `view` the configuration of this server, in memory and on disk.

    Source: `QuorumPeer.setQuorumVerifier` with `writeToDisk`. `spec.server` carries it out on the state, so
    only a node with a real file has anything left to do.
    """

    view: View


class ResetConnections(msgspec.Struct, frozen=True):
    """Close every election connection of this server and forget what was queued or sent on them.

    Source: `FastLeaderElection.shutdown` calls `QuorumCnxManager.halt`, and a new manager takes its place.
    For a channel it is what a crash and an immediate return of this server would be.
    """


class Connect(msgspec.Struct, frozen=True):
    """Connect to the quorum port of `leader`, and send `first` as soon as it accepts (`Learner.connectToLeader`)."""

    leader: Sid
    first: Message


class Disconnect(msgspec.Struct, frozen=True):
    """Close the quorum connection with `peer`; None: all of them, in either role."""

    peer: Sid | None = None


class Persist(msgspec.Struct, frozen=True):
    """Make this durable after all that was asked for before; the event `Synced` says that it is."""

    operation: DiskOperation


class WriteEpochs(msgspec.Struct, frozen=True):
    """Write acceptedEpoch and currentEpoch, atomically each and at once (`QuorumPeer.writeLongToFile`)."""

    accepted: int
    current: int


class Truncate(msgspec.Struct, frozen=True):
    """Drop everything beyond `zxid` from the log, at once (`ZKDatabase.truncateLog`)."""

    zxid: int


class Apply(msgspec.Struct, frozen=True):
    """Apply what is logged up to `zxid` to the tree, and answer the clients that wait for it."""

    zxid: int


Effect: TypeAlias = (
    Send
    | Arm
    | Disarm
    | Observe
    | Configure
    | ResetConnections
    | Connect
    | Disconnect
    | Persist
    | WriteEpochs
    | Truncate
    | Apply
)

Effects: TypeAlias = tuple[Effect, ...]
"""Effects in the order in which they must happen."""


class Step(msgspec.Struct, Generic[S], frozen=True):
    """The outcome of one event: the new state, and the effects in the order in which they must happen."""

    state: S
    effects: Effects = ()
