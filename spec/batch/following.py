"""A serving follower or observer that handles several events: it logs proposals, acknowledges them, applies commits.

Rules of this module:

- The changing parts of the state are lists and queues here. An event costs the same with any number of proposals.
- Left to single steps: everything about a reconfiguration, a learner that does not serve yet, and messages that must
  not arrive.

Source: `spec.zab.learner_broadcast` (`proposal`, `commit`, `inform`, `synced`).
"""

from collections import deque

from msgspec.structs import replace

from spec.batch.leading import newest
from spec.effects import Apply, Effects, Observe, Persist, Send
from spec.election.vote import is_observer
from spec.quorum import Reconfiguration
from spec.server import Event, Server
from spec.txn import Txn, epoch_of
from spec.zab.events import ClientWrite, Delivered, Receive, Synced
from spec.zab.packets import Ack, Commit, Inform, Proposal, QuorumPacket, QuorumRequest
from spec.zab.state import Append, Learner, LearnerPhase, last_logged


class Following:
    """The work of a learner; `written` are the transactions that its disk has completed, oldest first."""

    __slots__ = ("_delivered", "_last", "_learner", "_observes", "_pending", "_queue", "_sid", "written")

    def __init__(self, server: Server, learner: Learner, pending: deque[Txn]) -> None:
        self.written: list[Txn] = []
        self._sid, self._learner, self._pending = server.sid, learner, pending
        self._queue = deque(learner.queue)
        self._delivered = learner.delivered
        self._last = last_logged(server.durable, learner.queue)
        self._observes = is_observer(server.sid, server.view)

    @classmethod
    def of(cls, server: Server, learner: Learner) -> "Following | None":
        """The work of a server that follows or observes; None before it serves."""
        if learner.phase is not LearnerPhase.BROADCAST or learner.owes_ack or learner.commits:
            return None
        found = newest(server, learner.queue, len(learner.pending))
        if [each.zxid for each in found] != list(learner.pending):
            return None
        return cls(server, learner, found)

    def part(self) -> Learner:
        """The learner after all events."""
        pending = tuple(txn.zxid for txn in self._pending)
        return replace(self._learner, queue=tuple(self._queue), pending=pending, delivered=self._delivered)

    def handle(self, event: Event) -> Effects | None:
        """Handle one event and return its effects; None if it needs a single step."""
        if isinstance(event, Receive):
            return self._receive(event.packet) if event.source == self._learner.leader else None
        if isinstance(event, Synced):
            return self._synced()
        if isinstance(event, ClientWrite):
            return (Send(self._learner.leader, QuorumRequest(event.value)),)
        return None

    def _receive(self, packet: QuorumPacket) -> Effects | None:
        if self._observes:
            return self._inform(packet.txn) if isinstance(packet, Inform) else None
        if isinstance(packet, Proposal):
            return self._proposal(packet.txn)
        return self._commit(packet.zxid) if isinstance(packet, Commit) else None

    def _proposal(self, txn: Txn) -> Effects | None:
        next_one = txn.zxid == self._last + 1 and epoch_of(txn.zxid) == self._learner.epoch
        if not next_one or isinstance(txn.value, Reconfiguration):
            return None
        return (self._log(Append(txn)),)

    def _log(self, operation: Append) -> Persist:
        self._queue.append(operation)
        self._pending.append(operation.txn)
        self._last = operation.txn.zxid
        return Persist(operation)

    def _synced(self) -> Effects | None:
        operation = self._queue.popleft() if self._queue else None
        if not isinstance(operation, Append):
            return None
        self.written.append(operation.txn)
        return (Send(self._learner.leader, Ack(operation.txn.zxid)),) if operation.ack else ()

    def _commit(self, zxid: int) -> Effects | None:
        if not self._pending or self._pending[0].zxid != zxid:
            return None
        txn = self._pending.popleft()
        self._delivered = zxid
        return Apply(zxid), Observe(Delivered(self._sid, self._learner.epoch, (txn,)))

    def _inform(self, txn: Txn) -> Effects | None:
        """Log the transaction without an ACK, and apply it."""
        if isinstance(txn.value, Reconfiguration):
            return None
        asked = self._log(Append(txn, ack=False))
        applied = self._commit(txn.zxid)
        return None if applied is None else (asked, *applied)
