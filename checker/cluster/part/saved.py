"""The records of saves: of one part, and of the whole search."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from checker.cluster.part.pieces import Pieces
from checker.engine.checkpoint.head import Count, FileRecord, Hash, SavedHit
from checker.engine.result import Discovery


class SavedPart(Struct, frozen=True, forbid_unknown_fields=True):
    """The record of a part: the number of the save, its files, and the counts."""

    number: Count
    files: dict[str, FileRecord]
    tables: Hash
    rows: Count
    states: Count
    transitions: Count
    deadlocks: Count
    labels: Count
    judgements: Count
    verdicts: Count
    hits: list[SavedHit]


class SavedSearchPosition(NamedTuple):
    """The beginning of a level, as all parts have saved it. `levels` has those before it; it has `waiting` rows.

    `ordinals` has the path of each finding.
    """

    number: int
    parts: list[SavedPart]
    levels: list[int]
    waiting: int
    found: dict[str, Discovery]
    ordinals: dict[str, list[int]]
    pieces: Pieces
    firsts: list[int]
