"""A leader, from its election to the loss of its quorum.

    FOLLOWERINFO    a quorum must report its accepted epochs; the new epoch is above all of them
    ACKEPOCH        a quorum must accept it, none of them ahead of the leader; then the epoch is established
    NEWLEADER_ACK   learners are brought up to date; a quorum must acknowledge NEWLEADER
    BROADCAST       requests are proposed, acknowledgements counted, commits sent in order

Rules of this module:

- A quorum is one of the leader's own view, and only voters of that view are counted. Any learner is served. A later
  view that the leader has seen last needs its quorum in every phase too, since it may be committed, and becomes active
  when the leader serves. In 3.9.5 the epoch needs a quorum of the active view only (`epoch-of-active-view`).
- `step` returns None for an event that cannot happen in this state, for example a packet whose handler waits for the
  leader. A handler that fails ends its own connection; the leader continues.
- currentEpoch is written in the step that completes the quorum of ACKEPOCH. The model omits the run where a handler is
  faster, and its learner acknowledges NEWLEADER before the leader has written that file.
- A leader whose epoch has no zxid left (`spec.txn.is_last`) gives up at the next request, which nobody answers.
- The threads of the handlers take no time: a handler acts in the same step as the leader that it waited for. A slow
  handler is modelled as a learner whose packet arrives late.

Source: `Leader.lead`, `getEpochToPropose`, `waitForEpochAck`, `waitForNewLeaderAck`, `startZkServer`, `propose`,
`processAck`, `tryToCommit`; `LearnerHandler.run`.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from spec.durable import Snapshot
from spec.effects import Apply, Disconnect, Effect, Effects, Observe, Send
from spec.election.state import Peer
from spec.quorum import Sid, View
from spec.txn import format_zxid, make_zxid
from spec.variants import Variant
from spec.zab import disk, reconfiguration, zxid_layout
from spec.zab.events import (
    Delivered,
    EpochEstablished,
    LearnerGone,
    MessageKind,
    Receive,
    ViewCommitted,
    ZabEvent,
    unexpected,
)
from spec.zab.leader_broadcast import ServingLeader, count, has_all_quorums, held_packets, staged
from spec.zab.leader_sync import history_of, plan_for, stream
from spec.zab.packets import (
    Ack,
    AckEpoch,
    FollowerInfo,
    LeaderInfo,
    QuorumPacket,
    UpToDate,
    WideFollowerInfo,
    WideLeaderInfo,
    name_of,
)
from spec.zab.registration import refusal
from spec.zab.state import Handler, Leader, LeaderPhase, Stage, ZabResult, ZabRules

FOLLOWERINFO, ACKEPOCH, NEWLEADER_ACK, BROADCAST = LeaderPhase


def begin(peer: Peer, rules: ZabRules) -> ZabResult:
    """Start to lead: wait for learners, and count the leader itself (`Leader.lead`).

    `ZooKeeperServer.loadData` then takes a snapshot of its tree, that is, of the whole log unless the tree lags behind.
    It matters where a TRUNC keeps it (ZOOKEEPER-1549).
    """
    if Variant.SNAPSHOT_OF_UNCOMMITTED in rules.variants and peer.durable.log:
        snapshot = Snapshot(peer.last_zxid, tuple(txn for txn in peer.durable.txns if txn.zxid <= peer.last_zxid))
        peer = replace(peer, durable=replace(peer.durable, dirty=snapshot))
    leader = Leader(FOLLOWERINFO, peer.durable.accepted_epoch + 1, (peer.sid,))
    return _choose_epoch(peer, leader, rules)


def is_supported(peer: Peer, leader: Leader) -> bool:
    """Whether the synchronised learners and the leader itself are a quorum; if not, the leader must give up.

    Before it serves, it waits for learners for up to initLimit, and the answer is always true.

    Source: `Leader.lead`, the loop behind `startZkServer`.
    """
    if leader.phase is not BROADCAST:
        return True
    synced = {handler.sid for handler in leader.handlers if handler.stage >= Stage.SYNCED}
    return peer.has_all_quorums(synced | {peer.sid})


def step(peer: Peer, leader: Leader, event: ZabEvent, rules: ZabRules) -> ZabResult | None:
    """Handle one event of a leader; None if it is impossible in this state."""
    if leader.phase is BROADCAST:
        serving = ServingLeader(peer, leader, rules)
        effects = serving.handle(event)
        if effects is not None:
            return serving.result(effects)
    match event:
        case Receive(source=source, packet=packet):
            return _receive(peer, leader, source, packet, rules)
        case LearnerGone(learner=learner):
            return ZabResult(peer.durable, _without(leader, learner))
    return None


# Packets, by the stage of the handler that reads them.


def _receive(peer: Peer, leader: Leader, source: Sid, packet: QuorumPacket, rules: ZabRules) -> ZabResult | None:
    handler = leader.handler(source)
    stage = None if handler is None else handler.stage
    match stage, packet:
        case None, FollowerInfo(accepted_epoch=epoch, observer=observer, config_version=version):
            if refusal(peer, source, epoch, version) is not None:
                return ZabResult(peer.durable, leader, (Disconnect(source),))
            knows_wide = isinstance(packet, WideFollowerInfo)
            handler = Handler(source, Stage.REGISTERED, observer, knows_wide=knows_wide)
            return _follower_info(peer, leader, handler, epoch, rules)
        case (Stage.REGISTERED, _) | (Stage.EPOCH_ACKED, _):
            return None
        case ((Stage.SYNCED | Stage.SERVING), _):
            return None  # the handler is in waitForStartup
        case Stage.EPOCH_SENT, AckEpoch():
            return _ack_epoch(peer, leader, source, packet, rules)
        case Stage.SYNCING, Ack(zxid=zxid):
            return _first_ack(peer, leader, source, zxid, rules)
    where = "before FOLLOWERINFO" if stage is None else f"by a handler in {stage.name}"
    report = unexpected(peer.sid, MessageKind.STATE, f"{name_of(packet)} of server {source}, read {where}")
    return ZabResult(peer.durable, _without(leader, source), (report, Disconnect(source)))


def _follower_info(peer: Peer, leader: Leader, handler: Handler, accepted: int, rules: ZabRules) -> ZabResult:
    """`getEpochToPropose`: the new epoch is above the acceptedEpoch of every counted server.

    ZooKeeper also raises it above that of a server that does not vote, which lets any stranger use up all epochs. It
    is not needed: an epoch is unique because a quorum of voters accepts it.
    """
    after = _with_handler(leader, handler)
    if leader.phase is not FOLLOWERINFO:
        return _send_epoch(peer, after)
    servers = count(reconfiguration.views_of_epoch(peer, rules), leader.counted, handler.sid, _for_epoch(rules))
    epoch = max(leader.epoch, accepted + 1) if handler.sid in servers else leader.epoch
    return _choose_epoch(peer, replace(after, epoch=epoch, counted=servers), rules)


def _choose_epoch(peer: Peer, leader: Leader, rules: ZabRules) -> ZabResult:
    """With a quorum, choose the epoch; the leader itself accepts it before it sends the epoch to any learner.

    A view without a version then gets its first one.
    """
    if not has_all_quorums(reconfiguration.views_of_epoch(peer, rules), leader.counted, _for_epoch(rules)):
        return ZabResult(peer.durable, leader)
    peer, configured = reconfiguration.see(peer, reconfiguration.first_version(peer, leader.epoch, rules))
    layout = zxid_layout.of_leader(peer.durable.layout, leader)
    durable = replace(peer.durable, accepted_epoch=leader.epoch, layout=layout)
    chosen = _send_epoch(replace(peer, durable=durable), replace(leader, phase=ACKEPOCH, counted=(peer.sid,)))
    assert isinstance(chosen.state, Leader)
    after = _establish(replace(peer, durable=durable), chosen.state, rules)
    return replace(after, effects=(disk.epochs_written(durable), *configured, *chosen.effects, *after.effects))


def _for_epoch(rules: ZabRules) -> ZabRules:
    """ZOOKEEPER-2959: up to 3.4.12 and 3.5.3 any learner counts for an epoch, and a quorum is a number of servers."""
    if Variant.PROMISES_OF_OBSERVERS not in rules.variants:
        return rules
    return replace(rules, variants=rules.variants | {Variant.OBSERVER_COUNTED})


def _send_epoch(peer: Peer, leader: Leader) -> ZabResult:
    """Send LEADERINFO to the learners that wait for it, and refuse those that cannot read the zxids of the epoch."""
    waiting = [handler for handler in leader.handlers if handler.stage is Stage.REGISTERED]
    switch = 0 if peer.durable.layout is None else peer.durable.layout.switch
    refused = [handler.sid for handler in waiting if switch and not handler.knows_wide]
    told = [handler.sid for handler in waiting if handler.sid not in refused]
    info = WideLeaderInfo(leader.epoch, switch) if switch else LeaderInfo(leader.epoch)
    for sid in refused:
        leader = _without(leader, sid)
    packets: Effects = (*(Send(sid, info) for sid in told), *(Disconnect(sid) for sid in refused))
    return ZabResult(peer.durable, _staged(leader, told, Stage.EPOCH_SENT), packets)


def _ack_epoch(peer: Peer, leader: Leader, source: Sid, ack: AckEpoch, rules: ZabRules) -> ZabResult:
    """`waitForEpochAck`: a follower ahead of the leader is disconnected; an ACKEPOCH with -1 is not counted."""
    ahead = (ack.current_epoch, ack.last_zxid) > (peer.durable.current_epoch, peer.last_zxid)
    if leader.phase is ACKEPOCH and ack.current_epoch != -1:
        if ahead:
            return ZabResult(peer.durable, _without(leader, source), (Disconnect(source),))
        servers = count(reconfiguration.views_of_epoch(peer, rules), leader.counted, source, _for_epoch(rules))
        leader = replace(leader, counted=servers)
    waiting = tuple(
        replace(handler, stage=Stage.EPOCH_ACKED, last_zxid=ack.last_zxid) if handler.sid == source else handler
        for handler in leader.handlers
    )
    return _establish(peer, replace(leader, handlers=waiting), rules)


def _establish(peer: Peer, leader: Leader, rules: ZabRules) -> ZabResult:
    """With a quorum of ACKEPOCH, enter the epoch; then synchronise the learners that wait for it."""
    durable = peer.durable
    effects: Effects = ()
    if leader.phase is ACKEPOCH:
        if not has_all_quorums(reconfiguration.views_of_epoch(peer, rules), leader.counted, _for_epoch(rules)):
            return ZabResult(durable, leader)
        durable = replace(durable, current_epoch=leader.epoch)
        leader = replace(leader, phase=NEWLEADER_ACK, counted=(peer.sid,))
        established = EpochEstablished(peer.sid, leader.epoch, history_of(durable, leader, peer.tree).applied)
        effects = (disk.epochs_written(durable), Observe(established))
    return _synchronise(replace(peer, durable=durable), leader, rules).after(effects)


def _synchronise(peer: Peer, leader: Leader, rules: ZabRules) -> ZabResult:
    """`syncFollower` for every learner whose ACKEPOCH was accepted; then the leader may have its quorum.

    An acknowledgement becomes void once its learner must drop the transaction. 3.9.4 still counts it
    (`acks-survive-truncation`).
    """
    history = history_of(peer.durable, leader, peer.tree, rules.variants, peer.unlisted)
    effects: list[Effect] = []
    for handler in [candidate for candidate in leader.handlers if candidate.stage is Stage.EPOCH_ACKED]:
        plan = plan_for(history, handler.last_zxid, rules.variants)
        view = _view_of_newleader(peer, leader, rules)
        packets = stream(plan, history, leader, peer.durable, observer=handler.observer, view=view)
        effects += [Send(handler.sid, packet) for packet in packets]
        leader = _staged(leader, [handler.sid], Stage.SYNCING)
        if Variant.ACKS_SURVIVE_TRUNCATION not in rules.variants:
            leader = _without_acks(leader, handler.sid, beyond=plan.seen)
    return _start_if_acknowledged(peer, leader, rules).after(tuple(effects))


def _view_of_newleader(peer: Peer, leader: Leader, rules: ZabRules) -> View | None:
    """The view of NEWLEADER: the one that the leader has seen last, so that a reconfiguration is completed.

    A leader that serves sends its active view: the learner may lack it, and one that is not committed yet follows by
    its own proposal. 3.9.5 sends that one (`pending-view-activated`).
    """
    committed = leader.serves and Variant.PENDING_VIEW_ACTIVATED not in rules.variants
    view = peer.view if committed else peer.latest
    return view if view.version else None


def _without_acks(leader: Leader, sid: Sid, beyond: int) -> Leader:
    """The leader without a learner's acknowledgements for outstanding proposals beyond a zxid."""
    outstanding = tuple(
        replace(proposal, acks=tuple(acked for acked in proposal.acks if acked != sid))
        if proposal.zxid > beyond
        else proposal
        for proposal in leader.outstanding
    )
    return replace(leader, outstanding=outstanding)


