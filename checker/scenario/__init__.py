"""Scenarios: an ensemble with its zoo.cfg files, a history, a plan, faults, and what is expected, as YAML.

`load` makes a `checker.job.Job` of a file; `bundled` lists the scenarios that come with the package. Whatever
is wrong with a scenario is a `ScenarioError` with file, line and key, and with what would be right; whatever
is wrong with a zoo.cfg is a `spec.config.ConfigError`. A variant that was asked for beside the scenario, and changes
nothing in it, is a `VariantError`. `checker.scenario.schema` says what may stand in a scenario.
"""

from checker.scenario.actions import known_actions
from checker.scenario.errors import ScenarioError
from checker.scenario.lens import EnsembleLens
from checker.scenario.loader import from_source, from_text, load
from checker.scenario.shipped import bundled
from checker.scenario.variants import VariantError

__all__ = [
    "EnsembleLens",
    "ScenarioError",
    "VariantError",
    "bundled",
    "from_source",
    "from_text",
    "known_actions",
    "load",
]
