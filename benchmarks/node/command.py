"""The command `python -m benchmarks node`: our node and the real server in comparison, in one table.

Rules: standard output holds the table or the JSON and nothing else; progress is printed to standard error on a
terminal; the exit code is 0 only if every figure was measured (1: one was missed; 2: a bad command line). Servers run
in a temporary directory, which is removed.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.node.failover_and_start import TIMINGS, measure_timings
from benchmarks.node.measure import measure
from benchmarks.node.table import as_json, as_text
from benchmarks.node.timing import Say
from harness import KINDS
from harness.releases import DEBIAN, RELEASES
from spec.text import between

EXIT_MEASURED = 0
EXIT_MISSED = 1
MEASURES = ("load", *TIMINGS)
ERASE = "\r\x1b[K"


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks node",
        description="Measure one client's requests per second, and how long it waits, against the real ZooKeeper and"
        " against our node: the two in turn, several rounds, medians. Takes some minutes; leave the machine alone"
        " meanwhile.",
    )
    parser.add_argument(
        "--measure",
        choices=MEASURES,
        action="append",
        metavar="WHAT",
        help=f"measure only {' or '.join(MEASURES)}: requests; the time without a leader; the start with many znodes",
    )
    parser.add_argument("--only", choices=sorted(KINDS), help="measure only this kind of server")
    parser.add_argument(
        "--release", choices=RELEASES, default=DEBIAN, metavar="R", help="the real server's (default %(default)s)"
    )
    parser.add_argument("--rounds", type=between(1), default=5, metavar="N", help="rounds (default %(default)s)")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the requests: a look, not a measurement")
    parser.add_argument(
        "--directory", type=Path, metavar="DIR", help="where the servers' disks are (default: the temporary directory)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    options = parser.parse_args(argv)
    if options.directory is not None and not options.directory.is_dir():
        parser.error(f"--directory {options.directory}: the directory does not exist; name one that exists")
    return options


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    options = arguments(argv)
    kinds = [options.only] if options.only else ["real", "node"]
    chosen = options.measure or MEASURES
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=options.directory) as directory:
        say = _progress()
        report = measure(
            kinds if "load" in chosen else [], options.rounds, Path(directory), options.quick, say, options.release
        )
        also = [name for name in chosen if name != "load"]
        report = report.with_timings(*measure_timings(also, kinds, options.rounds, Path(directory), options.quick, say))
    if sys.stderr.isatty():
        sys.stderr.write(ERASE)
    sys.stdout.write((as_json(report) if options.json else as_text(report)) + "\n")
    return EXIT_MISSED if report.missed else EXIT_MEASURED


def _progress() -> Say:
    """Return a function that shows progress on one line of the terminal, or does nothing without a terminal."""
    if not sys.stderr.isatty():
        return lambda _: None
    return lambda text: print(ERASE + text, end="", file=sys.stderr, flush=True)
