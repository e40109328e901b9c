"""`quorate validate LOG --model FILE.py:NAME`: the report as text or JSON on standard output.

Rules of this module:

- The report opens with the verdict, and with the line that it is about.
- It names the moves that were taken as hidden: the verdict rests on them.
- Exit codes: 0 if a run explains every line, 12 if no run explains a line, 20 if the search reached its limit, 21 if no
  line says anything about the model, 150 for a file that cannot be read.
"""

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from checker.command import ExitCode, refused, say, unread_output_discarded
from checker.engine.model import Model
from checker.job import Presenter, Verdict
from checker.kit.events import Event, Events
from checker.report import Progress
from checker.scenario import ScenarioError
from checker.scenario.model_file import load_events
from checker.validate.log import LAST, STATES, EventLine, LogValidation, RunStep, validate_log
from checker.validate.log.patterns import actions_of, hidden_moves, says_something, worded
from checker.validate.log.reader import read_log
from spec.text import on_a_line

INSTEAD = 5  # possible moves that are shown
MORE = "give more --states, log more, or declare fewer hidden moves"


class _Report(NamedTuple):
    """A judgement with all that its report names."""

    found: LogValidation
    model: Path
    files: tuple[Path, ...]
    processes: int
    lines: int
    telling: int
    hidden: tuple[str, ...]
    presenter: Presenter
    seconds: float


def log_command(
    paths: Sequence[Path], model: Path, events: str | None, states: int | None, *, as_json: bool = False
) -> int:
    """Validate a log and print the report; return the exit code. Raises JournalError and ModelError."""
    began = time.monotonic()
    try:
        job, meaning = load_events(model, events)
    except ScenarioError as error:
        return refused(str(error), ExitCode.SCENARIO)
    lines, total = read_log(paths, meaning, job.model)
    named = frozenset(action for line in lines for action in actions_of(line.event))
    is_hidden = hidden_moves(meaning, job.model, named)

    def progress(what: str, count: int, of: int) -> None:
        bar.update(lambda: on_a_line(f"{what}: {count:,} of {of:,}, {time.monotonic() - began:.0f} s"))

    with Progress() as bar:
        found = validate_log(job.model, lines, is_hidden, states or STATES, progress)
    processes = len({line.process for line in lines})
    telling = sum(says_something(line.event) for line in lines)
    hidden = tuple(_hidden(meaning, job.model, named))
    seconds = time.monotonic() - began
    report = _Report(found, model, tuple(paths), processes, total, telling, hidden, job.presenter, seconds)
    with unread_output_discarded():
        say(json.dumps(_data(report)) if as_json else "\n".join(map(on_a_line, _lines(report))))
    return int(found.exit_code)


def _hidden(meaning: Events, model: Model, named: frozenset[str]) -> Iterator[str]:
    """The hidden moves in words."""
    if meaning.hidden is None:
        yield from sorted(model.actions - named)
    else:
        for item in meaning.hidden:
            yield item if isinstance(item, str) else pattern_in_words(item)


def pattern_in_words(event: Event) -> str:
    """The pattern of an event in words: its actions, arguments and values."""
    values = [f"{name}: {worded(pattern)}" for name, pattern in event.after.items()]
    after = f"after it {', '.join(values)}" if values else ""
    return " ".join(filter(None, [" or ".join(actions_of(event)), *map(worded, event.arguments), after])) or "nothing"


def _place(line: EventLine) -> str:
    return f"{line.file}:{line.number}"


def _sentence(report: _Report) -> str:
    found = report.found
    name = found.verdict.value
    if found.misfit is not None:
        return f"{name}: {_place(found.misfit.line)}: no run of the model explains this line with all before it"
    if found.stuck is not None:
        return f"{name}: {found.states:,} states, without a run that explains {_place(found.stuck)}; {MORE}"
    if found.verdict is Verdict.VACUOUS:
        return f"{name}: none of {report.lines:,} lines says anything about the model"
    return f"{name}: a run of the model explains all {report.telling:,} events"


def _lines(report: _Report) -> Iterator[str]:
    """The report as lines of text."""
    found = report.found
    yield _sentence(report)
    if found.stuck is not None:
        yield f"  line     {found.stuck.text}"
        yield f"  as       {pattern_in_words(found.stuck.event)}"
    if found.misfit is not None:
        count = found.misfit.candidates
        yield f"  before   {count:,} {'state explains' if count == 1 else 'states explain'} all lines before it"
        for reason, states in found.misfit.reasons:
            yield f"  but      {reason}" + (f" ({states:,} of them)" if count > 1 else "")
        instead = [report.presenter.caption(move) for move in found.misfit.instead]
        more = f", and {len(instead) - INSTEAD} others" if instead[INSTEAD:] else ""
        yield f"  possible {'; '.join(instead[:INSTEAD]) or 'no move'}{more}"
        if found.run:
            yield "  a run that explains the lines before it ends with"
            for step in found.run[-LAST:]:
                yield f"    {'hidden' if step.line is None else _place(step.line)}  {_step(report, step)}"
    yield ""
    for name, value in _figures(report):
        yield f"  {name:<18} {value}"


def _step(report: _Report, step: RunStep) -> str:
    return "no move; the values are as the line says" if step.move is None else report.presenter.caption(step.move)


def _figures(report: _Report) -> list[tuple[str, str]]:
    found = report.found
    order = "in one order" if report.processes <= 1 else f"of {report.processes} processes, each in its own order"
    unseen = sum(step.line is None for step in found.run)
    return [
        ("lines", f"{report.lines:,}, {report.telling:,} of them about the model, {order}"),
        ("explained", f"{found.explained:,} in their order, with {unseen:,} hidden moves"),
        ("may be hidden", ", ".join(report.hidden) or "no move"),
        ("states", f"{found.states:,}"),
        ("time", f"{report.seconds:.1f} s"),
    ]


def _data(report: _Report) -> dict[str, Any]:
    """The report as data for a program."""
    found, misfit = report.found, report.found.misfit
    return {
        "schema": "quorate-log-validation/1",
        "verdict": found.verdict.value,
        "exit_code": int(found.exit_code),
        "sentence": _sentence(report),
        "model": report.model.as_posix(),
        "files": [str(path) for path in report.files],
        "misfit": None if misfit is None else {
            **_line_data(misfit.line),
            "candidates": misfit.candidates,
            "reasons": [{"reason": reason, "candidates": count} for reason, count in misfit.reasons],
            "possible": [report.presenter.caption(move) for move in misfit.instead],
        },
        "stuck": None if found.stuck is None else _line_data(found.stuck),
        "run": [
            {
                "move": None if step.move is None else report.presenter.caption(step.move),
                "line": None if step.line is None else _line_data(step.line),
            }
            for step in found.run
        ],
        "processes": report.processes,
        "lines": report.lines,
        "events": report.telling,
        "explained": found.explained,
        "hidden": list(report.hidden),
        "states": found.states,
        "seconds": round(report.seconds, 3),
    }  # fmt: skip


def _line_data(line: EventLine) -> dict[str, Any]:
    return {"file": line.file, "line": line.number, "text": line.text, "as": pattern_in_words(line.event)}
