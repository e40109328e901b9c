"""``python -m benchmarks reductions``: the states and the time of reduced searches, against the same searches in full.

Rules: the searches of a model run in turn, each in a process of its own with one worker, which first compiles the
kernels on a small model. Times are seconds of the processor. A reduced search must find as many violations.
"""

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.engine import run_for_figures
from benchmarks.outcome import ToolFailed

CASES = {
    "small election, 3 servers": ("rounds", 3, ("safe", "stubborn")),
    "small election, 4 servers": ("rounds", 4, ("safe", "stubborn")),
    "FastLeaderElection, 3 servers": ("election", 3, ("safe", "stubborn")),
    "FastLeaderElection, 4 servers": ("election", 4, ("safe", "stubborn")),
    "Paxos, 2 clients": ("paxos_in_order", 2, ("safe",)),
    "Paxos, 4 clients": ("paxos_in_order", 4, ("safe",)),
    "Zab, a quick look": ("zab", 3, ("symmetric",)),
    "Zab, exhaustive": ("zab", 4, ("symmetric",)),
}
"""Each case: a model of `benchmarks.models`, its size, and the reductions. Every second one takes minutes."""
QUICK = tuple(CASES)[::2]


@dataclass(frozen=True)
class Searched:
    """One search: states, transitions, seconds of the processor, and how many times fewer and faster than in full."""

    case: str
    reduction: str
    states: int
    transitions: int
    processor: float
    fewer: float
    faster: float


def measure(case: str) -> list[Searched]:
    """Search a model in full and with its reductions. Raises ToolFailed."""
    model, size, reductions = CASES[case]
    full = _figures(model, size, "none")
    rows = [Searched(case, "none", full["states"], full["transitions"], full["processor"], 1.0, 1.0)]
    for reduction in reductions:
        found = _figures(model, size, reduction)
        if found["violations"] != full["violations"]:
            counts = f"{found['violations']} violations with {reduction}, {full['violations']} in full"
            raise ToolFailed(f"{case}: {counts}")
        ratios = full["states"] / found["states"], full["processor"] / found["processor"]
        rows.append(Searched(case, reduction, found["states"], found["transitions"], found["processor"], *ratios))
    return rows


def _figures(model: str, size: int, reduction: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.search_alone", model, str(size), "1", reduction]
    return run_for_figures(f"`{' '.join(command[1:])}`", command)[1]


def main(argv: list[str]) -> int:
    """Measure the chosen cases, and print a table; 1 if a search failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks reductions", description=__doc__)
    parser.add_argument("--only", metavar="TEXT", default="", help="only the cases with this text in their names")
    parser.add_argument("--quick", action="store_true", help="only the cases that take seconds")
    parser.add_argument("--output", type=Path, metavar="FILE.json", help="write the figures to a file as well")
    options = parser.parse_args(argv)
    chosen = [case for case in (QUICK if options.quick else CASES) if options.only.lower() in case.lower()]
    if not chosen:
        parser.error(f"no case has {options.only!r} in its name; the cases are: {'; '.join(CASES)}")
    console, rows, failed = Console(width=120), list[Searched](), False
    for case in chosen:
        try:
            rows += measure(case)
        except ToolFailed as reason:
            failed = True
            Console(stderr=True).print(f"{case}: {reason}", highlight=False)
    table = Table("model", "reduction", "states", "transitions", "fewer states", "processor s", "faster")
    for row in rows:
        figures = (f"{row.states:,}", f"{row.transitions:,}", f"{row.fewer:.1f}x", f"{row.processor:.1f}")
        table.add_row(row.case, row.reduction, *figures, f"{row.faster:.1f}x")
    console.print(table)
    if options.output is not None:
        options.output.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")
    return int(failed)
