"""Mutation: the properties that each variant of a recipe breaks, as a table that is generated here, part of the manual.

Every property must be broken by some variant, every variant must break some property, and without a variant the same
models break none. REWRITE_GOLDEN=1 rewrites docs/reference-recipe-variants.md; read the diff before you commit it.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from checker.engine import Kind
from checker.engine.search import explore
from checker.models.recipes import Facts, RecipeSetup, recipe_model
from checker.models.service import Clocks, FaultBudgets
from checker.properties.recipes import RECIPE_PROPERTIES
from checker.scenario.recipe import why_no_effect
from spec.recipes.recipes import RECIPES
from spec.variants import DESCRIBED, Area, Variant, of_area

PAGE = Path(__file__).parents[2] / "docs" / "reference-recipe-variants.md"
EVERY_FACT = frozenset(Facts)


def applies(name: str, setup: RecipeSetup) -> bool:
    needs = RECIPE_PROPERTIES[name].needs
    return needs is None or needs.covers(setup)


COMMON = {"budgets": FaultBudgets(disconnects=1, expiries=1), "facts": EVERY_FACT}
SCENES: Mapping[str, RecipeSetup] = {
    "two clients": RecipeSetup("lock", again=1, **COMMON),
    "three clients, no connection lost": RecipeSetup(
        "lock", clients=3, budgets=FaultBudgets(crashes=1), facts=EVERY_FACT
    ),
    "two servers that lag": RecipeSetup("lock", servers=2, lag=True, **COMMON),
    "writes, and processes that pause": RecipeSetup(
        "lock", clocks=Clocks.PAUSED, writes=1, budgets=FaultBudgets(expiries=1), facts=EVERY_FACT
    ),
    "a fair election": RecipeSetup("fair-election", **COMMON),
    "a latch": RecipeSetup("leader-latch", **COMMON),
    "a latch that writes": RecipeSetup("leader-latch", writes=1, budgets=FaultBudgets(disconnects=1), facts=EVERY_FACT),
    "a selector": RecipeSetup("leader-selector", **COMMON),
    "an unfair election": RecipeSetup("unfair-election", clients=3, **COMMON),
}
"""The scenes for the exploration of variants. Belief is exclusive only where clocks are trusted."""
HELD_TO = tuple(
    name
    for name, entry in RECIPE_PROPERTIES.items()
    if entry.kind is not Kind.SOMETIMES and any(applies(name, setup) for setup in SCENES.values())
)


def held_to(setup: RecipeSetup) -> list[str]:
    names = [name for name in HELD_TO if applies(name, setup)]
    if setup.clocks is Clocks.PAUSED:
        names.remove("OneHolder")
    if setup.lag:
        names.remove("NoWatchLeft")  # a lagging server has watches on znodes that the leader has already deleted
    if setup.recipe == "unfair-election":
        names.remove("OneIsTold")
    return names


@cache
def broken(scene: str, variant: Variant | None) -> Mapping[str, int]:
    """Return each property that fails, with its least depth.

    Invariants are explored as witnesses, which do not end the search. A violation of another kind ends it; that
    property is then removed, and the search repeated. A search that exhausts the space has judged all that are left.
    """
    setup = SCENES[scene]
    if variant is not None:
        setup = replace(setup, variants=frozenset({variant}))
    left = [RECIPE_PROPERTIES.build(setup, name) for name in held_to(setup)]
    left = [replace(prop, kind=Kind.SOMETIMES) if prop.kind is Kind.ALWAYS else prop for prop in left]
    depths: dict[str, int] = {}
    while True:
        exploration = explore(recipe_model(scene, setup, left))
        depths |= {name: found.depth for name, found in exploration.found.items()}
        if exploration.exhausted:
            return depths
        left = [prop for prop in left if prop.name not in depths]


def scenes_of(variant: Variant) -> list[str]:
    return [scene for scene, setup in SCENES.items() if why_no_effect(variant, setup) is None]


def broken_by(variant: Variant) -> dict[str, int]:
    """Return each property that a variant breaks in any scene, with its least depth."""
    depths: dict[str, int] = {}
    for scene in scenes_of(variant):
        for name, depth in broken(scene, variant).items():
            depths[name] = min(depth, depths.get(name, depth))
    return depths


VARIANTS = sorted(of_area(Area.RECIPES), key=list(Variant).index)


@pytest.mark.parametrize("scene", SCENES)
def test_without_a_variant_nothing_is_broken(scene: str) -> None:
    assert broken(scene, None) == {}


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: str(variant.value))
def test_every_variant_breaks_a_property(variant: Variant) -> None:
    assert broken_by(variant)


@pytest.mark.parametrize("name", HELD_TO)
def test_every_property_is_broken_by_a_variant(name: str) -> None:
    assert [variant.value for variant in VARIANTS if name in broken_by(variant)]


def test_the_table_in_the_manual_is_what_the_checker_finds() -> None:
    page = "\n".join(_page()) + "\n"
    if os.environ.get("REWRITE_GOLDEN"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page


def test_every_recipe_with_variants_is_looked_at() -> None:
    assert {setup.recipe for setup in SCENES.values()} == {name for name, recipe in RECIPES.items() if recipe.variants}


def _page() -> list[str]:
    lines = [*_HEAD, ""]
    for variant in VARIANTS:
        words = DESCRIBED[variant].wrong
        lines += [f"### {variant.value}", "", f"{words[0].upper()}{words[1:]}.", ""]
        lines += [f"Breaks {_listed(broken_by(variant))}.", ""]
    lines += ["## Property against variant", "", "| property | broken by |", "| --- | --- |"]
    for name in HELD_TO:
        by = {variant.value: broken_by(variant)[name] for variant in VARIANTS if name in broken_by(variant)}
        lines.append(f"| {name} | {_listed(by)} |")
    return lines


_HEAD = """\
# Variants of recipes: wrong on purpose

A variant is a recipe with one mistake, at one place of `spec/recipes`, that is easily made. The test
`tests/quality/test_recipe_variants.py` writes this page, and fails if the page differs from the results of the checker.
The number behind a property is the least number of steps to its failure, in the small models of that test. The
scenarios in `spec/scenarios/r15-unfair-election` to `r22-leader-selector` show one property each.

## Variants
""".rstrip().splitlines()


def _listed(depths: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({depth})" for name, depth in sorted(depths.items(), key=lambda pair: (pair[1], pair[0])))
