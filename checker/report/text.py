"""The report of a run as text, and its progress before that.

The first line of the report is the verdict. After it come the job and its bounds, each property, each action, and the
costs of the search. Rules of this module:

- The layout is the same everywhere. On a terminal the verdict and all warnings have a colour; elsewhere no control
  character is written and no line is folded.
- This module judges nothing; every statement is a number of the run or comes from its judgement.
- Numbers that an engine does not measure (memory, Python steps) are left out, not shown as zero.

The progress of a run is a line that changes on a terminal, and a new line every few seconds elsewhere. It goes to
standard error; standard output has the report:

- `explore` calls the object as often as it likes; the object limits the number of lines.
- `close` removes the line from a terminal and ends the output.
- In a notebook it is one line of the output, which is written again, and which `close` empties.
- A closed stream ends the output, and the run continues.
- Each line is made from the exploration in the call; the object has no state of the search.
"""

import sys
import time
from collections.abc import Callable, Sequence
from enum import Enum
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from checker.engine.model import Kind, Property
from checker.engine.result import COMPILING, Coverage, Exploration, Limits, Liveness
from checker.job import Job, Verdict
from checker.report.verdict import Judgement, fairness, is_idle, may_be_idle, memory
from spec.text import on_a_line

LEAST_PYTHON = 1.0  # seconds of Python for which the report has the functions that took them
MOST_SHOWN = 5  # functions, and columns
NEGLIGIBLE = 1e-6  # a probability of a collision for which the report offers no second search

STYLES = {
    Verdict.VIOLATED: "bold red",
    Verdict.DEADLOCK: "bold red",
    Verdict.ERROR: "bold red",
    Verdict.INCOMPLETE: "bold yellow",
    Verdict.VACUOUS: "bold yellow",
    Verdict.PASSED: "bold green",
}


class Importance(Enum):
    """The importance of a line; its value is the style on a terminal."""

    HEADING = "bold"
    WARNING = "yellow"  # a finding, or a part of the run that never happened
    PLAIN = ""


class Line(NamedTuple):
    """A line of the report."""

    text: str
    importance: Importance = Importance.PLAIN


def report_lines(job: Job, exploration: Exploration, judgement: Judgement, *, levels: bool = False) -> list[str]:
    """The whole report; with `levels`, also the number of states at each depth."""
    return [line.text for line in search_lines(job, exploration, judgement, levels=levels)]


def search_lines(job: Job, exploration: Exploration, judgement: Judgement, *, levels: bool = False) -> list[Line]:
    """The lines of the report of an exhaustive search."""
    properties = exploration.properties
    rows = [_property(job, exploration, prop) for prop in properties]
    warned = [_is_warning(exploration, prop) for prop in properties]
    costs = [_search(exploration), _python(exploration), _levels(exploration) if levels else []]
    return laid_out(job, exploration, judgement, _limits(exploration.limits), rows, warned, costs)


def laid_out(
    job: Job,
    exploration: Exploration,
    judgement: Judgement,
    limits: str,
    properties: Sequence[tuple[str, ...]],
    warned: Sequence[bool],
    costs: Sequence[Sequence[Line]],
) -> list[Line]:
    """A report with these rows about the properties, some with a warning, and sections about the costs."""
    described = [("grain", job.grain), *(("bound" if n else "bounds", text) for n, text in enumerate(job.bounds))]
    sections = [
        [Line(judgement_line(judgement)), *_further(judgement)],
        section(job.name, [*described, *([("limits", limits)] if limits else [])]),
        section("properties", properties, warned) if properties else [Line("properties: none", Importance.HEADING)],
        _fairness(exploration),
        _actions(job, exploration, judgement),
        *costs,
    ]
    lines: list[Line] = []
    for part in sections:
        if part:
            lines += [*([Line("")] if lines else []), *(Line(on_a_line(text), level) for text, level in part)]
    return lines


def judgement_line(judgement: Judgement) -> str:
    """The verdict in a sentence, and whether it was expected."""
    return on_a_line(judgement.sentence + (f" ({judgement.remark})" if judgement.remark else ""))


def summary_line(
    job: Job, exploration: Exploration | None, judgement: Judgement, widths: Sequence[int] = (30, 14)
) -> str:
    """A run of a set in one line; `widths` are the widths of the name and the grain. None: it could not begin."""
    name, grain = (text.ljust(width) for text, width in zip((job.name, job.grain), widths, strict=True))
    states = "-" if exploration is None else f"{exploration.states:,}"
    depth = "-" if exploration is None else str(exploration.depth)
    remark = f" ({judgement.remark})" if judgement.remark else ""
    return on_a_line(f"{name}  {grain}  {states:>13}  {depth:>5}  {judgement.verdict.value}{remark}")


