"""A serving leader that handles several events: it proposes, counts acknowledgements, and commits in order.

Rules of this module:

- The changing parts of the state are lists and queues here. An event costs the same with any number of proposals.
- Single steps handle everything about a reconfiguration, the packets of a learner before it serves, and messages that
  must not arrive.

Source: `spec.zab.leader_broadcast` (`propose`, `ack`, `synced`).
"""

from collections import deque

from msgspec.structs import replace

from spec.effects import Apply, DiskOperation, Effect, Effects, Observe, Persist, Send
from spec.quorum import MembershipChange, Reconfiguration, Sid
from spec.server import Event, Server
from spec.txn import Txn, counter_of
from spec.zab.events import Broadcast, ClientWrite, Committed, Delivered, Receive, Synced
from spec.zab.leader_broadcast import tell_learners
from spec.zab.packets import Ack, Proposal, QuorumPacket, QuorumRequest, QuorumSync
from spec.zab.state import Append, Leader, LeaderPhase, Outstanding, Stage, ZabRules, with_sid


class Leading:
    """The work of a leader; `written` are the transactions that its disk has completed, oldest first."""

    __slots__ = (
        "_committed",
        "_forwarding",
        "_handlers",
        "_leader",
        "_open",
        "_outstanding",
        "_queue",
        "_quorums",
        "_rules",
        "_sid",
        "_syncs",
        "_view",
        "written",
    )

    def __init__(self, server: Server, leader: Leader, rules: ZabRules, outstanding: deque[Txn]) -> None:
        self.written: list[Txn] = []
        self._sid, self._view, self._rules, self._leader = server.sid, server.view, rules, leader
        self._open = outstanding
        self._outstanding = deque(leader.outstanding)
        self._queue = deque(leader.queue)
        self._committed, self._syncs, self._handlers = leader.committed, leader.syncs, leader.handlers
        self._forwarding = tuple(
            handler.sid for handler in leader.handlers if handler.stage >= Stage.SYNCING and not handler.observer
        )
        self._quorums: dict[tuple[Sid, ...], bool] = {}

    @classmethod
    def of(cls, server: Server, leader: Leader, rules: ZabRules) -> "Leading | None":
        """The work of a server that leads; None before it serves, and while it is being reconfigured."""
        if leader.phase is not LeaderPhase.BROADCAST or leader.successor is not None or leader.commits:
            return None
        count = len(leader.outstanding)
        found = newest(server, leader.queue, count)
        if [each.zxid for each in found] != [each.zxid for each in leader.outstanding]:
            return None
        if any(each.views for each in leader.outstanding):
            return None
        return cls(server, leader, rules, found)

    def part(self) -> Leader:
        """The leader after all events."""
        return replace(
            self._leader,
            handlers=self._handlers,
            outstanding=tuple(self._outstanding),
            queue=tuple(self._queue),
            committed=self._committed,
            syncs=self._syncs,
        )

    def handle(self, event: Event) -> Effects | None:
        """Handle one event and return its effects; None if it needs a single step."""
        if isinstance(event, Synced):
            return self._synced()
        if isinstance(event, ClientWrite):
            return self._propose(event.value)
        return self._receive(event.source, event.packet) if isinstance(event, Receive) else None

    def _receive(self, source: Sid, packet: QuorumPacket) -> Effects | None:
        handler = next((each for each in self._handlers if each.sid == source), None)
        if handler is None or handler.stage < Stage.SYNCED:
            return None
        if isinstance(packet, Ack):
            return None if counter_of(packet.zxid) == 0 else self._ack(source, packet.zxid)
        return self._propose(packet.value) if isinstance(packet, QuorumRequest) else None

    def _propose(self, value: object) -> Effects | None:
        if isinstance(value, MembershipChange | Reconfiguration):
            return None
        zxid = (self._outstanding[-1].zxid if self._outstanding else self._committed) + 1
        txn = Txn(zxid, value)
        operation = Append(txn)
        self._queue.append(operation)
        self._outstanding.append(Outstanding(zxid))
        self._open.append(txn)
        broadcast = Observe(Broadcast(self._sid, self._leader.epoch, txn))
        if not self._forwarding:
            return (broadcast, Persist(operation))
        proposal = Proposal(txn)
        return (broadcast, *(Send(sid, proposal) for sid in self._forwarding), Persist(operation))

    def _synced(self) -> Effects | None:
        operation = self._queue.popleft() if self._queue else None
        if not isinstance(operation, Append):
            return None
        self.written.append(operation.txn)
        return self._ack(self._sid, operation.txn.zxid)

    def _ack(self, source: Sid, zxid: int) -> Effects | None:
        outstanding = self._outstanding
        if not outstanding or zxid <= self._committed:
            return ()
        place = zxid - outstanding[0].zxid
        if not 0 <= place < len(outstanding) or outstanding[place].zxid != zxid:
            return None
        acks = outstanding[place].acks
        if source not in acks and self._view.is_voter(source):
            acks = with_sid(acks, source)
            outstanding[place] = Outstanding(zxid, acks)
        return () if place or not self._is_quorum(acks) else self._commit()

    def _is_quorum(self, acks: tuple[Sid, ...]) -> bool:
        known = self._quorums.get(acks)
        if known is None:
            known = self._quorums[acks] = self._view.contains_quorum(frozenset(acks))
        return known

    def _commit(self) -> Effects:
        """Commit the oldest proposal, tell the learners, and apply it."""
        self._outstanding.popleft()
        txn = self._open.popleft()
        sid, epoch, zxid = self._sid, self._leader.epoch, txn.zxid
        self._committed = zxid
        effects: list[Effect] = [Observe(Committed(sid, epoch, txn))]
        if self._handlers:
            self._handlers, told = tell_learners(self._handlers, txn, None, self._rules)
            effects += told
        if self._syncs:
            effects += (Send(learner, QuorumSync()) for after, learner in self._syncs if after == zxid)
            self._syncs = tuple(pair for pair in self._syncs if pair[0] != zxid)
        return (*effects, Apply(zxid), Observe(Delivered(sid, epoch, (txn,))))


def newest(server: Server, queue: tuple[DiskOperation, ...], count: int) -> deque[Txn]:
    """The newest transactions on the disk and in its queue, at most `count`, oldest first."""
    found: deque[Txn] = deque()
    for operation in reversed(queue):
        if len(found) == count:
            return found
        if isinstance(operation, Append):
            found.appendleft(operation.txn)
    log = server.durable.txns
    missing = min(count - len(found), len(log))
    for place in range(1, missing + 1):
        found.appendleft(log[-place])
    return found
