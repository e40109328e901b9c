"""The parts of a search except the rows that wait to be expanded; all components of the search share them."""

from __future__ import annotations

from typing import NamedTuple

from checker.engine.counts import MoveCounts
from checker.engine.frontier import History, Pool
from checker.engine.graph import Graph
from checker.engine.judge import Judge
from checker.engine.result import Exploration
from checker.engine.tables import Tables
from checker.engine.visited import Visited


class Parts(NamedTuple):
    """The data that grows during a search. The graph exists only for properties of liveness."""

    result: Exploration
    tables: Tables
    pool: Pool
    history: History
    visited: Visited
    judge: Judge
    counts: MoveCounts
    graph: Graph | None

    @classmethod
    def of(cls, result: Exploration, tables: Tables, *, fingerprints: bool) -> Parts:
        """The parts of a new search; with `fingerprints`, its history also keeps these."""
        graph = Graph(tables) if result.model.liveness else None
        return cls(
            result,
            tables,
            Pool(len(result.model.columns)),
            History(fingerprints=fingerprints),
            Visited(numbered=graph is not None),
            Judge(tables, result, graph.marks if graph else None),
            MoveCounts(tables),
            graph,
        )

    def close(self) -> None:
        """Close and delete the temporary files."""
        self.history.close()
        if self.graph is not None:
            self.graph.close()
