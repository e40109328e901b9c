"""The logs of servers: the committed log, the logs that are compared with it, and the position of each server.

The committed log is kept in arrays, at some tens of bytes per transaction: a journal may contain millions. Each
function on a server's position reads only the server and, for the disk, the effects of its step.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from checker.models.ensemble.history import FirstCommit
from checker.validate.happens_before import NONE
from spec.effects import DiskOperation, Effects, Persist
from spec.server import Server
from spec.txn import Txn
from spec.zab.state import Leader, LeaderPhase, Learner, LearnerPhase, TakeSnapshot

Txns = tuple[Txn, ...]


@dataclass
class Log:
    """Transactions in order; `base` is the position of the first in the committed log, if the log agrees with that."""

    base: int = 0
    txns: Txns = ()

    def up_to(self, zxid: int) -> Log:
        """The log without the transactions after this zxid."""
        return Log(self.base, tuple(txn for txn in self.txns if txn.zxid <= zxid))

    def and_then(self, txns: Iterable[Txn]) -> Log:
        """The log with these transactions appended."""
        return Log(self.base, (*self.txns, *txns))


class CommittedLog:
    """The complete committed log: zxid, value, epoch of the first commit, and proposer of each transaction."""

    def __init__(self) -> None:
        self.zxids, self.epochs = array("q"), array("q")
        self.proposed, self.leaders = array("q"), array("q")
        self.values = array("Q")
        self.ascending = True

    def __len__(self) -> int:
        return len(self.zxids)

    def add(self, first: FirstCommit) -> None:
        """Append a transaction; its proposer is filled in when the transaction is settled."""
        self.ascending = self.ascending and (not self.zxids or first.txn.zxid > self.zxids[-1])
        self.zxids.append(first.txn.zxid)
        self.values.append(int(first.txn.value, 16))
        self.epochs.append(first.epoch)
        self.proposed.append(NONE)
        self.leaders.append(NONE)

    def txn(self, place: int) -> Txn:
        """The transaction at a position."""
        return Txn(self.zxids[place], f"{self.values[place]:016x}")

    def is_at(self, place: int, txn: Txn) -> bool:
        """Whether the transaction at this position is `txn`."""
        return self.zxids[place] == txn.zxid and self.values[place] == int(txn.value, 16)

    def epoch_of(self, txn: Txn) -> int | None:
        """The epoch in which a transaction was first committed; None if it was not. The log must be ascending."""
        place = bisect_left(self.zxids, txn.zxid)
        return self.epochs[place] if place < len(self) and self.is_at(place, txn) else None

    def is_before(self, end: int, txn: Txn) -> bool:
        """Whether a transaction is committed at a position before `end`. The log must be ascending."""
        place = bisect_left(self.zxids, txn.zxid)
        return place < min(end, len(self)) and self.is_at(place, txn)

    def first_commits(self, start: int, end: int) -> Iterator[FirstCommit]:
        """The entries from `start` up to `end`, in the form that the history uses."""
        return (FirstCommit(self.txn(place), self.epochs[place]) for place in range(start, end))


def is_present(server: Server) -> bool:
    """Whether a server leads an established epoch, or has acknowledged NEWLEADER."""
    part = server.zab
    if isinstance(part, Leader):
        return part.phase in (LeaderPhase.NEWLEADER_ACK, LeaderPhase.BROADCAST)
    return isinstance(part, Learner) and part.phase in (LearnerPhase.SYNCED, LearnerPhase.BROADCAST)


def delivered(server: Server) -> int | None:
    """The last zxid that a serving server has delivered; None if it does not serve."""
    part = server.zab
    if part is None or not part.serves:
        return None
    return part.committed if isinstance(part, Leader) else part.delivered


def tree_in_memory(server: Server) -> tuple[Txn, ...] | None:
    """The tree of a learner after TRUNC or SNAP, until it is on disk; None if the disk already has it."""
    return server.zab.tree if isinstance(server.zab, Learner) else None


def _queue(server: Server) -> tuple[DiskOperation, ...]:
    """The pending operations of the disk."""
    return () if server.zab is None else tuple(server.zab.queue)


def written(before: Server, after: Server, effects: Effects) -> TakeSnapshot | None:
    """The snapshot that the disk has finished in this step."""
    asked = (*_queue(before), *(each.operation for each in effects if isinstance(each, Persist)))
    left = _queue(after)
    ended = (each for each in asked if isinstance(each, TakeSnapshot) and each not in left)
    return next(ended, None)