def invariants_lines(explorations: Sequence[Exploration]) -> list[str]:
    """The invariants that a set of runs tested: the number of runs without a violation and of those with one, of
    examined states, and of states where the premise held.
    """
    figures: dict[str, list[tuple[int, int, int, int]]] = {}
    for exploration in explorations:
        for prop in exploration.model.properties:
            if prop.kind is Kind.ALWAYS:
                evaluations = exploration.evaluations[prop.name]
                is_violated = prop.name in exploration.found
                counts = (not is_violated, is_violated, evaluations.states, evaluations.premise)
                figures.setdefault(prop.name, []).append(counts)
    rows = []
    for name, runs in figures.items():
        good, bad, examined, premise = (sum(counts) for counts in zip(*runs, strict=True))
        extent = f"{good} run" + "s" * (good != 1) + (f", VIOLATED in {bad}" if bad else "")
        rows.append((name, extent, f"{examined:,}", f"{premise:,}"))
    return columns([("invariant", "no violation in", "states examined", "not trivially"), *rows]) if rows else []


def print_report(
    job: Job,
    exploration: Exploration,
    judgement: Judgement,
    *,
    levels: bool = False,
    console: Console | None = None,
) -> None:
    """Print the report, on standard output unless a console is given."""
    print_lines(search_lines(job, exploration, judgement, levels=levels), judgement, console)


def print_lines(lines: Sequence[Line], judgement: Judgement, console: Console | None = None) -> None:
    """Print a report whose first line is the verdict, on standard output unless a console is given."""
    console = console or LeavableConsole()
    first, *rest = lines
    style = STYLES[judgement.verdict] if judgement.as_expected is not True else STYLES[Verdict.PASSED]
    console.print(Text(first.text, style), soft_wrap=True)
    for line in rest:
        console.print(Text(line.text, line.importance.value), soft_wrap=True)


# -- sections ------------------------------------------------------------------------------------------------


def _further(judgement: Judgement) -> list[Line]:
    """The reasons that do not fit in the first line."""
    return [Line(f"  also {reason}", Importance.WARNING) for reason in judgement.reasons[1:]]


def section(heading: str, rows: Sequence[tuple[str, ...]], warned: Sequence[bool] = ()) -> list[Line]:
    """A heading, and rows in columns; `warned` marks the rows that are warnings."""
    levels = [Importance.WARNING if warns else Importance.PLAIN for warns in warned] or [Importance.PLAIN] * len(rows)
    return [Line(heading, Importance.HEADING), *map(Line, columns(rows), levels)]


def _limits(limits: Limits) -> str:
    parts = {
        "depth": None if limits.depth is None else f"depth {limits.depth}",
        "states": None if limits.states is None else f"{limits.states:,} states",
        "memory": None if limits.memory is None else f"{memory(limits.memory)} of memory",
        "time": None if limits.seconds is None else f"{limits.seconds:g} s",
        "work": None if limits.work is None else f"{limits.work:,} transitions of work",
    }
    return ", ".join(part for part in parts.values() if part)


def _fairness(exploration: Exploration) -> list[Line]:
    """What was assumed of the properties that every fair run must satisfy, once for those with the same assumption."""
    assumed: dict[tuple[str, ...], list[str]] = {}
    for prop in exploration.model.liveness:
        if prop.kind is Kind.EVENTUALLY and not exploration.sampled:
            assumed.setdefault(tuple(map(", ".join, fairness(exploration, prop))), []).append(prop.name)
    rows = []
    for (weak, strong, free), names in assumed.items():
        whose = "" if len(assumed) == 1 else f"for {', '.join(names)}: "
        rows.append(("happens if it stays possible", whose + (weak or "nothing")))
        rows += [("happens if it is possible again and again", whose + strong)] if strong else []
        rows.append(("need never happen", whose + (free or "nothing")))
    return section("fairness", rows) if rows else []


def _is_warning(exploration: Exploration, prop: Property) -> bool:
    """Whether a property is violated, without a witness, or idle."""
    is_found = prop.name in exploration.found
    return not is_found if prop.kind is Kind.SOMETIMES else is_found or is_idle(exploration, prop)


