"""The data of a search that all of its components share, and the counters of moves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from checker.engine.arrays import Visited
from checker.engine.evaluator import Evaluator
from checker.engine.frontier import OriginLog, Pool
from checker.engine.liveness.graph import Graph
from checker.engine.result import Coverage, Exploration
from checker.engine.tables import Tables


class SearchState(NamedTuple):
    """The data that grows during a search. The graph exists only for properties of liveness."""

    result: Exploration
    tables: Tables
    pool: Pool
    history: OriginLog
    visited: Visited
    evaluator: Evaluator
    counts: MoveCounts
    graph: Graph | None

    @classmethod
    def of(cls, result: Exploration, tables: Tables, *, fingerprints: bool) -> SearchState:
        """The parts of a new search; with `fingerprints`, its history also keeps these."""
        graph = Graph(tables) if result.model.liveness else None
        return cls(
            result,
            tables,
            Pool(len(result.model.columns)),
            OriginLog(fingerprints=fingerprints),
            Visited(numbered=graph is not None),
            Evaluator(tables, result, graph.marks if graph else None),
            MoveCounts(tables),
            graph,
        )

    def close(self) -> None:
        """Close and delete the temporary files."""
        self.history.close()
        if self.graph is not None:
            self.graph.close()


Array = np.ndarray[Any, Any]


class MoveCounts:
    """Two counters (u64) for each label, as the kernels expect them, with room for further labels.

    The arrays are replaced when they are too small. No kernel may count during that time.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.fired, self.reached = np.zeros(64, np.uint64), np.zeros(64, np.uint64)

    @property
    def too_few(self) -> bool:
        """Whether there are labels without a counter."""
        return len(self._tables.labels) > len(self.fired)

    def make_room(self) -> None:
        """Add counters for all labels."""
        more = np.zeros(2 * len(self._tables.labels) - len(self.fired), np.uint64)
        self.fired, self.reached = (np.concatenate([c, more]) for c in (self.fired, self.reached))

    def coverage(self) -> dict[str, Coverage]:
        """The totals by action."""
        coverage = {label.action: Coverage() for label in self._tables.labels[1:]}
        for label, fired, reached in zip(self._tables.labels, self.fired.tolist(), self.reached.tolist(), strict=False):
            if label.action in coverage:
                coverage[label.action].fired += fired
                coverage[label.action].new += reached
        return coverage
