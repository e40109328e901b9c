"""A serving leader and its disk: requests are proposed, acknowledgements counted, commits sent in order.

Rules of this module:

- Only voters of the leader's own view are counted, and a quorum is one of that view. A reconfiguration, and every
  proposal after it until it is committed, needs a quorum of the new view too.
- With the commit of a reconfiguration its view becomes active. A leader without a vote in it commits nothing more.
- A request for which the epoch has no zxid left ends the leader, and an election begins a new epoch. Nobody answers it.
- A transaction is committed when a quorum has acknowledged it and all transactions before it are committed.
- `ServingLeader` is a leader while it handles events. It begins with a `Leader` and ends with one, and both are values.
  In between its queues are changed in place: a busy node handles many events at once, and would copy them for each.

Source: `Leader.propose`, `processAck`, `tryToCommit`, `commitAndActivate`, `processSync`; `AckRequestProcessor`,
`Leader.ToBeAppliedRequestProcessor`.
"""

from collections import deque
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from spec.effects import Effect, Effects, Observe, Persist, Send
from spec.election.state import Peer
from spec.quorum import Majority, MembershipChange, Reconfiguration, Sid, View, votes_in
from spec.txn import Txn, counter_of, epoch_of, format_zxid, is_last, rolls_over
from spec.variants import Variant
from spec.zab import disk, reconfiguration
from spec.zab.disk import SyncThread
from spec.zab.events import (
    Applied,
    Broadcast,
    ClientSync,
    ClientWrite,
    Committed,
    EpochEstablished,
    MessageKind,
    Receive,
    SyncAnswered,
    Synced,
    Tick,
    ViewCommitted,
    unexpected,
)
from spec.zab.leader_sync import history_of
from spec.zab.packets import (
    Ack,
    Commit,
    CommitAndActivate,
    Inform,
    InformAndActivate,
    Proposal,
    QuorumPacket,
    QuorumPing,
    QuorumRequest,
    QuorumSync,
    SyncRequest,
    name_of,
)
from spec.zab.reconfiguration import Refused
from spec.zab.state import (
    Handler,
    HeldCommits,
    Leader,
    Outstanding,
    Rollover,
    Stage,
    ZabResult,
    ZabRules,
    forwarding_followers,
    handler_of,
    with_sid,
)


