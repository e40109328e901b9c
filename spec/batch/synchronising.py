"""A learner that handles several packets before it serves: proposals and commits gather while it is brought up to date.

Rules of this module:

- The changing parts of the state are sequences that grow without a copy. The time of a long synchronisation is
  proportional to the number of its commits.
- Single steps handle all other packets, completed disk operations, and messages that must not arrive.

Source: `spec.zab.learner_sync` (`proposal`, `inform`, `commit`).
"""

from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from spec.batch.sequence import SharedSequence
from spec.effects import Effects
from spec.server import Event
from spec.txn import Txn, epoch_of
from spec.zab.events import Receive
from spec.zab.packets import Commit, Inform, Proposal, QuorumPacket
from spec.zab.state import Learner, LearnerPhase

T = TypeVar("T")


class Synchronising:
    """The work of a learner between DIFF, TRUNC or SNAP and UPTODATE; its disk completes nothing (`written`)."""

    __slots__ = ("_committed", "_last", "_learner", "_not_logged", "_tree", "written")

    def __init__(self, learner: Learner) -> None:
        self.written: list[Txn] = []
        self._learner, self._last = learner, learner.last_queued
        self._not_logged = _shared(learner.not_logged)
        self._committed = _shared(learner.packets_committed)
        self._tree = None if learner.tree is None else _shared(learner.tree)

    @classmethod
    def of(cls, learner: Learner) -> "Synchronising | None":
        """The work of a learner that is being brought up to date; None if it is not, or handles NEWLEADER."""
        if learner.owes_ack or (learner.phase is LearnerPhase.SYNCHRONIZATION and (learner.queue or not learner.mode)):
            return None
        return cls(learner) if learner.phase in (LearnerPhase.SYNCHRONIZATION, LearnerPhase.SYNCED) else None

    def part(self) -> Learner:
        """The learner after all events."""
        return replace(
            self._learner,
            not_logged=self._not_logged,
            packets_committed=self._committed,
            last_queued=self._last,
            tree=self._tree,
        )

    def handle(self, event: Event) -> Effects | None:
        """Handle one event and return its effects; None if it needs a single step."""
        if not isinstance(event, Receive) or event.source != self._learner.leader:
            return None
        return () if self._receive(event.packet) else None

    def _receive(self, packet: QuorumPacket) -> bool:
        if isinstance(packet, Proposal):
            return self._proposal(packet.txn)
        if isinstance(packet, Commit):
            return self._commit(packet.zxid)
        return isinstance(packet, Inform) and self._proposal(packet.txn) and self._commit(packet.txn.zxid)

    def _proposal(self, txn: Txn) -> bool:
        last = self._last
        if last and txn.zxid != last + 1 and epoch_of(txn.zxid) <= epoch_of(last):
            return False
        self._not_logged += (txn,)
        self._last = txn.zxid
        return True

    def _commit(self, zxid: int) -> bool:
        if not self._not_logged:
            return False
        if self._tree is None:
            self._committed += (zxid,)
            return True
        if self._not_logged[0].zxid != zxid:
            return False
        self._tree += (self._not_logged[0],)
        self._not_logged = self._not_logged[1:]
        return True


def _shared(elements: Sequence[T]) -> SharedSequence[T]:
    return elements if isinstance(elements, SharedSequence) else SharedSequence(elements)
