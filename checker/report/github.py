"""The output of a step of a GitHub workflow: annotations at the lines of scenarios, and the summary of the step.

Rules of this module:

- An annotation is a line that the runner reads from the output of the step, `::error file=...,line=...,title=...::...`.
  Characters with a meaning there are escaped: line ends and per cent signs, in properties also colons and commas.
- Errors are the results that make the command fail, warnings those that the budget left undecided. Expected results are
  silent.
- Names in a scenario are arbitrary text, which the runner might read as a command. Commands are therefore stopped, with
  a random word, while any other text than annotations is printed.
- The summary is Markdown: a table of all runs, then the findings. Text from a scenario is escaped or fenced, and never
  becomes markup. GitHub accepts one megabyte, so long traces are cut, with a note at the cut.

Source: GitHub's "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from checker.job import Verdict
from checker.printable import escaped, fenced
from checker.report.junit import sentence
from checker.report.outcome import RunOutcome, SourceLocation, location_of
from spec.text import on_lines


def annotation_lines(outcomes: Sequence[RunOutcome]) -> list[str]:
    """A line for each result that a reader of the change should see. Errors come first, since GitHub shows few."""
    first = sorted(outcomes, key=lambda outcome: outcome.judgement.exit_code == 0)
    return [line for outcome in first for line in _lines(outcome)]


def _lines(outcome: RunOutcome) -> Iterator[str]:
    if outcome.is_good:
        return
    level = "warning" if outcome.judgement.exit_code == 0 else "error"
    if outcome.findings:
        for trace in outcome.findings:
            message = f"{outcome.name}: {trace.headline}: {trace.clause}"
            yield _command(level, location_of(outcome, trace.prop), trace.headline, message)
        return
    word = "undecided" if outcome.judgement.undecided else outcome.judgement.verdict.value
    if outcome.judgement.verdict is Verdict.PASSED:
        word = "passed unexpectedly"
    yield _command(level, location_of(outcome), f"{word}: {outcome.name}", sentence(outcome))


def _command(level: str, place: SourceLocation | None, title: str, message: str) -> str:
    properties = {"file": place.file, "line": str(place.line)} if place else {}
    fields = ",".join(f"{name}={_escaped_property(value)}" for name, value in {**properties, "title": title}.items())
    return f"::{level} {fields}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return on_lines(text).replace("%", "%25").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


@contextmanager
def commands_stopped(say: Callable[[str], None]) -> Iterator[None]:
    """A context in which the runner does not interpret printed text as commands. `say` prints a line and flushes it."""
    word = secrets.token_hex(16)
    say(f"::stop-commands::{word}")
    try:
        yield
    finally:
        say(f"\n::{word}::")


LONGEST = 30_000  # characters of the view of one run
MOST = 20  # runs that are shown in full
TABLE = ("| scenario | verdict | states | depth | time |", "| --- | --- | --: | --: | --: |")


def summary(outcomes: Sequence[RunOutcome], view: Callable[[RunOutcome], str]) -> str:
    """The whole summary, with an empty line at its end; `view` gives the full text of a run."""
    bad = [outcome for outcome in outcomes if outcome.judgement.exit_code]
    undecided = sum(outcome.judgement.undecided for outcome in outcomes)
    good = len(outcomes) - len(bad) - undecided
    left_open = f", {undecided} undecided within the budget" if undecided else ""
    lines = ["## Quorate", "", f"{good} of {len(outcomes)} as expected{left_open}", "", *TABLE]
    lines += [_row(outcome) for outcome in outcomes]
    for each in bad[:MOST]:
        lines += ["", f"### {escaped(each.name)}", "", escaped(sentence(each)), *_where(each), *_found(each, view)]
    if len(bad) > MOST:
        lines += ["", f"{len(bad) - MOST} more are in the reports."]
    return "\n".join(lines) + "\n\n"


def _row(outcome: RunOutcome) -> str:
    found, verdict = outcome.exploration, outcome.judgement.verdict.value
    remark = outcome.judgement.remark
    mark = "✅" if outcome.is_good else "❌" if outcome.judgement.exit_code else "⏳"
    status = f"{mark} {verdict}" + (f" ({escaped(remark)})" if remark else "")
    figures = ("", "", "") if found is None else (f"{found.states:,}", str(found.depth), f"{found.seconds:.1f} s")
    return f"| {' | '.join((escaped(outcome.name), status, *figures))} |"


def _where(outcome: RunOutcome) -> list[str]:
    place = location_of(outcome, outcome.findings[0].prop if outcome.findings else None)
    return ["", f"{escaped(place.file)}, line {place.line}"] if place else []


def _found(outcome: RunOutcome, view: Callable[[RunOutcome], str]) -> list[str]:
    """The view of a run that was explored; nothing for one that was not."""
    if outcome.exploration is None:
        return []
    text = view(outcome)
    return ["", *fenced(text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… cut here; the reports have all of it")]
