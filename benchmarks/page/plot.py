"""The figures as an SVG: states per second, and bytes per state, over the number of states.

Rules: matplotlib is the extra `plots`, and is imported only to draw; the same figures give the same bytes; the picture
contains the digest of its figures, so that a test can tell whether it is older than the record.
"""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.comparison import QUORATE, TITLES
from benchmarks.outcome import SPIN
from benchmarks.page.record import Record, Search, Series, digest
from benchmarks.stateright import STATERIGHT
from benchmarks.tlc.run import TLC

INSTALL = "matplotlib is missing (pip install 'quorate[plots]')"
COLOURS = {
    (QUORATE, 1): "#2166ac",
    (QUORATE, 2): "#67a9cf",
    (SPIN, 1): "#b2182b",
    (STATERIGHT, 1): "#d9832b",
    (TLC, 1): "#6a6a6a",
}
SHAPES: dict[str, tuple[Any, str, str]] = {
    "two_phase_commit": ("-", "o", "two-phase commit"),
    "election": ("none", "s", "election"),
}
SETTINGS: Any = {"svg.hashsalt": "benchmarks", "svg.fonttype": "none", "font.size": 10}


def available() -> str | None:
    """None if a plot can be drawn here, else the missing package and the remedy in one line."""
    return None if importlib.util.find_spec("matplotlib") is not None else INSTALL


def draw(record: Record, file: Path) -> None:
    """Write the plot; matplotlib must be `available`."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra, which the rest does without
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(11, 5), layout="constrained")
        speed, memory = figure.subplots(1, 2)
        _panel(speed, record, lambda search: search.rate, "states per second")
        _panel(memory, record, lambda search: search.bytes_per_state, "bytes per state")
        figure.legend(handles=_legend(record), loc="outside lower center", ncols=7, frameon=False)
        metadata = {"Date": None, "Creator": None, "Description": f"figures {digest(record)}"}
        figure.savefig(file, format="svg", metadata=metadata)


def _panel(axis: Any, record: Record, figure: Callable[[Search], float | None], title: str) -> None:
    for series in record.series():
        for example, (line, marker, _) in SHAPES.items():
            found = [record.find(example, size, series) for name, size in record.models() if name == example]
            points = [(each.states, value) for each in found if each and (value := figure(each)) is not None]
            if points:
                axis.plot(
                    *zip(*points, strict=True), linestyle=line, marker=marker, markersize=5, color=_colour(series)
                )
    axis.set(xscale="log", yscale="log", xlabel="states of the model", title=title)
    axis.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_axisbelow(True)


def _colour(series: Series) -> str:
    return COLOURS.get((series.tool, series.threads), "black")


def _legend(record: Record) -> list[Any]:
    from matplotlib.lines import Line2D  # noqa: PLC0415

    tools = [Line2D([], [], color=_colour(series), linewidth=3, label=str(series)) for series in record.series()]
    present = {name for name, _ in record.models()}
    shapes = [
        Line2D([], [], color="black", linestyle=line, marker=marker, markersize=5, label=label)
        for name, (line, marker, label) in SHAPES.items()
        if name in present
    ]
    assert present <= set(SHAPES) <= set(TITLES)
    return [*tools, *shapes]
