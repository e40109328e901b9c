"""Scenarios of clients, with a recipe or with separate requests; errors in them are reported with their line."""

import pytest

from checker.engine import plain
from checker.job import Job, Verdict
from checker.models.recipes import RecipeSetup
from checker.models.service import Clocks, FaultBudgets
from checker.report import judge
from checker.scenario import ScenarioError, VariantError, from_source, from_text
from checker.scenario.recipe import known_actions
from spec.variants import Variant

RECIPE = "recipe: lock\nfaults: {disconnects: 1}\n"
SERVICE = "service:\n  - [create /a, get -w /a]\n  - [set /a]\npaths: [/q]\n"


def job(text: str) -> Job:
    return from_text(text, {}.get)


def told(text: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        job(text)
    return str(caught.value)


@pytest.mark.parametrize("text", [RECIPE, SERVICE])
def test_a_job_can_be_made_again_from_its_source(text: str) -> None:
    made = job(text)
    again = from_source(made.source)
    assert again.model.initial() == made.model.initial()
    assert again.name == made.name


def test_a_recipe_without_properties_is_held_to_one_holder() -> None:
    assert [prop.name for prop in job(RECIPE).model.properties] == ["OneHolder"]


def test_every_action_that_is_said_to_be_there_fires() -> None:
    made = job(RECIPE + "final: [NobodyWaits]\n")
    exploration = plain.explore(made.model)
    assert judge(made, exploration, made.actions).verdict is Verdict.PASSED
    assert {name for name, each in exploration.coverage.items() if each.fired} == made.actions


def test_the_actions_are_those_that_the_setup_allows() -> None:
    setup = RecipeSetup("leader-selector", budgets=FaultBudgets(expiries=1), writes=1, quits=1, removals=1)
    assert {"return", "write", "reach", "give up", "remove", "expire", "open"} <= set(known_actions(setup))
    assert not {"release", "crash", "disconnect", "apply"} & set(known_actions(setup))


def test_what_is_bounded_is_said() -> None:
    said = job(RECIPE + "clocks: paused\nquits: 1\nservers: 2\nlag: true\n").bounds
    assert "2 servers, which lag" in said
    assert "at most 1 lost connection" in said
    assert "each client gives up at most once" in said


def test_clocks_may_be_trusted_or_not() -> None:
    job(RECIPE + f"clocks: {Clocks.PAUSED.value}\n")
    assert "paused" in told(RECIPE + "clocks: pausing\n")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("recipe: lock\nclients: 0\n", "scenario.yaml:2: clients: 0 is not from 1 to 9"),
        ("recipe: lock\nalways: [FencedInOrder]\n", "FencedInOrder speaks of writes to the resource"),
        ("recipe: lock\nalways: [FollowsALeader]\n", "FollowsALeader speaks of leaders that announce themselves"),
        ("recipe: lock\nwrites: 1\nsometimes: [StaleWrites]\n", "StaleWrites takes a parameter; give a number"),
        ("recipe: leader-latch\nagain: 1\n", "again: a leader-latch is not taken twice"),
        ("service: []\n", "there are no clients"),
        ("service:\n  - [get /a]\nat: [1, 2]\n", "names the first server of each of 1 clients"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place_and_what_would_be_right(text: str, wanted: str) -> None:
    assert wanted in told(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("recipe: lock\nvariants: [lost-watch]\n", "it is of the service as clients see it"),
        ("recipe: lock\nvariants: [ZOOKEEPER-1419]\n", "it is of the election"),
        ("recipe: lock\nvariants: [search-without-sync]\n", "write lag: true, and servers: 2"),
        ("recipe: lock\nvariants: [enter-twice]\n", "write recipe: lock, and again: 1"),
        ("recipe: unfair-election\nvariants: [no-reread]\n", "it changes nothing in a recipe without a queue"),
        ("recipe: lock\nvariants: [lead-unannounced]\n", "write recipe: fair-election"),
        ("recipe: lock\nvariants: [no-fencing]\n", "write writes: 1"),
        ("service:\n  - [get /a]\nvariants: [no-protection]\n", "it is not a variant of the service"),
        ("service:\n  - [get /a]\nvariants: [lost-watch]\n", "it changes nothing where no client watches"),
    ],
)
def test_a_variant_that_changes_nothing_is_refused_with_its_line(text: str, wanted: str) -> None:
    assert wanted in told(text)
    assert "variants[0]: the variant " in told(text)


def test_so_is_one_that_was_added_to_the_scenario() -> None:
    with pytest.raises(VariantError, match="it changes nothing where no client writes"):
        from_text(RECIPE, {}.get, added=[Variant.NO_FENCING])
