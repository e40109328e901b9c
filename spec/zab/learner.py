"""A follower or an observer, from its decision for a leader to the loss of it.

    DISCOVERY        FOLLOWERINFO goes out; LEADERINFO brings the epoch; ACKEPOCH answers
    SYNCHRONIZATION  DIFF, TRUNC or SNAP, proposals and commits; NEWLEADER is acknowledged once all that was
                     committed is on disk and currentEpoch is written
    SYNCED           until UPTODATE, which is acknowledged too; proposals and commits are kept
    BROADCAST        proposals are logged and acknowledged, commits applied

Rules this module keeps:

- `step` returns None for an event that cannot happen in this state, and a state of None where the real server gives
  its leader up. A packet that must not arrive is reported, and then treated as the real server treats it.
- While NEWLEADER waits for the disk the thread that reads is busy: nothing else arrives.
- What a TRUNC leaves is in memory and on disk alike: a learner that gives up before NEWLEADER forgets what it has
  applied since, which the real one keeps in its tree. The snapshot that the real one then writes is durable at once.
- acceptedEpoch is written before ACKEPOCH goes out, currentEpoch before the ACK of NEWLEADER, each in one step with
  it: a crash between the two differs from a crash after both only in a packet that may be late for ever.

Source: `Learner.registerWithLeader`, `syncWithLeader`; `Follower.processPacket`, `Observer.processPacket`,
`FollowerZooKeeperServer`, `SendAckRequestProcessor`, with the fixes of 3.9.4.
"""

from msgspec.structs import replace

from spec.durable import Durable
from spec.effects import Apply, Connect, DiskOperation, Effect, Observe, Send, Truncate
from spec.election.state import Peer
from spec.election.vote import is_observer
from spec.txn import Txn, counter_of, epoch_of, make_zxid, told
from spec.variants import Variant
from spec.zab import disk
from spec.zab.events import (
    Applied,
    ClientSync,
    ClientWrite,
    Delivered,
    Family,
    Receive,
    Resumed,
    SyncAnswered,
    Synced,
    Truncated,
    Unexpected,
    ZabEvent,
)
from spec.zab.packets import (
    Ack,
    AckEpoch,
    Commit,
    Diff,
    FollowerInfo,
    Inform,
    LeaderInfo,
    NewLeader,
    Ping,
    Proposal,
    QuorumPacket,
    Request,
    Snap,
    Sync,
    SyncRequest,
    Trunc,
    UpToDate,
    name_of,
)
from spec.zab.state import (
    Append,
    Done,
    EnterEpoch,
    Learner,
    LearnerPhase,
    Mode,
    TakeSnapshot,
    ZabRules,
    logged_and_queued,
)

DISCOVERY, SYNCHRONIZATION, SYNCED, BROADCAST = LearnerPhase
Effects = tuple[Effect, ...]


def begin(peer: Peer, leader: int) -> Done:
    """It has decided for a leader: it connects, and presents itself (`Follower.followLeader`)."""
    info = FollowerInfo(peer.durable.accepted_epoch, is_observer(peer.sid, peer.view))
    return Done(peer.durable, Learner(leader), (Connect(leader, info),))


def step(peer: Peer, learner: Learner, event: ZabEvent, rules: ZabRules) -> Done | None:
    """One event of a learner; None when it is impossible in this state."""
    match event:
        case Receive(source=source, packet=packet) if source == learner.leader and not _is_busy(learner):
            return _receive(peer, learner, packet, rules)
        case Synced():
            return _synced(peer, learner, rules)
        case Applied() if learner.commits:
            return _apply(peer, peer.durable, learner, learner.commits[0])
        case Resumed() if learner.owes_ack:
            return _acknowledge_newleader(peer.durable, replace(learner, owes_ack=False))
        case ClientWrite(value=value) if learner.phase is BROADCAST:
            return Done(peer.durable, learner, (Send(learner.leader, Request(value)),))
        case ClientSync() if learner.phase is BROADCAST:
            waiting = replace(learner, syncs=learner.syncs + 1)
            return Done(peer.durable, waiting, (Send(learner.leader, SyncRequest()),))
    return None


def may_leave(learner: Learner) -> bool:
    """Whether it can notice that its leader is lost: not while it handles NEWLEADER."""
    return not _is_busy(learner)


