"""From the source that a trace carries back to the job it was found by."""

from __future__ import annotations

from typing import Any

from checker.cli import nodes
from checker.job import Job
from checker.scenario import ScenarioError, VariantError, from_source, refined
from spec.config import ConfigError


class SourceError(Exception):
    """The source of a trace describes no job; the message says what is wrong with it."""


def job_of(source: Any) -> Job:
    """The job of a source. Raises SourceError."""
    kind = source.get("kind") if isinstance(source, dict) else None
    try:
        if kind == "nodes":
            return nodes.from_source(source)
        if kind == "scenario":
            return from_source(source)
        if kind == refined.KIND:
            refinement = job_of(source.get("of")).refinement
            if refinement is not None:
                return refinement.job()
    except (nodes.NodesError, ScenarioError, VariantError, ConfigError, KeyError, TypeError, ValueError) as error:
        raise SourceError(f"the source of the trace describes no run: {error}") from None
    raise SourceError(f"the source of the trace is of the kind {kind!r}; nodes, scenario or refined would be right")
