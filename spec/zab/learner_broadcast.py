"""A serving learner and its disk: proposals are logged and acknowledged, commits applied, syncs answered.

Rules of this module:

- An ACK is sent once the transaction is on disk, never before.
- A view is written as the last seen one before its proposal is logged, and as the active one before it is applied.
- A packet that must not arrive is reported, and then treated as the real server treats it.

Source: `Follower.processPacket`, `Observer.processPacket`, `FollowerZooKeeperServer`, `ObserverZooKeeperServer`,
`SyncRequestProcessor`, `SendAckRequestProcessor`, `CommitProcessor`.
"""

from itertools import takewhile

from msgspec.structs import replace

from spec.durable import Durable
from spec.effects import Effects, Observe, Send
from spec.election.state import Peer
from spec.quorum import Sid
from spec.txn import Txn, counter_of, epoch_of, format_zxid, make_zxid
from spec.variants import Variant
from spec.zab import disk, reconfiguration
from spec.zab.events import MessageKind, SyncAnswered, unexpected
from spec.zab.packets import Ack
from spec.zab.state import Append, EnterEpoch, Learner, LearnerPhase, ZabResult, ZabRules, last_logged, logged


def acknowledge_newleader(durable: Durable, learner: Learner) -> ZabResult:
    """Write currentEpoch, then send the ACK; transactions that were only in memory are part of the tree from now on."""
    durable = replace(durable, current_epoch=learner.epoch)
    after = replace(learner, phase=LearnerPhase.SYNCED, mode=None, tree=None, snapshot=0)
    ack = Send(learner.leader, Ack(make_zxid(learner.epoch)))
    return ZabResult(durable, after, (disk.epochs_written(durable), ack))


def commits(done: ZabResult, peer: Peer, zxids: tuple[int, ...], rules: ZabRules) -> ZabResult:
    """Continue a result with the commit of these zxids. There may be very many, after a long synchronisation."""
    effects = [*done.effects]
    pending = done.state.pending if isinstance(done.state, Learner) else ()
    expected = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(pending, zxids, strict=False)))
    if isinstance(done.state, Learner) and expected:
        learner = replace(done.state, pending=())  # cut once for all of them
        for zxid in zxids[:expected]:
            done = _committed(peer, done.durable, learner, zxid, rules)
            assert isinstance(done.state, Learner)  # it commits the oldest one
            learner = done.state
            effects += done.effects
        done = replace(done, state=replace(learner, pending=pending[expected:]))
    for zxid in zxids[expected:]:
        if isinstance(done.state, Learner):
            done = commit(peer, done.durable, done.state, zxid, rules)
            effects += done.effects
    return ZabResult(done.durable, done.state, tuple(effects))


# Broadcast.


def proposal(peer: Peer, learner: Learner, txn: Txn, rules: ZabRules) -> ZabResult:
    """`Follower.processPacket`: log the proposal regardless of its zxid; a gap only causes a report."""
    last = last_logged(peer.durable, learner.queue)
    if peer.unlogged:
        last = max(last, peer.unlogged[-1].zxid)
    expected = last + 1 if epoch_of(last) == learner.epoch else make_zxid(learner.epoch, 1)
    report: Effects = ()
    if txn.zxid != expected and not (epoch_of(txn.zxid) > epoch_of(last) and counter_of(txn.zxid) == 1):
        report = (
            unexpected(
                peer.sid,
                MessageKind.PROPOSAL,
                f"PROPOSAL {format_zxid(txn.zxid)}, where {format_zxid(expected)} is next",
            ),
        )
    _, seen = reconfiguration.see(peer, reconfiguration.view_of(txn))
    early = Variant.ACK_BEFORE_LOG in rules.variants
    queue, asked = disk.request(learner.queue, (Append(txn, ack=not early),))
    after = replace(learner, queue=queue, pending=(*learner.pending, txn.zxid))
    acked: Effects = (Send(learner.leader, Ack(txn.zxid)),) if early else ()
    return disk.settle(peer, ZabResult(peer.durable, after, (*report, *seen, *acked, *asked)), synced, rules)


def commit(peer: Peer, durable: Durable, learner: Learner, zxid: int, rules: ZabRules) -> ZabResult:
    """`FollowerZooKeeperServer.commit`: commit the oldest pending proposal. Without one, only report the COMMIT.

    A commit of any other than the oldest makes the real server exit.
    """
    if not learner.pending:
        report = unexpected(peer.sid, MessageKind.COMMIT, f"COMMIT {format_zxid(zxid)} without a proposal")
        return ZabResult(durable, learner, (report,))
    oldest = learner.pending[0]
    if oldest != zxid:
        report = unexpected(
            peer.sid, MessageKind.COMMIT, f"COMMIT {format_zxid(zxid)}, and the next proposal is {format_zxid(oldest)}"
        )
        return ZabResult(durable, None, (report,))
    return _committed(peer, durable, replace(learner, pending=learner.pending[1:]), zxid, rules)