def _property(job: Job, exploration: Exploration, prop: Property) -> tuple[str, ...]:
    count = exploration.evaluations.get(prop.name)
    excuse = " (allowed)" if is_idle(exploration, prop) and may_be_idle(job, prop) else ""
    figures = (
        "" if count is None else f"examined {count.states:,} times, {_premise(count.states, count.premise)}{excuse}"
    )
    examined = exploration.liveness.get(prop.name)
    if prop.kind.is_liveness:
        figures = "" if examined is None else _examined(prop, examined)
    return prop.name, prop.kind.value, exploration.outcome(prop), figures


def _examined(prop: Property, examined: Liveness) -> str:
    """The basis of a judgement of liveness."""
    demanded = f"demanded in {examined.open:,}, " if prop.kind is Kind.EVENTUALLY else ""
    edges, components = _many(examined.edges, "edge"), _many(examined.components, "component")
    return f"goal in {_many(examined.goals, 'state')}; {demanded}{edges}, {components} examined"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _premise(states: int, premise: int) -> str:
    if not states:
        return "as there was nothing to examine"
    if not premise:
        return "its premise never held"
    return "its premise held in all" if premise == states else f"its premise held in {premise:,}"


def _actions(job: Job, exploration: Exploration, judgement: Judgement) -> list[Line]:
    rows, silences = [], []
    for name in sorted({*exploration.coverage, *judgement.silent}):
        coverage = exploration.coverage.get(name, Coverage())
        silent = "never fired" + (" (allowed)" if name in job.allowed_silent else "")
        fired = f"fired {coverage.fired:,} times" if coverage.fired else silent
        is_counted = coverage.fired and not exploration.sampled
        rows.append((name, fired, f"{coverage.new:,} new states" if is_counted else ""))
        silences.append(not coverage.fired)
    return section("actions", rows, silences) if rows else []


def _search(exploration: Exploration) -> list[Line]:
    e = exploration
    rate = f" ({e.states / e.seconds:,.0f} states/s)" if e.seconds > 0 else ""
    rows = [
        ("end", e.end),
        ("states", f"{e.states:,}"),
        ("transitions", f"{e.transitions:,}"),
        ("depth", f"{e.depth}"),
        ("time", f"{e.seconds:.2f} s{rate}"),
    ]
    if e.deadlocks:
        rows.append(("ends of runs", f"{e.deadlocks:,} states without a successor"))
    if e.python_steps:
        rows.append(("Python steps", f"{e.python_steps:,} of {e.python_calls:,} calls, {e.python_seconds:.2f} s"))
    size = max((examined.size for examined in e.liveness.values()), default=0)
    if e.liveness:
        seconds = sum(examined.seconds for examined in e.liveness.values())
        rows.append(("liveness", f"judged in {seconds:.2f} s" + (f", with a graph of {memory(size)}" if size else "")))
    if e.peak_bytes and e.states:
        on_disk = (
            f", and {memory(e.spilled_bytes)} of waiting states went to a temporary file" if e.spilled_bytes else ""
        )
        rows.append(("memory", f"{memory(e.peak_bytes)} ({e.peak_bytes / e.states:,.0f} bytes a state){on_disk}"))
    rows.append(("collisions", _collisions(e)))
    rows += [("growth", e.growth)] if e.growth else []
    rows += [("reduction", e.reduction)] if e.reduction else []
    rows += [("second engine", e.second)] if e.second else []
    rows += [("workers", line) for line in e.workers]
    rows += [("checkpoint", note) for note in e.notes]
    return section(f"search by the {e.engine} engine", rows)


def _python(exploration: Exploration) -> list[Line]:
    """The functions of the model that took most of the time, and the columns with most values."""
    seconds = exploration.python_seconds
    if seconds < LEAST_PYTHON:
        return []
    longest = sorted(exploration.functions.items(), key=lambda item: -item[1].seconds)[:MOST_SHOWN]
    rows = [(name, f"{cost.calls:,} calls", _share(cost.seconds, seconds)) for name, cost in longest]
    rest = max(0.0, seconds - sum(cost.seconds for cost in exploration.functions.values()))
    rows.append(("the numbers of values", "", _share(rest, seconds)))
    widest = sorted(exploration.values.items(), key=lambda item: -item[1])[:MOST_SHOWN]
    rows += [(f"the column {name!r}", f"{number:,} values", "") for name, number in widest]
    return section("time of Python, and the values that cause it", rows)


def _share(part: float, whole: float) -> str:
    return f"{part:.2f} s, {part / whole:.0%}"