def shut_down(durable: Durable, learner: Learner) -> Durable:
    """The disk when a learner has given its leader up: its sync thread ends, what was only in memory is gone."""
    return disk.flushed(durable, learner.queue)


def _is_busy(learner: Learner) -> bool:
    return learner.owes_ack or (learner.phase is SYNCHRONIZATION and bool(learner.queue))


def _receive(peer: Peer, learner: Learner, packet: QuorumPacket, rules: ZabRules) -> Done:
    """A packet by phase. In BROADCAST an unknown one is ignored, before it ends the connection."""
    match learner.phase, packet:
        case LearnerPhase.BROADCAST, Ping():
            return Done(peer.durable, learner, (Send(learner.leader, Ping()),))
        case _, Ping() if _has_begun(learner):
            return Done(peer.durable, learner)
        case LearnerPhase.DISCOVERY, LeaderInfo(epoch=epoch):
            return _leader_info(peer, learner, epoch)
        case LearnerPhase.SYNCHRONIZATION, Diff() | Trunc() | Snap() if learner.mode is None:
            return _begin_to_synchronise(peer, learner, packet)
        case LearnerPhase.SYNCHRONIZATION | LearnerPhase.SYNCED, Proposal(txn=txn) if _has_begun(learner):
            return _proposal_while_synchronising(peer, learner, txn)
        case LearnerPhase.SYNCHRONIZATION | LearnerPhase.SYNCED, Commit(zxid=zxid) if _has_begun(learner):
            return _commit_while_synchronising(peer, learner, zxid)
        case LearnerPhase.SYNCHRONIZATION | LearnerPhase.SYNCED, Inform(txn=txn) if _has_begun(learner):
            return _inform_while_synchronising(peer, learner, txn)
        case LearnerPhase.SYNCHRONIZATION, NewLeader() if _has_begun(learner):
            return _newleader(peer, learner, rules)
        case LearnerPhase.SYNCED, UpToDate():
            return _uptodate(peer, learner, rules)
        case LearnerPhase.BROADCAST, Proposal(txn=txn) if not is_observer(peer.sid, peer.view):
            return _proposal(peer, learner, txn, rules)
        case LearnerPhase.BROADCAST, Commit(zxid=zxid) if not is_observer(peer.sid, peer.view):
            return _commit(peer, peer.durable, learner, zxid, rules)
        case LearnerPhase.BROADCAST, Inform(txn=txn) if is_observer(peer.sid, peer.view):
            return _inform(peer, learner, txn, rules)
        case LearnerPhase.BROADCAST, Sync():
            return _sync_answered(peer, learner)
    report = _unexpected(peer, Family.STATE, f"{name_of(packet)} while in {learner.phase.name}")
    return Done(peer.durable, learner if learner.phase is BROADCAST else None, (report,))


def _has_begun(learner: Learner) -> bool:
    return learner.mode is not None or learner.phase is SYNCED


# Discovery.


def _leader_info(peer: Peer, learner: Learner, epoch: int) -> Done:
    """`registerWithLeader`: accept a higher epoch; answer -1 for the one that is accepted already."""
    accepted = peer.durable.accepted_epoch
    if epoch < accepted:
        return Done(peer.durable, None)
    durable = replace(peer.durable, accepted_epoch=epoch)
    answer = AckEpoch(peer.last_zxid, durable.current_epoch if epoch > accepted else -1)
    after = replace(learner, phase=SYNCHRONIZATION, epoch=epoch)
    return Done(durable, after, (disk.epochs_written(durable), Send(learner.leader, answer)))


# Synchronisation.


def _begin_to_synchronise(peer: Peer, learner: Learner, packet: QuorumPacket) -> Done:
    """The first packet: DIFF keeps the log, TRUNC cuts it at once, SNAP replaces the tree in memory."""
    match packet:
        case Trunc(zxid=zxid):
            durable = peer.durable.truncated(zxid)
            dropped = tuple(txn for txn in peer.durable.txns if txn.zxid > zxid)
            fact = Observe(Truncated(peer.sid, learner.epoch, dropped))
            after = replace(learner, mode=Mode.TRUNC, tree=durable.txns)
            return Done(durable, after, (Truncate(zxid), *((fact,) if dropped else ())))
        case Snap(zxid=zxid, txns=txns):
            replaced = tuple(txn for txn in peer.durable.txns if txn not in txns)
            report = (Observe(Truncated(peer.sid, learner.epoch, replaced)),) if replaced else ()
            return Done(peer.durable, replace(learner, mode=Mode.SNAP, tree=txns, snapshot=zxid), report)
    return Done(peer.durable, replace(learner, mode=Mode.DIFF))