class ServingLeader:
    """A leader in BROADCAST that handles events one after another.

    `is_over` says that an event changed more than the leader: a view of the server, the server that leads, or that it
    gives up. It handles no other one then.
    """

    __slots__ = (
        "_blocked",
        "_commits",
        "_committed",
        "_counts",
        "_effects",
        "_gives_up",
        "_handlers",
        "_layout",
        "_leader",
        "_outstanding",
        "_peer",
        "_rules",
        "_successor",
        "_sync_thread",
        "_syncs",
        "is_over",
    )

    def __init__(self, peer: Peer, leader: Leader, rules: ZabRules) -> None:
        self.is_over = self._gives_up = False
        self._peer, self._leader, self._rules, self._layout = peer, leader, rules, peer.durable.layout
        self._sync_thread = SyncThread(peer.durable, leader.queue, rules)
        self._outstanding, self._commits = deque(leader.outstanding), deque(leader.commits)
        self._handlers, self._committed = leader.handlers, leader.committed
        self._syncs, self._successor, self._blocked = leader.syncs, leader.successor, leader.blocked
        self._counts: dict[tuple[object, ...], tuple[tuple[Sid, ...], bool]] = {}
        self._effects: list[Effect] = []

    @property
    def part(self) -> Leader:
        """The leader after the events, also if the last one ends it."""
        return replace(
            self._leader,
            handlers=self._handlers,
            outstanding=tuple(self._outstanding),
            queue=tuple(self._sync_thread.queue),
            committed=self._committed,
            commits=tuple(self._commits),
            syncs=self._syncs,
            successor=self._successor,
            blocked=self._blocked,
        )

    def result(self, effects: Effects) -> ZabResult:
        """The disk and the leader after the events, with the effects of the last one."""
        leader = None if self._gives_up else self.part
        return ZabResult(self._sync_thread.durable, leader, effects)

    def handle(self, event: object) -> Effects | None:
        """Handle an event, and return its effects. None if it is impossible, or comes from a learner not yet synced."""
        self._effects = []
        match event:
            case Receive(source=source, packet=packet) if self._is_synced(source):
                self._receive(source, packet)
            case Synced() if self._sync_thread.queue:
                self._synced()
            case ClientWrite(value=value):
                self.propose(value)
            case Applied() if self._commits:
                self._apply(self._commits[0])
            case ClientSync():
                # Only a learner's sync waits for outstanding proposals (LeaderZooKeeperServer: matchSyncs is false).
                self._effects.append(Observe(SyncAnswered(self._peer.sid, self.part.applied)))
            case Tick() if self._handlers:
                ready = (handler for handler in self._handlers if handler.stage >= Stage.SYNCING)
                self._effects += (Send(handler.sid, QuorumPing()) for handler in ready)
            case _:
                return None
        return tuple(self._effects)

    @property
    def _last_proposed(self) -> int:
        return self._outstanding[-1].zxid if self._outstanding else self._committed

    @property
    def _is_exhausted(self) -> bool:
        return self._rules.rollover is Rollover.ELECTION and is_last(self._last_proposed, self._layout)

    def _is_synced(self, sid: Sid) -> bool:
        handler = handler_of(self._handlers, sid)
        return handler is not None and handler.stage >= Stage.SYNCED

    def _receive(self, source: Sid, packet: QuorumPacket) -> None:
        match packet:
            case Ack(zxid=zxid):
                self.ack(source, zxid)
            case QuorumRequest(value=value):
                self.propose(value)
            case SyncRequest():
                self._sync_requested(source)
            case QuorumPing():
                pass
            case _:
                self._report(MessageKind.STATE, f"{name_of(packet)} of server {source}, which serves")

    def _report(self, family: MessageKind, what: str) -> None:
        self._effects.append(unexpected(self._peer.sid, family, what))

    # Requests and acknowledgements.

    def propose(self, value: object) -> None:
        """`propose`: send the next zxid to the followers, and append it to the leader's own log.

        Without a zxid left the leader gives up before it sends or logs anything (`XidRolloverException`).

        A reconfiguration is a `MembershipChange`, or a `Reconfiguration` whose view has this zxid as its version. One
        that the leader refuses changes nothing. The new view is seen, and its file written, before any server gets the
        proposal.
        """
        if self._is_exhausted:
            self.is_over = self._gives_up = True
            return
        zxid = self._next_zxid()
        if isinstance(value, MembershipChange | Reconfiguration):
            value = reconfiguration.proposed(self._peer, self.part, value, zxid, self._rules)
            if isinstance(value, Refused):
                return
            self._peer, configured = reconfiguration.see(self._peer, value.view)
            self._effects += configured
            self.is_over = True
        txn = Txn(zxid, value)
        self._outstanding.append(Outstanding(zxid, views=reconfiguration.views_of_proposal(self._peer, self._rules)))
        epoch = epoch_of(zxid, self._layout)
        self._effects.append(Observe(Broadcast(self._peer.sid, epoch, txn)))
        proposal = Proposal(txn)
        self._effects += [Send(sid, proposal) for sid in forwarding_followers(self._handlers)]
        if epoch > self._leader.epoch:
            self._blocked = (*self._blocked, txn)
        else:
            self._log(txn)

    def _next_zxid(self) -> int:
        last = self._last_proposed
        if rolls_over(last) and self._rules.rollover is Rollover.IN_PLACE_FROM_1:
            return last + 2
        begins = counter_of(last, self._layout) == 0 and not self._outstanding and not self._sync_thread.logged(last)
        return last + (self._rules.first_counter(self._layout) if begins else 1)

    def _log(self, txn: Txn) -> None:
        self._effects.append(Persist(self._sync_thread.append(txn)))
        while self._sync_thread.is_due:
            self._synced()

    def _synced(self) -> None:
        """The leader has logged a proposal: count its own acknowledgement (`AckRequestProcessor`)."""
        self.ack(self._peer.sid, self._sync_thread.write().txn.zxid)

    def ack(self, source: Sid, zxid: int) -> None:
        """`processAck`: the ACK of UPTODATE, of a committed transaction, or of an outstanding proposal."""
        if counter_of(zxid, self._layout) == 0:
            self._handlers = staged(self._handlers, [source], Stage.SERVING)
            if self._rules.rollover is not Rollover.IN_PLACE:  # there a transaction may have this zxid
                return
        outstanding = self._outstanding
        if self._successor is not None or not outstanding or zxid <= self._committed:
            return
        place = zxid - outstanding[0].zxid  # the zxids of its proposals have no gaps
        if self._rules.rollover is Rollover.IN_PLACE_FROM_1 and epoch_of(zxid) > epoch_of(outstanding[0].zxid):
            place -= 1  # but for the counter 0 of the next epoch
        if place >= len(outstanding) and counter_of(zxid, self._layout) == 0:
            return
        if place >= len(outstanding):
            self._report(MessageKind.ACK, f"ACK {format_zxid(zxid)} of server {source}, which was not proposed")
            return
        proposal = outstanding[place]
        acks, is_complete = self._counted(proposal, source)
        outstanding[place] = Outstanding(zxid, acks, proposal.views)
        if place == 0 and is_complete:
            self._commit()

    def _counted(self, proposal: Outstanding, source: Sid) -> tuple[tuple[Sid, ...], bool]:
        """The servers that have acknowledged a proposal, with this one, and whether they are its quorums."""
        key = (proposal.views, proposal.acks, source)
        tally = self._counts.get(key)  # a few sets of servers recur with every proposal
        if tally is None:
            views = proposal.views or (self._peer.view,)
            acks = count(views, proposal.acks, source, self._rules)
            tally = self._counts[key] = acks, self._is_complete(views, acks)
        return tally

    def _is_complete(self, views: tuple[View, ...], acks: tuple[Sid, ...]) -> bool:
        """Whether a proposal with these acknowledgements may be committed (`tryToCommit`)."""
        return Variant.COMMIT_BEFORE_QUORUM in self._rules.variants or has_all_quorums(views, acks, self._rules)

    def _commit(self) -> None:
        """Commit the oldest proposal: send COMMIT to followers and INFORM to observers, and apply (`tryToCommit`).

        The view of a reconfiguration becomes active first. Later proposals may then have their quorums already.
        """
        proposal, sid, epoch = self._outstanding.popleft(), self._peer.sid, self._leader.epoch
        zxid = self._committed = proposal.zxid
        txn = self._sync_thread.logged(zxid)
        assert txn is not None  # it was outstanding
        designated: Sid | None = None
        view = reconfiguration.view_of(txn)
        if view is not None:
            designated = self._activate(view, proposal)
        self._effects.append(Observe(Committed(sid, epoch, txn)))
        if view is not None:
            self._effects.append(Observe(ViewCommitted(sid, epoch, view)))
        self._handlers, packets = tell_learners(self._handlers, txn, designated, self._rules)
        self._effects += packets
        if self._syncs:
            self._effects += [Send(learner, QuorumSync()) for after, learner in self._syncs if after == zxid]
            self._syncs = tuple(pair for pair in self._syncs if pair[0] != zxid)
        self._commits.append(zxid)
        if not self._rules.asynchronous_commits:
            self._apply(zxid, txn)
        if rolls_over(zxid):
            self._begin_next_epoch()
        # A proposal behind a reconfiguration needed both quorums (the loop at the end of `processAck`).
        if view is not None and self._successor is None and self._outstanding:
            following = self._outstanding[0]
            if self._is_complete(following.views or (self._peer.view,), following.acks):
                self._commit()

    def _begin_next_epoch(self) -> None:
        """`confirmRolloverEpoch`: the epoch after the committed one is this leader's, and its proposals are logged."""
        self._leader = replace(self._leader, epoch=self._leader.epoch + 1)
        history = history_of(self._sync_thread.durable, self.part)
        self._effects.append(Observe(EpochEstablished(self._peer.sid, self._leader.epoch, history.applied)))
        self.is_over = True
        blocked, self._blocked = self._blocked, ()
        for txn in blocked:
            self._log(txn)

    def _activate(self, view: View, proposal: Outstanding) -> Sid:
        """Activate the view of a reconfiguration, and return its designated leader (`commitAndActivate`)."""
        designated = reconfiguration.designated_leader(self._peer, view, proposal.acks, self._outstanding, self._rules)
        self._peer, configured = reconfiguration.activate(self._peer, view, self._rules)
        self._effects += configured
        self._successor = None if designated == self._peer.sid else designated
        self.is_over = True
        return designated

    def _apply(self, zxid: int, txn: Txn | None = None) -> None:
        """`FinalRequestProcessor`, and `ToBeAppliedRequestProcessor` before it."""
        self._commits.popleft()
        txn = txn or self._sync_thread.logged(zxid)
        self._effects += disk.applied(self._peer.sid, self._leader.epoch, zxid, txn)

    def _sync_requested(self, source: Sid) -> None:
        """`processSync`: answered immediately, or behind the COMMIT of the last proposal."""
        if self._outstanding:
            self._syncs = (*self._syncs, (self._outstanding[-1].zxid, source))
        else:
            self._effects.append(Send(source, QuorumSync()))


