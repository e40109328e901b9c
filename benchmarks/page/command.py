"""``python -m benchmarks page DIR``: measure all tools in one run, and write the page of results.

It writes `benchmarks.json` (the figures), `benchmarks.svg` and `benchmarks.md` to the folder. Rules: the exit code is 0
only if every tool was measured (1: one was missed; 2: a bad command line); progress goes to standard error.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.page import plot, text
from benchmarks.page.measure import measure
from benchmarks.page.record import Record, RecordError, load, save
from benchmarks.page.tools import all_tools, versions
from benchmarks.tlc.command import jar_file
from spec.text import decimals_between

NAME = "benchmarks"
LIMITS = {True: 15.0, False: 60.0}
"""Seconds for a search, in a quick run and in a full one."""


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks page",
        description="Measure the small election and two-phase commit with every tool, in one run and in growing sizes, "
        "and write a page with a plot: benchmarks.md, benchmarks.svg, and the figures, benchmarks.json. Leave the "
        "machine alone meanwhile. A run takes at most ten minutes.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="where the page is written")
    parser.add_argument("--quick", action="store_true", help="up to two million states, in at most two minutes")
    parser.add_argument("--jar", type=jar_file, metavar="FILE", help="tla2tools.jar; without it TLC is left out")
    parser.add_argument(
        "--limit", type=decimals_between(1), metavar="SECONDS",
        help="leave out a search that is predicted to take longer (default: 60, quick: 15)",
    )  # fmt: skip
    parser.add_argument("--from", dest="figures", type=Path, metavar="FILE", help="figures of an earlier run")
    options = parser.parse_args(argv)
    if not options.folder.is_dir():
        parser.error(f"{options.folder}: the folder does not exist; name one that exists")
    if options.figures is not None and (options.quick or options.jar or options.limit):
        parser.error("--from measures nothing, so --quick, --jar and --limit do not go with it")
    if reason := plot.available():
        parser.error(reason)
    return options


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    options = arguments(argv)
    if options.figures is None:
        limit = options.limit or LIMITS[options.quick]
        record = measure(all_tools(options.jar), versions(options.jar), quick=options.quick, limit=limit, say=_progress)
        if not record.searches:
            sys.stderr.write("".join(f"{tool}: not measured: {why}\n" for tool, why in record.missed.items()))
            return 1
    else:
        try:
            record = load(options.figures)
        except RecordError as error:
            sys.stderr.write(f"error: {error}\n")
            return 2
    write(record, options.folder)
    for tool, reason in record.missed.items():
        sys.stderr.write(f"{tool}: not measured: {reason}\n")
    return 1 if record.missed else 0


def write(record: Record, folder: Path) -> None:
    """Write the figures, the plot and the page."""
    save(record, folder / f"{NAME}.json")
    plot.draw(record, folder / f"{NAME}.svg")
    (folder / f"{NAME}.md").write_text(text.page(record), encoding="utf-8")


def _progress(line: str) -> None:
    sys.stderr.write(f"{line}\n")
