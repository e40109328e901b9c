"""An error inside a property's parameter is reported with its own line, and the nearest valid word."""

from pathlib import Path as FilePath
from typing import Any

import pytest

from checker.properties import ENSEMBLE_PROPERTIES
from checker.properties.recipes import RECIPE_PROPERTIES
from checker.properties.service import SERVICE_PROPERTIES
from tests.support.scenario_mistakes import ENSEMBLE, RECIPE, Path, Scenarios, changed

STANDS = {1: "LEADING", 2: {"state": "FOLLOWING", "leader": 1, "file": "zoo.cfg"}, 3: ["FOLLOWING 1", "down"]}
BUCKET = {"state": "LOOKING", "votes": {1: 1, 3: [8, 3]}}
ENTRIES: dict[str, Any] = {**ENSEMBLE_PROPERTIES, **RECIPE_PROPERTIES, **SERVICE_PROPERTIES}
MISTAKES: list[tuple[str, Any, Path, str]] = [
    ("Leads", 9, (), "write one of 1, 2, 3"),
    ("Leads", "many", (), "write one of 1, 2, 3"),
    ("Leads", True, (), "write one of 1, 2, 3"),
    ("NeverLeads", 10**40, (), "write one of 1, 2, 3"),
    ("StaleWrites", "many", (), "write 1 to 2"),
    ("StaleWrites", 3, (), "write 1 to 2"),
    *(
        (name, {**STANDS, key: value}, path, said)
        for name in ("Stands", "NeverStands")
        for key, value, path, said in (
            (9, "down", (9,), "write one of 1, 2, 3"),
            (1, "LEADNG", (1,), "did you mean LEADING?"),
            (1, "FOLOWING 2", (1,), "did you mean FOLLOWING?"),
            (1, "donw", (1,), "did you mean down?"),
            (1, "FOLLOWING 9", (1,), "write one of 1, 2, 3"),
            (1, 7, (1,), "write LOOKING, FOLLOWING, LEADING, OBSERVING, STANDALONE or down"),
            (2, {"leader": 1, "staet": "LEADING"}, (2, "staet"), "did you mean state?"),
            (2, {"state": "FOLLOWING", "leadr": 1}, (2, "leadr"), "did you mean leader?"),
            (2, {"state": "FOLLOWING", "leader": 9}, (2, "leader"), "write one of 1, 2, 3"),
            (2, {"leader": 1, "state": "OBSERVNG"}, (2, "state"), "did you mean OBSERVING?"),
            (2, {"leader": 1, "file": "zoo.cgf"}, (2, "file"), "did you mean zoo.cfg?"),
            (3, ["FOLLOWING 1", "dwon"], (3, 1), "did you mean down?"),
            (2, {"state": "down", "leader": 1}, (2,), "write down alone"),
            (2, {"state": ["LEADING", "down"], "file": "zoo.cfg"}, (2,), "write down alone"),
            (2, {"state": "FOLLOWING 3", "leader": 1}, (2,), "name one, in the state or as the leader"),
        )
    ),
    ("Stands", "LEADING", (), "write {1: LEADING}"),
    ("Buckets", {1: BUCKET, 9: BUCKET}, (9,), "write one of 1, 2, 3"),
    ("Buckets", {1: BUCKET, 2: {**BUCKET, "state": "LOKING"}}, (2, "state"), "did you mean LOOKING?"),
    ("Buckets", {1: {"state": "LOOKING", "vots": {1: 1}}}, (1, "vots"), "did you mean votes?"),
    ("Buckets", {1: {"state": "LOOKING"}}, (1,), "write {1: {state: LOOKING, votes:"),
    ("Buckets", {1: {**BUCKET, "votes": {1: 1, 9: 1}}}, (1, "votes", 9), "write one of 1, 2, 3"),
    ("Buckets", {1: {**BUCKET, "votes": {1: 1, 2: [8, 9]}}}, (1, "votes", 2, 1), "write one of 1, 2, 3"),
    ("Buckets", {1: {**BUCKET, "votes": {1: 1, 2: [1, 2, 3]}}}, (1, "votes", 2), "or [zxid, leader]"),
    ("Buckets", 7, (), "write {1: {state: LOOKING, votes:"),
]


@pytest.mark.parametrize(("name", "parameter", "inside", "said"), MISTAKES)
def test_a_mistake_inside_a_parameter_is_told_at_its_line(
    name: str, parameter: Any, inside: Path, said: str, tmp_path: FilePath
) -> None:
    base = RECIPE if name in RECIPE_PROPERTIES else ENSEMBLE
    kind = ENTRIES[name].kind.value
    whole = changed(base, (kind,), [{name: parameter}])
    assert said in Scenarios(tmp_path).refused(whole, (kind, 0, name, *inside))


def test_every_property_that_takes_a_parameter_has_mistakes_here() -> None:
    assert {name for name, entry in ENTRIES.items() if entry.parameter} == {name for name, *_ in MISTAKES}
