"""The order of a level that is divided among several parts, the messages between the driver and the parts, and the
connection between them.

A *piece* is a sequence of states with consecutive numbers whose rows are all at one part. A level is a sequence of
pieces. The children of a piece form a piece of the next level, at the same place in the order, so that the states of
all parts are numbered as in the plain engine: by the number of the parent, then by ordinal.

Arrays of fingerprints go only from part to part. Messages to and from the driver have a few numbers for each piece.

A `Transport` is the connection. `call` starts a method of a part and returns immediately; `get` waits for the results.
A result may be passed to the call of another part, and goes there directly. The calls of a part are carried out in the
order in which they were started.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from checker.engine.checkpoint.checkpoint_store import Count, FileRecord, SavedCounts

Array = np.ndarray[Any, Any]


class Pieces(NamedTuple):
    """The pieces of a level or of a round, in order: the part of each (u16) and its number of rows (i64)."""

    parts: Array
    sizes: Array

    @property
    def rows(self) -> int:
        """The number of rows of all pieces."""
        return int(self.sizes.sum())

    def of(self, part: int) -> Array:
        """The sizes of the pieces of a part."""
        sizes: Array = self.sizes[self.parts == part]
        return sizes

    def cut(self, most: int) -> Pieces:
        """The same rows in pieces of at most this number of rows."""
        times = np.maximum(1, -(-self.sizes // most))
        parts = np.repeat(self.parts, times)
        last = np.cumsum(times) - 1
        sizes = np.full(len(parts), most, np.int64)
        sizes[last] = self.sizes - (times - 1) * most
        return Pieces(parts, sizes)

    def without_empty(self) -> Pieces:
        """The pieces that have rows."""
        places = self.sizes > 0
        return Pieces(self.parts[places], self.sizes[places])

    def rounds(self, rows: int) -> Iterator[Pieces]:
        """Consecutive pieces with at least this number of rows together, until all are used."""
        ends, begin = np.cumsum(self.sizes), 0
        while begin < len(ends):
            before = int(ends[begin - 1]) if begin else 0
            end = int(np.searchsorted(ends, before + rows)) + 1
            yield Pieces(self.parts[begin:end], self.sizes[begin:end])
            begin = end

    def place(self, part: int, row: int) -> int:
        """The place in the level of a row, which is given by its place among the rows of its part."""
        places = np.flatnonzero(self.parts == part)
        ends = np.cumsum(self.sizes[places])
        piece = int(np.searchsorted(ends, row, side="right"))
        inside = row - (int(ends[piece - 1]) if piece else 0)
        return int(self.sizes[: places[piece]].sum()) + inside

    def imbalance(self, parts: int) -> float:
        """The rows of the largest part, as a multiple of an equal share."""
        rows = np.bincount(self.parts, self.sizes, parts)
        return float(rows.max() * parts / max(1, rows.sum()))


def dealt(rows: int, size: int, parts: int) -> Pieces:
    """A level in pieces of this size, dealt to the parts in turn."""
    whole = Pieces(np.zeros(1, np.uint16), np.array([rows], np.int64)).cut(size)
    return Pieces((np.arange(len(whole.sizes)) % parts).astype(np.uint16), whole.sizes)


def joined(sequence: Iterable[Pieces]) -> Pieces:
    """The pieces of several rounds, one after the other."""
    rounds = list(sequence)
    return Pieces(
        np.concatenate([np.zeros(0, np.uint16), *(pieces.parts for pieces in rounds)]),
        np.concatenate([np.zeros(0, np.int64), *(pieces.sizes for pieces in rounds)]),
    )


class Candidates(NamedTuple):
    """Successors of a round that one part generated and another owns: their fingerprints (u64), piece by piece.

    `lengths` (u32) has the number of them for each piece of the sender in the round.
    """

    fingerprints: Array
    lengths: Array

    @property
    def bytes(self) -> int:
        """The bytes of both arrays."""
        return self.fingerprints.nbytes + self.lengths.nbytes


class PartHit(NamedTuple):
    """The first finding of a property in a part: the position of the property, and the number of the state there."""

    position: int
    state: int


class PartReport(NamedTuple):
    """The counts of a part since the search was divided; of the first part, since the start.

    `coverage` has (fired, new) by action; `evaluations` has (states, with premise) for each property. `growth` is the
    growth of the resident memory of the part's process, `planned` the further growth of its visited set in the next
    round, `spilled` the bytes of waiting rows in files, and `sent` the bytes that the part sent to others.
    """

    states: int
    transitions: int
    deadlocks: int
    coverage: dict[str, tuple[int, int]]
    evaluations: list[tuple[int, int]]
    hits: list[PartHit]
    work: int
    steps: int
    calls: int
    seconds: float
    growth: int
    planned: int
    spilled: int
    sent: int


class Route(NamedTuple):
    """The way to a state: the ordinals of the successors on the path, and a digest of its row (`row_digest`)."""

    ordinals: list[int]
    digest: str


class SavedPart(SavedCounts, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The record of a part: the number of the save, its files, and the counts. `rows` are those of the level."""

    number: Count
    files: dict[str, FileRecord]
    rows: Count


Ref = Any
"""The result of a call, which may not exist yet."""


class PartLostError(Exception):
    """The process or the machine of a part is gone."""


class Transport(Protocol):
    """The calls of the driver."""

    parts: int

    @property
    def description(self) -> str:
        """The machines, in a few words for the notes of the result."""

    def call(self, part: int, method: str, *arguments: Any, returns: int = 1) -> list[Ref]:
        """Start a method of a part; return a reference for each of its results."""

    def get(self, refs: Sequence[Ref]) -> list[Any]:
        """Wait for results. Raises PartLostError, and the exceptions of the methods."""

    def replace_lost(self) -> list[int]:
        """Start each lost part anew, without data; return the numbers of these parts. Raises ModelError."""

    def machines(self) -> list[str]:
        """The name of the machine of each part."""

    def close(self) -> None:
        """End all parts."""