# Quorums.


def is_quorum(view: View, servers: Iterable[Sid], rules: ZabRules) -> bool:
    """Whether these are a quorum of a view (`QuorumVerifier.containsQuorum`)."""
    members, voters = set(servers), view.voters
    if Variant.OBSERVER_COUNTED in rules.variants and isinstance(view.quorums, Majority):
        return 2 * len(members) > len(voters)
    if Variant.HALF_IS_A_QUORUM in rules.variants and 2 * len(members & voters) >= len(voters):
        return True
    return view.contains_quorum(members)


def has_all_quorums(views: Iterable[View], servers: Iterable[Sid], rules: ZabRules) -> bool:
    """Whether these are a quorum of each view (`SyncedLearnerTracker.hasAllQuorums`)."""
    return all(is_quorum(view, servers, rules) for view in views)


def count(views: Iterable[View], counted: tuple[Sid, ...], sid: Sid, rules: ZabRules) -> tuple[Sid, ...]:
    """`isParticipant` and `SyncedLearnerTracker.addAck`: only a voter of one of the views is counted."""
    counts = votes_in(views, sid) or Variant.OBSERVER_COUNTED in rules.variants
    return with_sid(counted, sid) if counts else counted


# Learners.


def tell_learners(
    handlers: tuple[Handler, ...], txn: Txn, designated: Sid | None, rules: ZabRules
) -> tuple[tuple[Handler, ...], list[Send]]:
    """The commit of a transaction for all learners: their handlers afterwards, and the packets that are sent now.

    That of a learner before UPTODATE may have to wait (`ZabRules.hold_commits`). `designated` is the leader of the new
    view, for the commit of a reconfiguration.
    """
    to_follower, to_observer = _packets_of_commit(txn, designated)
    packets: list[Send] = []
    for handler in handlers:
        if handler.stage is Stage.SYNCING and not handler.observer and rules.hold_commits:
            holding = _with_held(handler, to_follower)
            handlers = tuple(holding if other is handler else other for other in handlers)
        elif handler.stage >= Stage.SYNCING:
            packets.append(Send(handler.sid, to_observer if handler.observer else to_follower))
    return handlers, packets


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
    for commits in handler.held:
        if isinstance(commits, HeldCommits):
            yield from map(Commit, range(commits.first, commits.last + 1))
        else:
            yield commits


def _packets_of_commit(txn: Txn, designated: Sid | None) -> tuple[Commit | CommitAndActivate, QuorumPacket]:
    """The packets that tell a follower and an observer of a commit."""
    if designated is None:
        return Commit(txn.zxid), Inform(txn)
    return CommitAndActivate(txn.zxid, designated), InformAndActivate(txn, designated)


def staged(handlers: tuple[Handler, ...], sids: Iterable[Sid], stage: Stage) -> tuple[Handler, ...]:
    """The handlers, those of these learners in another stage."""
    chosen = set(sids)
    return tuple(replace(h, stage=stage, last_zxid=0, held=()) if h.sid in chosen else h for h in handlers)
