"""A leader, from its election to the loss of its quorum.

    FOLLOWERINFO    a quorum must say which epochs it accepted; the new epoch is above all of them
    ACKEPOCH        a quorum must accept it, none of them ahead of the leader; then the epoch is established
    NEWLEADER_ACK   learners are brought up to date; a quorum must acknowledge NEWLEADER
    BROADCAST       requests are proposed, acknowledgements counted, commits sent in order

Rules this module keeps:

- A quorum is one of the leader's own view, and only voters of that view are counted. Any learner is served.
- `step` returns None for an event that cannot happen in this state: a packet whose handler waits for the leader is
  one of these. A handler that fails ends its own connection; the leader goes on.
- currentEpoch is written in the step that completes the quorum of ACKEPOCH. That a handler is faster, and its learner
  acknowledges NEWLEADER before the leader has written that file, is left out; so is the rollover of zxids.
- The threads of the handlers take no time of their own: what each would do as soon as the leader allows it happens in
  the step that allows it. A slow handler is a learner whose packet arrives late.

Source: `Leader.lead`, `getEpochToPropose`, `waitForEpochAck`, `waitForNewLeaderAck`, `startZkServer`, `propose`,
`processAck`, `tryToCommit`; `LearnerHandler.run`.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from spec.durable import Durable
from spec.effects import Apply, Disconnect, Effect, Observe, Send
from spec.election.state import Peer
from spec.quorum import Majority, Sid
from spec.txn import Txn, counter_of, make_zxid, told
from spec.variants import Variant
from spec.zab import disk
from spec.zab.events import (
    Applied,
    Broadcast,
    ClientSync,
    ClientWrite,
    Committed,
    Delivered,
    EpochEstablished,
    Family,
    LearnerGone,
    Receive,
    SyncAnswered,
    Synced,
    Tick,
    Unexpected,
    ZabEvent,
)
from spec.zab.packets import (
    Ack,
    AckEpoch,
    Commit,
    FollowerInfo,
    Inform,
    LeaderInfo,
    Ping,
    Proposal,
    QuorumPacket,
    Request,
    Sync,
    SyncRequest,
    UpToDate,
    name_of,
)
from spec.zab.state import (
    Append,
    Done,
    Handler,
    Leader,
    LeaderPhase,
    Outstanding,
    Stage,
    ZabRules,
    logged_and_queued,
    with_sid,
)
from spec.zab.synchronisation import history_of, plan_for, stream

FOLLOWERINFO, ACKEPOCH, NEWLEADER_ACK, BROADCAST = LeaderPhase
Effects = tuple[Effect, ...]


def begin(peer: Peer, rules: ZabRules) -> Done:
    """It has decided that it leads: it waits for learners, and counts itself (`Leader.lead`)."""
    leader = Leader(FOLLOWERINFO, peer.durable.accepted_epoch + 1, (peer.sid,))
    return _choose_epoch(peer, leader, rules)


def step(peer: Peer, leader: Leader, event: ZabEvent, rules: ZabRules) -> Done | None:
    """One event of a leader; None when it is impossible in this state."""
    match event:
        case Receive(source=source, packet=packet):
            return _receive(peer, leader, source, packet, rules)
        case LearnerGone(learner=learner):
            return Done(peer.durable, _without(leader, learner))
        case Synced():
            return _synced(peer, leader, rules)
        case Applied() if leader.commits:
            return _apply(peer, leader, leader.commits[0])
        case ClientWrite(value=value) if leader.phase is BROADCAST:
            return _propose(peer, leader, value, rules)
        case ClientSync() if leader.phase is BROADCAST:
            # Only a learner's sync waits for what is outstanding (LeaderZooKeeperServer: matchSyncs is false).
            return Done(peer.durable, leader, (Observe(SyncAnswered(peer.sid, _applied(leader))),))
        case Tick() if leader.phase is BROADCAST and leader.handlers:
            ready = (handler for handler in leader.handlers if handler.stage >= Stage.SYNCING)
            return Done(peer.durable, leader, tuple(Send(handler.sid, Ping()) for handler in ready))
    return None


def shut_down(durable: Durable, leader: Leader) -> Durable:
    """The disk when a leader has given up: its sync thread ends what it has begun."""
    return disk.flushed(durable, leader.queue)


def is_quorum(peer: Peer, servers: Iterable[Sid], rules: ZabRules) -> bool:
    """Whether these are a quorum of the leader's view (`SyncedLearnerTracker.hasAllQuorums`)."""
    counted, voters = set(servers), peer.view.voters
    if Variant.OBSERVER_COUNTED in rules.variants and isinstance(peer.view.quorums, Majority):
        return 2 * len(counted) > len(voters)
    if Variant.HALF_IS_A_QUORUM in rules.variants and 2 * len(counted & voters) >= len(voters):
        return True
    return peer.view.contains_quorum(counted)


