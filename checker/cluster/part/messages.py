"""The messages between the driver of a search and its parts, and between the parts; and the record of a save.

Arrays of fingerprints go only from part to part. Messages to and from the driver have a few numbers for each piece.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from checker.engine.checkpoint.head import Count, FileRecord, SavedCounts

Array = np.ndarray[Any, Any]


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
