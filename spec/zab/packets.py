"""The packets between leader and learner, on the quorum port.

Rules of this module:

- A packet has the fields of the wire, except those that no step reads: no protocol version, and no authentication.
- A journal of a node names a packet by its tag, or by its class if it has no tag.
- REQUEST and SYNC carry the part of a request that the protocol needs; sessions belong to a later part.

Source: `Leader` (the packet types), `Learner.registerWithLeader`, `LearnerHandler.run`.
"""

from typing import Any

from spec.effects import Message
from spec.quorum import Sid, View
from spec.txn import Txn, format_zxid


class QuorumPacket(Message, frozen=True):
    """A packet on a connection between a leader and a learner."""


class FollowerInfo(QuorumPacket, frozen=True):
    """FOLLOWERINFO, or OBSERVERINFO: a learner registers, with the epoch that it accepted last.

    `config_version` is the version of its active configuration.
    """

    accepted_epoch: int
    observer: bool = False
    config_version: int = 0


class WideFollowerInfo(FollowerInfo, frozen=True):
    """FOLLOWERINFO of a learner that knows the wide layout of zxids (protocol version 0x11000)."""


class LeaderInfo(QuorumPacket, frozen=True):
    """LEADERINFO: the epoch that the leader proposes."""

    epoch: int


class WideLeaderInfo(LeaderInfo, frozen=True):
    """LEADERINFO with the epoch from which the ensemble uses the wide layout of zxids."""

    switch: int


class AckEpoch(QuorumPacket, frozen=True):
    """ACKEPOCH: the learner's last zxid, and its currentEpoch; -1 if it had accepted that epoch before."""

    last_zxid: int
    current_epoch: int


class Diff(QuorumPacket, frozen=True):
    """DIFF: the learner keeps its log; `zxid` is the leader's last committed one."""

    zxid: int


class Trunc(QuorumPacket, frozen=True):
    """TRUNC: the learner drops every transaction beyond `zxid`."""

    zxid: int


class Snap(QuorumPacket, frozen=True):
    """SNAP: the learner replaces its state by these transactions; `zxid` is the snapshot's.

    Between nodes the tree itself follows, and `txns` is None at the receiver.
    """

    zxid: int
    txns: tuple[Txn, ...] | None


class NewLeader(QuorumPacket, frozen=True):
    """NEWLEADER: the learner has received everything that it lacked; its ACK counts for the leader's quorum.

    `view` is the configuration that the leader has seen last, if it has a version.
    """

    epoch: int
    view: View | None = None


class UpToDate(QuorumPacket, frozen=True):
    """UPTODATE: the leader serves, and the learner may serve too."""


class Proposal(QuorumPacket, frozen=True):
    """PROPOSAL: a transaction to log and to acknowledge."""

    txn: Txn


class Commit(QuorumPacket, frozen=True):
    """COMMIT: a quorum has acknowledged the transaction of this zxid."""

    zxid: int


class Inform(QuorumPacket, frozen=True):
    """INFORM: PROPOSAL and COMMIT in one, for an observer."""

    txn: Txn


class CommitAndActivate(QuorumPacket, frozen=True):
    """COMMITANDACTIVATE: the COMMIT of a reconfiguration, with the leader of the new configuration."""

    zxid: int
    designated: Sid


class InformAndActivate(QuorumPacket, frozen=True):
    """INFORMANDACTIVATE: the INFORM of a reconfiguration, with the leader of the new configuration."""

    txn: Txn
    designated: Sid


class Ack(QuorumPacket, frozen=True):
    """ACK: of a transaction, or, with the counter 0, first of NEWLEADER and then of UPTODATE."""

    zxid: int


class QuorumRequest(QuorumPacket, frozen=True, tag="Request"):
    """REQUEST: a learner forwards a client's write."""

    value: Any


class SyncRequest(QuorumPacket, frozen=True):
    """REQUEST with the opcode sync: a learner asks for a SYNC once everything proposed so far is committed."""


class QuorumSync(QuorumPacket, frozen=True, tag="Sync"):
    """SYNC: everything that was proposed before the learner's sync request is committed."""


class QuorumPing(QuorumPacket, frozen=True, tag="Ping"):
    """PING: from a leader to every learner, and back."""


NAMES: dict[type[QuorumPacket], str] = {
    LeaderInfo: "LEADERINFO",
    WideLeaderInfo: "LEADERINFO",
    AckEpoch: "ACKEPOCH",
    Diff: "DIFF",
    Trunc: "TRUNC",
    Snap: "SNAP",
    NewLeader: "NEWLEADER",
    UpToDate: "UPTODATE",
    Proposal: "PROPOSAL",
    Commit: "COMMIT",
    Inform: "INFORM",
    CommitAndActivate: "COMMITANDACTIVATE",
    InformAndActivate: "INFORMANDACTIVATE",
    Ack: "ACK",
    QuorumRequest: "REQUEST",
    SyncRequest: "REQUEST sync",
    QuorumSync: "SYNC",
    QuorumPing: "PING",
}


def name_of(packet: QuorumPacket) -> str:
    """The type of a packet as ZooKeeper writes it (`LearnerHandler.packetToString`)."""
    if isinstance(packet, FollowerInfo):
        return "OBSERVERINFO" if packet.observer else "FOLLOWERINFO"
    return NAMES[type(packet)]


def described(packet: QuorumPacket) -> str:
    """A packet in a few words: its type and its main field."""
    name = name_of(packet)
    match packet:
        case FollowerInfo(accepted_epoch=epoch):
            return f"{name} acceptedEpoch {epoch}"
        case WideLeaderInfo(epoch=epoch, switch=switch):
            return f"{name} epoch {epoch}, wide zxids from epoch {switch} on"
        case LeaderInfo(epoch=epoch) | NewLeader(epoch=epoch):
            return f"{name} epoch {epoch}"
        case AckEpoch(last_zxid=zxid, current_epoch=epoch):
            return f"{name} last zxid {format_zxid(zxid)}, " + (
                f"currentEpoch {epoch}" if epoch >= 0 else "not counted"
            )
        case Proposal(txn=txn) | Inform(txn=txn):
            return f"{name} {format_zxid(txn.zxid)}"
        case CommitAndActivate(zxid=zxid, designated=designated):
            return f"{name} {format_zxid(zxid)}, leader {designated}"
        case InformAndActivate(txn=txn, designated=designated):
            return f"{name} {format_zxid(txn.zxid)}, leader {designated}"
        case Diff(zxid=zxid) | Trunc(zxid=zxid) | Snap(zxid=zxid) | Commit(zxid=zxid) | Ack(zxid=zxid):
            return f"{name} {format_zxid(zxid)}"
        case QuorumRequest(value=value):
            return f"{name} {value}"
    return name
