"""The JSON schema of scenarios accepts every shipped scenario, and refuses mistakes of form.

The expected answers are those of the reader: each mistake below is one that it reports. `pytest --rewrite-transcripts`
writes the file.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from checker.scenario import ScenarioError, bundled, load
from checker.scenario.schema import JSON_SCHEMA
from checker.scenario.yaml_lines import read_yaml
from tests.support.isolation import rewrites
from tests.support.scenario_schema import made, text_of

ROOT = Path(__file__).parents[4]
ZOO = (ROOT / "spec/scenarios/zab-equal-views/zoo-3.cfg").read_text(encoding="utf-8")
ENSEMBLE = "file: zoo-3.cfg\nservers: [1, 2, 3]\n"
RECIPE = "recipe: lock\n"
SERVICE = "service: [[get /a], [create /a]]\n"


@pytest.fixture(scope="module")
def validator() -> Draft7Validator:
    text = JSON_SCHEMA.read_text(encoding="utf-8")
    Draft7Validator.check_schema(json.loads(text))
    return Draft7Validator(json.loads(text))


def value_of(text: str) -> Any:
    """A scenario as an editor reads it: the keys of maps are text."""
    return json.loads(json.dumps(read_yaml(text, "s.yaml").value))


def test_the_file_is_what_the_program_reads() -> None:
    text = f"{text_of(made())}\n"
    if rewrites():
        JSON_SCHEMA.write_text(text, encoding="utf-8")
    assert JSON_SCHEMA.read_text(encoding="utf-8") == text, "pytest --rewrite-transcripts writes it"


@pytest.mark.parametrize("path", bundled(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_shipped_scenario_fits(path: Path, validator: Draft7Validator) -> None:
    assert [error.message for error in validator.iter_errors(value_of(path.read_text(encoding="utf-8")))] == []


MISTAKES = {
    "no servers": "file: zoo-3.cfg\n",
    "another key": f"{ENSEMBLE}fault: {{crashes: 1}}\n",
    "a key of another kind": f"{ENSEMBLE}lag: true\n",
    "a word for a number": f"{ENSEMBLE}rounds: three\n",
    "a number below the least": f"{ENSEMBLE}rounds: 0\n",
    "an unknown word": f"{ENSEMBLE}grain: coarse\n",
    "an unknown verdict": f"{ENSEMBLE}expect: pass\n",
    "an unknown variant": f"{ENSEMBLE}variants: [zookeeper-1]\n",
    "an unknown release": f"{ENSEMBLE}protocol: zab\nlike: 3.8.99\n",
    "an unknown fault": f"{ENSEMBLE}faults: {{crash: 1}}\n",
    "a fault without its limit": f"{ENSEMBLE}faults: {{crashes: unlimited}}\n",
    "an unknown property": f"{ENSEMBLE}always: [OneLeadr]\n",
    "a property of another kind": f"{ENSEMBLE}sometimes: [OneLeader]\n",
    "a property without its parameter": f"{ENSEMBLE}sometimes: [Leads]\n",
    "a list for a map": f"{ENSEMBLE}limits: [depth]\n",
    "two actions in one entry": f"{ENSEMBLE}plan: [{{stop: 1, start: 2}}]\n",
    "an unknown wait": f"{ENSEMBLE}plan: [{{restart: 2, wait: rejoind}}]\n",
    "two things in an opening": f"{ENSEMBLE}opening: [{{crash: 1, settle: [2]}}]\n",
    "another key of a server": "file: zoo-3.cfg\nservers: {1: {epochs: 1}}\n",
    "a zxid with a word": "file: zoo-3.cfg\nservers: {1: {zxid: '1:x'}}\n",
    "too many servers": "servers: {count: 10}\n",
    "an unknown recipe": "recipe: locks\n",
    "too many clients": f"{RECIPE}clients: 10\n",
    "an unknown clock": f"{RECIPE}clocks: wrong\n",
    "a property of ensembles": f"{RECIPE}always: [OneLeader]\n",
    "a client without a list": "service: [get /a]\n",
    "a choice with another word": "service: [[{any of: [get /a]}]]\n",
}


@pytest.mark.parametrize("text", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_of_form_is_one_for_the_reader_and_for_the_schema(
    text: str, validator: Draft7Validator, tmp_path: Path
) -> None:
    (tmp_path / "zoo-3.cfg").write_text(ZOO, encoding="utf-8")
    (tmp_path / "s.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError):
        load(tmp_path / "s.yaml")
    assert list(validator.iter_errors(value_of(text)))


@pytest.mark.parametrize("text", [ENSEMBLE, RECIPE, SERVICE, "servers: {count: 3, established: true}\n"])
def test_the_scenarios_around_the_mistakes_fit(text: str, validator: Draft7Validator, tmp_path: Path) -> None:
    (tmp_path / "zoo-3.cfg").write_text(ZOO, encoding="utf-8")
    (tmp_path / "s.yaml").write_text(text, encoding="utf-8")
    assert load(tmp_path / "s.yaml").model.rules
    assert list(validator.iter_errors(value_of(text))) == []


def test_every_key_of_a_scenario_has_a_text_of_the_manual() -> None:
    definitions = made()["definitions"]
    tops = [definitions[name] for name in ("Scenario", "RecipeScenario", "ServiceScenario")]
    assert [key for top in tops for key, value in top["properties"].items() if not value.get("description")] == []
