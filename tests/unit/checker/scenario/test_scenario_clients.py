"""Scenarios of clients, with a recipe or with separate requests; errors in them are reported with their line."""

import pytest

from checker.engine import plain
from checker.job import Job, Verdict
from checker.models.recipes import RecipeSetup
from checker.models.service import FaultBudgets
from checker.report import judge
from checker.scenario import from_source, from_text
from checker.scenario.recipe import known_actions

RECIPE = "recipe: lock\nfaults: {disconnects: 1}\n"
SERVICE = "service:\n  - [create /a, get -w /a]\n  - [set /a]\npaths: [/q]\n"


def job(text: str) -> Job:
    return from_text(text, {}.get)


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
