"""The command `python -m benchmarks node`: our node and the real server in one table, as text or as JSON.

Rules of this module:

- Standard output holds the table or the JSON and nothing else; progress is printed to standard error on a terminal; the
  exit code is 0 only if every figure was measured (1: one was missed; 2: a bad command line). Servers run in a
  temporary directory, which is removed.
- Both forms show the same figures; a ratio is of two medians of one run; a case in which the load generator was not at
  least twice as fast as the faster server is marked, since its figure is then a bound and not a measurement. With one
  request outstanding this test is meaningless: there the figure of the generator is the round trip that no server can
  avoid.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.node.failover_and_start import TIMINGS, measure_timings
from benchmarks.node.measure import Figures, Report, Row, measure
from checker.command import show_on_terminal
from harness.ensemble import KINDS
from harness.releases import DEBIAN, RELEASES
from spec.text import between

ENOUGH = 2.0
"""The required speed of the load generator, as a multiple of the speed of the faster server."""
NONE = "-"
HEADINGS = (
    "operation",
    "outstanding",
    "servers",
    "real /s",
    "node /s",
    "node/real",
    "real p50 ms",
    "node p50 ms",
    "real p99 ms",
    "node p99 ms",
    "real cpu us",
    "node cpu us",
    "generator /s",
    "headroom",
)


def cells(row: Row) -> tuple[str, ...]:
    """A row as text, one cell for each of `HEADINGS`."""
    real, node = row.kinds.get("real"), row.kinds.get("node")
    return (
        row.case.operation,
        str(row.case.outstanding),
        str(row.case.servers),
        _rate(real),
        _rate(node),
        _times(row.ratio),
        NONE if real is None else _milliseconds(real.p50),
        NONE if node is None else _milliseconds(node.p50),
        NONE if real is None else _milliseconds(real.p99),
        NONE if node is None else _milliseconds(node.p99),
        _microseconds(real),
        _microseconds(node),
        _rate(row.generator),
        _times(row.headroom),
    )


def as_text(report: Report) -> str:
    """Aligned columns, the conditions of the measurement, and a line for each bounded or missing figure."""
    lines = [HEADINGS, *map(cells, report.rows)] if report.rows else []
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    missed = [f"{missed.name}: {missed}" for missed in report.missed]
    look = "; a quick look, too short to compare" if report.quick else ""
    rests = (
        f"real: {report.release}; medians of {report.rounds} rounds, kinds in turn; values of 100 bytes; fsync on, one"
        f" takes {report.fsync * 1000:.2f} ms on this disk{look}"
    )
    bounded = [
        f"{row.case}: bounded by the load generator, which is only {row.headroom:.1f} times as fast"
        for row in report.rows
        if row.case.outstanding > 1 and row.headroom is not None and row.headroom < ENOUGH
    ]
    return "\n".join([*aligned, rests, *bounded, *map(str, report.timings), *missed])


def as_json(report: Report) -> str:
    """One object: the conditions, `rows` (all figures, medians, ratios), `moments` and `missed`."""
    rows = [
        {
            **vars(row.case),
            "kinds": {kind: _figures(figures) for kind, figures in row.kinds.items()},
            "generator": _figures(row.generator),
            "ratio": row.ratio,
            "headroom": row.headroom,
        }
        for row in report.rows
    ]
    whole = {
        "release": report.release,
        "rounds": report.rounds,
        "quick": report.quick,
        "fsync_seconds": report.fsync,
        "rows": rows,
        "moments": list(map(vars, report.timings)),
        "missed": list(map(vars, report.missed)),
    }
    return json.dumps(whole, indent=2)


def _figures(figures: Figures) -> dict[str, object]:
    medians = {f"median_{name}": median(values) for name, values in vars(figures).items() if values}
    return {**vars(figures), **medians}


def _rate(figures: Figures | None) -> str:
    return NONE if figures is None else f"{figures.rate:,.0f}"


def _milliseconds(seconds: list[float]) -> str:
    return f"{median(seconds) * 1000:.3f}"


def _microseconds(figures: Figures | None) -> str:
    return NONE if figures is None or not figures.cpu else f"{median(figures.cpu) * 1e6:.0f}"


def _times(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


EXIT_MEASURED = 0
EXIT_MISSED = 1
MEASURES = ("load", *TIMINGS)


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
        say = show_on_terminal
        report = measure(
            kinds if "load" in chosen else [], options.rounds, Path(directory), options.quick, say, options.release
        )
        also = [name for name in chosen if name != "load"]
        report = report.with_timings(*measure_timings(also, kinds, options.rounds, Path(directory), options.quick, say))
    show_on_terminal()
    sys.stdout.write((as_json(report) if options.json else as_text(report)) + "\n")
    return EXIT_MISSED if report.missed else EXIT_MEASURED
