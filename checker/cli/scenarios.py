"""Loads scenarios for the runner."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from checker.cli.wanted import Refused, Wanted
from checker.report.verdict import ExitCode
from checker.scenario import ScenarioError, load
from spec.config import ConfigError
from spec.variants import Variant


def wanted(path: Path, variants: Iterable[Variant] = ()) -> Wanted | Refused:
    """Load a scenario, with these variants added. Raises VariantError for a variant without an effect."""
    try:
        return Wanted(load(path, variants), path)
    except ScenarioError as error:
        return Refused(path, str(error), ExitCode.SCENARIO, error.line)
    except ConfigError as error:
        return Refused(path, str(error), ExitCode.CONFIGURATION)
