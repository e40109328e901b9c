"""The candidates of a round for one owner: which part owns a fingerprint, and the order of all candidates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from checker.cluster.part.messages import Candidates
from checker.cluster.part.pieces import Pieces

Array = np.ndarray[Any, Any]


def owned_by(fingerprints: Array, parts: int) -> Array:
    """The part that owns each fingerprint, as `hash_tables.owner` (u64)."""
    owners: Array = (fingerprints & np.uint64(0xFFFFFFFF)) * np.uint64(parts) >> np.uint64(32)
    return owners


class Merge(NamedTuple):
    """The candidates of all parts for one owner in the order of the pieces, and the places of those of each part."""

    fingerprints: Array
    places: list[Array]

    @classmethod
    def of(cls, pieces: Pieces, received: list[Candidates]) -> Merge:
        """Merge the candidates that an owner received in a round, one element for each part."""
        lengths = np.zeros(len(pieces.parts), np.int64)
        for part, candidates in enumerate(received):
            lengths[pieces.parts == part] = candidates.lengths
        begins = np.cumsum(lengths) - lengths
        merged = np.empty(int(lengths.sum()), np.uint64)
        places = []
        for part, (fingerprints, own) in enumerate(received):
            ends = np.cumsum(own, dtype=np.int64)
            shifts = begins[pieces.parts == part] - (ends - own)
            place = np.repeat(shifts, own) + np.arange(len(fingerprints))
            merged[place] = fingerprints
            places.append(place)
        return cls(merged, places)
