"""Measures liveness: on the model that SPIN searches, is a state in which all have decided always within reach?

It is not: votes are sent once there, and of four servers all may come to wait for one another (of three they do not).
So a search has to find every state, keep every move, fall into components and show a run, which is all there is to do.

Rules: as in `benchmarks.engine`, whose searches these are; the time is that of the search and the judgement together.
The goal set for it is a minute for four servers with two threads.
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
