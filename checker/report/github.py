"""The output of a step of a GitHub workflow: annotations at the lines of scenarios, and the summary of the step.

- An annotation is a line that the runner reads from the output of the step, `::error file=...,line=...,title=...::...`.
  Characters with a meaning there are escaped: line ends and per cent signs, in properties also colons and commas.
- Errors are the results that make the command fail, warnings those that the budget left undecided. Expected results are
  silent.
- Names in a scenario are arbitrary text, which the runner might read as a command. Commands are therefore stopped, with
  a random word, while any other text than annotations is printed.

Source: GitHub's "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from checker.job import Verdict
from checker.report.junit import sentence
from checker.report.outcome import RunOutcome
from checker.report.source_location import SourceLocation, location_of


def annotation_lines(outcomes: Sequence[RunOutcome]) -> list[str]:
    """A line for each result that a reader of the change should see. Errors come first, since GitHub shows few."""
    lines = [line for outcome in outcomes for line in _lines(outcome)]
    return sorted(lines, key=lambda line: not line.startswith("::error"))


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
    told = ",".join(f"{name}={_escaped_property(value)}" for name, value in {**properties, "title": title}.items())
    return f"::{level} {told}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


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
