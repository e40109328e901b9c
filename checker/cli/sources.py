"""The reconstruction of a job from the source in a trace."""

from __future__ import annotations

from typing import Any

from checker.cli import nodes
from checker.job import Job
from checker.scenario import ScenarioError, VariantError, from_source, refined
from spec.config import ConfigError


class SourceError(Exception):
    """The source of a trace does not describe a job; the message has the reason."""


def job_of(source: Any) -> Job:
    """The job that a source describes. Raises SourceError."""
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
