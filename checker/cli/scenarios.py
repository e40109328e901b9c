"""Loads scenarios for the runner."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from checker.cli.wanted import InvalidScenario, RunRequest
from checker.report.verdict import ExitCode
from checker.scenario import ScenarioError, load
from spec.config import ConfigError
from spec.variants import Variant


def load_request(path: Path, variants: Iterable[Variant] = ()) -> RunRequest | InvalidScenario:
    """Load a scenario, with these variants added. Raises VariantError for a variant without an effect."""
    try:
        return RunRequest(load(path, variants), path)
    except ScenarioError as error:
        return InvalidScenario(path, str(error), ExitCode.SCENARIO, error.line)
    except ConfigError as error:
        return InvalidScenario(path, str(error), ExitCode.CONFIGURATION)
