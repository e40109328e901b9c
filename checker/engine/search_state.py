"""The data of a search that all of its components share, and the counters of moves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from checker.engine.evaluator import Evaluator
from checker.engine.liveness.graph import Graph
from checker.engine.process import UNLIMITED
from checker.engine.result import Coverage, Exploration
from checker.engine.states.frontier import OriginLog, Pool
from checker.engine.states.visited import Shards
from checker.engine.states.waiting import IN_MEMORY, WaitingBlocks
from checker.engine.tables import Tables


class SearchState(NamedTuple):
    """The data that grows during a search. The graph exists only for properties of liveness."""

    result: Exploration
    tables: Tables
    pool: Pool
    waiting: WaitingBlocks
    history: OriginLog
    visited: Shards
    evaluator: Evaluator
    counts: MoveCounts
    graph: Graph | None

    @classmethod
    def of(cls, result: Exploration, tables: Tables, workers: int, *, fingerprints: bool) -> SearchState:
        """The parts of a new search; with `fingerprints`, its history also keeps these."""
        graph = Graph(tables) if result.model.liveness else None
        pool = Pool(len(result.model.columns))
        return cls(
            result,
            tables,
            pool,
            WaitingBlocks(tables, pool, min(IN_MEMORY, (result.limits.memory or UNLIMITED) // 8)),
            OriginLog(fingerprints=fingerprints),
            Shards(workers, numbered=graph is not None),
            Evaluator(tables, result),
            MoveCounts(tables),
            graph,
        )

    def close(self) -> None:
        """Close and delete the temporary files."""
        self.history.close()
        self.waiting.close()
        if self.graph is not None:
            self.graph.close()


Array = np.ndarray[Any, Any]


class MoveCounts:
    """Two counters (u64) for each label of moves: the times that they fired, and the states that they reached first."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.fired, self.reached = np.zeros(0, np.uint64), np.zeros(0, np.uint64)

    def add(self, fired: Array, reached: Array) -> None:
        """Add the counts of a worker."""
        more = len(fired) - len(self.fired)
        if more > 0:
            self.fired, self.reached = (np.append(c, np.zeros(more, np.uint64)) for c in (self.fired, self.reached))
        self.fired[: len(fired)] += fired
        self.reached[: len(reached)] += reached

    def coverage(self) -> dict[str, Coverage]:
        """The totals by action."""
        coverage = {label.action: Coverage() for label in self._tables.labels[1:]}
        for label, fired, reached in zip(self._tables.labels, self.fired.tolist(), self.reached.tolist(), strict=False):
            if label.action in coverage:
                coverage[label.action].fired += fired
                coverage[label.action].new += reached
        return coverage
