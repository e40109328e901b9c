"""The report of a swarm as text and as JSON.

Every statement is a number of the swarm or comes from its judgement.

`draw` draws the coverage over time as an SVG. matplotlib is imported only to draw. The
same figures give the same bytes: no date, and ids from a fixed salt.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from checker.command import missing
from checker.engine.model import Kind, Property
from checker.engine.result import Limits, Stop
from checker.job import Job
from checker.report.text import Importance, Line, laid_out, section
from checker.report.verdict import Judgement, is_idle, may_be_idle
from checker.swarm.outcome import DEFAULT_DEPTH, STANDARD_ERROR, Sample, SwarmOutcome
from checker.traces.itf import to_itf
from checker.traces.trace import Trace, values_of
from checker.user_files import OutputError

SCHEMA = 1
ROWS = 10  # of the table of the coverage
BARS = "▁▂▃▄▅▆▇█"
WIDTH = 60  # characters of a curve
NOT_SHORTEST = "a swarm found the run, and it is not shown to be shortest"
SHORTEST = "a swarm found the run, and a breadth-first search shows that it is shortest"
ENDS = {
    Stop.FOUND: "stopped at a finding; the walks before it were finished",
    Stop.WORK: "stopped at the number of walks given",
    Stop.TIME: "stopped at the time given",
    Stop.MEMORY: "stopped at the memory given",
    Stop.INTERRUPTED: "interrupted",
}


def swarm_lines(job: Job, outcome: SwarmOutcome, judgement: Judgement) -> list[Line]:
    """The whole report."""
    properties, sightings = outcome.properties, outcome.sightings
    rows = [_property(job, outcome, prop) for prop in properties]
    warned = [(prop.kind is Kind.SOMETIMES) is not (prop.name in sightings) for prop in properties]
    costs = [section("swarm", _figures(outcome)), coverage_lines(outcome.samples)]
    return laid_out(job, outcome, judgement, limits_text(outcome.limits), rows, warned, costs)


def limits_text(limits: Limits) -> str:
    """The limits of a swarm in words."""
    parts = [
        f"depth {limits.depth or DEFAULT_DEPTH}",
        "" if limits.work is None else f"{limits.work:,} walks",
        "" if limits.seconds is None else f"{limits.seconds:g} s",
    ]
    return ", ".join(part for part in parts if part)


def _property(job: Job, outcome: SwarmOutcome, prop: Property) -> tuple[str, ...]:
    count = outcome.evaluations.get(prop.name)
    if prop.kind.is_liveness or count is None:
        by_run = "liveness is judged by `run` alone" if prop.kind.is_liveness else "judged in every step"
        return prop.name, prop.kind.value, property_outcome(outcome, prop), by_run
    idle = is_idle(outcome, prop)
    premise = "its premise never held" if not count.premise else f"its premise held {count.premise:,} times"
    excuse = " (allowed)" if idle and may_be_idle(job, prop) else ""
    figures = f"evaluated {count.states:,} times, {premise}{excuse}" if count.states else "never evaluated"
    return prop.name, prop.kind.value, property_outcome(outcome, prop), figures


def property_outcome(outcome: SwarmOutcome, prop: Property) -> str:
    """The outcome of one property, in a few words."""
    if prop.kind.is_liveness:
        return "not judged"
    sighting = outcome.sightings.get(prop.name)
    if sighting is None:
        return "never witnessed" if prop.kind is Kind.SOMETIMES else "no violation seen"
    word = {Kind.SOMETIMES: "witnessed", Kind.FINAL: "DEADLOCK"}.get(prop.kind, "VIOLATED")
    return f"{word} at step {sighting.step} of walk {sighting.walk}"


def _figures(outcome: SwarmOutcome) -> list[tuple[str, str]]:
    e = outcome
    rate = f" ({e.transitions / e.seconds:,.0f} a second)" if e.seconds > 0 else ""
    cut = f", {e.cut:,} of them cut by the end" if e.cut else ""
    rows = [
        ("end", ENDS[e.stop]),
        ("seed", f"{e.seed}; --walk K with this seed and depth repeats the walk number K"),
        ("walks", f"{e.walks:,}{cut}"),
        ("steps", f"{e.transitions:,}{rate}"),
        ("depth", f"the longest walk has {e.depth} steps, the mean is {e.mean_depth:.1f}"),
        ("distinct states", f"about {e.states:,} (HyperLogLog, standard error {STANDARD_ERROR:.2%})"),
        ("local states", f"{sum(e.local_states.values()):,} values of {len(e.local_states)} columns"),
    ]
    if e.deadlocks:
        rows.append(("ends of runs", f"{e.deadlocks:,} walks met a state without a successor"))
    rows.append(("time", f"{e.seconds:.2f} s, of which Python took {e.python_seconds:.2f} s to fill the tables"))
    return [*rows, ("workers", e.workers[0])]


def coverage_lines(samples: Sequence[Sample]) -> list[Line]:
    """The coverage over time: a table of some moments, and two curves."""
    chosen = at_equal_times(samples, ROWS)
    if not chosen:
        return []
    rows = [
        ("time", "walks", "steps", "distinct states", "local states"),
        *(
            (f"{s.seconds:.2f} s", f"{s.walks:,}", f"{s.steps:,}", f"{s.states:,}", f"{s.local_states:,}")
            for s in chosen
        ),
    ]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    table = ["  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    points = at_equal_times(samples, WIDTH)
    curves = [
        f"  distinct states  {curve([s.states for s in points])}",
        f"  local states     {curve([s.local_states for s in points])}",
    ]
    return [Line("coverage over time", Importance.HEADING), *map(Line, [*table, *curves])]


def at_equal_times(samples: Sequence[Sample], count: int) -> list[Sample]:
    """The last sample before each of some moments at equal distances, without repetitions; the last one is the end."""
    if not samples:
        return []
    moments = [samples[-1].seconds * (n + 1) / count for n in range(count)]
    chosen = [next((s for s in reversed(samples) if s.seconds <= moment), samples[0]) for moment in moments]
    return list(dict.fromkeys([*chosen[:-1], samples[-1]]))


def curve(values: Sequence[int]) -> str:
    """A line of bars, whose height is in proportion to the values."""
    most = max(values, default=0) or 1
    return "".join(BARS[min(len(BARS) - 1, value * len(BARS) // most)] for value in values)


def swarm_json(job: Job, outcome: SwarmOutcome, judgement: Judgement, traces: Sequence[Trace]) -> dict[str, Any]:
    """The report as an object; it contains only types that `json.dumps` accepts."""
    e = outcome
    return {
        "schema": SCHEMA,
        "job": {"name": job.name, "grain": job.grain, "bounds": list(job.bounds)},
        "verdict": judgement.verdict.value,
        "as_expected": judgement.as_expected,
        "exit_code": judgement.exit_code,
        "sentence": judgement.sentence,
        "limits": {"depth": e.limits.depth or DEFAULT_DEPTH, "walks": e.limits.work, "seconds": e.limits.seconds},
        "properties": [_property_json(outcome, prop) for prop in outcome.properties],
        "actions": [{"name": name, "fired": coverage.fired} for name, coverage in sorted(e.coverage.items())],
        "swarm": {
            "seed": e.seed,
            "workers": e.workers[0],
            "end": "walks" if e.stop is Stop.WORK else e.stop.value,
            "walks": e.walks,
            "cut": e.cut,
            "steps": e.transitions,
            "depth": e.depth,
            "mean_depth": e.mean_depth,
            "walks_by_depth": {str(depth): walks for depth, walks in sorted(e.depths.items())},
            "distinct_states": {
                "estimate": e.states, "method": "HyperLogLog", "standard_error": STANDARD_ERROR,
            },
            "local_states": dict(e.local_states),
            "ends": e.deadlocks,
            "seconds": e.seconds,
            "steps_per_second": e.transitions / e.seconds if e.seconds > 0 else None,
            "python_seconds": e.python_seconds,
        },
        "coverage": [sample._asdict() for sample in e.samples],
        "traces": [json.loads(to_itf(trace)) for trace in traces],
    }  # fmt: skip


def _property_json(outcome: SwarmOutcome, prop: Property) -> dict[str, Any]:
    count, sighting = outcome.evaluations.get(prop.name), outcome.sightings.get(prop.name)
    discovery = outcome.found.get(prop.name)
    return {
        "name": prop.name,
        "kind": prop.kind.value,
        "outcome": property_outcome(outcome, prop),
        "evaluated": None if count is None else count.states,
        "premise": None if count is None else count.premise,
        "seen": None if sighting is None else {"step": sighting.step, "walk": sighting.walk},
        "found": None
        if discovery is None
        else {
            "depth": discovery.depth,
            "shown_to_be_shortest": prop.name in outcome.shortest,
            "clause": discovery.finding.clause,
            "values": [list(pair) for pair in values_of(discovery.finding)],
        },
    }


SETTINGS: Any = {"svg.hashsalt": "swarm", "svg.fonttype": "none", "font.size": 9, "axes.spines.top": False}
STATES, LOCAL = "#2166ac", "#b2182b"


def check_available(path: Path) -> None:
    """Raises OutputError if a plot cannot be drawn to this path."""
    if path.suffix != ".svg":
        raise OutputError(f"--plot {path}: the plot is an SVG; name a file that ends in .svg")
    if problem := missing("matplotlib"):
        raise OutputError(f"--plot {path}: {problem}")


def draw(name: str, outcome: SwarmOutcome, path: Path) -> None:
    """Write the plot. Raises OutputError."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra, which the rest does without
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.ticker import FuncFormatter  # noqa: PLC0415

    samples = outcome.samples
    times = [0.0, *(sample.seconds for sample in samples)]
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(8, 3.6), layout="constrained")
        axis_of_states = figure.subplots()
        right = axis_of_states.twinx()
        curves = (
            (axis_of_states, STATES, "distinct states (estimate)", [0, *(sample.states for sample in samples)]),
            (right, LOCAL, "local states", [0, *(sample.local_states for sample in samples)]),
        )
        for axis, colour, label, values in curves:
            axis.plot(times, values, color=colour, linewidth=1.6)
            axis.set_ylabel(label, color=colour)
            axis.tick_params(axis="y", colors=colour)
            axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
            axis.set_ylim(bottom=0)
        axis_of_states.set_xlim(left=0, right=max(times) or 1)
        axis_of_states.set_xlabel("seconds")
        for discovery in outcome.found.values():
            axis_of_states.axvline(outcome.seconds, color="black", linewidth=0.8, linestyle=":")
            axis_of_states.annotate(
                f"{discovery.prop.name} ", (outcome.seconds, 0), (0, 6), textcoords="offset points", ha="right"
            )
            break
        figure.suptitle(
            f"{name}\n{outcome.walks:,} walks, {outcome.transitions:,} steps, seed {outcome.seed}", fontsize=10
        )
        try:
            figure.savefig(path, format="svg", metadata={"Date": None})
        except OSError as error:
            raise OutputError(f"{path}: it cannot be written ({error})") from None