def _count(peer: Peer, counted: tuple[Sid, ...], sid: Sid, rules: ZabRules) -> tuple[Sid, ...]:
    """`isParticipant`: only a voter of the leader's view is counted."""
    counts = peer.view.is_voter(sid) or Variant.OBSERVER_COUNTED in rules.variants
    return with_sid(counted, sid) if counts else counted


# Packets, by the stage of the handler that reads them.


def _receive(peer: Peer, leader: Leader, source: Sid, packet: QuorumPacket, rules: ZabRules) -> Done | None:
    handler = leader.handler(source)
    stage = None if handler is None else handler.stage
    match stage, packet:
        case None, FollowerInfo(accepted_epoch=epoch, observer=observer):
            return _follower_info(peer, leader, Handler(source, Stage.REGISTERED, observer), epoch, rules)
        case (Stage.REGISTERED, _) | (Stage.EPOCH_ACKED, _):
            return None
        case Stage.EPOCH_SENT, AckEpoch():
            return _ack_epoch(peer, leader, source, packet, rules)
        case Stage.SYNCING, Ack(zxid=zxid):
            return _first_ack(peer, leader, source, zxid, rules)
        case (Stage.SYNCED | Stage.SERVING, _) if leader.phase is not BROADCAST:
            return None  # the handler is in waitForStartup
        case Stage.SYNCED | Stage.SERVING, Ack(zxid=zxid):
            return _ack(peer, leader, source, zxid, rules)
        case Stage.SYNCED | Stage.SERVING, Request(value=value):
            return _propose(peer, leader, value, rules)
        case Stage.SYNCED | Stage.SERVING, SyncRequest():
            return _sync_requested(peer, leader, source)
        case Stage.SYNCED | Stage.SERVING, Ping():
            return Done(peer.durable, leader)
        case Stage.SYNCED | Stage.SERVING, _:
            report = _unexpected(peer, Family.STATE, f"{name_of(packet)} of server {source}, which serves")
            return Done(peer.durable, leader, (report,))
    where = "before FOLLOWERINFO" if stage is None else f"by a handler in {stage.name}"
    report = _unexpected(peer, Family.STATE, f"{name_of(packet)} of server {source}, read {where}")
    return Done(peer.durable, _without(leader, source), (report, Disconnect(source)))


def _follower_info(peer: Peer, leader: Leader, handler: Handler, accepted: int, rules: ZabRules) -> Done:
    """`getEpochToPropose`: before the epoch is chosen it is lifted above what this learner accepted."""
    after = _with_handler(leader, handler)
    if leader.phase is not FOLLOWERINFO:
        return _send_epoch(peer, after)
    counted = _count(peer, leader.counted, handler.sid, rules)
    return _choose_epoch(peer, replace(after, epoch=max(leader.epoch, accepted + 1), counted=counted), rules)


