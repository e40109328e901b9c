"""A distributed search that is saved in a folder: the records of the parts, and the head of the whole.

Each part has its files in a folder of its own, and the driver keeps the records of them. The head is written anew at
each save and renamed, so that the previous save stays valid until then. The paths of the findings are kept as ordinals
and rebuilt.
"""

from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from checker.cluster.messages import Pieces, SavedPart
from checker.engine.checkpoint import Checkpoint, CheckpointError
from checker.engine.checkpoint.checkpoint_store import AGAIN, HEAD, CheckpointStore, Count, Identity, Seconds
from checker.engine.checkpoint.search_checkpoint import check_resumption, identity_of
from checker.engine.model import Model
from checker.engine.result import Exploration

FORMAT = 2
NAME = "cluster.json"


class SavedFinding(Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A finding: the position of its property, and the ordinals of its path."""

    position: Count
    ordinals: list[Count]


class SavedSearchPosition(Struct, frozen=True, forbid_unknown_fields=True):
    """The beginning of a level, as all parts have saved it. `levels` has those before it; it has `waiting` rows.

    `firsts` has the number of the first state of the level in each part.
    """

    number: Count
    parts: Annotated[list[SavedPart], Meta(min_length=1)]
    levels: list[Count]
    waiting: Count
    found: list[SavedFinding]
    piece_parts: list[Count]
    piece_sizes: list[Count]
    firsts: list[Count]

    @property
    def pieces(self) -> Pieces:
        """The pieces of the level."""
        return Pieces(np.array(self.piece_parts, np.uint16), np.array(self.piece_sizes, np.int64))

    @property
    def states(self) -> int:
        """The states seen."""
        return sum(self.levels) + self.waiting


class SavedHead(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole document; `seconds` are those of the search until the save."""

    format: int
    identity: Identity
    seconds: Seconds
    position: SavedSearchPosition


class SavedFolder:
    """The folder of a search; `is_needed` until `remove` was called. Raises CheckpointError."""

    def __init__(self, checkpoint: Checkpoint, model: Model, seed: int) -> None:
        self._checkpoint, self._model = checkpoint, model
        self.folder = checkpoint.folder.absolute()
        self._identity = identity_of(checkpoint, model, seed)
        self._store = CheckpointStore(self.folder, NAME)
        self._store.open()
        self.is_needed = False
        self.states = 0  # in the last save

    def load(self, parts: int, result: Exploration) -> SavedSearchPosition | None:
        """The last save, or None without one; the result gets its seconds. Raises CheckpointError."""
        self.is_needed = True  # until it is clear that nothing is there
        if (self.folder / HEAD).exists():
            raise CheckpointError(f"{self.folder}: a search by threads is kept there; name another folder")
        head = self._store.load_head(SavedHead, FORMAT)
        if head is None:
            self.is_needed = False
            return None
        saved, self.states = head.position, head.position.states
        check_resumption(self._checkpoint, head.identity, self._identity, self.states, saved.levels, result)
        if {len(saved.parts), len(saved.firsts)} != {parts}:
            raise CheckpointError(
                f"{self.folder}: {len(saved.parts)} workers kept this search, and {parts} would resume it; use a "
                f"cluster with {len(saved.parts)} cores, or {AGAIN}"
            )
        if (
            len(saved.piece_parts) != len(saved.piece_sizes)
            or max(saved.piece_parts, default=0) >= parts
            or sum(saved.piece_sizes) != saved.waiting
            or max((finding.position for finding in saved.found), default=-1) >= len(self._model.properties)
        ):
            raise CheckpointError(f"{self._store.head}: its counts contradict each other; {AGAIN}")
        result.seconds_before = head.seconds
        return saved

    def save(self, position: SavedSearchPosition, seconds: float) -> None:
        """Write the head. Raises OSError; the previous save is then still valid."""
        self._store.put_head(SavedHead(FORMAT, self._identity, seconds, position))
        self.is_needed, self.states = True, position.states

    def remove(self) -> None:
        """Remove the head: the search has ended."""
        self._store.head.unlink(missing_ok=True)
        self.is_needed = False

    def close(self) -> None:
        """Release the folder."""
        self._store.close()
