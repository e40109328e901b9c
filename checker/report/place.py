"""Where a finding stands: the scenario's file, and the line of the property or of the key that the verdict is about.

Rules of this module:

- Lines come from the text that the job was made from, so that they are right also if the file has changed since.
- A property that the scenario names stands at its own line; one that it does not name, since it is there by default, at
  `expect`, and so does a verdict on the whole run. Where there is no `expect`, it is `name`, and else the first line.
- Paths are told as seen from the top of the checkout, as the readers of reports want them: from `GITHUB_WORKSPACE`
  if that is set and the file is below it, else from the current folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from checker.engine.model import Kind, Property
from checker.job import Job
from checker.report.outcome import Outcome
from checker.scenario.errors import ScenarioError
from checker.scenario.located import Located, read_yaml


class Place(NamedTuple):
    """A file, its path with slashes, and a line of it from 1 on."""

    file: str
    line: int


def place_of(outcome: Outcome, prop: str | None = None) -> Place | None:
    """Where that property of a run stands, or what the run as a whole is judged by; None for one without a file."""
    if outcome.path is None:
        return None
    file = shown_path(outcome.path)
    if outcome.job is None:
        return Place(file, max(1, outcome.line))
    located = _located(outcome.job)
    if located is None:
        return Place(file, 1)
    own = _line_of(located, outcome.job, prop) if prop is not None else 0
    return Place(file, own or _usual_line(located))


def shown_path(path: Path) -> str:
    """A path as reports show it."""
    for top in (os.environ.get("GITHUB_WORKSPACE"), str(Path.cwd())):
        # Not resolved: a link stands in the checkout, wherever it leads.
        absolute = Path(os.path.abspath(path))  # noqa: PTH100
        if top and absolute.is_relative_to(top):
            return absolute.relative_to(top).as_posix()
    return path.as_posix()


def _located(job: Job) -> Located | None:
    """The scenario's text with its lines; None if the job was made of no scenario."""
    text = job.source.get("text")
    if not isinstance(text, str):
        return None
    try:
        located = read_yaml(text, str(job.source.get("file")))
    except ScenarioError:
        return None
    return located if isinstance(located.value, dict) else None


def _line_of(located: Located, job: Job, name: str) -> int:
    """The line of a property that the scenario names; 0 for another. What is in a list keeps its order in the model."""
    for kind in Kind:
        same: list[Property] = [prop for prop in job.model.properties if prop.kind is kind]
        items = located.value.get(kind.value)
        for number, prop in enumerate(same):
            if prop.name == name and isinstance(items, list) and len(items) == len(same):
                return located.lines.get((kind.value, number), 0)
    return 0


def _usual_line(located: Located) -> int:
    return next((located.lines[(key,)] for key in ("expect", "name") if (key,) in located.lines), 1)
