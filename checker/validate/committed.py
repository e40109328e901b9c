"""The committed log in whole, and the logs that are compared with it.

Some tens of bytes a transaction are kept, in arrays: a journal may tell of millions.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from checker.models.ensemble.history import FirstCommit
from checker.validate.order import NONE
from spec.txn import Txn

Txns = tuple[Txn, ...]


@dataclass
class Log:
    """Transactions in order; `base` is the place of the first in the committed log, where it agrees with that."""

    base: int = 0
    txns: Txns = ()

    def up_to(self, zxid: int) -> Log:
        """Without what is beyond this zxid."""
        return Log(self.base, tuple(txn for txn in self.txns if txn.zxid <= zxid))

    def and_then(self, txns: Iterable[Txn]) -> Log:
        """With these behind it."""
        return Log(self.base, (*self.txns, *txns))


class Committed:
    """The committed log in whole: the zxid and the value of each, when it was first committed, and who proposed it."""

    def __init__(self) -> None:
        self.zxids, self.epochs = array("q"), array("q")
        self.proposed, self.leaders = array("q"), array("q")
        self.values = array("Q")
        self.ascending = True

    def __len__(self) -> int:
        return len(self.zxids)

    def add(self, first: FirstCommit) -> None:
        """One more; who proposed it is told when it is settled."""
        self.ascending = self.ascending and (not self.zxids or first.txn.zxid > self.zxids[-1])
        self.zxids.append(first.txn.zxid)
        self.values.append(int(first.txn.value, 16))
        self.epochs.append(first.epoch)
        self.proposed.append(NONE)
        self.leaders.append(NONE)

    def txn(self, place: int) -> Txn:
        """The transaction at a place."""
        return Txn(self.zxids[place], f"{self.values[place]:016x}")

    def is_at(self, place: int, txn: Txn) -> bool:
        """Whether it is this one that stands there."""
        return self.zxids[place] == txn.zxid and self.values[place] == int(txn.value, 16)

    def epoch_of(self, txn: Txn) -> int | None:
        """The epoch in which a transaction was first committed; None if it was not. For an ascending log."""
        place = bisect_left(self.zxids, txn.zxid)
        return self.epochs[place] if place < len(self) and self.is_at(place, txn) else None

    def is_before(self, end: int, txn: Txn) -> bool:
        """Whether it stands before a place. For an ascending log."""
        place = bisect_left(self.zxids, txn.zxid)
        return place < min(end, len(self)) and self.is_at(place, txn)

    def first_commits(self, start: int, end: int) -> Iterator[FirstCommit]:
        """A part of it, as the history has it."""
        return (FirstCommit(self.txn(place), self.epochs[place]) for place in range(start, end))
