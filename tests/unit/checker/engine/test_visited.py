"""The visited set: exact for every width of its slots, also while it grows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.engine.kernels import packed_set
from checker.engine.states import visited as module
from checker.engine.states.visited import Shards, Visited

FIRST_PACKED = 25  # with 2**25 slots of five bytes, a distance has one bit


def add(seen: Visited, fingerprints: list[int], shard: int = 0, shards: int = 1) -> list[int]:
    """Add fingerprints; return those that were new."""
    found = np.array(fingerprints, np.uint64)
    flags = np.zeros(len(found), np.uint8)
    seen.reserve(len(found))
    added = seen.probe(shard, shards, found, len(found), np.zeros(len(found), np.uint32), flags)
    new = [f for f, flag in zip(fingerprints, flags, strict=True) if flag]
    assert added == len(new)
    return new


@pytest.fixture
def soon_packed(monkeypatch):
    """Sets begin with 2**24 slots, and are packed when they grow."""
    monkeypatch.setattr(module, "LEAST_BITS", FIRST_PACKED - 1)
    monkeypatch.setattr(module, "PACKED_BITS", FIRST_PACKED)


def grow(seen: Visited) -> None:
    """Double a set, as if it were full."""
    before, seen.used = seen.used, int(module.LOAD * (1 << (64 - int(seen.shift))))
    seen.reserve(1)
    seen.used = before


@pytest.mark.usefixtures("soon_packed")
@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 1 << 30)), min_size=1, max_size=200), st.integers(1, 2))
def test_a_packed_set_is_a_set_of_whole_fingerprints_however_crowded(places, doublings):
    # Few homes for many fingerprints: long distances, and many of them in the stash.
    fingerprints = [(home << 30) | rest for home, rest in places]
    half = len(fingerprints) // 2
    seen = Visited()
    assert add(seen, fingerprints[:half]) == list(dict.fromkeys(fingerprints[:half]))
    for _ in range(doublings):
        grow(seen)
    assert seen.is_packed
    assert add(seen, fingerprints) == list(dict.fromkeys(f for f in fingerprints if f not in fingerprints[:half]))
    assert add(seen, fingerprints) == []
    assert seen.used == len({*fingerprints})


@pytest.mark.usefixtures("soon_packed")
def test_the_last_home_has_room_for_later_distances():
    last = (1 << 64) - 1
    fingerprints = [last - n for n in range(40)]
    seen = Visited()
    grow(seen)
    assert add(seen, fingerprints) == fingerprints
    grow(seen)
    assert add(seen, fingerprints) == []


@pytest.mark.usefixtures("soon_packed")
def test_the_predicted_growth_is_that_of_the_slots():
    seen = Visited()
    assert seen.growth(1) == 0
    full = int(module.LOAD * (1 << 24)) + 1
    assert seen.growth(full) == packed_set.BYTES * (1 << 25) - 8 * (1 << 24)
    assert seen.growth(2 * full) == packed_set.BYTES * (1 << 26) - 8 * (1 << 24)


def test_each_shard_holds_the_fingerprints_that_it_owns():
    fingerprints = np.random.default_rng(5).integers(1, 1 << 63, 5000, dtype=np.uint64)
    shards = Shards(3)
    shards.refill(fingerprints, 0)
    assert sum(part.used for part in shards.parts) == 5000
    for number, part in enumerate(shards.parts):
        assert add(part, fingerprints.tolist(), number, 3) == []
        assert part.used > 1000
