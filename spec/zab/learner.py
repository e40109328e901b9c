"""A follower or an observer, from its decision for a leader to the loss of that leader.

    DISCOVERY        sends FOLLOWERINFO; LEADERINFO contains the epoch; ACKEPOCH is the reply
    SYNCHRONIZATION  DIFF, TRUNC or SNAP, proposals and commits; NEWLEADER is acknowledged once every committed
                     transaction is on disk and currentEpoch is written
    SYNCED           until UPTODATE, which is also acknowledged; proposals and commits are kept
    BROADCAST        proposals are logged and acknowledged, commits applied

Rules of this module:

- `step` returns None for an event that cannot happen in this state, and a state of None where the real server gives up
  its leader. A packet that must not arrive is reported, and then treated as the real server treats it.
- A new view that changes the learner's role or its leader ends its part, and the next one begins without an election
  where the leader of the new view is known.
- While NEWLEADER waits for the disk, the thread that reads packets is busy: no other packet arrives.
- acceptedEpoch is written before ACKEPOCH is sent, currentEpoch before the ACK of NEWLEADER, each in one step with it.
  A crash between the two differs from a crash after both only by a packet that may be delayed forever.

Source: `Learner.registerWithLeader`, `syncWithLeader`; `Follower.processPacket`, `Observer.processPacket`,
`FollowerZooKeeperServer`, `SendAckRequestProcessor`, with the fixes of 3.9.4.
"""

from msgspec.structs import replace

from spec.effects import Connect, Disconnect, Send
from spec.election.state import Peer
from spec.election.vote import is_observer
from spec.zab import disk, learner_sync, zxid_layout
from spec.zab.events import (
    MessageKind,
    Receive,
    Resumed,
    Synced,
    ZabEvent,
    unexpected,
)
from spec.zab.learner_broadcast import ServingLearner
from spec.zab.packets import (
    AckEpoch,
    Commit,
    CommitAndActivate,
    Diff,
    FollowerInfo,
    Inform,
    InformAndActivate,
    LeaderInfo,
    NewLeader,
    Proposal,
    QuorumPacket,
    QuorumPing,
    Snap,
    Trunc,
    UpToDate,
    WideFollowerInfo,
    name_of,
)
from spec.zab.registration import followed_epochs
from spec.zab.state import Learner, LearnerPhase, ZabResult, ZabRules

DISCOVERY, SYNCHRONIZATION, SYNCED, BROADCAST = LearnerPhase


def begin(peer: Peer, leader: int) -> ZabResult:
    """Follow a leader: close all quorum connections, connect to the leader, register (`Follower.followLeader`)."""
    kind = FollowerInfo if peer.durable.layout is None else WideFollowerInfo
    info = kind(peer.durable.accepted_epoch, is_observer(peer.sid, peer.view), peer.view.version)
    return ZabResult(peer.durable, Learner(leader), (Disconnect(), Connect(leader, info)))


def step(peer: Peer, learner: Learner, event: ZabEvent, rules: ZabRules) -> ZabResult | None:
    """Handle one event of a learner; None if it is impossible in this state."""
    if learner.phase is BROADCAST:
        serving = ServingLearner(peer, learner, rules)
        effects = serving.handle(event)
        return None if effects is None else serving.result(effects)
    match event:
        case Receive(source=source, packet=packet) if source == learner.leader and not _is_busy(learner):
            return _receive(peer, learner, packet, rules)
        case Synced():
            return learner_sync.synced(peer, learner, rules)
        case Resumed() if learner.may_resume:
            return learner_sync.acknowledge_newleader(peer.durable, replace(learner, owes_ack=False))
    return None


def may_leave(learner: Learner) -> bool:
    """Whether the learner can notice the loss of its leader: not while it handles NEWLEADER."""
    return not _is_busy(learner)


def _is_busy(learner: Learner) -> bool:
    return learner.owes_ack or (learner.phase is SYNCHRONIZATION and bool(learner.queue))


def _receive(peer: Peer, learner: Learner, packet: QuorumPacket, rules: ZabRules) -> ZabResult:
    """Handle a packet by phase, before BROADCAST. An unexpected one ends the connection."""
    match learner.phase, packet:
        case _, QuorumPing() if _has_begun(learner):
            return ZabResult(peer.durable, learner)
        case LearnerPhase.DISCOVERY, LeaderInfo():
            return _leader_info(peer, learner, packet)
        case LearnerPhase.SYNCHRONIZATION, Diff() | Trunc() | Snap() if learner.mode is None:
            return learner_sync.begin(peer, learner, packet, rules)
        case LearnerPhase.SYNCHRONIZATION | LearnerPhase.SYNCED, Proposal(txn=txn) if _has_begun(learner):
            return learner_sync.proposal(peer, learner, txn, rules)
        case LearnerPhase.SYNCHRONIZATION | LearnerPhase.SYNCED, Commit(zxid=zxid) if _has_begun(learner):
            return learner_sync.commit(peer, learner, zxid, rules)
        case LearnerPhase.SYNCHRONIZATION | LearnerPhase.SYNCED, Inform(txn=txn) if _has_begun(learner):
            return learner_sync.inform(peer, learner, txn, rules)
        case LearnerPhase.SYNCHRONIZATION | LearnerPhase.SYNCED, CommitAndActivate(
            zxid=zxid, designated=designated
        ) if _has_begun(learner):
            return learner_sync.commit_and_activate(peer, learner, zxid, designated, rules)
        case LearnerPhase.SYNCHRONIZATION | LearnerPhase.SYNCED, InformAndActivate(txn=txn, designated=designated) if (
            _has_begun(learner)
        ):
            return learner_sync.inform_and_activate(peer, learner, txn, designated, rules)
        case LearnerPhase.SYNCHRONIZATION, NewLeader(view=view) if _has_begun(learner):
            return learner_sync.newleader(peer, learner, view, rules)
        case LearnerPhase.SYNCED, UpToDate():
            return learner_sync.uptodate(peer, learner, rules)
    report = unexpected(peer.sid, MessageKind.STATE, f"{name_of(packet)} while in {learner.phase.name}")
    return ZabResult(peer.durable, None, (report,))


def _has_begun(learner: Learner) -> bool:
    return learner.mode is not None or learner.phase is SYNCED


# Discovery.


def _leader_info(peer: Peer, learner: Learner, packet: LeaderInfo) -> ZabResult:
    """`registerWithLeader`: accept a higher epoch; reply -1 for the epoch that is already accepted.

    An epoch that is not credible ends the connection, and nothing is written.
    """
    epoch, accepted = packet.epoch, peer.durable.accepted_epoch
    durable = zxid_layout.adopted(peer.durable, peer.last_zxid, packet)
    if durable is None or epoch not in followed_epochs(accepted):
        return ZabResult(peer.durable, None)
    durable = replace(durable, accepted_epoch=epoch)
    answer = AckEpoch(peer.last_zxid, durable.current_epoch if epoch > accepted else -1)
    after = replace(learner, phase=SYNCHRONIZATION, epoch=epoch)
    return ZabResult(durable, after, (disk.epochs_written(durable), Send(learner.leader, answer)))
