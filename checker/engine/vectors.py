"""The growing arrays of the tables. Kernels get only their `view`, a new one for each call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from checker.engine import memo_kernels as kernels

Array = np.ndarray[Any, Any]


class Vector:
    """A growing array of numbers, or of rows of `width` numbers; unused room beyond `size` holds zeros."""

    def __init__(self, dtype: Any, width: int | None = None) -> None:
        self._data = np.zeros(64 if width is None else (64, width), dtype)
        self.size = 0

    @property
    def view(self) -> Array:
        """The elements so far. Writing to it changes them; an append invalidates it."""
        return self._data[: self.size]

    def append(self, value: Any) -> None:
        """Add one element."""
        self._reserve(self.size + 1)
        self._data[self.size] = value
        self.size += 1

    def extend(self, values: Iterable[Any]) -> None:
        """Add elements in order."""
        added = list(values)
        self._reserve(self.size + len(added))
        self._data[self.size : self.size + len(added)] = added
        self.size += len(added)

    def _reserve(self, needed: int) -> None:
        if needed > len(self._data):
            larger = np.zeros((max(needed, 2 * len(self._data)), *self._data.shape[1:]), self._data.dtype)
            larger[: self.size] = self._data[: self.size]
            self._data = larger


class Memo:
    """The hash table from (cell, operation) to (effect, new cell), as `memo_kernels.lookup` reads it.

    At most half full: a probe then mostly ends in the cache line where it began.
    """

    def __init__(self) -> None:
        self._bits, self.size = 10, 0
        self.data = np.zeros(2 << self._bits, np.uint64)

    @property
    def shift(self) -> np.uint64:
        """The number of bits by which a product is shifted to give a slot."""
        return np.uint64(64 - self._bits)

    def get(self, key: int) -> int | None:
        """The value of a key, or None."""
        value = int(kernels.find_memo(self.data, self.shift, np.uint64(key)))
        return None if value == int(kernels.MISSING) else value

    def insert(self, pairs: dict[int, int]) -> None:
        """Add pairs whose keys are new."""
        self.size += len(pairs)
        if 2 * self.size > 1 << self._bits:
            while 2 * self.size > 1 << self._bits:
                self._bits += 1
            old, self.data = self.data.reshape(-1, 2), np.zeros(2 << self._bits, np.uint64)
            used = old[old[:, 0] != 0]
            kernels.insert_memo(self.data, self.shift, used[:, 0].copy(), used[:, 1].copy())
        keys, values = (np.array(list(part), np.uint64) for part in (pairs.keys(), pairs.values()))
        kernels.insert_memo(self.data, self.shift, keys, values)
