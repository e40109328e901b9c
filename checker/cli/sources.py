"""The origins of jobs: scenario files for the runner, and the source in a trace.

The module imports neither the runner nor a model at its top, so an error in a scenario is reported fast.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checker.job import Job
from checker.report.verdict import ExitCode
from checker.scenario import ScenarioError, VariantError, from_source, load
from checker.scenario.model_file import KIND as MODEL
from checker.scenario.model_file import file_of
from spec.config import ConfigError
from spec.releases import Release
from spec.variants import Variant


class SourceError(Exception):
    """The source of a trace does not describe a job; the message has the reason."""


def job_of(source: Any, model: Path | None = None) -> Job:
    """The job that a source describes. Raises SourceError.

    The source of a model in a Python file needs the `model` as its user names it, because loading it runs its code.
    """
    from checker.scenario.ensemble import REFINED  # noqa: PLC0415

    kind = source.get("kind") if isinstance(source, dict) else None
    try:
        if kind == "scenario":
            return from_source(source)
        if kind == MODEL and model is not None:
            return load(model)
        if kind == MODEL:
            named = f"{source.get('file')}:{source.get('model')}"
            right = f"replay FILE --model {named}, or explore {named} --trace FILE"
            raise SourceError(f"the trace is of a model in a Python file, whose code runs only if you name it: {right}")
        if kind == REFINED:
            refinement = job_of(source.get("of"), model).refinement
            if refinement is not None:
                return refinement.job()
    except (ScenarioError, VariantError, ConfigError, KeyError, TypeError, ValueError) as error:
        raise SourceError(f"the source of the trace describes no run: {error}") from None
    raise SourceError(f"the source of the trace is of the kind {kind!r}; scenario or refined would be right")


@dataclass(frozen=True)
class RunRequest:
    """A job to run, with the path of its scenario or of the file of its model, if it has one."""

    job: Job
    path: Path | None = None


@dataclass(frozen=True)
class InvalidScenario:
    """A scenario with an error: the message, the exit code, and the line (0: unknown)."""

    path: Path
    why: str
    code: ExitCode
    line: int = 0


def load_request(
    path: Path, variants: Iterable[Variant] = (), like: Release | None = None
) -> RunRequest | InvalidScenario:
    """Load a scenario, with these variants and the defects of a release added.

    Raises VariantError for a variant, or for a release, without an effect.
    """
    try:
        return RunRequest(load(path, variants, like), file_of(path))
    except ScenarioError as error:
        return InvalidScenario(file_of(path), str(error), ExitCode.SCENARIO, error.line)
    except ConfigError as error:
        return InvalidScenario(path, str(error), ExitCode.CONFIGURATION)
