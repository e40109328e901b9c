"""What leader and learner send each other: the packets of the quorum port.

Rules this module keeps:

- A packet is what the wire carries, less what no step reads: no protocol version, no authentication, and the
  configuration of NEWLEADER only once reconfiguration is specified.
- REQUEST and SYNC carry what the protocol needs of a request; sessions belong to a later part.

Source: `Leader` (the packet types), `Learner.registerWithLeader`, `LearnerHandler.run`.
"""

from typing import Any

from spec.effects import Message
from spec.txn import Txn, told


class QuorumPacket(Message, frozen=True):
    """Anything on a connection between a leader and a learner."""


class FollowerInfo(QuorumPacket, frozen=True):
    """FOLLOWERINFO, or OBSERVERINFO: a learner presents itself, with the epoch it accepted last."""

    accepted_epoch: int
    observer: bool = False


class LeaderInfo(QuorumPacket, frozen=True):
    """LEADERINFO: the epoch that the leader proposes."""

    epoch: int


class AckEpoch(QuorumPacket, frozen=True):
    """ACKEPOCH: the learner's last zxid, and its currentEpoch; -1 if it had accepted that epoch before."""

    last_zxid: int
    current_epoch: int


class Diff(QuorumPacket, frozen=True):
    """DIFF: what the learner has is kept; `zxid` is the leader's last committed one."""

    zxid: int


class Trunc(QuorumPacket, frozen=True):
    """TRUNC: the learner drops everything beyond `zxid`."""

    zxid: int


class Snap(QuorumPacket, frozen=True):
    """SNAP: the learner replaces what it has by these transactions; `zxid` is the snapshot's.

    Between nodes the tree itself follows, and `txns` is None where it arrives.
    """

    zxid: int
    txns: tuple[Txn, ...] | None


class NewLeader(QuorumPacket, frozen=True):
    """NEWLEADER: all that the learner lacked was sent; its ACK counts for the leader's quorum."""

    epoch: int


class UpToDate(QuorumPacket, frozen=True):
    """UPTODATE: the leader serves, and the learner may."""


class Proposal(QuorumPacket, frozen=True):
    """PROPOSAL: a transaction to log and to acknowledge."""

    txn: Txn


class Commit(QuorumPacket, frozen=True):
    """COMMIT: the transaction of this zxid was acknowledged by a quorum."""

    zxid: int


class Inform(QuorumPacket, frozen=True):
    """INFORM: PROPOSAL and COMMIT in one, for an observer."""

    txn: Txn


class Ack(QuorumPacket, frozen=True):
    """ACK: of a transaction, or with the counter 0 of NEWLEADER, and then of UPTODATE."""

    zxid: int


class Request(QuorumPacket, frozen=True):
    """REQUEST: a learner forwards what a client wants to write."""

    value: Any


class SyncRequest(QuorumPacket, frozen=True):
    """REQUEST with the opcode sync: a learner wants to know when it has all that is committed now."""


class Sync(QuorumPacket, frozen=True):
    """SYNC: everything that was proposed before the learner's sync request is committed."""


class Ping(QuorumPacket, frozen=True):
    """PING: from a leader to every learner, and back."""


NAMES: dict[type[QuorumPacket], str] = {
    LeaderInfo: "LEADERINFO",
    AckEpoch: "ACKEPOCH",
    Diff: "DIFF",
    Trunc: "TRUNC",
    Snap: "SNAP",
    NewLeader: "NEWLEADER",
    UpToDate: "UPTODATE",
    Proposal: "PROPOSAL",
    Commit: "COMMIT",
    Inform: "INFORM",
    Ack: "ACK",
    Request: "REQUEST",
    SyncRequest: "REQUEST sync",
    Sync: "SYNC",
    Ping: "PING",
}


def name_of(packet: QuorumPacket) -> str:
    """A packet's type as ZooKeeper writes it (`LearnerHandler.packetToString`)."""
    if isinstance(packet, FollowerInfo):
        return "OBSERVERINFO" if packet.observer else "FOLLOWERINFO"
    return NAMES[type(packet)]


def described(packet: QuorumPacket) -> str:
    """A packet in a few words: its type and what matters of it."""
    name = name_of(packet)
    match packet:
        case FollowerInfo(accepted_epoch=epoch):
            return f"{name} acceptedEpoch {epoch}"
        case LeaderInfo(epoch=epoch) | NewLeader(epoch=epoch):
            return f"{name} epoch {epoch}"
        case AckEpoch(last_zxid=zxid, current_epoch=epoch):
            return f"{name} last zxid {told(zxid)}, " + (f"currentEpoch {epoch}" if epoch >= 0 else "not counted")
        case Proposal(txn=txn) | Inform(txn=txn):
            return f"{name} {told(txn.zxid)}"
        case Diff(zxid=zxid) | Trunc(zxid=zxid) | Snap(zxid=zxid) | Commit(zxid=zxid) | Ack(zxid=zxid):
            return f"{name} {told(zxid)}"
        case Request(value=value):
            return f"{name} {value}"
    return name
