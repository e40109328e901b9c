"""A mistake in any key of a scenario is reported with the file, the line, the path and the correct form.

The keys, and the types of their values, are those of `checker.scenario.schema`: each of its structs is placed into a
correct scenario, and each of its fields is then misspelt, or given values of other types and numbers out of range. A
new key of the schema is covered without a change here.
"""

import copy
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

import msgspec
import pytest

from checker.cli.main import main
from checker.job import Verdict
from checker.models.ensemble import Grain
from checker.models.service import Clocks, FaultBudgets
from checker.properties import ENSEMBLE_PROPERTIES
from checker.properties.recipes import RECIPE_PROPERTIES
from checker.properties.service import SERVICE_PROPERTIES
from checker.scenario import ScenarioError, load, schema
from spec.recipes.recipes import RECIPES
from spec.variants import Variant
from tests.support.scenario_mistakes import (
    ENSEMBLE,
    KINDS_OF_PROPERTIES,
    PLACES,
    RECIPE,
    SERVICE,
    Path,
    Scenarios,
    at,
    changed,
    misspellings,
    misspelt_key,
    told,
)

DISK, DISCOVERY, CLIENTS = ("sync", "async"), ("packets", "one-step"), ("leader", "anywhere")
EXPECTED = [verdict.value for verdict in Verdict if verdict is not Verdict.ERROR]
WORDS: dict[tuple[type[msgspec.Struct], str], Sequence[str]] = {
    (schema.Scenario, "protocol"): ("election", "zab"),
    (schema.Scenario, "discovery"): DISCOVERY,
    (schema.Scenario, "disk"): DISK,
    (schema.Scenario, "commits"): DISK,
    (schema.Scenario, "clients"): CLIENTS,
    (schema.Scenario, "rollover"): ("election", "in-place", "in-place-from-1"),
    (schema.Scenario, "grain"): [each.value for each in Grain],
    (schema.Scenario, "network"): ("any", "fast"),
    (schema.Scenario, "file"): ("zoo.cfg",),
    (schema.ServerEntry, "file"): ("zoo.cfg",),
    (schema.ServerEntry, "other_files"): ("zoo.cfg",),
    (schema.ServerEntry, "wide_counter"): ("known", "enabled", "enabled-if-all-know"),
    (schema.PlanEntry, "file"): ("zoo.cfg",),
    (schema.PlanEntry, "disk"): ("kept", "empty"),
    (schema.PlanEntry, "wait"): ("rejoined", "none"),
    (schema.FaultsEntry, "notification_timeouts"): ("unlimited",),
    (schema.RecipeScenario, "recipe"): tuple(RECIPES),
    (schema.RecipeScenario, "clocks"): [each.value for each in Clocks],
    (schema.ServiceScenario, "clocks"): [each.value for each in Clocks],
    **{
        (kind, field): words
        for kind in (schema.Scenario, schema.RecipeScenario, schema.ServiceScenario)
        for field, words in (("expect", EXPECTED), ("variants", [v.value for v in Variant]))
    },
    **{(kind, "variants"): [v.value for v in Variant] for kind in (schema.ServerEntry, schema.PlanEntry)},
}
"""Fields with a fixed set of words. Actions and properties, which depend on the scenario, are listed below."""
FORMATS = {
    (schema.ServerEntry, "zxid"): ("1-3", "1:3"),
    (schema.LogEntry, "zxid"): ("1-3", "1:3"),
    (schema.OpeningEntry, "restore"): ("1-3", "1:3"),
    (schema.LimitsEntry, "memory"): ("lots", "2GB"),
    (schema.ServiceScenario, "paths"): ("a", "/a"),
    (schema.Scenario, "like"): ("newest", "3.9.5"),
    (schema.ServerEntry, "like"): ("newest", "3.9.5"),
    (schema.PlanEntry, "like"): ("newest", "3.9.5"),
}
"""Fields with a text format: a text in the wrong format, and the example in the error message."""
FREE = {"name", "about", "value"}
"""Fields that may be any text."""
ACTIONS = "may_not_fire"
VALUES: tuple[Any, ...] = ("many", 7, True, 1.5, None, ["x", "y"], {"x": 1})
HUGE = 10**40


@pytest.fixture
def scenarios(tmp_path: FilePath) -> Scenarios:
    return Scenarios(tmp_path)


# The allowed values of a field, by its type.


