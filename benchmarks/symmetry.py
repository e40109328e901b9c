"""``python -m benchmarks symmetry``: the states and the time of symmetric searches of Zab, and of those in full.

Rules: the searches of a model run in turn, each in a process of its own with one worker, which first compiles the
kernels on a small model. Times are seconds of the processor. A symmetric search must find as many violations.
"""

import argparse
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.engine import run_for_figures, search_command
from benchmarks.outcome import ToolFailed

SIZES = {"Zab, a quick look": 3, "Zab, exhaustive": 4}
"""The size of the model `zab` of `benchmarks.search_alone` for each case. The second one takes minutes."""
HEADINGS = ("model", "search", "states", "transitions", "fewer states", "processor s", "faster")


def measure(case: str) -> list[tuple[str, ...]]:
    """Search a model in full and with its symmetry; a row of the table for each. Raises ToolFailed."""
    searches = {kind: _figures(SIZES[case], kind) for kind in ("in full", "symmetric")}
    full = searches["in full"]
    if searches["symmetric"]["violations"] != full["violations"]:
        counts = f"{searches['symmetric']['violations']} violations with symmetry, {full['violations']} in full"
        raise ToolFailed(f"{case}: {counts}")
    return [
        (
            case, kind, f"{search['states']:,}", f"{search['transitions']:,}",
            f"{full['states'] / search['states']:.1f}x", f"{search['processor']:.1f}",
            f"{full['processor'] / search['processor']:.1f}x",
        )
        for kind, search in searches.items()
    ]  # fmt: skip


def _figures(size: int, kind: str) -> dict[str, Any]:
    command = search_command("zab", size, 1, *(["symmetric"] if kind == "symmetric" else []))
    return run_for_figures(f"`{' '.join(command[1:])}`", command)[1]


def main(argv: list[str]) -> int:
    """Measure the chosen cases, and print a table; 1 if a search failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks symmetry", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the case that takes seconds")
    options = parser.parse_args(argv)
    table, failed = Table(*HEADINGS), False
    for case in [*SIZES][:1] if options.quick else SIZES:
        try:
            rows = measure(case)
        except ToolFailed as reason:
            failed, rows = True, []
            Console(stderr=True).print(str(reason), highlight=False)
        for row in rows:
            table.add_row(*row)
    Console(width=120).print(table)
    return int(failed)