def _committed(peer: Peer, durable: Durable, learner: Learner, zxid: int, rules: ZabRules) -> ZabResult:
    """The commit of a transaction that is pending no longer."""
    after = replace(learner, commits=(*learner.commits, zxid))
    return ZabResult(durable, after) if rules.asynchronous_commits else apply(peer, durable, after, zxid)


def commit_and_activate(peer: Peer, learner: Learner, zxid: int, designated: Sid, rules: ZabRules) -> ZabResult:
    """COMMITANDACTIVATE: activate the view of the oldest pending proposal, and commit the transaction.

    Without a pending reconfiguration the real server fails (`pendingTxns.element`, a cast), which ends the connection.
    """
    oldest = logged(peer.durable, learner.queue, learner.pending[0]) if learner.pending else None
    view = None if oldest is None else reconfiguration.view_of(oldest)
    if view is None:
        what = f"COMMITANDACTIVATE {format_zxid(zxid)}, and no reconfiguration is next"
        return ZabResult(peer.durable, None, (unexpected(peer.sid, MessageKind.COMMIT, what),))
    now, configured = reconfiguration.activate(peer, view, rules)
    return _in_new_view(
        peer, now, learner, designated, commit(now, now.durable, learner, zxid, rules).after(configured)
    )


def inform_and_activate(peer: Peer, learner: Learner, txn: Txn, designated: Sid, rules: ZabRules) -> ZabResult:
    """INFORMANDACTIVATE: activate the view of this transaction, log and apply it."""
    now, configured = reconfiguration.activate(peer, reconfiguration.view_of(txn), rules)
    return _in_new_view(peer, now, learner, designated, inform(now, learner, txn, rules).after(configured))


def _in_new_view(before: Peer, now: Peer, learner: Learner, designated: Sid, done: ZabResult) -> ZabResult:
    """End the part after the commit if the role or the leader changes (`processReconfig`, a major change)."""
    major = reconfiguration.is_major_change(before, now, learner.leader, designated)
    return replace(done, successor=designated) if major and done.state is not None else done


def apply(peer: Peer, durable: Durable, learner: Learner, zxid: int) -> ZabResult:
    """Apply the oldest commit of the commit processor's queue (`FinalRequestProcessor`)."""
    after = replace(learner, commits=learner.commits[1:], delivered=zxid)
    return ZabResult(durable, after, disk.applied(peer, durable, learner, zxid))


def inform(peer: Peer, learner: Learner, txn: Txn, rules: ZabRules) -> ZabResult:
    """`ObserverZooKeeperServer.commitRequest`: log the transaction without an ACK, and apply it."""
    queue, asked = disk.request(learner.queue, (Append(txn, ack=False),))
    after = replace(learner, queue=queue, pending=(*learner.pending, txn.zxid))
    written = disk.settle(peer, ZabResult(peer.durable, after, asked), synced, rules)
    return commits(written, peer, (txn.zxid,), rules)


def sync_answered(peer: Peer, learner: Learner) -> ZabResult:
    """SYNC follows every COMMIT that was sent before it (`FollowerZooKeeperServer.sync`)."""
    if not learner.syncs:
        return ZabResult(
            peer.durable, learner, (unexpected(peer.sid, MessageKind.STATE, "SYNC that nobody asked for"),)
        )
    fact = SyncAnswered(peer.sid, learner.commits[-1] if learner.commits else learner.delivered)
    return ZabResult(peer.durable, replace(learner, syncs=learner.syncs - 1), (Observe(fact),))


# The disk.


def synced(peer: Peer, learner: Learner, rules: ZabRules) -> ZabResult | None:
    """The disk has completed one operation: send the ACK that waited for it."""
    written = disk.next_written(peer.durable, learner.queue, rules)
    if written is None:
        return None
    after = replace(learner, queue=written.queue)
    match written.operation:
        case Append(txn=txn, ack=True):
            return ZabResult(written.durable, after, (Send(learner.leader, Ack(txn.zxid)),))
        case EnterEpoch(ack=True):
            return acknowledge_newleader(written.durable, after)
        case EnterEpoch():
            return ZabResult(written.durable, after, (disk.epochs_written(written.durable),))
    return ZabResult(written.durable, after)