def hints(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def alternatives(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


def item_of(hint: Any) -> Any:
    lists = [each for each in alternatives(hint) if typing.get_origin(each) is list]
    return typing.get_args(lists[0])[0] if lists else None


def fits(value: Any, hint: Any) -> bool:
    """Whether a value has that type; a value of type `Any` is a map or a list of maps, or a word in some fields."""
    if hint is Any:
        return isinstance(value, dict | list)
    kinds = alternatives(hint)
    if type(value) in kinds or (value is None and type(None) in kinds):
        return True
    return isinstance(value, list) and item_of(hint) is not None


def wrong(hint: Any) -> list[Any]:
    return [value for value in VALUES if not fits(value, hint)]


def fields() -> Iterator[tuple[type[msgspec.Struct], dict[str, Any], Path, Any]]:
    """Every field of every struct: the scenario that contains it, its path, and its type."""
    for kind, base, place in PLACES:
        for field, hint in hints(kind).items():
            yield kind, base, (*place, field), hint


EACH_PLACE = pytest.mark.parametrize(
    ("kind", "base", "place"),
    PLACES,
    ids=[f"{kind.__name__} of {told(place, base) or 'the top'}" for kind, base, place in PLACES],
)


def test_every_struct_of_the_schema_has_a_place_here() -> None:
    structs = {each for each in vars(schema).values() if isinstance(each, type) and issubclass(each, msgspec.Struct)}
    of_models = {FaultBudgets}  # a map that is decoded as a struct of the model itself
    assert structs - {msgspec.Struct, schema.Common} == {kind for kind, _, _ in PLACES} - of_models


def test_every_text_of_the_schema_is_a_word_a_form_or_free() -> None:
    texts = {
        (kind, path[-1])
        for kind, _, path, hint in fields()
        if str in (*alternatives(hint), item_of(hint)) and path[-1] not in {*FREE, ACTIONS}
    }
    assert texts == set(WORDS) | set(FORMATS)


@pytest.mark.parametrize("base", [ENSEMBLE, RECIPE, SERVICE], ids=["ensemble", "recipe", "service"])
def test_the_scenarios_without_a_mistake_are_loaded(base: dict[str, Any], scenarios: Scenarios) -> None:
    scenarios.write(base)
    assert load(scenarios.file).name == "one"


@EACH_PLACE
def test_a_misspelt_key_is_reported_with_the_nearest_one(
    kind: type[msgspec.Struct], base: dict[str, Any], place: Path, scenarios: Scenarios
) -> None:
    for field in kind.__struct_fields__:
        for word in misspellings(field):
            said = scenarios.refused(misspelt_key(base, (*place, field), word), (*place, word))
            assert said.endswith(f"unknown key; did you mean {field}?")


@EACH_PLACE
def test_an_unknown_key_is_reported_with_all_valid_ones(
    kind: type[msgspec.Struct], base: dict[str, Any], place: Path, scenarios: Scenarios
) -> None:
    said = scenarios.refused(misspelt_key(base, (*place, "?"), "qqq"), (*place, "qqq"))
    assert all(field in said for field in kind.__struct_fields__)


@EACH_PLACE
def test_a_value_of_the_wrong_type_is_reported_with_the_right_type(
    kind: type[msgspec.Struct], base: dict[str, Any], place: Path, scenarios: Scenarios
) -> None:
    for field, hint in hints(kind).items():
        path = (*place, field)
        for value in wrong(hint):
            scenarios.refused(changed(base, path, value), path)
        item = item_of(hint)
        for value in () if item is None else wrong(item):
            scenarios.refused(changed(base, path, [value]), (*path, 0))


@EACH_PLACE
def test_a_missing_key_is_reported(
    kind: type[msgspec.Struct], base: dict[str, Any], place: Path, scenarios: Scenarios
) -> None:
    for field in msgspec.structs.fields(kind):
        if field.required and field.name not in schema.KINDS:
            whole = copy.deepcopy(base)
            del at(whole, place)[field.name]
            line = scenarios.write(whole).get(place, 1)
            with pytest.raises(ScenarioError, match=f"^s.yaml:{line}: .*it lacks the key {field.name}; its keys are "):
                load(scenarios.file)


@EACH_PLACE
def test_a_number_out_of_range_is_refused_at_its_line(
    kind: type[msgspec.Struct], base: dict[str, Any], place: Path, scenarios: Scenarios
) -> None:
    for field, hint in hints(kind).items():
        path = (*place, field)
        if int in alternatives(hint) and field not in FREE:
            scenarios.refused(changed(base, path, -1), path)
            scenarios.refused_or_loaded(changed(base, path, HUGE), path)
        if item_of(hint) is int:
            scenarios.refused(changed(base, path, [-1]), (*path, 0))
            scenarios.refused(changed(base, path, [HUGE]), (*path, 0))


@pytest.mark.parametrize(("kind", "field"), WORDS, ids=[f"{field} of {kind.__name__}" for kind, field in WORDS])
def test_a_misspelt_word_is_reported_with_the_nearest_one(
    kind: type[msgspec.Struct], field: str, scenarios: Scenarios
) -> None:
    base, place = next((base, (*place, field)) for each, base, place in PLACES if each is kind)
    listed = item_of(hints(kind)[field]) is not None
    for word in WORDS[kind, field]:
        for misspelt in misspellings(word):
            value, path = ([misspelt], (*place, 0)) if listed else (misspelt, place)
            assert scenarios.refused(changed(base, place, value), path).endswith(f"did you mean {word}?")


@pytest.mark.parametrize(("kind", "field"), FORMATS, ids=[f"{field} of {kind.__name__}" for kind, field in FORMATS])
def test_a_text_in_the_wrong_format_is_reported_with_an_example(
    kind: type[msgspec.Struct], field: str, scenarios: Scenarios
) -> None:
    text, example = FORMATS[kind, field]
    base, path = next((base, (*place, field)) for each, base, place in PLACES if each is kind)
    said = (
        scenarios.refused(changed(base, path, [text]), (*path, 0))
        if item_of(hints(kind)[field]) is str
        else scenarios.refused(changed(base, path, text), path)
    )
    assert example in said


# Words that depend on the scenario: actions, properties, requests.


@pytest.mark.parametrize("base", [ENSEMBLE, RECIPE, SERVICE], ids=["ensemble", "recipe", "service"])
def test_a_misspelt_action_is_reported_with_the_nearest_one(base: dict[str, Any], scenarios: Scenarios) -> None:
    scenarios.write(base)
    for action in load(scenarios.file).actions:
        said = scenarios.refused(changed(base, (ACTIONS,), [misspellings(action)[0]]), (ACTIONS, 0))
        assert said.endswith(f"did you mean {action}?")


REGISTRIES = pytest.mark.parametrize(
    ("base", "registry"),
    [(ENSEMBLE, ENSEMBLE_PROPERTIES), (RECIPE, RECIPE_PROPERTIES), (SERVICE, SERVICE_PROPERTIES)],
    ids=["ensemble", "recipe", "service"],
)


@REGISTRIES
def test_a_misspelt_property_is_reported_with_the_nearest_one(
    base: dict[str, Any], registry: Mapping[str, Any], scenarios: Scenarios
) -> None:
    for name, entry in registry.items():
        kind = entry.kind.value
        for misspelt in misspellings(name):
            said = scenarios.refused(changed(base, (kind,), [misspelt]), (kind, 0))
            assert said.endswith(f"did you mean {name}?")


@REGISTRIES
def test_a_property_in_the_wrong_list_is_reported_with_the_right_list(
    base: dict[str, Any], registry: Mapping[str, Any], scenarios: Scenarios
) -> None:
    for name, entry in registry.items():
        other = next(each for each in KINDS_OF_PROPERTIES if each != entry.kind.value)
        assert f"write it under {entry.kind.value}" in scenarios.refused(changed(base, (other,), [name]), (other, 0))


@REGISTRIES
def test_an_extra_or_missing_parameter_is_reported(
    base: dict[str, Any], registry: Mapping[str, Any], scenarios: Scenarios
) -> None:
    for name, entry in registry.items():
        kind = entry.kind.value
        item = name if entry.parameter else {name: 3}
        wanted = entry.parameter.description if entry.parameter else f"write {name} alone"
        assert wanted in scenarios.refused(changed(base, (kind,), [item]), (kind, 0))


@pytest.mark.parametrize("request_", ["create", "get", "stat", "ls", "set", "delete", "check", "sync", "close"])
def test_a_misspelt_request_is_reported_with_the_nearest_one(request_: str, scenarios: Scenarios) -> None:
    for misspelt in misspellings(request_):
        for step in (f"{misspelt} /a", [f"{misspelt} /a"], {"one of": [f"{misspelt} /a"]}):
            said = scenarios.refused(changed(SERVICE, ("service", 1, 0), step), ("service", 1, 0))
            assert said.endswith(f"did you mean {request_}?")


@pytest.mark.parametrize(
    ("base", "key", "said"),
    [
        (ENSEMBLE, "clocks", "it is a key of scenarios with the key recipe or service"),
        (ENSEMBLE, "pipeline", "it is a key of scenarios with the key service"),
        (RECIPE, "grain", "it is a key of scenarios of an ensemble"),
        (SERVICE, "again", "it is a key of scenarios with the key recipe"),
    ],
)
def test_a_key_of_another_kind_of_scenario_is_reported_as_one(
    base: dict[str, Any], key: str, said: str, scenarios: Scenarios
) -> None:
    assert scenarios.refused(changed(base, (key,), 1), (key,)).endswith(said)


# The command line.


@EACH_PLACE
def test_the_command_line_answers_a_mistake_with_a_line_and_exit_code_150(
    kind: type[msgspec.Struct],
    base: dict[str, Any],
    place: Path,
    scenarios: Scenarios,
    capsys: pytest.CaptureFixture[str],
) -> None:
    field = kind.__struct_fields__[0]
    word = misspellings(field)[0]
    whole = misspelt_key(base, (*place, field), word)
    places = scenarios.write(whole)
    assert main(["run", str(scenarios.file)]) == 150
    printed = capsys.readouterr()
    assert printed.out == ""
    line = places[*place, word]
    path = told((*place, word), whole)
    assert printed.err == f"error: s.yaml:{line}: {path}: unknown key; did you mean {field}?\n"
