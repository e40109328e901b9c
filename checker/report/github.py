"""What a step of a GitHub workflow says: annotations beside the lines of scenarios, and the summary of the step.

- An annotation is a line that the runner reads from the output of the step, `::error file=...,line=...,title=...::...`;
  what has a meaning there (line ends, per cent signs, in properties also colons and commas) is escaped.
- Errors are what makes the command fail, warnings what the budget left undecided. What came out as it should is silent.
- The names in a scenario are whatever somebody wrote, maybe in order to be read as a command by the runner. While
  anything but annotations is printed, commands are therefore stopped, with a word that nobody can guess.

Source: GitHub's "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from checker.job import Verdict
from checker.report.junit import sentence
from checker.report.outcome import Outcome
from checker.report.place import Place, place_of


def annotation_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each thing that a reader of the change should see, the errors first: GitHub shows few."""
    lines = [line for outcome in outcomes for line in _lines(outcome)]
    return sorted(lines, key=lambda line: not line.startswith("::error"))


def _lines(outcome: Outcome) -> Iterator[str]:
    if outcome.is_good:
        return
    level = "warning" if outcome.judgement.exit_code == 0 else "error"
    if outcome.findings:
        for trace in outcome.findings:
            message = f"{outcome.name}: {trace.headline}: {trace.clause}"
            yield _command(level, place_of(outcome, trace.prop), trace.headline, message)
        return
    word = "undecided" if outcome.judgement.undecided else outcome.judgement.verdict.value
    if outcome.judgement.verdict is Verdict.PASSED:
        word = "passed unexpectedly"
    yield _command(level, place_of(outcome), f"{word}: {outcome.name}", sentence(outcome))


def _command(level: str, place: Place | None, title: str, message: str) -> str:
    properties = {"file": place.file, "line": str(place.line)} if place else {}
    told = ",".join(f"{name}={_escaped_property(value)}" for name, value in {**properties, "title": title}.items())
    return f"::{level} {told}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


@contextmanager
def commands_stopped(say: Callable[[str], None]) -> Iterator[None]:
    """What is printed within this is no command to the runner, whatever it says. `say` prints a line at once."""
    word = secrets.token_hex(16)
    say(f"::stop-commands::{word}")
    try:
        yield
    finally:
        say(f"\n::{word}::")
