"""The records of saves: of one part, and of the whole search."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from checker.cluster.part.pieces import Pieces
from checker.engine.result import Discovery

Count = Annotated[int, Meta(ge=0, le=(1 << 48))]
Hash = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class SavedFile(Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """The valid bytes of a file, and their SHA-256 in hexadecimal digits."""

    size: Count
    sha256: Hash


class SavedPartHit(Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A finding of a part: the position of its property, the cells of its row, and the number of its state."""

    position: Count
    cells: tuple[Count, ...]
    state: Count


class SavedPart(Struct, frozen=True, forbid_unknown_fields=True):
    """The record of a part: the number of the save, its files, and the counts."""

    number: Count
    files: dict[str, SavedFile]
    tables: Hash
    rows: Count
    states: Count
    transitions: Count
    deadlocks: Count
    labels: Count
    judgements: Count
    verdicts: Count
    hits: list[SavedPartHit]


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