def _choose_epoch(peer: Peer, leader: Leader, rules: ZabRules) -> Done:
    """With a quorum the epoch is chosen, and accepted by the leader itself before anybody is told."""
    if not is_quorum(peer, leader.counted, rules):
        return Done(peer.durable, leader)
    durable = replace(peer.durable, accepted_epoch=leader.epoch)
    chosen = _send_epoch(replace(peer, durable=durable), replace(leader, phase=ACKEPOCH, counted=(peer.sid,)))
    assert isinstance(chosen.state, Leader)
    after = _establish(replace(peer, durable=durable), chosen.state, rules)
    return replace(after, effects=(disk.epochs_written(durable), *chosen.effects, *after.effects))


def _send_epoch(peer: Peer, leader: Leader) -> Done:
    """LEADERINFO to every learner that waits for it."""
    waiting = [handler.sid for handler in leader.handlers if handler.stage is Stage.REGISTERED]
    sent = tuple(Send(sid, LeaderInfo(leader.epoch)) for sid in waiting)
    return Done(peer.durable, _staged(leader, waiting, Stage.EPOCH_SENT), sent)


def _ack_epoch(peer: Peer, leader: Leader, source: Sid, ack: AckEpoch, rules: ZabRules) -> Done:
    """`waitForEpochAck`: a follower that is ahead of the leader is sent away; -1 is not counted."""
    ahead = (ack.current_epoch, ack.last_zxid) > (peer.durable.current_epoch, peer.last_zxid)
    if leader.phase is ACKEPOCH and ack.current_epoch != -1:
        if ahead:
            return Done(peer.durable, _without(leader, source), (Disconnect(source),))
        leader = replace(leader, counted=_count(peer, leader.counted, source, rules))
    waiting = tuple(
        replace(each, stage=Stage.EPOCH_ACKED, last_zxid=ack.last_zxid) if each.sid == source else each
        for each in leader.handlers
    )
    return _establish(peer, replace(leader, handlers=waiting), rules)


def _establish(peer: Peer, leader: Leader, rules: ZabRules) -> Done:
    """With a quorum of ACKEPOCH the leader enters its epoch, and synchronises whoever waits for that."""
    durable = peer.durable
    effects: Effects = ()
    if leader.phase is ACKEPOCH:
        if not is_quorum(peer, leader.counted, rules):
            return Done(durable, leader)
        durable = replace(durable, current_epoch=leader.epoch)
        leader = replace(leader, phase=NEWLEADER_ACK, counted=(peer.sid,))
        established = EpochEstablished(peer.sid, leader.epoch, history_of(durable, leader, peer.tree).applied)
        effects = (disk.epochs_written(durable), Observe(established))
    return _followed_by(effects, _synchronise(replace(peer, durable=durable), leader, rules))


def _synchronise(peer: Peer, leader: Leader, rules: ZabRules) -> Done:
    """`syncFollower` for every learner whose ACKEPOCH was accepted; then the leader may have its quorum.

    What a learner has acknowledged and is now told to drop, it has not acknowledged. 3.9.4 lets that count
    (`acks-survive-truncation`).
    """
    history = history_of(peer.durable, leader, peer.tree, rules.variants)
    sent: list[Effect] = []
    for handler in [each for each in leader.handlers if each.stage is Stage.EPOCH_ACKED]:
        plan = plan_for(history, handler.last_zxid, rules.variants)
        packets = stream(plan, history, leader, peer.durable, observer=handler.observer)
        sent += [Send(handler.sid, packet) for packet in packets]
        leader = _staged(leader, [handler.sid], Stage.SYNCING)
        if Variant.ACKS_SURVIVE_TRUNCATION not in rules.variants:
            leader = _without_acks(leader, handler.sid, beyond=plan.seen)
    return _followed_by(tuple(sent), _start_if_acknowledged(peer, leader, rules))


def _without_acks(leader: Leader, sid: Sid, beyond: int) -> Leader:
    """The acknowledgements of a learner for outstanding proposals beyond a zxid are void."""
    outstanding = tuple(
        replace(each, acks=tuple(acked for acked in each.acks if acked != sid)) if each.zxid > beyond else each
        for each in leader.outstanding
    )
    return replace(leader, outstanding=outstanding)


