"""The end of the log in memory: a sequence that behaves like the checker's tuple, at a cost that does not grow.

Rules this module keeps:

- It holds at least the last `LIMIT` transactions, or all if there are fewer: more than a leader keeps to synchronise
  learners without a snapshot. Unapplied transactions are never dropped, however many there are.
- If these are more than `BYTES` of data, it holds fewer, but at least `LEAST`: what ZooKeeper holds, whatever the size.

Source: `ZKDatabase.committedLog`, which keeps 500 in 3.8 (`zookeeper.commitLogCount`).
"""

from __future__ import annotations

from collections import deque

from spec.sequence import SharedSequence
from spec.txn import Txn

LIMIT = 2000
"""The minimum number of transactions kept; the maximum is twice that, if they are applied."""
BYTES = 64 << 20
"""The number of bytes in them that makes it keep fewer."""
LEAST = 500
"""The minimum number of transactions kept, however large they are."""


class LogBytes:
    """The sizes of the newest transactions of the log in bytes, oldest first; `total` is their sum."""

    __slots__ = ("_sizes", "total")

    def __init__(self) -> None:
        self._sizes: deque[tuple[int, int]] = deque()
        self.total = 0

    def __len__(self) -> int:
        return len(self._sizes)

    def add(self, zxid: int, size: int) -> None:
        """Add a transaction; the zxids from its own on are forgotten, since a log that was cut has them again."""
        while self._sizes and self._sizes[-1][0] >= zxid:
            self.total -= self._sizes.pop()[1]
        self._sizes.append((zxid, size))
        self.total += size

    def forget_before(self, zxid: int) -> None:
        """Forget the transactions before this zxid."""
        while self._sizes and self._sizes[0][0] < zxid:
            self.total -= self._sizes.popleft()[1]

    def first_within(self, most: int) -> int:
        """The zxid of the oldest transaction from which on all together have at most this size.

        It is behind the newest one if that alone is larger.
        """
        size_left = self.total
        for zxid, size in self._sizes:
            if size_left <= most:
                return zxid
            size_left -= size
        return self._sizes[-1][0] + 1 if self._sizes else 0


class TxnBuffer(SharedSequence[Txn]):
    """Transactions in the order of the log, oldest first."""

    __slots__ = ()

    def trimmed(self, applied: int, sizes: LogBytes | None = None) -> TxnBuffer:
        """Return the last `LIMIT` transactions once there are twice as many, but keep all above the zxid `applied`.

        If the `sizes` are above `BYTES`, return fewer: those with half of that, but at least `LEAST`.
        """
        buffer = self
        if self._end - self._start >= 2 * LIMIT and self[-LIMIT].zxid <= applied:
            buffer = TxnBuffer(self[-LIMIT:])
            if sizes is not None:
                sizes.forget_before(buffer[0].zxid)
        if sizes is not None and sizes.total > BYTES and len(buffer) > LEAST:
            sizes.forget_before(buffer[0].zxid)
            if sizes.total > BYTES:
                buffer = buffer._within(sizes.first_within(BYTES // 2), applied)
                sizes.forget_before(buffer[0].zxid)
        return buffer

    def _within(self, first: int, applied: int) -> TxnBuffer:
        """The transactions from the zxid `first` on; in any case the newest `LEAST`, and all that are not applied."""
        start = 0
        while start < len(self) - LEAST and self[start].zxid < first and self[start].zxid <= applied:
            start += 1
        return TxnBuffer(self[start:]) if start else self
