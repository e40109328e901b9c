"""What a search consists of, beside the rows that wait to be expanded: made once, and shared by all that work on it."""

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
    """Everything that grows while a search goes on. The graph is there only if liveness is asked for."""

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
        """The parts of a search that has not begun; with `fingerprints` its history keeps these too."""
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
        """Drop the temporary files."""
        self.history.close()
        if self.graph is not None:
            self.graph.close()