def _first_ack(peer: Peer, leader: Leader, source: Sid, zxid: int, rules: ZabRules) -> Done:
    """`waitForNewLeaderAck`: the first ACK must be that of NEWLEADER; another one is not counted, and never again.

    Once the quorum is complete, it is not looked at.
    """
    after = _staged(leader, [source], Stage.SYNCED)
    if leader.phase is BROADCAST:
        return Done(peer.durable, after, (Send(source, UpToDate()),))
    if zxid != make_zxid(leader.epoch):
        what = f"ACK {told(zxid)} of server {source} before the ACK of NEWLEADER"
        return Done(peer.durable, after, (_unexpected(peer, Family.ACK, what),))
    counted = _count(peer, after.counted, source, rules)
    return _start_if_acknowledged(peer, replace(after, counted=counted), rules)


def _start_if_acknowledged(peer: Peer, leader: Leader, rules: ZabRules) -> Done:
    """`startZkServer`: with a quorum the leader serves, and everything it began with is committed."""
    if leader.phase is not NEWLEADER_ACK or not is_quorum(peer, leader.counted, rules):
        return Done(peer.durable, leader)
    initial = history_of(peer.durable, leader, peer.tree).applied
    delivered = (Observe(Delivered(peer.sid, leader.epoch, initial)),) if initial else ()
    sent = tuple(Send(each.sid, UpToDate()) for each in leader.handlers if each.stage is Stage.SYNCED)
    serving = replace(leader, phase=BROADCAST, counted=(), committed=make_zxid(leader.epoch))
    return Done(peer.durable, serving, (*delivered, *sent))


# Broadcast.


def _propose(peer: Peer, leader: Leader, value: object, rules: ZabRules) -> Done:
    """`propose`: the next zxid, to every follower that is forwarded to, and to the leader's own log."""
    last = leader.outstanding[-1].zxid if leader.outstanding else leader.committed
    txn = Txn(last + 1, value)
    sent = tuple(
        Send(each.sid, Proposal(txn)) for each in leader.handlers if each.stage >= Stage.SYNCING and not each.observer
    )
    queue, asked = disk.asked(leader.queue, (Append(txn),))
    after = replace(leader, outstanding=(*leader.outstanding, Outstanding(txn.zxid)), queue=queue)
    effects: Effects = (Observe(Broadcast(peer.sid, leader.epoch, txn)), *sent, *asked)
    return _with_disk(peer, after, effects, rules)


def _ack(peer: Peer, leader: Leader, source: Sid, zxid: int, rules: ZabRules) -> Done:
    """`processAck`: of UPTODATE, of something committed already, or of an outstanding proposal."""
    if counter_of(zxid) == 0:
        return Done(peer.durable, _staged(leader, [source], Stage.SERVING))
    if not leader.outstanding or zxid <= leader.committed:
        return Done(peer.durable, leader)
    proposal = next((each for each in leader.outstanding if each.zxid == zxid), None)
    if proposal is None:
        report = _unexpected(peer, Family.ACK, f"ACK {told(zxid)} of server {source}, which was not proposed")
        return Done(peer.durable, leader, (report,))
    acked = replace(proposal, acks=_count(peer, proposal.acks, source, rules))
    outstanding = tuple(acked if each.zxid == zxid else each for each in leader.outstanding)
    return _try_to_commit(peer, replace(leader, outstanding=outstanding), acked, rules)


