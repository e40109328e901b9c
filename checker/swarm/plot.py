"""The coverage of a swarm over time as an SVG: distinct states, and the values of columns that were visited.

matplotlib is the extra `plots`, and is imported only to draw. The same figures give the same bytes: no date, and ids
from a fixed salt.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from checker.swarm.outcome import SwarmOutcome
from checker.user_files import OutputError

SETTINGS: Any = {"svg.hashsalt": "swarm", "svg.fonttype": "none", "font.size": 9, "axes.spines.top": False}
STATES, LOCAL = "#2166ac", "#b2182b"


def check_available(path: Path) -> None:
    """Raises OutputError if a plot cannot be drawn to this path."""
    if path.suffix != ".svg":
        raise OutputError(f"--plot {path}: the plot is an SVG; name a file that ends in .svg")
    if importlib.util.find_spec("matplotlib") is None:
        raise OutputError(f"--plot {path}: matplotlib is missing (pip install 'quorate[plots]')")


def draw(name: str, outcome: SwarmOutcome, path: Path) -> None:
    """Write the plot. Raises OutputError."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra, which the rest does without
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.ticker import FuncFormatter  # noqa: PLC0415

    samples = outcome.samples
    times = [0.0, *(sample.seconds for sample in samples)]
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(8, 3.6), layout="constrained")
        left = figure.subplots()
        right = left.twinx()
        curves = (
            (left, STATES, "distinct states (estimate)", [0, *(sample.states for sample in samples)]),
            (right, LOCAL, "local states", [0, *(sample.local_states for sample in samples)]),
        )
        for axis, colour, label, values in curves:
            axis.plot(times, values, color=colour, linewidth=1.6)
            axis.set_ylabel(label, color=colour)
            axis.tick_params(axis="y", colors=colour)
            axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
            axis.set_ylim(bottom=0)
        left.set_xlim(left=0, right=max(times) or 1)
        left.set_xlabel("seconds")
        for seen in outcome.found.values():
            left.axvline(outcome.seconds, color="black", linewidth=0.8, linestyle=":")
            left.annotate(f"{seen.prop.name} ", (outcome.seconds, 0), (0, 6), textcoords="offset points", ha="right")
            break
        figure.suptitle(f"{name}\n{outcome.walks:,} walks, {outcome.steps:,} steps, seed {outcome.seed}", fontsize=10)
        try:
            figure.savefig(path, format="svg", metadata={"Date": None})
        except OSError as error:
            raise OutputError(f"{path}: it cannot be written ({error})") from None
