"""The herd as an SVG: notifications, requests, and the time until a new leader knows, over the number of clients.

Rules of this module:

- matplotlib is imported only to draw; if it is missing, the error gives this reason.
- The same figures give the same bytes: no date, and ids from a fixed salt.
- Bars are measured figures; the mark on a bar is the count of the model.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.outcome import NotMeasured
from checker.command import missing
from research.herd.live import Report, Row

COLOURS = ("#b2182b", "#ef8a62", "#d9a441", "#2166ac", "#67a9cf")
"""Warm colours for the strategies that notify all clients, cold ones for the predecessor."""
SETTINGS: Any = {"svg.hashsalt": "herd", "svg.fonttype": "none", "font.size": 9, "axes.spines.top": False}


class NoPlotError(NotMeasured):
    """The figures cannot be drawn; the message gives the reason."""


def available() -> str | None:
    """None if a plot can be drawn here, else the missing package and the remedy in one line."""
    return missing("matplotlib")


def draw(report: Report, file: Path) -> None:
    """Write the plot. Raises NoPlotError if matplotlib is missing."""
    if reason := available():
        raise NoPlotError(reason)
    import matplotlib as mpl  # noqa: PLC0415 - an extra, which the rest does without
    from matplotlib.figure import Figure  # noqa: PLC0415

    # The counts are those of the first measured kind, since the model is the same for all kinds.
    kinds = [kind for kind in report.kinds if any(kind in row.deaths for row in report.rows)]
    first = kinds[0] if kinds else None
    suffix = "" if first is None else f" ({first})"
    panels = [
        Panel(f"notifications per death{suffix}", _of(Row.notifications, first), lambda row: row.counted.notifications),
        Panel(f"requests per death{suffix}", _of(Row.requests, first), lambda row: row.counted.requests),
        *(Panel(f"ms until a new leader knows ({kind})", _of(_milliseconds, kind)) for kind in kinds),
    ]
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(11, 2.9 * len(panels)), layout="constrained")
        axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
        for axis, panel in zip(axes, panels, strict=True):
            _draw(axis, report, panel)
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=min(6, len(names)), frameon=False)
        figure.suptitle("What the death of one leader costs, by what the others watch")
        figure.savefig(file, format="svg", metadata={"Date": None})


Figures = Callable[[Row], float | None]


class Panel(NamedTuple):
    """One chart: its title, the measured figures, and the counts of the model, if it has them."""

    title: str
    measured: Figures
    counted: Figures | None = None


def _of(figure: Callable[[Row, str], float], kind: str | None) -> Figures:
    return lambda row: figure(row, kind) if kind is not None and kind in row.deaths else None


def _milliseconds(row: Row, kind: str) -> float:
    return row.seconds(kind) * 1000


def _draw(axis: Any, report: Report, panel: Panel) -> None:
    strategies = list(dict.fromkeys(row.strategy.name for row in report.rows))
    sizes = sorted({row.clients for row in report.rows})
    width = 0.8 / len(strategies)
    for number, (strategy, colour) in enumerate(zip(strategies, COLOURS, strict=False)):
        rows = [
            next(row for row in report.rows if (row.strategy.name, row.clients) == (strategy, size)) for size in sizes
        ]
        places = [place + (number - (len(strategies) - 1) / 2) * width for place in range(len(sizes))]
        heights = [panel.measured(row) or 0.0 for row in rows]
        axis.bar(places, heights, width * 0.92, color=colour, label=strategy)
        tops = heights
        if panel.counted is not None:
            tops = [panel.counted(row) or 0.0 for row in rows]
            label = "counted in the model" if number == len(strategies) - 1 else None
            axis.plot(places, tops, linestyle="none", marker="_", markersize=11, color="black", label=label)
        texts = [f"{height:.1f}" if panel.counted is None else f"{height:g}" for height in heights]
        for place, top, text in zip(places, map(max, heights, tops), texts, strict=True):
            axis.annotate(text, (place, top), (0, 3), textcoords="offset points", ha="center", fontsize=7)
    axis.set_title(panel.title, loc="left", fontsize=10)
    axis.set_xticks(range(len(sizes)), [f"{size} clients" for size in sizes])
    axis.yaxis.get_major_locator().set_params(integer=True)
    axis.spines["right"].set_visible(False)
    axis.margins(y=0.15)
