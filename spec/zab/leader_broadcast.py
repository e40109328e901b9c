"""A serving leader and its disk: requests are proposed, acknowledgements counted, commits sent in order.

Rules of this module:

- Only voters of the leader's own view are counted, and a quorum is one of that view. A reconfiguration, and every
  proposal after it until it is committed, needs a quorum of the new view too.
- With the commit of a reconfiguration its view becomes active. A leader without a vote in it commits nothing more.
- A transaction is committed when a quorum has acknowledged it and all transactions before it are committed.

Source: `Leader.propose`, `processAck`, `tryToCommit`, `commitAndActivate`, `processSync`; `AckRequestProcessor`,
`Leader.ToBeAppliedRequestProcessor`.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from spec.effects import Effect, Effects, Observe, Send
from spec.election.state import Peer
from spec.quorum import Majority, MembershipChange, Reconfiguration, Sid, View
from spec.txn import Txn, counter_of, format_zxid
from spec.variants import Variant
from spec.zab import disk, reconfiguration
from spec.zab.events import Broadcast, Committed, MessageKind, ViewCommitted, unexpected
from spec.zab.packets import (
    Commit,
    CommitAndActivate,
    Inform,
    InformAndActivate,
    Proposal,
    QuorumPacket,
    QuorumSync,
)
from spec.zab.reconfiguration import Refused
from spec.zab.state import (
    Append,
    Handler,
    HeldCommits,
    Leader,
    Outstanding,
    Stage,
    ZabResult,
    ZabRules,
    logged,
    with_sid,
)


def is_quorum(view: View, servers: Iterable[Sid], rules: ZabRules) -> bool:
    """Whether these are a quorum of a view (`QuorumVerifier.containsQuorum`)."""
    counted, voters = set(servers), view.voters
    if Variant.OBSERVER_COUNTED in rules.variants and isinstance(view.quorums, Majority):
        return 2 * len(counted) > len(voters)
    if Variant.HALF_IS_A_QUORUM in rules.variants and 2 * len(counted & voters) >= len(voters):
        return True
    return view.contains_quorum(counted)


def has_all_quorums(views: Iterable[View], servers: Iterable[Sid], rules: ZabRules) -> bool:
    """Whether these are a quorum of each view (`SyncedLearnerTracker.hasAllQuorums`)."""
    return all(is_quorum(view, servers, rules) for view in views)


def count(views: Iterable[View], counted: tuple[Sid, ...], sid: Sid, rules: ZabRules) -> tuple[Sid, ...]:
    """`isParticipant` and `SyncedLearnerTracker.addAck`: only a voter of one of the views is counted."""
    counts = any(view.is_voter(sid) for view in views) or Variant.OBSERVER_COUNTED in rules.variants
    return with_sid(counted, sid) if counts else counted


# Requests and acknowledgements.


def propose(peer: Peer, leader: Leader, value: object, rules: ZabRules) -> ZabResult:
    """`propose`: send the next zxid to every follower from stage SYNCING on, and append it to the leader's own log.

    A reconfiguration is a `MembershipChange`, or a `Reconfiguration` whose view has this zxid as its version. One that
    the leader refuses changes nothing. The new view is seen, and its file written, before any server gets the proposal.
    """
    zxid = leader.last_proposed + 1
    seen: Effects = ()
    if isinstance(value, MembershipChange | Reconfiguration):
        value = reconfiguration.proposed(peer, leader, value, zxid, rules)
        if isinstance(value, Refused):
            return ZabResult(peer.durable, leader)
        peer, seen = reconfiguration.see(peer, value.view)
    txn = Txn(zxid, value)
    sent = tuple(
        Send(handler.sid, Proposal(txn))
        for handler in leader.handlers
        if handler.stage >= Stage.SYNCING and not handler.observer
    )
    queue, asked = disk.request(leader.queue, (Append(txn),))
    proposal = Outstanding(zxid, views=reconfiguration.views_of_proposal(peer, rules))
    after = replace(leader, outstanding=(*leader.outstanding, proposal), queue=queue)
    effects: Effects = (*seen, Observe(Broadcast(peer.sid, leader.epoch, txn)), *sent, *asked)
    return disk.settle(peer, ZabResult(peer.durable, after, effects), synced, rules)


def ack(peer: Peer, leader: Leader, source: Sid, zxid: int, rules: ZabRules) -> ZabResult:
    """`processAck`: the ACK of UPTODATE, of a committed transaction, or of an outstanding proposal."""
    if counter_of(zxid) == 0:
        return ZabResult(peer.durable, staged(leader, [source], Stage.SERVING))
    if leader.successor is not None or not leader.outstanding or zxid <= leader.committed:
        return ZabResult(peer.durable, leader)
    place = next((place for place, each in enumerate(leader.outstanding) if each.zxid == zxid), None)
    if place is None:
        report = unexpected(
            peer.sid, MessageKind.ACK, f"ACK {format_zxid(zxid)} of server {source}, which was not proposed"
        )
        return ZabResult(peer.durable, leader, (report,))
    proposal = leader.outstanding[place]
    acked = replace(proposal, acks=count(proposal.views or (peer.view,), proposal.acks, source, rules))
    outstanding = (*leader.outstanding[:place], acked, *leader.outstanding[place + 1 :])
    return _try_to_commit(peer, replace(leader, outstanding=outstanding), acked, rules)


def _try_to_commit(peer: Peer, leader: Leader, proposal: Outstanding, rules: ZabRules) -> ZabResult:
    """`tryToCommit`: in order, and with a quorum; then send COMMIT to followers and INFORM to observers, and apply.

    The view of a reconfiguration becomes active first. Later proposals may then have their quorums already.
    """
    early = Variant.COMMIT_BEFORE_QUORUM in rules.variants
    first = leader.outstanding[0] is proposal
    if not first or not (early or has_all_quorums(proposal.views or (peer.view,), proposal.acks, rules)):
        return ZabResult(peer.durable, leader)
    zxid = proposal.zxid
    txn = logged(peer.durable, leader.queue, zxid)
    assert txn is not None  # it is outstanding
    sent: list[Effect] = [Observe(Committed(peer.sid, leader.epoch, txn))]
    designated: Sid | None = None
    if (view := reconfiguration.view_of(txn)) is not None:
        designated = reconfiguration.designated_leader(peer, view, proposal.acks, leader.outstanding[1:], rules)
        peer, configured = reconfiguration.activate(peer, view, rules)
        sent = [*configured, *sent, Observe(ViewCommitted(peer.sid, leader.epoch, view))]
    handlers, told = tell_learners(leader.handlers, txn, designated, rules)
    waiting = [sid for after, sid in leader.syncs if after == zxid]
    after = replace(
        leader,
        handlers=handlers,
        outstanding=leader.outstanding[1:],
        committed=zxid,
        commits=(*leader.commits, zxid),
        syncs=tuple(pair for pair in leader.syncs if pair[0] != zxid),
        successor=None if designated == peer.sid else designated,
    )
    effects = (*sent, *told, *(Send(sid, QuorumSync()) for sid in waiting))
    done = ZabResult(peer.durable, after) if rules.asynchronous_commits else apply(peer, after, zxid)
    return (done if view is None else _commit_ready(peer, done, rules)).after(effects)


def tell_learners(
    handlers: tuple[Handler, ...], txn: Txn, designated: Sid | None, rules: ZabRules
) -> tuple[tuple[Handler, ...], list[Send]]:
    """The commit of a transaction for all learners: their handlers afterwards, and the packets that are sent now.

    That of a learner before UPTODATE may have to wait (`ZabRules.hold_commits`). `designated` is the leader of the new
    view, for the commit of a reconfiguration.
    """
    to_follower, to_observer = _packets_of_commit(txn, designated)
    sent: list[Send] = []
    for handler in handlers:
        if handler.stage is Stage.SYNCING and not handler.observer and rules.hold_commits:
            holding = _with_held(handler, to_follower)
            handlers = tuple(holding if each is handler else each for each in handlers)
        elif handler.stage >= Stage.SYNCING:
            sent.append(Send(handler.sid, to_observer if handler.observer else to_follower))
    return handlers, sent


def _with_held(handler: Handler, packet: Commit | CommitAndActivate) -> Handler:
    """The handler of a learner with another packet that waits for UPTODATE (`ZabRules.hold_commits`)."""
    if isinstance(packet, CommitAndActivate):
        return replace(handler, held=(*handler.held, packet))
    last = handler.held[-1] if handler.held else None
    if isinstance(last, HeldCommits) and last.last + 1 == packet.zxid:
        return replace(handler, held=(*handler.held[:-1], HeldCommits(last.first, packet.zxid)))
    return replace(handler, held=(*handler.held, HeldCommits(packet.zxid, packet.zxid)))


def held_packets(handler: Handler) -> Iterator[Commit | CommitAndActivate]:
    """The packets that wait for UPTODATE, in their order."""
    for held in handler.held:
        if isinstance(held, HeldCommits):
            yield from map(Commit, range(held.first, held.last + 1))
        else:
            yield held


def _packets_of_commit(txn: Txn, designated: Sid | None) -> tuple[Commit | CommitAndActivate, QuorumPacket]:
    """The packets that tell a follower and an observer of a commit."""
    if designated is None:
        return Commit(txn.zxid), Inform(txn)
    return CommitAndActivate(txn.zxid, designated), InformAndActivate(txn, designated)


def _commit_ready(peer: Peer, done: ZabResult, rules: ZabRules) -> ZabResult:
    """Commit the following proposals that have their quorums (`processAck`, its loop after a reconfiguration)."""
    leader = done.state
    if not isinstance(leader, Leader) or leader.successor is not None or not leader.outstanding:
        return done
    following = _try_to_commit(peer, leader, leader.outstanding[0], rules)
    return done if following.state is leader else following.after(done.effects)


def apply(peer: Peer, leader: Leader, zxid: int) -> ZabResult:
    """`FinalRequestProcessor`, and `ToBeAppliedRequestProcessor` before it."""
    after = replace(leader, commits=leader.commits[1:])
    return ZabResult(peer.durable, after, disk.applied(peer, peer.durable, leader, zxid))


def sync_requested(peer: Peer, leader: Leader, source: Sid) -> ZabResult:
    """`processSync`: answered immediately, or behind the COMMIT of the last proposal."""
    if leader.outstanding:
        return ZabResult(peer.durable, replace(leader, syncs=(*leader.syncs, (leader.last_proposed, source))))
    return ZabResult(peer.durable, leader, (Send(source, QuorumSync()),))


# The disk.


def synced(peer: Peer, leader: Leader, rules: ZabRules) -> ZabResult | None:
    """The leader has logged a proposal: count its own acknowledgement (`AckRequestProcessor`)."""
    written = disk.next_written(peer.durable, leader.queue, rules)
    if written is None:
        return None
    assert isinstance(written.operation, Append)
    now = replace(peer, durable=written.durable)
    return ack(now, replace(leader, queue=written.queue), peer.sid, written.operation.txn.zxid, rules)


def staged(leader: Leader, sids: Iterable[Sid], stage: Stage) -> Leader:
    """The leader with the handlers of these learners in another stage."""
    chosen = set(sids)
    handlers = tuple(replace(h, stage=stage, last_zxid=0, held=()) if h.sid in chosen else h for h in leader.handlers)
    return replace(leader, handlers=handlers)
