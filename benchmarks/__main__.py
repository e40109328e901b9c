"""The command ``python -m benchmarks``: make the measurements, and print the table.

``node`` compares servers instead, ``budget`` divides the time of a request by layer, ``growth`` counts commits while a
learner is brought up to date, ``rollouts`` the planner,
``symmetry`` searches that visit fewer states, ``stateright`` and ``tlc`` our models against those of other checkers,
and ``page`` writes a page of results.

Rules: measurements run one after another in this order and nothing runs concurrently; the exit code is 0 only if every
requested figure was measured (1: at least one was missed; 2: a bad command line); standard output holds the table or
the JSON and nothing else.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from types import ModuleType

from rich.console import Console

from benchmarks import engine, rollouts, spin, stateright, symmetry
from benchmarks.node import budget, growth
from benchmarks.node import command as node
from benchmarks.outcome import SIZES, Missed, NotMeasured, Row
from benchmarks.page import command as page
from benchmarks.table import as_json, as_text, show
from benchmarks.tlc import command as tlc
from spec.text import between

Measurement = Callable[[int], list[Row]]

MEASUREMENTS: tuple[tuple[str, Measurement], ...] = (
    ("spin", spin.measure),
    ("engine", engine.measure),
    ("liveness", engine.measure_liveness),
    ("election", engine.measure_election),
    ("zab", engine.measure_zab),
)


COMMANDS: dict[str, ModuleType] = {
    "node": node,
    "budget": budget,
    "growth": growth,
    "rollouts": rollouts,
    "symmetry": symmetry,
    "stateright": stateright,
    "tlc": tlc,
    "page": page,
}
EXIT_MEASURED = 0
EXIT_MISSED = 1


def arguments(argv: Sequence[str] | None, program: str) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog=program,
        description="Measure complete searches of one model by several tools, one after the other, and "
        "print states, time, memory and ratios. Leave the machine alone meanwhile. Nothing is installed: a "
        "tool that is missing is named, and the command then ends with exit code 1. "
        "`python -m benchmarks node` compares the reference node with the real ZooKeeper instead, "
        "`python -m benchmarks budget` divides the node's time of a request by layer, `python -m benchmarks growth` "
        "shows what many commits during a synchronisation cost, `python -m benchmarks rollouts` times the "
        "planner, `python -m benchmarks symmetry` searches that visit fewer states, "
        "`python -m benchmarks stateright` and `python -m benchmarks tlc` compare models with those of stateright and "
        "of TLC, and `python -m benchmarks page` writes a page of results with a plot.",
    )
    names = [name for name, _ in MEASUREMENTS]
    parser.add_argument(
        "--only", action="append", choices=names, metavar="NAME", help=f"measure only {' or '.join(names)}"
    )
    parser.add_argument(
        "--servers",
        type=between(min(SIZES), max(SIZES)),
        default=max(SIZES),
        help="size of the model (default %(default)s; 3 is a quick look, too short to compare speeds)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    return parser.parse_args(argv)


def measure(chosen: Sequence[tuple[str, Measurement]], servers: int) -> tuple[list[Row], list[Missed]]:
    """Make the chosen measurements one after another."""
    rows: list[Row] = []
    missed: list[Missed] = []
    for name, measurement in chosen:
        try:
            rows += measurement(servers)
        except NotMeasured as reason:
            missed.append(Missed(name, str(reason)))
    return rows, missed


def main(argv: Sequence[str] | None = None, program: str = "python -m benchmarks") -> int:
    """Run the command and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in COMMANDS:
        return int(COMMANDS[words[0]].main(words[1:]))
    options = arguments(words, program)
    chosen = [entry for entry in MEASUREMENTS if options.only is None or entry[0] in options.only]
    rows, missed = measure(chosen, options.servers)
    if options.json:
        sys.stdout.write(as_json(options.servers, rows, missed) + "\n")
    elif sys.stdout.isatty():
        show(Console(), rows, missed)
    else:
        sys.stdout.write(as_text(rows, missed) + "\n")
    return EXIT_MISSED if missed else EXIT_MEASURED


if __name__ == "__main__":
    sys.exit(main())
