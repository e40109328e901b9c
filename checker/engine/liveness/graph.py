"""The graph of all states, as the table engine keeps it during the exploration and afterwards.

It exists only for a model with properties of liveness. For each move it has the number of the target state (u32) and,
for fairness, the move's label (u16). For each state it has the number of moves (u32) and its judgement (u32). Rules:

- States are numbered in the order of discovery, and the moves of a state are in the order of ordinals, so that a path
  is a list of ordinals, as in all other modules.
- Data that grows with the number of moves is in unnamed files in the temporary folder, which are mapped into memory for
  reading. Judgements are in memory.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from checker.engine.arrays import ReservedArray
from checker.engine.kernels import graph_kernels
from checker.engine.model import ModelError
from checker.engine.states.frontier import records_of
from checker.engine.tables import Tables

MOST_LABELS = 1 << 16

Array = np.ndarray[Any, Any]


class Marks:
    """The judgement of each state (u32)."""

    def __init__(self) -> None:
        self._reserved = ReservedArray(np.uint32, graph_kernels.MOST_STATES).array

    def room(self, states: int) -> Array:
        """The array, with room for this number of states. Raises ModelError."""
        if states > len(self._reserved):
            raise ModelError("the state space is too large for liveness to be judged in this process")
        return self._reserved


class NumberFile:
    """A growing sequence of numbers of one type, in an unnamed file."""

    def __init__(self, kind: type[np.unsignedinteger[Any]]) -> None:
        self.kind, self._file = kind, tempfile.TemporaryFile()  # noqa: SIM115 (closed with the graph)
        self.size = 0

    def append(self, numbers: Array) -> None:
        """Append numbers."""
        self._file.write(np.ascontiguousarray(numbers, self.kind).data)
        self.size += len(numbers)

    def since_byte(self, begin: int) -> Iterator[Array]:
        """All numbers after this number of bytes, in arrays of some millions of bytes."""
        self._file.flush()
        kind = np.dtype(self.kind)
        return records_of(self._file.fileno(), kind, begin // kind.itemsize, self.size)

    def read(self) -> Array:
        """All numbers, as an array that is mapped from the file."""
        self._file.flush()
        if not self.size:
            return np.zeros(0, self.kind)
        return np.frombuffer(mmap.mmap(self._file.fileno(), 0), self.kind)

    @property
    def bytes(self) -> int:
        """The size of the file in bytes."""
        return self.size * np.dtype(self.kind).itemsize

    def close(self) -> None:
        """Close and delete the file."""
        self._file.close()


class Moves(NamedTuple):
    """The moves of state s are offsets[s] to offsets[s + 1] (u64) of `targets` (u32) and `labels` (u16, or none)."""

    offsets: Array
    targets: Array
    labels: Array


class Graph:
    """Records the moves of a search; `finish` gives them as arrays."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.marks = Marks()
        self.has_labels = tables.has_rules_in_labels
        self._targets, self._labels, self._degrees = (NumberFile(kind) for kind in (np.uint32, np.uint16, np.uint32))

    @property
    def bytes(self) -> int:
        """The size of the moves and judgements in bytes."""
        states = self._degrees.size
        files = self._targets.bytes + self._labels.bytes + self._degrees.bytes
        return files + states * self.marks.room(0).itemsize

    def add(self, first: int, rows: int, origins: Array, targets: Array) -> None:
        """Add all moves of the next rows, in order; `first` is the number of the first row in its block."""
        labels = np.empty(len(targets) if self.has_labels else 0, np.uint16)
        sources, tables = np.empty(len(targets), np.uint16), self.tables
        if len(tables.labels) > MOST_LABELS:
            raise ModelError(f"the moves of this model have more than {MOST_LABELS:,} units of fairness")
        graph_kernels.describe(origins, len(targets), tables.entries.view, first, sources, labels)
        self._degrees.append(np.bincount(sources, minlength=rows))
        self._targets.append(targets)
        self._labels.append(labels)

    def finish(self) -> Moves:
        """All moves, in the form for `graph_kernels`."""
        degrees = self._degrees.read()
        offsets = np.zeros(len(degrees) + 1, np.uint64)
        np.cumsum(degrees, out=offsets[1:])
        return Moves(offsets, self._targets.read(), self._labels.read())

    @property
    def files(self) -> dict[str, NumberFile]:
        """The files of the moves, by name."""
        return {"targets": self._targets, "labels": self._labels, "degrees": self._degrees}

    def close(self) -> None:
        """Close and delete the files."""
        for file in self.files.values():
            file.close()
