"""The end of the log in memory: a sequence that behaves like the checker's tuple, at a cost that does not grow.

Rules this module keeps:

- A `TxnBuffer` is a value: its contents never change. Successive values share one list, and each sees a part of it; a
  value that is extended a second time copies its part into a new list.
- It holds at least the last `LIMIT` transactions, or all if there are fewer: more than a leader keeps to synchronise
  learners without a snapshot. Unapplied transactions are never dropped, however many there are.

Source: `ZKDatabase.committedLog`, which keeps 500 in 3.8.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from spec.txn import Txn

LIMIT = 2000
"""The minimum number of transactions kept; the maximum is twice that, if they are applied."""


class TxnBuffer(Sequence[Txn]):
    """Transactions in the order of the log, oldest first."""

    __slots__ = ("_end", "_shared", "_start")

    def __init__(self, txns: Iterable[Txn] = ()) -> None:
        self._shared = list(txns)
        self._start = 0
        self._end = len(self._shared)

    def __len__(self) -> int:
        return self._end - self._start

    def __iter__(self) -> Iterator[Txn]:
        return iter(self._shared[self._start : self._end])

    def __reversed__(self) -> Iterator[Txn]:
        for place in range(self._end - 1, self._start - 1, -1):
            yield self._shared[place]

    @overload
    def __getitem__(self, place: int) -> Txn: ...
    @overload
    def __getitem__(self, place: slice) -> TxnBuffer: ...
    def __getitem__(self, place: int | slice) -> Txn | TxnBuffer:
        if place == -1 and self._end > self._start:
            return self._shared[self._end - 1]  # the most frequent access
        if isinstance(place, slice):
            start, end, stride = place.indices(len(self))
            if stride != 1:
                raise ValueError("a part of the log is a range without gaps")
            return self._part(self._start + start, self._start + max(start, end))
        if not -len(self) <= place < len(self):
            raise IndexError(f"the log in memory has {len(self)} transactions, and {place} was asked for")
        return self._shared[self._start + place if place >= 0 else self._end + place]

    def __add__(self, txns: Sequence[Txn]) -> TxnBuffer:
        """Return the log extended by these transactions."""
        if self._end != len(self._shared):
            return TxnBuffer((*self, *txns))
        self._shared.extend(txns)
        return self._part(self._start, len(self._shared))

    def trimmed(self, applied: int) -> TxnBuffer:
        """Return the last `LIMIT` transactions once there are twice as many, but keep all above the zxid `applied`."""
        if self._end - self._start < 2 * LIMIT or self[-LIMIT].zxid > applied:
            return self
        return TxnBuffer(self[-LIMIT:])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TxnBuffer | tuple) and len(other) == len(self) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def _part(self, start: int, end: int) -> TxnBuffer:
        part = TxnBuffer.__new__(TxnBuffer)
        part._shared, part._start, part._end = self._shared, start, end
        return part
