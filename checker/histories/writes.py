"""The writes of a history by key and by zxid: the known part of the order in which the ensemble carried them out.

Rules of this module:

- An acknowledged write is placed by the zxid in its reply.
- A write without a reply is placed if a read returned its value: the Stat of the first such read has its zxid and
  version. If no read did, the write stays `open`: it may be anywhere after its invocation, or nowhere.
- This module judges nothing; the checks do.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict

import msgspec

from checker.histories.record import ClientHistory, Operation


class PlacedWrite(msgspec.Struct, frozen=True):
    """A write with the zxid of its transaction, and the version that it left (0 for a delete)."""

    txn: int
    version: int
    operation: Operation
    witness: Operation
    """The source of the zxid: the write, or the first read of its value."""


class Writes:
    """The writes of a history: by value, by zxid within a key, and those without a known zxid."""

    def __init__(self, history: ClientHistory) -> None:
        self.by_value = {(op.key, op.value): op for op in history.operations if op.kind in {"create", "set"}}
        self._placed: dict[str, list[PlacedWrite]] = defaultdict(list)
        self._open: dict[str, list[Operation]] = defaultdict(list)
        read = self._first_reads(history)
        for operation in history.operations:
            if operation.acknowledged:
                self._place(PlacedWrite(operation.txn, operation.version, operation, operation))
            elif operation.is_write and operation.outcome == "unknown":
                witness = read.get((operation.key, operation.value)) if operation.kind != "delete" else None
                if witness is None:
                    self._open[operation.key].append(operation)
                else:
                    self._place(PlacedWrite(witness.mzxid, witness.version, operation, witness))
        for placed in self._placed.values():
            placed.sort(key=lambda write: write.txn)

    @staticmethod
    def _first_reads(history: ClientHistory) -> dict[tuple[str, str | None], Operation]:
        read: dict[tuple[str, str | None], Operation] = {}
        for operation in history.operations:
            if not operation.is_write and operation.outcome == "ok":
                read.setdefault((operation.key, operation.value), operation)
        return read

    def _place(self, write: PlacedWrite) -> None:
        self._placed[write.operation.key].append(write)

    def placed(self, key: str) -> list[PlacedWrite]:
        """The writes of this key whose zxids are known, in the order of their zxids."""
        return self._placed.get(key, [])

    def open(self, key: str) -> list[Operation]:
        """The writes of this key that may have happened, without a known zxid."""
        return self._open.get(key, [])

    def last(self, key: str, zxid: int) -> PlacedWrite | None:
        """The last write of this key up to and including this zxid."""
        placed = self.placed(key)
        index = bisect_right(placed, zxid, key=lambda write: write.txn)
        return placed[index - 1] if index else None

    def between(self, key: str, after: int, zxid: int) -> PlacedWrite | None:
        """The first write of this key after one zxid, up to and including another."""
        placed = self.placed(key)
        index = bisect_right(placed, after, key=lambda write: write.txn)
        return placed[index] if index < len(placed) and placed[index].txn <= zxid else None

    def at(self, key: str, zxid: int) -> PlacedWrite | None:
        """The write of this key with exactly this zxid."""
        placed = self.placed(key)
        index = bisect_left(placed, zxid, key=lambda write: write.txn)
        return placed[index] if index < len(placed) and placed[index].txn == zxid else None

    def may_have_deleted(self, key: str, before: float) -> bool:
        """Whether a delete without a reply had been invoked before this time."""
        return any(op.kind == "delete" and op.invoked < before for op in self.open(key))
