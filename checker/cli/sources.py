"""The jobs of the runner, each from a scenario file.

The module imports neither the runner nor a model at its top, so an error in a scenario is reported fast. The tests that
`--format pytest` writes import `job_of` from here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from checker.command import ExitCode
from checker.job import Job
from checker.scenario import ScenarioError, load, shipped
from checker.scenario.loader import SourceError, job_of
from checker.scenario.model_file import file_of
from spec.config import ConfigError
from spec.releases import Release
from spec.variants import Variant

__all__ = ["InvalidScenario", "RunRequest", "SourceError", "job_of", "load_request"]


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
    path: Path, variants: Iterable[Variant] = (), like: Release | None = None, presenter: str | None = None
) -> RunRequest | InvalidScenario:
    """Load a scenario, or the shipped one of that name, with these variants and the defects of a release added.

    `presenter` is the name of one in the Python file of a model.

    Raises VariantError for a variant, or for a release, without an effect.
    """
    path = shipped(path)
    try:
        return RunRequest(load(path, variants, like, presenter), file_of(path))
    except ScenarioError as error:
        return InvalidScenario(file_of(path), str(error), ExitCode.SCENARIO, error.line)
    except ConfigError as error:
        return InvalidScenario(path, str(error), ExitCode.CONFIGURATION)
