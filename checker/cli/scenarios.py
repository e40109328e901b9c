"""From the path of a scenario to what the runner takes: its job, or why there is none."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from checker.cli.runner import Refused, Wanted
from checker.report.verdict import ExitCode
from checker.scenario import ScenarioError, load
from spec.config import ConfigError
from spec.variants import Variant


def wanted(path: Path, variants: Iterable[Variant] = ()) -> Wanted | Refused:
    """The job of a scenario, with these variants too. Raises VariantError for one that changes nothing in it."""
    try:
        return Wanted(load(path, variants), path)
    except ScenarioError as error:
        return Refused(path, str(error), ExitCode.SCENARIO, error.line)
    except ConfigError as error:
        return Refused(path, str(error), ExitCode.CONFIGURATION)
