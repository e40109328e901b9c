"""The head of a distributed search that is saved in a folder: the record of the last save of all parts.

The head is one JSON document after a line with its SHA-256. It is written anew at each save and renamed, so that the
previous save stays valid until then. The paths of the findings are kept as ordinals and rebuilt.
"""

from __future__ import annotations

import hashlib
import os
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta, Struct

from checker.cluster.part.messages import SavedPart, SavedSearchPosition
from checker.cluster.part.pieces import Pieces
from checker.engine.checkpoint import Checkpoint, CheckpointError
from checker.engine.checkpoint.checkpoint_store import AGAIN, HEAD, CheckpointStore
from checker.engine.checkpoint.head import Count, Identity
from checker.engine.checkpoint.search_checkpoint import identity_of
from checker.engine.model import Finding, Model
from checker.engine.result import Discovery, Exploration, Limits
from checker.engine.semantics import answer, rebuild

FORMAT = 1
NAME = "cluster.json"
LARGEST = 1 << 28  # bytes


class KeptFinding(Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A finding: the position of its property, and the ordinals of its path."""

    position: Count
    ordinals: list[Count]


class KeptPosition(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole document."""

    format: int
    identity: Identity
    number: Count
    parts: Annotated[list[SavedPart], Meta(min_length=1)]
    levels: list[Count]
    waiting: Count
    found: list[KeptFinding]
    piece_parts: list[Count]
    piece_sizes: list[Count]
    firsts: list[Count]
    seconds: float


class SavedFolder:
    """The folder of a search; `is_needed` until `remove` was called. Raises CheckpointError."""

    def __init__(self, checkpoint: Checkpoint, model: Model, seed: int) -> None:
        self._checkpoint, self._model = checkpoint, model
        self.folder = checkpoint.folder.absolute()
        self._identity = identity_of(checkpoint, model, seed)
        self._path = self.folder / NAME
        self._store = CheckpointStore(self.folder)
        self._store.open()
        self.is_needed = False
        self.states = 0  # in the last save

    def load(self, parts: int, limits: Limits) -> tuple[SavedSearchPosition, float] | None:
        """The last save and its seconds, or None without one. Raises CheckpointError."""
        self.is_needed = True  # until it is clear that nothing is there
        if (self.folder / HEAD).exists():
            raise CheckpointError(f"{self.folder}: a search by threads is kept there; name another folder")
        try:
            with self._path.open("rb") as file:
                checksum, _, text = file.read(LARGEST).partition(b"\n")
        except FileNotFoundError:
            self.is_needed = False
            return None
        except OSError as error:
            raise CheckpointError(f"{self._path}: it cannot be read ({error.strerror}); {AGAIN}") from None
        if checksum != hashlib.sha256(text).hexdigest().encode():
            raise CheckpointError(f"{self._path}: it is damaged: its checksum is wrong; {AGAIN}")
        try:
            kept = msgspec.json.decode(text, type=KeptPosition)
        except (msgspec.MsgspecError, ValueError) as error:
            raise CheckpointError(f"{self._path}: it is not the head of a search ({error}); {AGAIN}") from None
        self.states = sum(kept.levels) + kept.waiting
        self._check(kept, parts, limits)
        return self._position(kept), kept.seconds

    def save(self, position: SavedSearchPosition, seconds: float) -> None:
        """Write the head. Raises OSError; the previous save is then still valid."""
        names = [prop.name for prop in self._model.properties]
        kept = KeptPosition(
            FORMAT,
            self._identity,
            position.number,
            position.parts,
            position.levels,
            position.waiting,
            [KeptFinding(names.index(name), ordinals) for name, ordinals in position.ordinals.items()],
            position.pieces.parts.tolist(),
            position.pieces.sizes.tolist(),
            position.firsts,
            seconds,
        )
        text = msgspec.json.encode(kept)
        new = self._path.with_suffix(".new")
        new.unlink(missing_ok=True)
        with new.open("xb") as file:
            file.write(f"{hashlib.sha256(text).hexdigest()}\n".encode() + text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)
        self.is_needed, self.states = True, sum(position.levels) + position.waiting

    def remove(self) -> None:
        """Remove the head: the search has ended."""
        self._path.unlink(missing_ok=True)
        self.is_needed = False

    def close(self) -> None:
        """Release the folder."""
        self._store.close()

    @property
    def resumes(self) -> bool:
        """Whether the search continues from the save in the folder."""
        return self._checkpoint.resume

    def _check(self, kept: KeptPosition, parts: int, limits: Limits) -> None:
        if not self._checkpoint.resume:
            raise CheckpointError(
                f"{self.folder}: a search of {self.states:,} states is kept there already; resume it, or {AGAIN}"
            )
        if kept.format != FORMAT or kept.identity != self._identity:
            raise CheckpointError(
                f"{self.folder}: another model, seed or version of the engine kept this search; {AGAIN}"
            )
        sizes = {len(kept.parts), len(kept.firsts)}
        if sizes != {parts}:
            raise CheckpointError(
                f"{self.folder}: {len(kept.parts)} workers kept this search, and {parts} would resume it; use a "
                f"cluster with {len(kept.parts)} cores, or {AGAIN}"
            )
        if (
            len(kept.piece_parts) != len(kept.piece_sizes)
            or max(kept.piece_parts, default=0) >= parts
            or sum(kept.piece_sizes) != kept.waiting
            or max((each.position for each in kept.found), default=0) >= max(1, len(self._model.properties))
        ):
            raise CheckpointError(f"{self._path}: its counts contradict each other; {AGAIN}")
        bounds = Limits(limits.depth, limits.states)
        if kept.levels and bounds.reached(Exploration(self._model, "tables", bounds, levels=kept.levels)) is not None:
            raise CheckpointError(
                f"{self.folder}: the search is at depth {len(kept.levels)} with {self.states:,} states, beyond the "
                f"limit of depth or states; raise the limit, or {AGAIN}"
            )

    def _position(self, kept: KeptPosition) -> SavedSearchPosition:
        found = {}
        for each in kept.found:
            prop = self._model.properties[each.position]
            path = rebuild(self._model, each.ordinals)
            finding = answer(self._model, prop, path[-1].row)
            if not isinstance(finding, Finding):
                raise CheckpointError(f"{self._path}: a finding is not that of the model; {AGAIN}")
            found[prop.name] = Discovery(prop, finding, len(path) - 1, path)
        pieces = Pieces(np.array(kept.piece_parts, np.uint16), np.array(kept.piece_sizes, np.int64))
        ordinals = {self._model.properties[each.position].name: each.ordinals for each in kept.found}
        return SavedSearchPosition(
            kept.number, kept.parts, kept.levels, kept.waiting, found, ordinals, pieces, kept.firsts
        )
