"""How often each move of the tables was carried out, and how many states it was the first to reach."""

from __future__ import annotations

from typing import Any

import numpy as np

from checker.engine.result import Coverage
from checker.engine.tables import Tables

Array = np.ndarray[Any, Any]


class MoveCounts:
    """Two counters (u64) for each number of a move, as the kernels take them, with room for more moves than there are.

    They are replaced when there are too few, which must not be while a kernel counts.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.fired, self.reached = np.zeros(64, np.uint64), np.zeros(64, np.uint64)

    @property
    def too_few(self) -> bool:
        """Whether there are moves that cannot be counted yet."""
        return self._tables.label_of.size > len(self.fired)

    def make_room(self) -> None:
        """Counters for every move there is."""
        more = np.zeros(2 * self._tables.label_of.size - len(self.fired), np.uint64)
        self.fired, self.reached = (np.concatenate([c, more]) for c in (self.fired, self.reached))

    def coverage(self) -> dict[str, Coverage]:
        """The sums by action."""
        labels, named = self._tables.label_of.view, self._tables.labels
        fired, reached = (np.bincount(labels, c[: labels.size], len(named)) for c in (self.fired, self.reached))
        coverage = {label.action: Coverage() for label in named[1:]}
        for number, label in enumerate(named[1:], 1):
            coverage[label.action].fired += int(fired[number])
            coverage[label.action].new += int(reached[number])
        return coverage
