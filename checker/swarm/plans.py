"""The plan of each walk: its depth limit, its modes and its change points, all from the seed and its number.

The numbers of walks are grouped. The first walk of a group of eight has only one leg. Every second walk of the others
repeats a random part of the run of the first one, and then continues in another way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checker.engine.kernels.walk_kernels import Plans

Array = np.ndarray[Any, Any]

GROUP = 8  # walks that may begin with a part of one run
CHANGES = 4  # change points of a leg by priority
HALVINGS = 6  # of the depth limit at most
SHORTEST = 16  # steps of a depth limit, unless the greatest depth is less
MOST_WALKS = 1 << 31
_MODES = (0, 1, 1, 1, 2, 2, 3, 3)  # of eight walks: one uniform, three by action, two by place, two by priority
_LIMIT, _MODE, _BRANCH, _CHANGE = (np.uint64(n) for n in (1, 2, 3, 4))


def plans(seed: int, first: int, count: int, depth: int) -> Plans:
    """The plans of the walks `first` to first + count, with at most `depth` steps each."""
    numbers = np.arange(first, first + count, dtype=np.uint64)
    leaders = numbers - numbers % np.uint64(GROUP)
    keys = np.stack([key_of(seed, leaders), key_of(seed, numbers)], axis=1)
    limits = np.stack([_limit(keys[:, leg], depth) for leg in (0, 1)], axis=1)
    draws = mixed(keys[:, 1] ^ _BRANCH)
    branches = (draws >> np.uint64(8)) % limits[:, 0]
    branches[(numbers == leaders) | (draws & np.uint64(1) == 0)] = 0
    return Plans(
        numbers,
        np.minimum(limits[:, 1] + branches, np.uint64(depth)),
        branches,
        keys,
        np.array(_MODES, np.uint64)[mixed(keys ^ _MODE) % np.uint64(len(_MODES))],
        np.stack([mixed(keys ^ (_CHANGE + np.uint64(n))) % limits for n in range(CHANGES)], axis=2),
    )


def key_of(seed: int, numbers: Array) -> Array:
    """The key of each walk: a pseudo-random number (u64) from the seed and the number."""
    start = mixed(np.array([seed], np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    with np.errstate(over="ignore"):
        return mixed(start + (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))


def mixed(words: Array) -> Array:
    """The pseudo-random number of each word, as `walk_kernels.mix`."""
    with np.errstate(over="ignore"):
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Array = words ^ (words >> np.uint64(31))
    return found


def _limit(keys: Array, depth: int) -> Array:
    """The depth limit of a leg: the greatest depth, or with half the probability half of it, and so on."""
    lowest = mixed(keys ^ _LIMIT) & np.uint64((1 << HALVINGS) - 1) | np.uint64(1 << HALVINGS)
    halved = np.uint64(depth) // (lowest & (~lowest + np.uint64(1)))
    limits: Array = np.maximum(halved, np.uint64(min(depth, SHORTEST)))
    return limits
