"""The place of a finding: the scenario's file, and the line of the property or key that the verdict refers to.

Rules of this module:

- Lines come from the text that the job was made from. They stay correct if the file has changed since.
- A property that the scenario names has its own line. A default property, which the scenario does not name, has the
  line of `expect`, and so does a verdict on the whole run. Without `expect` it is the line of `name`, and otherwise the
  first line.
- Paths are relative to the top of the checkout, as the readers of reports expect: to `GITHUB_WORKSPACE` if that is set
  and the file is below it, and otherwise to the current folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from checker.engine.model import Kind, Property
from checker.job import Job
from checker.report.outcome import RunOutcome
from checker.scenario.errors import ScenarioError
from checker.scenario.yaml_lines import YamlDocument, read_yaml


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
        return SourceLocation(file, 1)
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
