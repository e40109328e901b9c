"""Measures liveness on the model that SPIN searches: can a state in which all have decided always be reached?

It cannot: the model sends a vote only once, and four servers may all wait for one another (three never do). So the
search has to find every state, keep every transition, compute the components of the graph and construct a run: all the
work of a liveness check.

Rules: as in `benchmarks.engine`, whose searches these are; the time is that of the search and the judgement together.
Its target is a minute for four servers with two threads.
"""

from benchmarks.election import Size, check_size, workload
from benchmarks.engine import search
from benchmarks.outcome import Row

TOOL = "the table engine with its graph"


def measure(servers: int) -> list[Row]:
    """The measurement `liveness`: `recoverable` with one thread and with two, `eventually` with two."""
    rows = [
        search(kind, servers, workers, f"{workload(servers)}: {kind}")
        for kind, workers in (("recoverable", 1), ("recoverable", 2), ("eventually", 2))
    ]
    for row in rows:
        check_size(TOOL, servers, Size(row.states, row.transitions))
    return rows