def _first_ack(peer: Peer, leader: Leader, source: Sid, zxid: int, rules: ZabRules) -> ZabResult:
    """`waitForNewLeaderAck`: the first ACK must be that of NEWLEADER; after any other the learner is never counted.

    Once the quorum is complete, the zxid is not checked; UPTODATE follows, and then the held commits.
    """
    handler = leader.handler(source)
    after = _staged(leader, [source], Stage.SYNCED)
    if leader.phase is BROADCAST:
        packets = () if handler is None else held_packets(handler)
        return ZabResult(peer.durable, after, tuple(Send(source, packet) for packet in (UpToDate(), *packets)))
    if zxid != make_zxid(leader.epoch, 0, peer.durable.layout):
        problem = f"ACK {format_zxid(zxid)} of server {source} before the ACK of NEWLEADER"
        return ZabResult(peer.durable, after, (unexpected(peer.sid, MessageKind.ACK, problem),))
    servers = count(reconfiguration.views_of_leader(peer, rules), after.counted, source, rules)
    return _start_if_acknowledged(peer, replace(after, counted=servers), rules)


def _start_if_acknowledged(peer: Peer, leader: Leader, rules: ZabRules) -> ZabResult:
    """`startZkServer`: with a quorum the leader serves, and all transactions that it began with are committed.

    A view that it has seen last becomes active: its reconfiguration may be committed (ZOOKEEPER-1324).
    """
    if leader.phase is not NEWLEADER_ACK or not _is_acknowledged(peer, leader, rules):
        return ZabResult(peer.durable, leader)
    successor: Sid | None = None
    configured: Effects = ()
    view = peer.proposed
    if view is not None and Variant.LAST_SEEN_IGNORED not in rules.variants:
        designated = reconfiguration.designated_leader(peer, view, leader.counted, (), rules)
        successor = None if designated == peer.sid else designated
        peer, effects = reconfiguration.activate(peer, view, rules)
        configured = (*effects, Observe(ViewCommitted(peer.sid, leader.epoch, view)))
    history = history_of(peer.durable, leader, peer.tree)
    delivered = (Observe(Delivered(peer.sid, leader.epoch, history.applied)),) if history.applied else ()
    packets = tuple(Send(handler.sid, UpToDate()) for handler in leader.handlers if handler.stage is Stage.SYNCED)
    committed = make_zxid(leader.epoch, 0, peer.durable.layout)
    serving = replace(leader, phase=BROADCAST, counted=(), committed=committed, successor=successor)
    return ZabResult(peer.durable, serving, (*configured, Apply(history.last_processed), *delivered, *packets))


def _is_acknowledged(peer: Peer, leader: Leader, rules: ZabRules) -> bool:
    return has_all_quorums(reconfiguration.views_of_leader(peer, rules), leader.counted, rules)


# Handlers.


def _staged(leader: Leader, sids: Iterable[Sid], stage: Stage) -> Leader:
    return replace(leader, handlers=staged(leader.handlers, sids, stage))


def _with_handler(leader: Leader, handler: Handler) -> Leader:
    return replace(leader, handlers=tuple(sorted((*leader.handlers, handler), key=lambda each: each.sid)))


def _without(leader: Leader, sid: Sid) -> Leader:
    """`removeLearnerHandler`: the learner's earlier acknowledgements stay counted."""
    return replace(
        leader,
        handlers=tuple(handler for handler in leader.handlers if handler.sid != sid),
        syncs=tuple(pair for pair in leader.syncs if pair[1] != sid),
    )
