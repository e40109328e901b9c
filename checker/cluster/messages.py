"""The order of a level that is divided among several parts, and the messages between them.

A *piece* is a sequence of states with consecutive numbers whose rows are all at one part. A level is a sequence of
pieces. The children of a piece form a piece of the next level, at the same place in the order, so that the states of
all parts are numbered as in the plain engine: by the number of the parent, then by ordinal.

Arrays of fingerprints go only from part to part. Messages to and from the exchange have a few numbers for each piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

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
