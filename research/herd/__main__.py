"""The command `python -m research.herd`: the cost of a leader's death, for several ways to watch.

Rules: standard output holds the table or the JSON and nothing else; progress is printed to standard error on a
terminal; the exit code is 0 only if every figure was measured and agrees with the model (1: one was missed, or differs;
2: a bad command line). Servers run in a temporary directory, which is removed.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.node.timing import Say
from research.herd import plot
from research.herd.live import measure
from research.herd.model import STRATEGIES
from research.herd.table import as_json, as_text
from spec.text import INT, between, integers

EXIT_MEASURED = 0
EXIT_MISSED = 1
SIZES = (2, 5, 10, 25, 50)
KINDS = {"real": ("real",), "node": ("node",), "both": ("real", "node"), "none": ()}
ERASE = "\r\x1b[K"


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m research.herd",
        description="Let leaders die, and count what that costs the others: notifications, requests, and the time"
        " until a new leader knows, for each way to wait, beside what the model counts. Leave the machine alone"
        " meanwhile.",
    )
    sizes = ",".join(map(str, SIZES))
    parser.add_argument("--clients", type=_sizes, default=SIZES, metavar="N,...", help=f"sizes (default {sizes})")
    parser.add_argument(
        "--kind", choices=KINDS, default="both", help="which servers; `none` counts in the model only (default: both)"
    )
    parser.add_argument(
        "--deaths", type=between(1), default=11, metavar="K", help="of each group (default %(default)s)"
    )
    parser.add_argument(
        "--watched", choices=STRATEGIES, action="append", metavar="WAY", help=f"only {' or '.join(STRATEGIES)}"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw it; needs matplotlib")
    parser.add_argument("--directory", type=Path, metavar="DIR", help="where the servers' disks are")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    options = parser.parse_args(argv)
    if options.directory is not None and not options.directory.is_dir():
        parser.error(f"--directory {options.directory}: the directory does not exist; name one that exists")
    if options.plot is not None:
        if options.plot.suffix != ".svg" or not options.plot.absolute().parent.is_dir():
            parser.error(f"--plot {options.plot}: a file that ends in .svg, in a directory that exists, would be right")
        if reason := plot.available():
            parser.error(f"--plot: {reason}")
    return options


def _sizes(text: str) -> tuple[int, ...]:
    sizes = integers(text.split(","), 2, INT[1])
    if sizes is None:
        raise argparse.ArgumentTypeError(f"{text!r}: numbers of clients, 2 or more, with commas between them")
    return tuple(sorted(set(sizes)))


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    options = arguments(argv)
    kinds = KINDS[options.kind]
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=options.directory) as directory:
        report = measure(
            options.clients, kinds, options.deaths, Path(directory), _progress(), options.watched or tuple(STRATEGIES)
        )
    if options.plot is not None:
        plot.draw(report, options.plot)
    if sys.stderr.isatty():
        sys.stderr.write(ERASE)
    sys.stdout.write((as_json(report) if options.json else as_text(report)) + "\n")
    agrees = all(row.agrees(kind) for row in report.rows for kind in row.deaths)
    return EXIT_MEASURED if agrees and not report.missed else EXIT_MISSED


def _progress() -> Say:
    if not sys.stderr.isatty():
        return lambda _: None
    return lambda text: print(ERASE + text, end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
