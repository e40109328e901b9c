"""Measures the table engine: on the model that SPIN searches, also for liveness; on FastLeaderElection; and on Zab.

Rules: every search runs in its own process. The process first compiles (or loads) the kernels on a small model, so that
neither is counted; its size just before the search is the baseline of its memory. The search with one thread is the one
that is compared with SPIN; the search with two threads is shown with it.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.child import Usage, run_alone
from benchmarks.outcome import Row, Size, ToolFailed, check_size, full_workload, workload

ROOT = Path(__file__).parent.parent
TAIL = 2000  # characters of the output of a failed program
WORKERS = {1: "tables, 1 thread", 2: "tables, 2 threads"}


def measure(servers: int) -> list[Row]:
    """The measurement `engine`: the model of SPIN's row, with one thread and with two."""
    rows = [search("rounds", servers, workers, workload(servers)) for workers in WORKERS]
    for row in rows:
        check_size("the table engine", servers, Size(row.states, row.transitions))
    return rows


def measure_liveness(servers: int) -> list[Row]:
    """The measurement `liveness`: `recoverable` with one thread and with two, `eventually` with two.

    Can a state in which all have decided always be reached? It cannot: the model sends a vote only once, and four
    servers may all wait for one another (three never do). So the search has to find every state, keep every transition,
    compute the components of the graph and construct a run. The time is that of the search and the judgement together.
    """
    rows = [
        search(kind, servers, workers, f"{workload(servers)}: {kind}")
        for kind, workers in (("recoverable", 1), ("recoverable", 2), ("eventually", 2))
    ]
    for row in rows:
        check_size("the table engine with its graph", servers, Size(row.states, row.transitions))
    return rows


def measure_election(servers: int) -> list[Row]:
    """The measurement `election`: FastLeaderElection from a cold start, with one thread."""
    return [search("election", servers, 1, full_workload(servers))]


def measure_zab(servers: int) -> list[Row]:
    """The measurement `zab`: three servers that lead and follow, checked against every invariant, with one thread."""
    name = {3: "Zab, 3 servers, a quick look", 4: "Zab, 3 servers, the exhaustive run"}[servers]
    return [search("zab", servers, 1, name)]


def search(model: str, servers: int, workers: int, name: str) -> Row:
    """The row of one search of a model of `benchmarks.search_alone`, in a separate process."""
    command = search_command(model, servers, workers)
    usage, fields = run_for_figures(f"`{' '.join(command[1:])}`", command)
    return Row(
        tool=WORKERS[workers],
        workload=name,
        states=fields["states"],
        transitions=fields["transitions"],
        seconds=fields["seconds"],
        setup_seconds=fields["setup_seconds"],
        peak_bytes=usage.peak_bytes,
        baseline_bytes=fields["baseline_bytes"],
        python_steps=fields["python_steps"] if model == "zab" else None,
        python_seconds=fields["python_seconds"] if model == "zab" else None,
    )


def search_command(model: str, size: int | str, workers: int, *more: str) -> list[str]:
    """The command line of a search of a model of `benchmarks.search_alone`."""
    return [sys.executable, "-m", "benchmarks.search_alone", model, str(size), str(workers), *more]


def run_for_figures(what: str, command: list[str]) -> tuple[Usage, dict[str, Any]]:
    """Run a command alone, whose last line of output is a JSON object; return this object. Raises ToolFailed."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        usage = run_alone(command, output, ROOT)
        printed = output.read_text(encoding="utf-8")
    if usage.exit_code != 0:
        raise ToolFailed(f"{what} ended with exit code {usage.exit_code}:\n{printed[-TAIL:]}")
    return usage, json.loads(printed.splitlines()[-1])
