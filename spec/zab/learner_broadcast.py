"""A serving learner and its disk: proposals are logged and acknowledged, commits applied, syncs answered.

Rules of this module:

- An ACK is sent once the transaction is on disk, never before.
- A view is written as the last seen one before its proposal is logged, and as the active one before it is applied.
- A packet that must not arrive is reported, and then treated as the real server treats it.
- `ServingLearner` is a learner while it handles events. It begins with a `Learner` and ends with one, and both are
  values. In between its queues are changed in place, like those of `ServingLeader`.

Source: `Follower.processPacket`, `Observer.processPacket`, `FollowerZooKeeperServer`, `ObserverZooKeeperServer`,
`SyncRequestProcessor`, `SendAckRequestProcessor`, `CommitProcessor`.
"""

from collections import deque
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from spec.effects import Effect, Effects, Observe, Persist, Send
from spec.election.state import Peer
from spec.election.vote import is_observer
from spec.quorum import Sid, View
from spec.txn import Txn, counter_of, epoch_of, format_zxid, make_zxid, rolls_over
from spec.variants import Variant
from spec.zab import disk, reconfiguration
from spec.zab.disk import SyncThread
from spec.zab.events import (
    Applied,
    ClientSync,
    ClientWrite,
    MessageKind,
    Receive,
    SyncAnswered,
    Synced,
    unexpected,
)
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
from spec.zab.state import Learner, ZabResult, ZabRules


