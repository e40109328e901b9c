"""The logs of a validation: that of one server, its visible part, and the committed log of all of them.

Rules this module keeps:

- A log has its position in the committed log, so that logs are compared by positions and not from their beginnings.
- The committed log is kept whole, in arrays: some tens of bytes for each transaction. It has digests of values, except
  for reconfigurations, whose views the invariants read.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from checker.models.ensemble.history import FirstCommit
from checker.validate.codec import digest_in
from checker.validate.happens_before import NONE
from spec.quorum import Reconfiguration
from spec.text import required_integer
from spec.txn import Txn

Txns = tuple[Txn, ...]


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class VisibleLog:
    """The transactions of a log that are neither settled nor taken as given, for these ends of both."""

    log: Log
    settled: int
    start: int
    txns: Txns


class CommittedLog:
    """The complete committed log: zxid, value, epoch of the first commit, and proposer of each transaction."""

    def __init__(self) -> None:
        self.zxids, self.epochs = array("q"), array("q")
        self.proposed, self.leaders = array("q"), array("q")
        self.values = array("Q")
        self.ascending = True
        self._reconfigurations: dict[int, Reconfiguration] = {}

    def __len__(self) -> int:
        return len(self.zxids)

    def add(self, first: FirstCommit) -> None:
        """Append a transaction; its proposer is filled in when the transaction is settled."""
        self.ascending = self.ascending and (not self.zxids or first.txn.zxid > self.zxids[-1])
        self.zxids.append(first.txn.zxid)
        self.values.append(_number_of(first.txn))
        if isinstance(first.txn.value, Reconfiguration):
            self._reconfigurations[len(self) - 1] = first.txn.value
        self.epochs.append(first.epoch)
        self.proposed.append(NONE)
        self.leaders.append(NONE)

    def txn(self, place: int) -> Txn:
        """The transaction at a position."""
        return Txn(self.zxids[place], self._reconfigurations.get(place) or f"{self.values[place]:016x}")

    def is_at(self, place: int, txn: Txn) -> bool:
        """Whether the transaction at this position is `txn`."""
        return self.zxids[place] == txn.zxid and self.values[place] == _number_of(txn)

    def epoch_of(self, txn: Txn) -> int | None:
        """The epoch in which a transaction was first committed; None if it was not. The log must be ascending."""
        place = bisect_left(self.zxids, txn.zxid)
        return self.epochs[place] if place < len(self) and self.is_at(place, txn) else None

    def is_before(self, end: int, txn: Txn) -> bool:
        """Whether a transaction is committed at a position before `end`. The log up to there must be ascending."""
        end = min(end, len(self))
        place = bisect_left(self.zxids, txn.zxid, 0, end)
        return place < end and self.is_at(place, txn)


def _number_of(txn: Txn) -> int:
    """The digest of a transaction's value, as a number."""
    return required_integer(digest_in(txn.value), base=16)