def _proposal_while_synchronising(peer: Peer, learner: Learner, txn: Txn) -> Done:
    """`enforceContinuousProposal`: after the first one, a gap within one epoch ends the connection."""
    last = learner.last_queued
    if last and txn.zxid != last + 1 and epoch_of(txn.zxid) <= epoch_of(last):
        what = f"PROPOSAL {told(txn.zxid)} while synchronising, after {told(last)}"
        return Done(peer.durable, None, (_unexpected(peer, Family.PROPOSAL, what),))
    return Done(peer.durable, replace(learner, not_logged=(*learner.not_logged, txn), last_queued=txn.zxid))


def _inform_while_synchronising(peer: Peer, learner: Learner, txn: Txn) -> Done:
    """An INFORM is a proposal and its commit."""
    proposed = _proposal_while_synchronising(peer, learner, txn)
    if not isinstance(proposed.state, Learner):
        return proposed
    return _commit_while_synchronising(peer, proposed.state, txn.zxid)


def _commit_while_synchronising(peer: Peer, learner: Learner, zxid: int) -> Done:
    """After TRUNC and SNAP it is applied to the tree in memory, else kept until NEWLEADER or UPTODATE.

    Nothing to commit is a NullPointerException, which ends the connection.
    """
    if not learner.not_logged:
        report = _unexpected(peer, Family.COMMIT, f"COMMIT {told(zxid)} while synchronising, and there is no proposal")
        return Done(peer.durable, None, (report,))
    if learner.tree is None:
        return Done(peer.durable, replace(learner, packets_committed=(*learner.packets_committed, zxid)))
    txn, *others = learner.not_logged
    if txn.zxid != zxid:
        report = _unexpected(peer, Family.COMMIT, f"COMMIT {told(zxid)}, and the next proposal is {told(txn.zxid)}")
        return Done(peer.durable, learner, (report,))
    return Done(peer.durable, replace(learner, tree=(*learner.tree, txn), not_logged=tuple(others)))


def _newleader(peer: Peer, learner: Learner, rules: ZabRules) -> Done:
    """Everything committed becomes durable, then currentEpoch is written and NEWLEADER acknowledged.

    ZOOKEEPER-4643, 4646, 4685, 3911 and 4394 each change the order of this.
    """
    variants, durable = rules.variants, peer.durable
    after, operations = _to_persist(peer, learner, rules)
    forgotten: tuple[DiskOperation, ...] = ()
    if Variant.NEWLEADER_FORGETS_PROPOSALS in variants:
        forgotten = tuple(Append(txn) for txn in after.not_logged)
        pending = (*after.pending, *(txn.zxid for txn in after.not_logged))
        after = replace(after, not_logged=(), pending=pending)
    if Variant.EPOCH_BEFORE_LOG in variants:
        durable = replace(durable, current_epoch=learner.epoch)
    if variants & {Variant.NEWLEADER_ACK_BEFORE_SYNC, Variant.PROPOSAL_ACK_BEFORE_NEWLEADER_ACK}:
        logged = tuple(replace(each, ack=True) if isinstance(each, Append) else each for each in operations)
        queue, effects = disk.asked(after.queue, logged)
        after = replace(after, queue=queue)
        if Variant.PROPOSAL_ACK_BEFORE_NEWLEADER_ACK in variants:
            return _with_disk(peer, durable, replace(after, owes_ack=True), effects, rules)
        acked = _acknowledge_newleader(durable, after)
        assert isinstance(acked.state, Learner)
        return _with_disk(peer, acked.durable, acked.state, (*effects, *acked.effects), rules)
    queue, effects = disk.asked(after.queue, (*operations, EnterEpoch(learner.epoch), *forgotten))
    return _with_disk(peer, durable, replace(after, queue=queue), effects, rules)


