"""Where rows wait to be expanded, and how each state was first reached.

The frontier is a list of blocks of rows. A block that was expanded goes back to the pool and takes rows of the
next level, so that the memory for rows is that of one level and a little more. Parents and ordinals, five to six
bytes a state, go to a temporary file that has no name and is gone with the process.
"""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np

BLOCK = 1 << 14  # rows in a block

Array = np.ndarray[Any, Any]


class Block:
    """Up to BLOCK rows (u32 cells) with their fingerprints (u64); the first `size` are in use.

    A row is as wide as a multiple of eight, so that it is copied in whole vectors; what is too much stays 0.
    """

    def __init__(self, columns: int) -> None:
        self.rows = np.zeros((BLOCK, padded(columns)), np.uint32)
        self.fingerprints = np.empty(BLOCK, np.uint64)
        self.size = 0


def padded(columns: int) -> int:
    """The width of a row."""
    return -(-columns // 8) * 8


class Pool:
    """Blocks that are free to be used again."""

    def __init__(self, columns: int) -> None:
        self._columns, self._free = columns, list[Block]()

    def take(self) -> Block:
        """An empty block."""
        block = self._free.pop() if self._free else Block(self._columns)
        block.size = 0
        return block

    def give(self, block: Block) -> None:
        """Return a block whose rows are no longer needed."""
        self._free.append(block)


class History:
    """For each state, in the order of discovery: its parent's number (u32) and the successor's ordinal (u16)."""

    _RECORD = np.dtype([("parent", np.uint32), ("ordinal", np.uint16)])

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the search that owns it)
        self.size = 1  # the initial state has no parent
        self._file.write(np.zeros(1, self._RECORD).tobytes())

    def append(self, parents: Array, ordinals: Array) -> None:
        """Record newly discovered states."""
        records = np.empty(len(parents), self._RECORD)
        records["parent"], records["ordinal"] = parents, ordinals
        self._file.write(records.data)
        self.size += len(parents)

    def ordinals(self, state: int) -> list[int]:
        """The successors to take from the initial state to this one."""
        taken: list[int] = []
        while state:
            self._file.seek(state * self._RECORD.itemsize)
            record = np.frombuffer(self._file.read(self._RECORD.itemsize), self._RECORD)[0]
            state = int(record["parent"])
            taken.append(int(record["ordinal"]))
        self._file.seek(0, 2)
        return taken[::-1]

    def close(self) -> None:
        """Drop the file."""
        self._file.close()
