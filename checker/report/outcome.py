"""The outcome of each requested run, and its place in a file; every report of a command is a view of the outcomes.

Rules of this module:

- Every requested run has an outcome, including those that could not be read and those that never began. No report omits
  one.
- The exit code of several runs is the gravest one: an earlier incomplete run does not hide a violation.
- Lines come from the text that the job was made from. They stay correct if the file has changed since.
- A property that the scenario names has its own line. A default property, which the scenario does not name, has the
  line of `expect`, and so does a verdict on the whole run. Without `expect` it is the line of `name`, and otherwise the
  first line.
- Paths are relative to the top of the checkout, as the readers of reports expect: to `GITHUB_WORKSPACE` if that is set
  and the file is below it, and otherwise to the current folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from checker.engine.model import Kind, Property
from checker.engine.result import Exploration
from checker.job import Job
from checker.report.verdict import Judgement
from checker.scenario.yaml_lines import ScenarioError, YamlDocument, read_yaml
from checker.traces.trace import Trace

GRAVITY = (0, 1, 2, 21, 20, 152, 151, 150, 11, 13, 12)  # exit codes, by the lattice of verdicts


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of one run. `path` is the path of its scenario as given on the command line; None without a scenario.

    Without a `job` the scenario could not be read, and `line` is the line of the error (0: unknown). Without an
    `exploration` it was not explored. `traces` are the requested traces, and `began` is the start time in seconds since
    1970. `interrupted`: an interrupt ended the run; `dropped`: it ended the command before the run began.
    """

    name: str
    judgement: Judgement
    job: Job | None = None
    exploration: Exploration | None = None
    traces: tuple[Trace, ...] = ()
    path: Path | None = None
    line: int = 0
    interrupted: bool = False
    dropped: bool = False
    began: float | None = None

    @property
    def findings(self) -> list[Trace]:
        """The traces that end in a violation or a deadlock."""
        return [trace for trace in self.traces if trace.kind is not Kind.SOMETIMES]

    @property
    def witnesses(self) -> list[Trace]:
        """The traces that show that a `sometimes` is possible."""
        return [trace for trace in self.traces if trace.kind is Kind.SOMETIMES]

    @property
    def is_good(self) -> bool:
        """Whether the result is neither unexpected nor left open by a budget."""
        return self.judgement.exit_code == 0 and not self.judgement.undecided


def gravest(outcomes: Iterable[RunOutcome]) -> int:
    """The gravest exit code of the outcomes; 0 if there are none."""
    return max((outcome.judgement.exit_code for outcome in outcomes), key=GRAVITY.index, default=0)


class SourceLocation(NamedTuple):
    """A file (its path with slashes) and a line number, counted from 1."""

    file: str
    line: int


def location_of(outcome: RunOutcome, prop: str | None = None) -> SourceLocation | None:
    """The place of a property of a run, or of the run as a whole; None for a run without a file."""
    if outcome.path is None:
        return None
    file = shown_path(outcome.path)
    if outcome.job is None:
        return SourceLocation(file, max(1, outcome.line))
    located = _located(outcome.job)
    if located is None:
        line = outcome.job.source.get("line")  # of a model in a Python file
        return SourceLocation(file, line if isinstance(line, int) else 1)
    own = _line_of(located, outcome.job, prop) if prop is not None else 0
    return SourceLocation(file, own or _usual_line(located))


def shown_path(path: Path) -> str:
    """A path in the form that reports use."""
    for top in (os.environ.get("GITHUB_WORKSPACE"), str(Path.cwd())):
        # The path is not resolved: a symbolic link belongs to the checkout, even if its target does not.
        absolute = Path(os.path.abspath(path))  # noqa: PTH100
        if top and absolute.is_relative_to(top):
            return absolute.relative_to(top).as_posix()
    return path.as_posix()


def _located(job: Job) -> YamlDocument | None:
    """The scenario's text with its lines; None for a job without a scenario."""
    text = job.source.get("text")
    if not isinstance(text, str):
        return None
    try:
        located = read_yaml(text, str(job.source.get("file")))
    except ScenarioError:
        return None
    return located if isinstance(located.value, dict) else None


def _line_of(located: YamlDocument, job: Job, name: str) -> int:
    """The line of a property that the scenario names; 0 for others. The items of a list have the same order in the
    model.
    """
    for kind in Kind:
        same: list[Property] = [prop for prop in job.model.properties if prop.kind is kind]
        items = located.value.get(kind.value)
        for number, prop in enumerate(same):
            if prop.name == name and isinstance(items, list) and len(items) == len(same):
                return located.lines.get((kind.value, number), 0)
    return 0


def _usual_line(located: YamlDocument) -> int:
    return next((located.lines[(key,)] for key in ("expect", "name") if (key,) in located.lines), 1)