def _to_persist(peer: Peer, learner: Learner, rules: ZabRules) -> tuple[Learner, tuple[DiskOperation, ...]]:
    """What NEWLEADER makes durable: the tree after TRUNC or SNAP, else the proposals that were committed.

    An observer logs what was committed after UPTODATE.
    """
    if learner.tree is not None:
        changed = learner.tree != peer.durable.txns or learner.snapshot
        return learner, (TakeSnapshot(learner.tree, learner.snapshot),) if changed else ()
    if Variant.LOGGED_AFTER_UPTODATE in rules.variants or is_observer(peer.sid, peer.view):
        return learner, ()
    count = _matching(learner.not_logged, learner.packets_committed)
    committed, rest = learner.not_logged[:count], learner.not_logged[count:]
    late = tuple(txn.zxid for txn in committed) if Variant.COMMITS_AFTER_UPTODATE in rules.variants else ()
    after = replace(learner, not_logged=rest, packets_committed=late, pending=late)
    return after, tuple(Append(txn, ack=False) for txn in committed)


def _matching(txns: tuple[Txn, ...], zxids: tuple[int, ...]) -> int:
    """How many of the oldest transactions are committed, in their order."""
    return next((n for n, (txn, z) in enumerate(zip(txns, zxids, strict=False)) if txn.zxid != z),
                min(len(txns), len(zxids)))  # fmt: skip


def _acknowledge_newleader(durable: Durable, learner: Learner) -> Done:
    """currentEpoch is written, then the ACK goes out; what was in memory only has become the tree."""
    durable = replace(durable, current_epoch=learner.epoch)
    after = replace(learner, phase=SYNCED, mode=None, tree=None, snapshot=0)
    ack = Send(learner.leader, Ack(make_zxid(learner.epoch)))
    return Done(durable, after, (disk.epochs_written(durable), ack))


def _uptodate(peer: Peer, learner: Learner, rules: ZabRules) -> Done:
    """It serves: UPTODATE is acknowledged, what came since NEWLEADER is logged, and what of it is committed applied.

    Everything before was applied when it was made durable, except in ZOOKEEPER-3023.
    """
    logged = logged_and_queued(peer.durable, learner.queue)
    applied = [txn for txn in logged if txn.zxid not in learner.pending]
    serving = replace(learner, phase=BROADCAST, delivered=applied[-1].zxid if applied else peer.durable.snapshot)
    told_now = (Observe(Delivered(peer.sid, learner.epoch, tuple(applied))),) if applied else ()
    effects: Effects = (Send(learner.leader, Ack(make_zxid(learner.epoch))), *told_now)
    for_observer = is_observer(peer.sid, peer.view)
    queue, asked = disk.asked(learner.queue, (Append(txn, ack=not for_observer) for txn in learner.not_logged))
    pending = (*learner.pending, *(txn.zxid for txn in learner.not_logged))
    committed = learner.packets_committed
    after = replace(serving, queue=queue, pending=pending, not_logged=(), packets_committed=(), last_queued=0)
    return _commits(_with_disk(peer, peer.durable, after, (*effects, *asked), rules), peer, committed, rules)


def _commits(done: Done, peer: Peer, zxids: tuple[int, ...], rules: ZabRules) -> Done:
    for zxid in zxids:
        if isinstance(done.state, Learner):
            done = _followed_by(done.effects, _commit(peer, done.durable, done.state, zxid, rules))
    return done


# Broadcast.


def _proposal(peer: Peer, learner: Learner, txn: Txn, rules: ZabRules) -> Done:
    """`Follower.processPacket`: it is logged whatever its zxid; a gap is only warned of."""
    txns = logged_and_queued(peer.durable, learner.queue)
    last = txns[-1].zxid if txns else peer.durable.snapshot
    expected = last + 1 if epoch_of(last) == learner.epoch else make_zxid(learner.epoch, 1)
    report: Effects = ()
    if txn.zxid != expected and not (epoch_of(txn.zxid) > epoch_of(last) and counter_of(txn.zxid) == 1):
        report = (_unexpected(peer, Family.PROPOSAL, f"PROPOSAL {told(txn.zxid)}, where {told(expected)} is next"),)
    early = Variant.ACK_BEFORE_LOG in rules.variants
    queue, asked = disk.asked(learner.queue, (Append(txn, ack=not early),))
    after = replace(learner, queue=queue, pending=(*learner.pending, txn.zxid))
    acked: Effects = (Send(learner.leader, Ack(txn.zxid)),) if early else ()
    return _with_disk(peer, peer.durable, after, (*report, *acked, *asked), rules)


