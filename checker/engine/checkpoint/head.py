"""The head of a checkpoint: a JSON document that is decoded into structs with bounds, and never trusted further.

The head names files and gives sizes. A forged head must therefore not reach any path, allocation or index unchecked:
names come from a fixed set, numbers have bounds, and unknown fields are errors.
"""

import re
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from checker.engine.checkpoint import CheckpointError
from checker.engine.result import MOST_SEED

LARGEST = 1 << 28  # bytes of a head; that of a search on a cluster has some for each piece of the level
AGAIN = "name another folder, or remove this one to begin anew"

Count = Annotated[int, Meta(ge=0, le=(1 << 48))]
Hash = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
NowName = Annotated[str, Meta(pattern=r"\Anow-[0-9]{1,15}\Z")]
FileName = Annotated[str, Meta(pattern=r"\A(states|questions|targets|labels|degrees|marks|now-[0-9]{1,15})\Z")]
Seconds = Annotated[float, Meta(ge=0, le=1e12)]


class FileRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """The valid bytes of one file, and their SHA-256 in hexadecimal digits."""

    size: Count
    sha256: Hash


class Identity(Struct, frozen=True, forbid_unknown_fields=True):
    """The properties of a model and an engine that must match before a search is resumed."""

    model: str
    engine: Hash
    source: Hash
    seed: Annotated[int, Meta(ge=0, le=MOST_SEED)]


class SavedHit(Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A finding: the position of its property, the cells of its row, and the number of its state."""

    position: Count
    cells: tuple[Count, ...]
    state: Count


class SavedCounts(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The counts of a search, or of one part of it; `labels`, `judgements` and `verdicts` are numbers of counters."""

    tables: Hash
    states: Annotated[int, Meta(ge=1, le=1 << 32)]
    transitions: Count
    deadlocks: Count
    found: list[SavedHit]
    labels: Count
    judgements: Count
    verdicts: Count


class SavedSearch(SavedCounts, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The counts of a search. `left` and `next` are rows of the current and of the next level."""

    identity: Identity
    levels: Annotated[list[Count], Meta(min_length=1)]
    left: Count
    next: Count
    seconds: Seconds
    python_seconds: Seconds


class Head(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole document. `now` is the name of the file that each save writes anew."""

    format: int
    number: Count
    now: NowName
    files: dict[FileName, FileRecord]
    search: SavedSearch


class _Format(Struct):
    format: int


Document = TypeVar("Document", bound=Struct)

_PLACE = re.compile(r" - at `\$\.?([^`]*)`\Z")
_FIELD = re.compile(r"(missing required|unknown) field `([^`]*)`")


def _fault(error: Exception) -> str:
    """The sentence for an error of msgspec, which names the field at fault."""
    if not isinstance(error, msgspec.ValidationError):
        return "it is not JSON"
    text = str(error)
    place = match[1].replace("[...]", "") if (match := _PLACE.search(text)) else ""
    if field := _FIELD.search(text):
        name = f"{place}.{field[2]}".removeprefix(".")
        return f"the field {name} is {'unknown' if field[1] == 'unknown' else 'missing'}"
    return f"the field {place} is invalid" if place else "it is not an object"


def decoded(text: bytes, kind: type[Document], where: str, number: int) -> Document:
    """The head in a text, in the format of that number. Raises CheckpointError, which names the field at fault."""
    try:
        if msgspec.json.decode(text, type=_Format).format != number:
            raise CheckpointError(f"{where}: it is not in format {number}, which this version reads; {AGAIN}")
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{where}: it is not the head of a checkpoint: {_fault(error)}; {AGAIN}") from None


def check_counts(head: Head, where: str) -> None:
    """Raises CheckpointError for a head that contradicts itself."""
    if head.now != f"now-{head.number}" or [name for name in head.files if name.startswith("now-")] != [head.now]:
        raise CheckpointError(f"{where}: its files must include {head.now!r} and no other file now-N; {AGAIN}")
    saved = head.search
    if saved.states != sum(saved.levels) + saved.next or saved.left > saved.levels[-1]:
        raise CheckpointError(f"{where}: its counts of states contradict each other; {AGAIN}")