def _collisions(exploration: Exploration) -> str:
    if exploration.engine == "plain":
        return "none: states are compared whole"
    bound = f"probability at most {exploration.collision_probability:.1e}"
    if exploration.collision_probability < NEGLIGIBLE:
        return bound
    return f"{bound}; the same search with --seed {exploration.seed + 1} is an independent check"


def _levels(exploration: Exploration) -> list[Line]:
    rows = [(str(depth), f"{states:,}") for depth, states in enumerate(exploration.levels)]
    longest = max(len(states) for _, states in rows) if rows else 0
    lines = (Line(f"  {depth:>5}  {states:>{longest}}") for depth, states in rows)
    return [Line("new states at each depth", Importance.HEADING), *lines]


def columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows in aligned columns, indented."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))] if rows else []
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


class LeavableConsole(Console):
    """A console that raises BrokenPipeError if the reader has closed the stream, an error that the caller handles.

    A plain console of `rich` ends the whole process with code 1 then, for any verdict.
    """

    def on_broken_pipe(self) -> NoReturn:
        """Raise the error again; `rich` calls this method while it handles it."""
        raise  # noqa: PLE0704 (the error that is handled when this is called)


EVERY = 5.0  # seconds between lines without a terminal
OFTEN = 0.1  # seconds between changes of the line on a terminal
OFTEN_IN_NOTEBOOK = 0.5  # each change is a message to the browser


class Progress:
    """The `progress` argument of `explore`: a callable, and a context manager that calls `close`."""

    def __init__(
        self,
        name: str = "",
        stream: TextIO | None = None,
        *,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console or LeavableConsole(file=stream or sys.stderr)
        self._prefix = f"{on_a_line(name)}: " if name else ""
        self._clock = clock
        self._shown = clock()
        self._live: Live | None = None
        self._closed = self._compiling = False
        self._output: Any = None  # the line in a notebook

    def __call__(self, exploration: Exploration) -> None:
        """Show the progress of the search, unless the last line is too recent."""
        if exploration.compiling:
            self.compiling()
            return
        self.update(lambda: progress_line(exploration))

    def update(self, line: Callable[[], str]) -> None:
        """Show a line, unless the last one is too recent; `line` is called only to show it."""
        now = self._clock()
        wait = OFTEN if self._console.is_terminal else OFTEN_IN_NOTEBOOK if self._console.is_jupyter else EVERY
        if now - self._shown >= wait:
            self._shown = now
            self._show(line())

    def compiling(self) -> None:
        """Show that kernels are compiled, in one line for all calls."""
        if not self._compiling:
            self._compiling = True
            self._show(COMPILING)

    def close(self) -> None:
        """Remove the line from the terminal or the notebook, and show no further lines."""
        if self._output is not None and not self._closed:
            self._rewrite("")
        self._closed = True
        if self._live is not None:
            self._live.stop()
            self._live = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _show(self, line: str) -> None:
        if self._closed:
            return
        try:
            self._print(Text(self._prefix + line, overflow="ellipsis", no_wrap=True))
        except BrokenPipeError:
            self._closed, self._live = True, None

    def _rewrite(self, line: str) -> None:
        """Show a line in a notebook, in the place of the last one."""
        from IPython.display import display  # noqa: PLC0415 (a notebook has it)

        content = {"text/plain": line}
        if self._output is None:
            self._output = display(content, raw=True, display_id=True)
        else:
            self._output.update(content, raw=True)

    def _print(self, text: Text) -> None:
        if self._console.is_jupyter:
            self._rewrite(text.plain)
            return
        if not self._console.is_terminal:
            self._console.print(text, soft_wrap=True)
            return
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(text, refresh=True)


def progress_line(exploration: Exploration) -> str:
    """Return the progress of a search on one line."""
    e = exploration
    if walked := e.progress:
        return walked
    # Within a level, only the coverage has the number of new states.
    states = max(e.states, 1 + sum(coverage.new for coverage in e.coverage.values()))
    parts = [
        f"{states:,} states",
        f"{states / e.seconds:,.0f}/s" if e.seconds > 0 else "",
        f"depth {max(e.depth, 0)}",
        f"frontier {e.levels[-1]:,}" if e.levels else "",
        memory(e.peak_bytes) if e.peak_bytes else "",
        f"{memory(e.spilled_bytes)} written to disk" if e.spilled_bytes else "",
        f"{e.seconds:.0f} s",
        *e.workers[:1],
    ]
    return ", ".join(part for part in parts if part)