def _commit(peer: Peer, durable: Durable, learner: Learner, zxid: int, rules: ZabRules) -> Done:
    """`FollowerZooKeeperServer.commit`: the oldest pending proposal; nothing pending is only warned of.

    Another one than the oldest makes the real server exit.
    """
    if not learner.pending:
        report = _unexpected(peer, Family.COMMIT, f"COMMIT {told(zxid)} without a proposal")
        return Done(durable, learner, (report,))
    oldest, *others = learner.pending
    if oldest != zxid:
        report = _unexpected(peer, Family.COMMIT, f"COMMIT {told(zxid)}, and the next proposal is {told(oldest)}")
        return Done(durable, None, (report,))
    after = replace(learner, pending=tuple(others), commits=(*learner.commits, zxid))
    return Done(durable, after) if rules.asynchronous_commits else _apply(peer, durable, after, zxid)


def _apply(peer: Peer, durable: Durable, learner: Learner, zxid: int) -> Done:
    """The commit processor applies the oldest of its queue (`FinalRequestProcessor`)."""
    txns = tuple(txn for txn in logged_and_queued(durable, learner.queue) if txn.zxid == zxid)
    after = replace(learner, commits=learner.commits[1:], delivered=zxid)
    return Done(durable, after, (Apply(zxid), Observe(Delivered(peer.sid, learner.epoch, txns))))


def _inform(peer: Peer, learner: Learner, txn: Txn, rules: ZabRules) -> Done:
    """`ObserverZooKeeperServer.commitRequest`: logged without an ACK, and applied."""
    queue, asked = disk.asked(learner.queue, (Append(txn, ack=False),))
    after = replace(learner, queue=queue, pending=(*learner.pending, txn.zxid))
    written = _with_disk(peer, peer.durable, after, asked, rules)
    return _commits(written, peer, (txn.zxid,), rules)


def _sync_answered(peer: Peer, learner: Learner) -> Done:
    """SYNC comes behind every COMMIT that was sent before it (`FollowerZooKeeperServer.sync`)."""
    if not learner.syncs:
        return Done(peer.durable, learner, (_unexpected(peer, Family.STATE, "SYNC that nobody asked for"),))
    fact = SyncAnswered(peer.sid, learner.commits[-1] if learner.commits else learner.delivered)
    return Done(peer.durable, replace(learner, syncs=learner.syncs - 1), (Observe(fact),))


# The disk.


def _with_disk(peer: Peer, durable: Durable, learner: Learner, effects: Effects, rules: ZabRules) -> Done:
    """What follows when the disk was asked for something: with a synchronous disk all of it ends now.

    An operation that waits for nothing else, as writing an epoch with no transaction before it, ends at once too.
    """
    while learner.queue and (not rules.asynchronous_disk or isinstance(learner.queue[0], EnterEpoch)):
        done = _synced(replace(peer, durable=durable), learner, rules)
        if done is None or not isinstance(done.state, Learner):
            break
        durable, learner, effects = done.durable, done.state, (*effects, *done.effects)
    return Done(durable, learner, effects)


def _synced(peer: Peer, learner: Learner, rules: ZabRules) -> Done | None:
    """The disk has ended one operation: what waited for it follows."""
    written = disk.next_written(peer.durable, learner.queue, rules)
    if written is None:
        return None
    after = replace(learner, queue=written.queue)
    match written.operation:
        case Append(txn=txn, ack=True):
            return Done(written.durable, after, (Send(learner.leader, Ack(txn.zxid)),))
        case EnterEpoch():
            return _acknowledge_newleader(written.durable, after)
    return Done(written.durable, after)


def _followed_by(effects: Effects, done: Done) -> Done:
    return replace(done, effects=(*effects, *done.effects))


def _unexpected(peer: Peer, family: Family, what: str) -> Observe:
    return Observe(Unexpected(peer.sid, family, what))
