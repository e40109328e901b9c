"""The page in Markdown, made from a record; and its picture: states per second, and bytes per state, over the states.

Rules: Matplotlib is imported only to draw; the same figures give the same bytes; the picture
contains the digest of its figures, so that a test can tell whether it is older than the record.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.comparison import QUORATE, TITLES
from benchmarks.outcome import SPIN
from benchmarks.page.record import Record, Search, Series, digest
from benchmarks.stateright import STATERIGHT
from benchmarks.tlc.command import TLC
from checker.command import missing

OURS = Series(QUORATE, 1)
QUIET = 0.5  # a greater load before the run is work of others
HEADINGS = ("states", "tool", "seconds", "states/s", "bytes/state", "ratio")
RULES = """\
- Every search visits all states of its model, in its own process, one search after another, with one thread. Ours also
  runs with two.
- The ratio is the states per second of Quorate with one thread over those of the tool: above 1, Quorate is faster. It
  needs equal counts of states. A tool with another count has no figure.
- The time is that of the search, without compilation. The best of three runs counts if a run takes less than a second.
  The time of TLC is that of its process less that of a start with nothing to search.
- The memory is the peak resident size of the process, for Quorate and TLC less the size without a search. Less than 16
  MiB is not shown. A Java machine takes more memory than it needs.
- SPIN and stateright search depth-first here. TLC and Quorate search breadth-first and keep a part of their data in
  files. TLC and stateright distinguish states by fingerprints, as Quorate does; SPIN compares whole states.
- Both models have few local states, and so they suit [the table engine](explanation-tables.md), which calls each step
  function once for each combination of a local state and an event. `python -m benchmarks --only zab` measures a model
  that suits it less.
"""

ZAB_COUNTS = (
    ("2,2,2,-,1", "no", 72_613, 100_047, 38),
    ("2,2,2,2,2", "yes", 27_514, 41_428, 33),
    ("3,1,1,1,0", "no", 8_050, 13_564, 21),
    ("3,1,1,-,0", "no", 144_202, 285_970, 34),
    ("3,1,1,-,1", "yes", 97_586, 186_526, 41),
    ("3,1,2,-,0", "yes", 251_332, 610_035, 43),
    ("3,2,1,1,1", "no", 78_463, 182_401, 25),
    ("4,0,1,-,0", "yes", 1_271, 3_211, 36),
)
"""Counts that TLC printed for instances of Zab.tla, and that our search repeats: distinct, generated, depth."""
ZAB = """\
## Apache's Zab.tla

ZooKeeper's repository has a specification of Zab in TLA+, `zookeeper-specifications/protocol-spec/Zab.tla`. The file
`benchmarks/tlc/zab.py` states it again on our public API. `python -m benchmarks tlc --jar tla2tools.jar --zab Zab.tla`
compares our search with TLC's search of the file. A ratio needs equal counts of distinct and of generated states.

Both searched these instances with ten invariants, and found equal counts. An instance is the number of servers,
MaxTimeoutFailures, MaxTransactionNum, MaxEpoch (`-`: no limit) and MaxRestarts.

{table}
Our search alone exhausted two larger instances, with symmetry and without a violation: 3,1,4,-,1 with 95,115,799
distinct and 275,079,404 generated states, and 3,2,3,-,0 with 125,081,535 and 337,929,429. TLC did not search them here,
so that they have no ratio.

- The published row (3,1,1,2) cannot be compared. It is in `verification-statistics.md` beside the file, with
  9,602,018,536 states. Its numbers are servers, MaxTotalRestartNum, MaxElectionNum and MaxTransactionNum. They belong
  to an earlier specification: Zab.tla, since its first commit, limits time-outs and epochs, and has no constant for
  elections.
- The invariant LocalPrimaryOrder of the file is true in every state, so that it checks nothing. It demands the order of
  *some* two transactions of a primary (`\\E txn1, txn2`), and allows them to be the same one. A primary with at least
  two transactions always has such a pair. Our property demands the order of *all* pairs (`\\A`), and it holds too.