def _try_to_commit(peer: Peer, leader: Leader, proposal: Outstanding, rules: ZabRules) -> Done:
    """`tryToCommit`: in order, and with a quorum; then COMMIT to followers, INFORM to observers, and apply."""
    early = Variant.COMMIT_BEFORE_QUORUM in rules.variants
    first = leader.outstanding[0] is proposal
    if not first or not (early or is_quorum(peer, proposal.acks, rules)):
        return Done(peer.durable, leader)
    zxid = proposal.zxid
    txn = next(txn for txn in logged_and_queued(peer.durable, leader.queue) if txn.zxid == zxid)
    sent: list[Effect] = [Observe(Committed(peer.sid, leader.epoch, txn))]
    for handler in leader.handlers:
        if handler.stage >= Stage.SYNCING:
            sent.append(Send(handler.sid, Inform(txn) if handler.observer else Commit(zxid)))
    waiting = [sid for after, sid in leader.syncs if after == zxid]
    after = replace(
        leader,
        outstanding=leader.outstanding[1:],
        committed=zxid,
        commits=(*leader.commits, zxid),
        syncs=tuple(pair for pair in leader.syncs if pair[0] != zxid),
    )
    effects = (*sent, *(Send(sid, Sync()) for sid in waiting))
    if rules.asynchronous_commits:
        return Done(peer.durable, after, effects)
    return _followed_by(effects, _apply(peer, after, zxid))


def _apply(peer: Peer, leader: Leader, zxid: int) -> Done:
    """`FinalRequestProcessor`, and `ToBeAppliedRequestProcessor` before it."""
    txns = tuple(txn for txn in logged_and_queued(peer.durable, leader.queue) if txn.zxid == zxid)
    after = replace(leader, commits=leader.commits[1:])
    return Done(peer.durable, after, (Apply(zxid), Observe(Delivered(peer.sid, leader.epoch, txns))))


def _sync_requested(peer: Peer, leader: Leader, source: Sid) -> Done:
    """`processSync`: answered at once, or behind the COMMIT of what was proposed last."""
    if leader.outstanding:
        return Done(peer.durable, replace(leader, syncs=(*leader.syncs, (leader.outstanding[-1].zxid, source))))
    return Done(peer.durable, leader, (Send(source, Sync()),))


def _applied(leader: Leader) -> int:
    """The last zxid that the leader has applied."""
    return leader.commits[0] - 1 if leader.commits else leader.committed


# The disk.


def _with_disk(peer: Peer, leader: Leader, effects: Effects, rules: ZabRules) -> Done:
    """With a synchronous disk everything that was asked for ends now."""
    done = Done(peer.durable, leader, effects)
    while not rules.asynchronous_disk and isinstance(done.state, Leader) and done.state.queue:
        ended = _synced(replace(peer, durable=done.durable), done.state, rules)
        assert ended is not None
        done = _followed_by(done.effects, ended)
    return done


def _synced(peer: Peer, leader: Leader, rules: ZabRules) -> Done | None:
    """The leader has logged a proposal itself: its own acknowledgement (`AckRequestProcessor`)."""
    written = disk.next_written(peer.durable, leader.queue, rules)
    if written is None:
        return None
    assert isinstance(written.operation, Append)
    now = replace(peer, durable=written.durable)
    return _ack(now, replace(leader, queue=written.queue), peer.sid, written.operation.txn.zxid, rules)


# Handlers.


def _with_handler(leader: Leader, handler: Handler) -> Leader:
    return replace(leader, handlers=tuple(sorted((*leader.handlers, handler), key=lambda each: each.sid)))


def _without(leader: Leader, sid: Sid) -> Leader:
    """`removeLearnerHandler`: what was counted of it stays counted."""
    return replace(
        leader,
        handlers=tuple(each for each in leader.handlers if each.sid != sid),
        syncs=tuple(pair for pair in leader.syncs if pair[1] != sid),
    )


def _staged(leader: Leader, sids: Iterable[Sid], stage: Stage) -> Leader:
    chosen = set(sids)
    handlers = tuple(replace(h, stage=stage, last_zxid=0) if h.sid in chosen else h for h in leader.handlers)
    return replace(leader, handlers=handlers)


def _followed_by(effects: Effects, done: Done) -> Done:
    return replace(done, effects=(*effects, *done.effects))


def _unexpected(peer: Peer, family: Family, what: str) -> Observe:
    return Observe(Unexpected(peer.sid, family, what))
