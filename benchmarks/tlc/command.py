"""``python -m benchmarks tlc --jar tla2tools.jar``: states per second of our models, and of TLC on the same in TLA+.

`Election.tla` is the small election, and `TwoPhase.tla` the two-phase commit of `docs/examples`. The jar is that of the
TLA+ tools; it is not part of this project.

Rules: all searches run in this run, one after another, each in its own process and with the same number of threads; a
ratio needs equal counts of distinct states; the best of several runs counts, for both.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.comparison import QUORATE, Comparison, SearchFigures, as_rows, as_text, searched
from benchmarks.outcome import NotMeasured
from benchmarks.tlc.run import TLC, Start, search, start
from spec.text import between

OURS = {"election": "rounds", "two_phase_commit": "two_phase_commit"}
"""The names of the models in `benchmarks.search_alone`."""


def compare(jar: Path, empty: Start, example: str, size: int, threads: int, runs: int) -> Comparison:
    """Search a model with both, in turns. Raises NotMeasured."""
    ours = [sys.executable, "-m", "benchmarks.search_alone", OURS[example], str(size), str(threads)]
    searches: dict[str, list[SearchFigures]] = {TLC: [], QUORATE: []}
    for _ in range(runs):
        searches[TLC].append(search(jar, empty, example, size, threads))
        searches[QUORATE].append(searched(QUORATE, ours))
    best = {tool: min(group, key=lambda figures: figures.seconds) for tool, group in searches.items()}
    return Comparison(example, size, best[TLC], best[QUORATE])


def jar_file(text: str) -> Path:
    """The absolute path of a jar, for the command line; raises ArgumentTypeError."""
    path = Path(text).absolute()
    if path.suffix != ".jar" or not path.is_file():
        raise argparse.ArgumentTypeError(f"{text}: this is no jar file; the path of tla2tools.jar would be right")
    return path


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks tlc",
        description="Measure the small election and two-phase commit against TLC, the model checker of TLA+, in one "
        "run and with the same number of threads. The jar is that of the TLA+ tools and is not installed.",
    )
    parser.add_argument("--jar", type=jar_file, required=True, metavar="FILE", help="tla2tools.jar")
    parser.add_argument(
        "--servers", type=between(3, 4), nargs="+", default=[3], metavar="N",
        help="sizes of the election, 3 or 4 (default: 3; TLC needs a quarter of an hour for 4)",
    )  # fmt: skip
    parser.add_argument("--managers", type=between(1), nargs="+", default=[5, 7], metavar="N", help="sizes of 2pc")
    parser.add_argument("--threads", type=between(1, 2), default=1, help="of both (default: 1)")
    parser.add_argument(
        "--runs", type=between(1), default=1, metavar="N", help="the best of N runs counts (default: 1)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Run the command; 1 if a figure is missing."""
    options = arguments(argv)
    comparisons, missed = [], 0
    try:
        empty = start(options.jar)
    except NotMeasured as reason:
        sys.stderr.write(f"not measured: {reason}\n")
        return 1
    for example, sizes in (("election", options.servers), ("two_phase_commit", options.managers)):
        for size in sizes:
            try:
                comparisons.append(compare(options.jar, empty, example, size, options.threads, options.runs))
            except NotMeasured as reason:
                missed += 1
                sys.stderr.write(f"not measured: {reason}\n")
    if options.json:
        result = {"threads": options.threads, "version": empty.version, "comparisons": as_rows(comparisons)}
        sys.stdout.write(json.dumps(result, indent=2) + "\n")
    elif comparisons:
        sys.stdout.write(f"{as_text(comparisons)}\n{options.threads} thread(s) each, best of {options.runs}\n")
        sys.stdout.write(f"TLC {empty.version}; its start took {empty.seconds:.2f} s, which is not counted\n")
    return 1 if missed else 0