"""


def page(record: Record) -> str:
    """The page; it names the plot and the JSON as files beside it."""
    kind = "A quick run" if record.quick else "One run"
    parts = [
        "# Benchmarks\n",
        "This page shows the speed and the memory of exhaustive searches, by Quorate and by other model checkers, on\n"
        f"the same states. {kind} of `python -m benchmarks page` on {record.date} measured\n"
        "[the figures](benchmarks.json).\n",
        *_warning(record),
        "![States per second and bytes per state, over the number of states](benchmarks.svg)\n",
        RULES,
    ]
    parts += [_comparison(record, example) for example in TITLES if example in {name for name, _ in record.models()}]
    zab = [(*row[:2], *(f"{count:,}" for count in row[2:])) for row in ZAB_COUNTS]
    parts.append(ZAB.format(table=_table(("instance", "symmetric", "distinct", "generated", "depth"), zab)))
    parts += [_programs(record), *_gaps(record), _again(record)]
    return "\n".join(parts)


def _warning(record: Record) -> list[str]:
    if record.machine.load < QUIET:
        return []
    load = f"{record.machine.load:.1f}"
    return [
        f"**The machine was not quiet.** Its load before the run was {load}; {QUIET} would be right. "
        "The times are too long, and the ratios are not exact.\n"
    ]


def _comparison(record: Record, example: str) -> str:
    rows = []
    for name, size in record.models():
        if name != example:
            continue
        ours = record.find(name, size, OURS)
        for series in record.series():
            if search := record.find(name, size, series):
                rows.append((TITLES[name].format(size), *_cells(search, ours)))
    heading = TITLES[example].partition(",")[0].capitalize()
    return f"## {heading}\n\n{_table(('model', *HEADINGS), rows)}"


def _cells(found: Search, ours: Search | None) -> tuple[str, ...]:
    ratio = f"{ours.rate / found.rate:.2f}" if ours is not None and found.series.tool != QUORATE else ""
    memory = "" if found.bytes_per_state is None else f"{found.bytes_per_state:,.0f}"
    return f"{found.states:,}", str(found.series), f"{found.seconds:.3f}", f"{found.rate:,.0f}", memory, ratio


def _programs(record: Record) -> str:
    machine = record.machine
    rows = [
        ("processor", f"{machine.processor}, {machine.cores} cores"),
        ("memory", f"{machine.memory / 2**30:.0f} GiB"),
        ("system", machine.system),
        ("load before the run", f"{machine.load:.1f}"),
        *record.versions.items(),
    ]
    return f"## Machine and versions\n\n{_table(('property', 'value'), rows)}"


def _gaps(record: Record) -> list[str]:
    lines = [f"- {tool}: not measured: {reason.splitlines()[0]}" for tool, reason in record.missed.items()]
    if TLC not in {member.tool for member in record.series()} | set(record.missed):
        lines.append("- TLC: no jar was given.")
    lines += [f"- {gap.series}, {TITLES[gap.example].format(gap.size)}: {gap.reason}." for gap in record.left_out]
    return ["## Left out\n\n" + "\n".join(lines) + "\n"] if lines else []


def _again(record: Record) -> str:
    quick = " --quick" if record.quick else ""
    return f"""\
## Make this page again

Leave the machine alone meanwhile. The command needs SPIN, gcc and cargo, and for TLC the jar of the TLA+ tools. It
takes at most ten minutes, with `--quick` two.

    python -m benchmarks page docs{quick} --jar tla2tools.jar

`--from docs/benchmarks.json` writes the page and the plot again from the figures, and measures nothing.
"""


def _table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [headings, tuple("---" for _ in headings), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


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
    return missing("matplotlib")


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
            searches = [record.find(example, size, series) for name, size in record.models() if name == example]
            points = [(search.states, value) for search in searches if search and (value := figure(search)) is not None]
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
