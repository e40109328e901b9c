"""The events of a leader or a learner, and the facts that it reports.

Rules of this module:

- An event has one outcome. Concurrent work of the real server's threads (the disk, the commit processor) is modelled by
  separate events, so that every order can be explored.
- Invariants are stated over facts; facts never drive the protocol.

Sources: the threads of `Leader`, `LearnerHandler`, `Learner`, `SyncRequestProcessor` and `CommitProcessor`.
"""

import enum
from typing import Any, TypeAlias

import msgspec

from spec.effects import Fact, Observe
from spec.quorum import Sid, View
from spec.txn import Txn
from spec.zab.packets import QuorumPacket


class StartAlone(msgspec.Struct, frozen=True):
    """The process starts, and its file names no ensemble."""


class Receive(msgspec.Struct, frozen=True):
    """A packet arrives on the connection with another server."""

    source: Sid
    packet: QuorumPacket


class LearnerGone(msgspec.Struct, frozen=True):
    """The connection of a learner ends, or the learner was silent for too long (`LearnerHandler.shutdown`)."""

    learner: Sid


class Synced(msgspec.Struct, frozen=True):
    """The oldest requested disk operation is complete and durable."""


class LogFailed(msgspec.Struct, frozen=True):
    """The log cannot be written, because the disk is full: the oldest requested disk operation fails."""


class SyncedLate(msgspec.Struct, frozen=True):
    """A sync thread that outlived its server writes its oldest transaction; ZOOKEEPER-4712 only."""


class Restored(msgspec.Struct, frozen=True):
    """An operator restores a snapshot with these transactions; log and snapshots on the disk were moved away before.

    Source: Snapshot and Restore Guide of 3.9; the command `restore` of the AdminServer.
    """

    txns: tuple[Txn, ...]


class Applied(msgspec.Struct, frozen=True):
    """The commit processor has applied the oldest transaction of its queue."""


class Resumed(msgspec.Struct, frozen=True):
    """The thread that handles NEWLEADER continues with its ACK; ZOOKEEPER-4685 only."""


class ClientWrite(msgspec.Struct, frozen=True):
    """A client of this server sends a write."""

    value: Any


class ClientSync(msgspec.Struct, frozen=True):
    """A client of this server calls sync."""


class Tick(msgspec.Struct, frozen=True):
    """Half a tickTime has passed: the leader pings (`Leader.lead`)."""


ZabEvent: TypeAlias = (
    StartAlone
    | Receive
    | LearnerGone
    | Synced
    | LogFailed
    | SyncedLate
    | Restored
    | Applied
    | Resumed
    | ClientWrite
    | ClientSync
    | Tick
)


class MessageKind(enum.Enum):
    """The four families of messages that must not arrive in the current state."""

    STATE = "state"
    ACK = "ack"
    PROPOSAL = "proposal"
    COMMIT = "commit"


class EpochEstablished(Fact, frozen=True):
    """`leader` has its quorum of ACKEPOCH: it leads `epoch`, and starts it with these transactions."""

    leader: Sid
    epoch: int
    initial: tuple[Txn, ...]


class Broadcast(Fact, frozen=True):
    """`leader` of `epoch` proposes a transaction."""

    leader: Sid
    epoch: int
    txn: Txn


class Committed(Fact, frozen=True):
    """`leader` of `epoch` has counted a quorum of acknowledgements for a transaction."""

    leader: Sid
    epoch: int
    txn: Txn


class ViewCommitted(Fact, frozen=True):
    """`leader` of `epoch` has a quorum of the view before and of this one, for its transaction or for NEWLEADER."""

    leader: Sid
    epoch: int
    view: View


class Delivered(Fact, frozen=True):
    """`server` applies transactions while it serves in `epoch`; the replies to clients depend on this."""

    server: Sid
    epoch: int
    txns: tuple[Txn, ...]


class Truncated(Fact, frozen=True):
    """`server` drops transactions from its log, because its leader of `epoch` does not have them."""

    server: Sid
    epoch: int
    txns: tuple[Txn, ...]


class Undone(Fact, frozen=True):
    """`server` no longer has these transactions, because an operator has restored an earlier snapshot."""

    server: Sid
    txns: tuple[Txn, ...]


class Unexpected(Fact, frozen=True):
    """`server` received a message that must not arrive in its state; `what` names the message and the reason."""

    server: Sid
    family: MessageKind
    what: str


class SyncAnswered(Fact, frozen=True):
    """A client's sync at `server` is answered; `server` has applied everything up to `zxid`."""

    server: Sid
    zxid: int


def unexpected(server: Sid, family: MessageKind, what: str) -> Observe:
    """The effect that reports a message that must not arrive."""
    return Observe(Unexpected(server, family, what))
