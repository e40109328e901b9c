"""The rows that wait to be expanded, and the record of how each state was first reached.

The frontier is a list of blocks of rows. A block that was expanded returns to the pool and holds rows of the next
level, so that the memory for rows is that of one level and a little more. The parent and the ordinal of each state (six
bytes) go to an unnamed temporary file, which disappears with the process; for a search with a checkpoint, its
fingerprint too (fourteen bytes).
"""

import mmap
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from checker.engine.arrays import aligned_zeros

BLOCK = 1 << 15  # rows in a block
CHUNK = 1 << 22  # bytes read back at a time
_ORIGIN = [("parent", np.uint32), ("ordinal", np.uint16)]
_FINGERPRINT = [("fingerprint", np.uint64)]

Array = np.ndarray[Any, Any]


class RowBlock:
    """Up to BLOCK rows (u32 cells) with their fingerprints (u64) and judgements (u32); the first `size` are in use.

    The width of a row is a multiple of eight, so that it is copied in whole vectors; unused cells stay 0.
    """

    def __init__(self, columns: int) -> None:
        self.rows = aligned_zeros((BLOCK, padded(columns)), np.uint32)
        self.fingerprints, self.judgements = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint32)
        self.size = 0


def padded(columns: int) -> int:
    """The width of a row."""
    return -(-columns // 8) * 8


class Pool:
    """Blocks that are free for reuse."""

    def __init__(self, columns: int) -> None:
        self._columns, self._free = columns, list[RowBlock]()

    def take(self) -> RowBlock:
        """An empty block."""
        block = self._free.pop() if self._free else RowBlock(self._columns)
        block.size = 0
        return block

    def give(self, block: RowBlock) -> None:
        """Return a block whose rows are no longer needed."""
        self._free.append(block)


class RecordFile:
    """A growing sequence of records of one type, in an unnamed file."""

    def __init__(self, kind: Any) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the search that owns it)
        self.record, self.size = np.dtype(kind), 0

    def extend(self, records: Array) -> None:
        """Append records."""
        self._file.write(np.ascontiguousarray(records, self.record).data)
        self.size += len(records)

    def since(self, begin: int) -> Iterator[Array]:
        """This record and all later ones, some at a time."""
        return self.between(begin, self.size)

    def between(self, begin: int, end: int) -> Iterator[Array]:
        """The records begin to end, in arrays of some millions of bytes."""
        self._file.flush()
        most, item = CHUNK // self.record.itemsize, self.record.itemsize
        for first in range(begin, end, most):
            count = min(most, end - first)
            # The position at which the next record is written stays.
            yield np.frombuffer(os.pread(self._file.fileno(), count * item, first * item), self.record)

    def read(self) -> Array:
        """All records, as an array that is mapped from the file."""
        self._file.flush()
        if not self.size:
            return np.zeros(0, self.record)
        return np.frombuffer(mmap.mmap(self._file.fileno(), 0), self.record)

    @property
    def bytes(self) -> int:
        """The size of the file in bytes."""
        return self.size * int(self.record.itemsize)

    def close(self) -> None:
        """Close and delete the file."""
        self._file.close()


class OriginLog(RecordFile):
    """For each state, in the order of discovery: its parent's number (u32) and the successor's ordinal (u16).

    The first `roots` states have no parent: 0, and in place of the ordinal their place among `Model.first_rows`. With
    `fingerprints`, the record of a state also has its fingerprint (u64).
    """

    def __init__(self, *, fingerprints: bool = False) -> None:
        super().__init__([*_ORIGIN, *_FINGERPRINT] if fingerprints else _ORIGIN)
        self.has_fingerprints, self.roots, self.has_places = fingerprints, 1, False

    def append(self, parents: Array, ordinals: Array, fingerprints: Sequence[Array]) -> None:
        """Record newly discovered states; their fingerprints are in one array or several."""
        records = np.empty(len(parents), self.record)
        records["parent"], records["ordinal"] = parents, ordinals
        if self.has_fingerprints:
            records["fingerprint"] = np.concatenate([np.zeros(0, np.uint64), *fingerprints])
        self.extend(records)

    def ordinals(self, state: int) -> list[int]:
        """The path to a state, for `semantics.rebuild`: the ordinals of successors, with `has_places` after the place
        of the first row.
        """
        steps: list[int] = []
        while state >= self.roots:
            record = next(self.between(state, state + 1))[0]
            state = int(record["parent"])
            steps.append(int(record["ordinal"]))
        if self.has_places:
            steps.append(int(next(self.between(state, state + 1))[0]["ordinal"]))
        return steps[::-1]
