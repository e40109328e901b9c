"""A learner between DIFF, TRUNC or SNAP and UPTODATE: the received packets, and the time when they become durable.

Rules of this module:

- Received transactions are in memory until NEWLEADER. Then all committed ones become durable, in order, and only then
  currentEpoch is written and NEWLEADER acknowledged. Six of the known defects change this order.
- After a TRUNC, memory and disk are equal. A learner that gives up before NEWLEADER forgets the transactions applied
  since then. A real one keeps them in its tree (ZOOKEEPER-5094). Snapshots are immediately durable.

Source: `Learner.syncWithLeader`, with the fixes of 3.9.4.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from spec.durable import Durable, TxnSequence
from spec.effects import Apply, DiskOperation, Effect, Effects, Observe, Send, Truncate
from spec.election.state import Peer
from spec.election.vote import is_observer
from spec.quorum import Sid, View
from spec.sequence import extended
from spec.txn import Txn, epoch_of, format_zxid, make_zxid, rolls_over
from spec.variants import Variant
from spec.zab import disk, reconfiguration
from spec.zab.events import Delivered, MessageKind, Truncated, unexpected
from spec.zab.learner_broadcast import ServingLearner
from spec.zab.packets import Ack, QuorumPacket, Snap, Trunc
from spec.zab.state import (
    Append,
    EnterEpoch,
    Learner,
    LearnerPhase,
    Rollover,
    SyncMode,
    TakeSnapshot,
    ZabResult,
    ZabRules,
    logged_and_queued,
    merged,
)


def begin(peer: Peer, learner: Learner, packet: QuorumPacket, rules: ZabRules) -> ZabResult:
    """Handle the first packet: DIFF keeps the log, TRUNC cuts it immediately, SNAP replaces the tree in memory."""
    match packet:
        case Trunc(zxid=zxid) if not disk.can_truncate(peer.durable, zxid, rules):
            return ZabResult(peer.durable, None, exits=True)
        case Trunc(zxid=zxid):
            durable = disk.truncated(peer.durable, zxid, rules)
            tree = tuple(durable.txns)
            dropped = tuple(txn for txn in peer.durable.txns if txn.zxid > zxid and txn not in tree)
            fact = Observe(Truncated(peer.sid, learner.epoch, dropped))
            after = replace(learner, mode=SyncMode.TRUNC, tree=tree)
            return ZabResult(durable, after, (Truncate(zxid), *((fact,) if dropped else ())))
        case Snap(zxid=zxid, txns=txns):
            replaced = _not_in_snapshot(peer.durable.txns, zxid, txns)
            report = (Observe(Truncated(peer.sid, learner.epoch, replaced)),) if replaced else ()
            return ZabResult(peer.durable, replace(learner, mode=SyncMode.SNAP, tree=txns or (), snapshot=zxid), report)
    return ZabResult(peer.durable, replace(learner, mode=SyncMode.DIFF))


def _not_in_snapshot(own: TxnSequence, zxid: int, txns: tuple[Txn, ...] | None) -> tuple[Txn, ...]:
    """The transactions that a SNAP removes; if it does not list its own, only those that are beyond its zxid."""
    if txns is None:
        return tuple(txn for txn in own if txn.zxid > zxid)
    return tuple(txn for txn in own if txn not in txns)


def proposal(peer: Peer, learner: Learner, txn: Txn, rules: ZabRules) -> ZabResult:
    """`enforceContinuousProposal`: after the first one, a gap within one epoch ends the connection.

    Before ZOOKEEPER-4925 was fixed, there was only a warning.
    """
    last = learner.last_queued if Variant.COMMITTED_LOG_WITH_GAP not in rules.variants else 0
    layout = peer.durable.layout
    if last and txn.zxid != last + 1 and epoch_of(txn.zxid, layout) <= epoch_of(last, layout):
        problem = f"PROPOSAL {format_zxid(txn.zxid)} while synchronising, after {format_zxid(last)}"
        return ZabResult(peer.durable, None, (unexpected(peer.sid, MessageKind.PROPOSAL, problem),))
    after = replace(learner, not_logged=extended(learner.not_logged, txn), last_queued=txn.zxid)
    seen = _see_proposed(peer, (txn,))[1] if rules.sees_early else ()
    return ZabResult(peer.durable, after, seen)


def inform(peer: Peer, learner: Learner, txn: Txn, rules: ZabRules) -> ZabResult:
    """An INFORM is a proposal and its commit."""
    proposed = proposal(peer, learner, txn, rules)
    if not isinstance(proposed.state, Learner):
        return proposed
    return commit(peer, proposed.state, txn.zxid, rules).after(proposed.effects)


def commit_and_activate(peer: Peer, learner: Learner, zxid: int, designated: Sid, rules: ZabRules) -> ZabResult:
    """COMMITANDACTIVATE: activate the view of the oldest proposal, if that is the committed one, then commit it."""
    oldest = learner.not_logged[0] if learner.not_logged else None
    view = reconfiguration.view_of(oldest) if oldest is not None and oldest.zxid == zxid else None
    after, end, configured = _activate(peer, learner, view, designated, rules)
    return end or commit(after, learner, zxid, rules).after(configured)


def inform_and_activate(peer: Peer, learner: Learner, txn: Txn, designated: Sid, rules: ZabRules) -> ZabResult:
    """INFORMANDACTIVATE: activate the view of this transaction; then it is a proposal and its commit.

    3.9.4 and 3.9.5 leave it out of `enforceContinuousProposal` (`activation-not-counted`).
    """
    after, end, configured = _activate(peer, learner, reconfiguration.view_of(txn), designated, rules)
    if end is not None:
        return end
    if Variant.ACTIVATION_NOT_COUNTED not in rules.variants:
        return inform(after, learner, txn, rules).after(configured)
    informed = inform(after, replace(learner, last_queued=0), txn, rules)
    assert isinstance(informed.state, Learner)  # nothing is compared with a `last_queued` of 0
    return replace(informed, state=replace(informed.state, last_queued=learner.last_queued)).after(configured)


def _activate(
    peer: Peer, learner: Learner, view: View | None, designated: Sid, rules: ZabRules
) -> tuple[Peer, ZabResult | None, Effects]:
    """Activate a view; with the end of the part if the role or the leader changes, before anything is applied."""
    after, configured = reconfiguration.activate(peer, view, rules)
    if reconfiguration.is_major_change(peer, after, learner.leader, designated):
        return after, ZabResult(peer.durable, learner, configured, successor=designated), configured
    return after, None, configured


def commit(peer: Peer, learner: Learner, zxid: int, rules: ZabRules) -> ZabResult:
    """Apply the transaction to the tree in memory after TRUNC and SNAP, else keep its commit for later.

    A kept commit waits for NEWLEADER or UPTODATE. A commit without a proposal is a NullPointerException, which ends the
    connection.
    """
    if not learner.not_logged:
        problem = f"COMMIT {format_zxid(zxid)} while synchronising, and there is no proposal"
        return ZabResult(peer.durable, None, (unexpected(peer.sid, MessageKind.COMMIT, problem),))
    if learner.tree is None:
        return ZabResult(peer.durable, replace(learner, packets_committed=extended(learner.packets_committed, zxid)))
    txn = learner.not_logged[0]
    if txn.zxid != zxid:
        report = unexpected(
            peer.sid,
            MessageKind.COMMIT,
            f"COMMIT {format_zxid(zxid)}, and the next proposal is {format_zxid(txn.zxid)}",
        )
        return ZabResult(peer.durable, learner, (report,))
    applied = replace(learner, tree=extended(learner.tree, txn), not_logged=learner.not_logged[1:])
    return ZabResult(peer.durable, _unlisted(applied, (txn,), rules))


def _unlisted(learner: Learner, applied: tuple[Txn, ...], rules: ZabRules) -> Learner:
    """ZOOKEEPER-4925: `processTxn(TxnHeader, Record)` applies transactions and does not add them to `committedLog`.

    Up to 3.9.2 it applies the transactions committed after TRUNC or SNAP, and in 3.9.3 also those committed in a DIFF.
    """
    if Variant.COMMITTED_LOG_WITH_GAP not in rules.variants or not applied:
        return learner
    return replace(learner, unlisted=(*learner.unlisted, *(txn.zxid for txn in applied)))


def newleader(peer: Peer, learner: Learner, view: View | None, rules: ZabRules) -> ZabResult:
    """Make everything committed durable, then write currentEpoch and acknowledge NEWLEADER.

    The view of the leader is written first, as the last seen one. ZOOKEEPER-4643, 4646, 4685, 3911 and 4394 each change
    this order.
    """
    _, configured = reconfiguration.see(peer, view)
    return _persist(peer, replace(learner, new_view=view), rules).after(configured)


def _persist(peer: Peer, learner: Learner, rules: ZabRules) -> ZabResult:
    """Request what becomes durable on NEWLEADER, in the order of the release that the variants describe.

    The thread that reads packets writes a snapshot and currentEpoch, and acknowledges NEWLEADER. Up to 3.8.4 and 3.9.1
    only the sync thread logs proposals, and acknowledges each (ZOOKEEPER-4646, 4685); a snapshot precedes both threads.
    A follower with ZOOKEEPER-4394 logs all proposals that it has, without an observer's exception.
    """
    variants = rules.variants
    after, snapshot, logged = _to_persist(peer, learner, rules)
    if Variant.NEWLEADER_FORGETS_PROPOSALS in variants and not is_observer(peer.sid, peer.view):
        logged = (*logged, *after.not_logged)
        after = replace(after, not_logged=(), pending=(*after.pending, *(txn.zxid for txn in after.not_logged)))
    late, owes = _logs_late(rules), Variant.PROPOSAL_ACK_BEFORE_NEWLEADER_ACK in variants
    enter = () if owes else (EnterEpoch(learner.epoch),)
    appends = tuple(Append(txn, ack=late) for txn in logged)
    operations: tuple[DiskOperation, ...] = (*enter, *appends) if late else (*appends, *enter)
    if Variant.EPOCH_BEFORE_LOG in variants and (owes or operations[:1] != enter):
        operations = (EnterEpoch(learner.epoch, ack=False), *operations)
    queue, effects = disk.request(after.queue, (*snapshot, *operations))
    requested = ZabResult(peer.durable, replace(after, queue=queue, owes_ack=owes), effects)
    return _settled(peer, requested, rules)


def _settled(peer: Peer, requested: ZabResult, rules: ZabRules) -> ZabResult:
    """Complete the operations that end in the step that requests them: all of them with a synchronous disk.

    With an asynchronous disk, only an `EnterEpoch` at the head of the queue completes immediately, since it waits for
    no transaction.
    """
    result = requested
    while isinstance(result.state, Learner) and result.state.queue:
        if rules.asynchronous_disk and not isinstance(result.state.queue[0], EnterEpoch):
            break
        ended = synced(replace(peer, durable=result.durable), result.state, rules)
        assert ended is not None  # the queue is not empty
        result = ended.after(result.effects)
    return result


def _logs_late(rules: ZabRules) -> bool:
    """Whether the sync thread logs the proposals of NEWLEADER, and acknowledges each, after currentEpoch is written."""
    return bool(rules.variants & _LOGGED_BY_SYNC_THREAD)


_LOGGED_BY_SYNC_THREAD = frozenset({Variant.NEWLEADER_ACK_BEFORE_SYNC, Variant.PROPOSAL_ACK_BEFORE_NEWLEADER_ACK})


def _to_persist(
    peer: Peer, learner: Learner, rules: ZabRules
) -> tuple[Learner, tuple[TakeSnapshot, ...], tuple[Txn, ...]]:
    """What NEWLEADER makes durable: a snapshot of the tree, or the committed proposals.

    The tree is written after TRUNC or SNAP. An observer logs committed transactions after UPTODATE, except by the rule
    `ZabRules.observers_log_first`.
    """
    logs_late = is_observer(peer.sid, peer.view) and not rules.observers_log_first
    if learner.tree is not None:
        tree = tuple(learner.tree)
        changed = tree != tuple(peer.durable.txns) or learner.snapshot
        covered = disk.covered(peer.durable, learner.snapshot, rules)
        return learner, (TakeSnapshot(tree, learner.snapshot, covered),) if changed else (), ()
    if Variant.LOGGED_AFTER_UPTODATE in rules.variants or logs_late:
        return learner, (), ()
    count = _matching(learner.not_logged, learner.packets_committed)
    committed, rest = tuple(learner.not_logged[:count]), learner.not_logged[count:]
    late = tuple(txn.zxid for txn in committed) if Variant.COMMITS_AFTER_UPTODATE in rules.variants else ()
    after = replace(learner, not_logged=rest, packets_committed=late, pending=late)
    return (after if late else _unlisted(after, committed, rules)), (), committed


def _matching(txns: Sequence[Txn], zxids: Sequence[int]) -> int:
    """The number of the oldest transactions that are committed, in their order."""
    return next((n for n, (txn, z) in enumerate(zip(txns, zxids, strict=False)) if txn.zxid != z),
                min(len(txns), len(zxids)))  # fmt: skip


def uptodate(peer: Peer, learner: Learner, rules: ZabRules) -> ZabResult:
    """Start to serve: acknowledge UPTODATE, log the proposals received since NEWLEADER, and apply the committed ones.

    Everything before was applied when it became durable, except in ZOOKEEPER-3023. The view of NEWLEADER becomes active
    first. If that changes the role, or the leader is not a voter in it, the learner looks for a leader, and logs
    nothing. A view whose transaction is not committed waits for its COMMITANDACTIVATE. 3.9.5 activates it
    (`pending-view-activated`).
    """
    view = learner.new_view
    if view is not None and Variant.PENDING_VIEW_ACTIVATED not in rules.variants and _is_pending(learner, view):
        view = None
    after, configured = reconfiguration.activate(peer, view, rules)
    if reconfiguration.is_major_change(peer, after, learner.leader):
        return ZabResult(peer.durable, None, configured)
    after, proposed = _see_proposed(after, learner.not_logged)
    return _serve(after, replace(learner, new_view=None), rules).after((*configured, *proposed))


def _see_proposed(peer: Peer, txns: Sequence[Txn]) -> tuple[Peer, Effects]:
    """See the views in proposals that are about to be logged.

    Not earlier: a server keeps one view besides its active one, and until UPTODATE that may be a committed view. The
    proposed one must not replace it. Releases see it when they read it (`ZabRules.sees_early`).
    """
    effects: list[Effect] = []
    for view in filter(None, map(reconfiguration.view_of, txns)):
        if view.version > peer.view.version:
            peer, configured = reconfiguration.see(peer, view)
            effects += configured
    return peer, tuple(effects)


def _is_pending(learner: Learner, view: View) -> bool:
    """Whether the transaction of a view is a proposal without its commit."""
    proposed = {*learner.pending, *(txn.zxid for txn in learner.not_logged)}
    return view.version in proposed - {*learner.packets_committed}


def _serve(peer: Peer, learner: Learner, rules: ZabRules) -> ZabResult:
    logged = merged(logged_and_queued(peer.durable, learner.queue), peer.unlogged)
    not_committed = frozenset(learner.pending)
    applied = [txn for txn in logged if txn.zxid not in not_committed]
    delivered = applied[-1].zxid if applied else peer.durable.snapshot
    up_to_date = replace(learner, phase=LearnerPhase.BROADCAST, delivered=delivered)
    told_now = (Observe(Delivered(peer.sid, learner.epoch, tuple(applied))),) if applied else ()
    acked = [make_zxid(learner.epoch, 0, peer.durable.layout)]
    if Variant.NEWLEADER_FORGETS_PROPOSALS in rules.variants and not _logs_late(rules):
        acked += learner.pending  # 3.8.5 and 3.9.2 acknowledge what NEWLEADER logged only here
    acks = tuple(Send(learner.leader, Ack(zxid)) for zxid in acked)
    epoch = 0 if rules.rollover is Rollover.ELECTION else epoch_of(delivered) + rolls_over(delivered)
    if epoch > learner.epoch:  # the leader has gone on to this epoch meanwhile
        peer = replace(peer, durable=replace(peer.durable, accepted_epoch=epoch, current_epoch=epoch))
        up_to_date = replace(up_to_date, epoch=epoch)
    effects: Effects = (Apply(delivered), *acks, *told_now)
    serving = ServingLearner(peer, replace(up_to_date, not_logged=(), packets_committed=(), last_queued=0), rules)
    return serving.result((*effects, *serving.finish(learner.not_logged, learner.packets_committed)))


# The disk.


def synced(peer: Peer, learner: Learner, rules: ZabRules) -> ZabResult | None:
    """The disk has completed one operation: send the ACK that waited for it (`SendAckRequestProcessor`)."""
    completion = disk.next_written(peer.durable, learner.queue, rules)
    if completion is None:
        return None
    after = replace(learner, queue=completion.queue)
    match completion.operation:
        case Append(txn=txn, ack=True):
            return ZabResult(completion.durable, after, (Send(learner.leader, Ack(txn.zxid)),))
        case EnterEpoch(ack=True):
            return acknowledge_newleader(completion.durable, after)
        case EnterEpoch():
            return ZabResult(completion.durable, after, (disk.epochs_written(completion.durable),))
    return ZabResult(completion.durable, after)


def acknowledge_newleader(durable: Durable, learner: Learner) -> ZabResult:
    """Write currentEpoch, then send the ACK; transactions that were only in memory are part of the tree from now on."""
    durable = replace(durable, current_epoch=learner.epoch)
    after = replace(learner, phase=LearnerPhase.SYNCED, mode=None, tree=None, snapshot=0)
    ack = Send(learner.leader, Ack(make_zxid(learner.epoch, 0, durable.layout)))
    return ZabResult(durable, after, (disk.epochs_written(durable), ack))