class ServingLearner:
    """A learner in BROADCAST that handles events one after another.

    `is_over` says that an event changed more than the learner: a view of the server, its leader, or that it gives up
    its leader. It handles no other one then. `commits` are committed and not yet applied, oldest first.
    """

    __slots__ = (
        "_blocked",
        "_delivered",
        "_effects",
        "_has_lost",
        "_learner",
        "_peer",
        "_pending",
        "_rules",
        "_successor",
        "_sync_thread",
        "_syncs",
        "commits",
        "is_over",
    )

    def __init__(self, peer: Peer, learner: Learner, rules: ZabRules) -> None:
        self.is_over = self._has_lost = False
        self._peer, self._learner, self._rules = peer, learner, rules
        self._sync_thread = SyncThread(peer.durable, learner.queue, rules)
        self._pending, self.commits = deque(learner.pending), deque(learner.commits)
        self._delivered, self._syncs, self._blocked = learner.delivered, learner.syncs, learner.blocked
        self._successor: Sid | None = None
        self._effects: list[Effect] = []

    @property
    def part(self) -> Learner:
        """The learner after the events, also if the last one ends it."""
        return replace(
            self._learner,
            queue=tuple(self._sync_thread.queue),
            pending=tuple(self._pending),
            commits=tuple(self.commits),
            delivered=self._delivered,
            syncs=self._syncs,
            blocked=self._blocked,
        )

    def result(self, effects: Effects) -> ZabResult:
        """The disk and the learner after the events, with the effects of the last one."""
        learner = None if self._has_lost else self.part
        return ZabResult(self._sync_thread.durable, learner, effects, self._successor)

    def handle(self, event: object) -> Effects | None:
        """Handle an event, and return its effects; None if it is impossible."""
        self._effects = []
        leader = self._learner.leader
        match event:
            case Receive(source=source, packet=packet) if source == leader:
                self._receive(packet)
            case Synced() if self._sync_thread.queue:
                self._synced()
            case Applied() if self.commits:
                self.apply(self.commits[0])
            case ClientWrite(value=value):
                self._effects.append(Send(leader, QuorumRequest(value)))
            case ClientSync():
                self._syncs += 1
                self._effects.append(Send(leader, SyncRequest()))
            case _:
                return None
        return tuple(self._effects)

    def finish(self, txns: Iterable[Txn], zxids: Iterable[int]) -> Effects:
        """Log the proposals and apply the commits that arrived before UPTODATE, and return the effects."""
        self._effects = []
        self._log(txns, ack=not is_observer(self._peer.sid, self._peer.view))
        for zxid in zxids:
            if not self._has_lost:
                self._commit(zxid)
        return tuple(self._effects)

    def _receive(self, packet: QuorumPacket) -> None:
        match is_observer(self._peer.sid, self._peer.view), packet:
            case False, Proposal(txn=txn):
                self._proposal(txn)
            case False, Commit(zxid=zxid):
                self._commit(zxid)
            case True, Inform(txn=txn):
                self._inform(txn)
            case False, CommitAndActivate(zxid=zxid, designated=designated):
                self._commit_and_activate(zxid, designated)
            case True, InformAndActivate(txn=txn, designated=designated):
                self._activate(reconfiguration.view_of(txn), designated, lambda: self._inform(txn))
            case _, QuorumSync():
                self._sync_answered()
            case _, QuorumPing():
                self._effects.append(Send(self._learner.leader, QuorumPing()))
            case _:
                self._report(MessageKind.STATE, f"{name_of(packet)} while in {self._learner.phase.name}")

    def _report(self, family: MessageKind, what: str) -> None:
        self._effects.append(unexpected(self._peer.sid, family, what))

    # Proposals.

    def _proposal(self, txn: Txn) -> None:
        """`Follower.processPacket`: log the proposal regardless of its zxid; a gap only causes a report."""
        last = self._blocked[-1].zxid if self._blocked else self._sync_thread.last_zxid
        if self._peer.unlogged:
            last = max(last, self._peer.unlogged[-1].zxid)
        epoch, layout = self._learner.epoch, self._peer.durable.layout
        first, epoch_of_last = self._rules.first_counter(layout), epoch_of(last, layout)
        goes_on = epoch_of_last == epoch or bool(self._blocked) or rolls_over(last)
        expected = last + 1 if goes_on else make_zxid(epoch, first, layout)
        begins = epoch_of(txn.zxid, layout) > epoch_of_last and counter_of(txn.zxid, layout) in (first, 1)
        if txn.zxid != expected and not begins:
            problem = f"PROPOSAL {format_zxid(txn.zxid)}, where {format_zxid(expected)} is next"
            self._report(MessageKind.PROPOSAL, problem)
        view = reconfiguration.view_of(txn)
        if view is not None:
            self._peer, configured = reconfiguration.see(self._peer, view)
            self._effects += configured
            self.is_over = True
        early = Variant.ACK_BEFORE_LOG in self._rules.variants
        if early:
            self._acknowledge(txn)
        self._log((txn,), ack=not early)

    def _log(self, txns: Iterable[Txn], *, ack: bool) -> None:
        for txn in txns:
            if self._pending and rolls_over(self._pending[-1]):
                self._blocked = (*self._blocked, txn)
                continue
            self._pending.append(txn.zxid)
            self._effects.append(Persist(self._sync_thread.append(txn, ack=ack)))
        while self._sync_thread.is_due:
            self._synced()

    def _synced(self) -> None:
        """The disk has completed one operation: send the ACK that waited for it (`SendAckRequestProcessor`)."""
        operation = self._sync_thread.write()
        if operation.ack:
            self._acknowledge(operation.txn)

    def _acknowledge(self, txn: Txn) -> None:
        self._effects.append(Send(self._learner.leader, Ack(txn.zxid)))

    # Commits.

    def _commit(self, zxid: int) -> None:
        """`FollowerZooKeeperServer.commit`: commit the oldest pending proposal. Without one, only report the COMMIT.

        A commit of any other than the oldest makes the real server exit.
        """
        if not self._pending:
            self._report(MessageKind.COMMIT, f"COMMIT {format_zxid(zxid)} without a proposal")
            return
        oldest = self._pending[0]
        if oldest != zxid:
            problem = f"COMMIT {format_zxid(zxid)}, and the next proposal is {format_zxid(oldest)}"
            self._lose(problem)
            return
        self._pending.popleft()
        self.commits.append(zxid)
        if not self._rules.asynchronous_commits:
            self.apply(zxid)
        if rolls_over(zxid):
            self._learner = replace(self._learner, epoch=epoch_of(zxid) + 1)
            blocked, self._blocked = self._blocked, ()
            self._log(blocked, ack=True)

    def _lose(self, what: str) -> None:
        self._report(MessageKind.COMMIT, what)
        self._has_lost = self.is_over = True

    def apply(self, zxid: int) -> None:
        """Apply the oldest commit of the commit processor's queue (`FinalRequestProcessor`)."""
        self.commits.popleft()
        self._delivered = zxid
        txn = self._sync_thread.logged(zxid)
        self._effects += disk.applied(self._peer.sid, self._learner.epoch, zxid, txn)

    def _inform(self, txn: Txn) -> None:
        """`ObserverZooKeeperServer.commitRequest`: log the transaction without an ACK, and apply it."""
        self._log((txn,), ack=False)
        self._commit(txn.zxid)

    def _commit_and_activate(self, zxid: int, designated: Sid) -> None:
        """COMMITANDACTIVATE: activate the view of the oldest pending proposal, and commit the transaction.

        Without a pending reconfiguration the real server fails (`pendingTxns.element`, a cast), which ends the
        connection.
        """
        oldest = self._sync_thread.logged(self._pending[0]) if self._pending else None
        view = None if oldest is None else reconfiguration.view_of(oldest)
        if view is None:
            self._lose(f"COMMITANDACTIVATE {format_zxid(zxid)}, and no reconfiguration is next")
        else:
            self._activate(view, designated, lambda: self._commit(zxid))

    def _activate(self, view: View | None, designated: Sid, commit: Callable[[], None]) -> None:
        """Activate a view, then commit its transaction.

        The part ends after the commit if the role or the leader changes (`processReconfig`, a major change).
        """
        before = self._peer
        self._peer, configured = reconfiguration.activate(before, view, self._rules)
        self._effects += configured
        self.is_over = True
        commit()
        if reconfiguration.is_major_change(before, self._peer, self._learner.leader, designated):
            self._successor = None if self._has_lost else designated

    def _sync_answered(self) -> None:
        """SYNC follows every COMMIT that was sent before it (`FollowerZooKeeperServer.sync`)."""
        if not self._syncs:
            self._report(MessageKind.STATE, "SYNC that nobody asked for")
            return
        self._syncs -= 1
        zxid = self.commits[-1] if self.commits else self._delivered
        self._effects.append(Observe(SyncAnswered(self._peer.sid, zxid)))
