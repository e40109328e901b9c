"""The table of figures: on a terminal, as plain aligned text, and as JSON.

Rules: the three forms show the same cells; a ratio is taken only to a row of SPIN on the same workload in the same run,
and is a dash if that row is missing; a missed measurement is a separate line under the table.
"""

import json
from collections.abc import Sequence

from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table

from benchmarks.outcome import SPIN, Missed, Row

HEADINGS = (
    "workload",
    "tool",
    "states",
    "transitions",
    "search s",
    "setup s",
    "10^6 per s",  # transitions
    "warm",  # the same, without the time in Python
    "steps per 1000",  # calls of Python step functions, per thousand transitions
    "peak MiB",
    "bytes per state",
    "speed ratio to SPIN",
    "memory ratio to SPIN",
)
TEXT_COLUMNS = 2  # the first ones are aligned to the left, figures to the right
NO_RATIO = "-"


def yardstick(row: Row, rows: Sequence[Row]) -> Row | None:
    """SPIN's row on the same workload in the same run, if it exists."""
    return next((entry for entry in rows if entry.tool == SPIN and entry.workload == row.workload), None)


def speed_ratio(row: Row, rows: Sequence[Row]) -> float | None:
    """States per second over SPIN's: above 1 is faster."""
    spin = yardstick(row, rows)
    return None if spin is None else row.states_per_second / spin.states_per_second


def memory_ratio(row: Row, rows: Sequence[Row]) -> float | None:
    """Bytes per state over SPIN's: below 1 is smaller."""
    spin = yardstick(row, rows)
    return None if spin is None else row.bytes_per_state / spin.bytes_per_state


def cells(row: Row, rows: Sequence[Row]) -> tuple[str, ...]:
    """A row as text, one cell for each of `HEADINGS`."""
    return (
        row.workload,
        row.tool,
        f"{row.states:,}",
        f"{row.transitions:,}",
        f"{row.seconds:.2f}",
        f"{row.setup_seconds:.2f}",
        f"{row.transitions_per_second / 1e6:.1f}",
        NO_RATIO if row.warm_transitions_per_second is None else f"{row.warm_transitions_per_second / 1e6:.1f}",
        _ratio(row.steps_per_thousand),
        f"{row.peak_bytes / 2**20:,.0f}",
        f"{row.bytes_per_state:,.1f}",
        _ratio(speed_ratio(row, rows)),
        _ratio(memory_ratio(row, rows)),
    )


def as_text(rows: Sequence[Row], missed: Sequence[Missed]) -> str:
    """Aligned columns, then a line for each missed measurement."""
    lines = [HEADINGS, *(cells(row, rows) for row in rows)] if rows else []
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = ["  ".join(map(_aligned, line, widths, range(len(line)))).rstrip() for line in lines]
    return "\n".join([*aligned, *map(_missed_line, missed)])


def as_json(servers: int, rows: Sequence[Row], missed: Sequence[Missed]) -> str:
    """One object: `servers`, `rows` (fields of `Row`, rates and ratios; null without a ratio), `missed`."""
    figures = [
        {
            **vars(row),
            "states_per_second": row.states_per_second,
            "transitions_per_second": row.transitions_per_second,
            "warm_transitions_per_second": row.warm_transitions_per_second,
            "steps_per_thousand_transitions": row.steps_per_thousand,
            "bytes_per_state": row.bytes_per_state,
            "speed_ratio_to_spin": speed_ratio(row, rows),
            "memory_ratio_to_spin": memory_ratio(row, rows),
        }
        for row in rows
    ]
    return json.dumps({"servers": servers, "rows": figures, "missed": list(map(vars, missed))}, indent=2)


def show(console: Console, rows: Sequence[Row], missed: Sequence[Missed]) -> None:
    """Draw the figures on a terminal, a table for each workload, and every missed measurement."""
    for name in dict.fromkeys(row.workload for row in rows):
        console.print(_drawn(name, [row for row in rows if row.workload == name]))
    for line in map(_missed_line, missed):
        console.print(line, style="bold red", markup=False, highlight=False)


def _drawn(workload: str, rows: Sequence[Row]) -> Table:
    # The table has no borders, and the workload is the title, so that the figures fit into eighty characters. A column
    # is as wide as its longest figure or word of the heading, because rich would otherwise break either. A column
    # without a figure is left out.
    table = Table(title=workload, box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    columns = list(zip(HEADINGS, *(cells(row, rows) for row in rows), strict=True))[1:]
    filled = [column for column in columns if set(column[1:]) != {NO_RATIO}]
    for heading, *figures in filled:
        justify: JustifyMethod = "left" if heading == "tool" else "right"
        table.add_column(heading, justify=justify, width=max(map(len, [*figures, *heading.split()])))
    for line in zip(*(figures for _, *figures in filled), strict=True):
        table.add_row(*line)
    return table


def _ratio(value: float | None) -> str:
    return NO_RATIO if value is None else f"{value:.2f}"


def _aligned(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column < TEXT_COLUMNS else cell.rjust(width)


def _missed_line(missed: Missed) -> str:
    return f"{missed.name}: {missed}"
