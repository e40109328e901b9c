"""The comparison as aligned text, and as JSON.

Rules: both forms show the same figures; a ratio is of two medians of one run; a case in which the load generator was
not at least twice as fast as the faster server is marked, since its figure is then a bound and not a measurement. With
one request outstanding this test is meaningless: there the figure of the generator is the round trip that no server can
avoid.
"""

import json
from statistics import median

from benchmarks.node.measure import Figures, Report, Row

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
