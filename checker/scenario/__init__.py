"""Scenarios: an ensemble with its zoo.cfg files, a history, a plan, faults and expectations, as YAML.

`load` makes a `checker.job.Job` of a file. `bundled` lists the scenarios that come with the package, and `shipped`
finds one by its name. An error in a scenario is a `ScenarioError` with file, line and key, and with the correction; an
error in a zoo.cfg is a `spec.config.ConfigError`. A variant that is added to a scenario and changes nothing in it is a
`VariantError`. `checker.scenario.schema` defines the format of a scenario.
"""

from checker.scenario.loader import bundled, from_source, from_text, load, shipped
from checker.scenario.yaml_lines import ScenarioError, VariantError

__all__ = ["ScenarioError", "VariantError", "bundled", "from_source", "from_text", "load", "shipped"]
