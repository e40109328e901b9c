"""The keys that the scenarios of clients share, with a recipe or of a service: counts, faults, and clocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from checker.models.service import Clocks, FaultBudgets
from checker.scenario.protocol import word
from checker.scenario.schema import Common, ServiceFaults, decode
from checker.scenario.yaml_lines import Path, YamlDocument

MOST_FAULTS = 9


def check_counts(scenario: Common, located: YamlDocument, most: Mapping[str, tuple[int, int]]) -> None:
    """Check that each count of a scenario is within its bounds. Raises ScenarioError."""
    for key, (least, greatest) in most.items():
        count = getattr(scenario, key)
        if not least <= count <= greatest:
            raise located.error((key,), f"{count} is not from {least} to {greatest}", "write a number in between")


def budgets_of(faults: Any, located: YamlDocument) -> FaultBudgets:
    """The budget of each fault."""
    if faults is msgspec.UNSET:
        return FaultBudgets()
    path: Path = ("faults",)
    entry = decode(ServiceFaults, located, faults, path)
    for name in ServiceFaults.__struct_fields__:
        count = getattr(entry, name)
        if not 0 <= count <= MOST_FAULTS:
            right = "write a number in between"
            raise located.error((*path, name), f"{count} is not from 0 to {MOST_FAULTS}", right)
    return FaultBudgets(entry.disconnects, entry.expiries, entry.crashes)


def clocks_of(clocks: str, located: YamlDocument) -> Clocks:
    """The `Clocks` of a scenario: whether a client learns from its clock in time that its session has ended."""
    return Clocks(word(located, clocks, [each.value for each in Clocks], ("clocks",)))
