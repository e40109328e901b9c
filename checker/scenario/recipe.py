"""Scenarios with the key `recipe`: clients with a recipe, their service, faults.

Rules of this module: every bound of the model is described in words; a value that would change nothing is an error, and
so is a variant.
"""

from collections.abc import Iterator

from checker.job import Job
from checker.kit.actions import Action
from checker.models.recipes import Facts, RecipeSetup, recipe_model
from checker.models.recipes.client import RecipeAction
from checker.models.service import Clocks, rules
from checker.present.recipe import RecipePresenter
from checker.properties.recipes import RECIPE_PROPERTIES
from checker.scenario.kind import ScenarioKind, word
from checker.scenario.schema import RECIPE, RecipeScenario
from checker.scenario.service import budgets_of, check_counts, clocks_of, faults_of
from checker.scenario.yaml_lines import NoEffect, YamlDocument
from spec.recipes.recipes import QUEUE_VARIANTS, RECIPES, ExclusiveRecipe
from spec.variants import DESCRIBED, Area, Variant

COUNTED = ("rounds", "writes", "again", "quits", "removals")
MOST = {"clients": (1, 9), "servers": (1, 5), "rounds": (1, 9), **dict.fromkeys(COUNTED[1:], (0, 9))}
"""The least and the greatest value of each count."""
OF_LOCKS = frozenset({Variant.ENTER_TWICE, Variant.LEAVE_AT_ONCE})


class RecipeKind(ScenarioKind[RecipeScenario]):
    """A scenario of clients with a recipe."""

    schema = RecipeScenario

    def describe(self) -> Job:
        """The job of the clients, their service and their resource."""
        setup = self._setup()
        properties = tuple(self.properties(RECIPE_PROPERTIES, setup))
        model = recipe_model(self.name, setup, properties)
        return Job(
            name=self.name,
            model=model,
            presenter=RecipePresenter(model, setup),
            source=self.source,
            grain="each request",
            bounds=tuple(bounds_of(setup)),
            actions=frozenset(known_actions(setup)),
        )

    def _setup(self) -> RecipeSetup:
        keys = self.keys
        word(self.document, keys.recipe, RECIPES, (RECIPE,))
        check_counts(keys, self.document, MOST)
        facts = {
            fact
            for name in self.named_properties()
            if name in RECIPE_PROPERTIES
            for fact in RECIPE_PROPERTIES[name].facts
        }
        setup = RecipeSetup(
            recipe=keys.recipe,
            clients=keys.clients,
            servers=keys.servers,
            lag=keys.lag,
            clocks=clocks_of(keys.clocks, self.document),
            budgets=budgets_of(keys.faults, self.document),
            **{key: getattr(keys, key) for key in COUNTED},
            variants=self.variants() | self.added,
            facts=frozenset(facts | ({Facts.REIGNS} if keys.writes else set())),
        )
        _check_options(keys, self.document)
        self.refuse_without_effect(lambda variant: why_no_effect(variant, setup))
        return setup


def _check_options(scenario: RecipeScenario, document: YamlDocument) -> None:
    """Refuse a count that has no meaning for the recipe."""
    for key in COUNTED:
        least, _ = MOST[key]
        if getattr(scenario, key) > least and key not in RECIPES[scenario.recipe].options:
            recipes = [name for name, recipe in RECIPES.items() if key in recipe.options]
            problem = (
                f"a {scenario.recipe} is not taken twice" if key == "again" else f"a {scenario.recipe} has no {key}"
            )
            raise document.error((key,), problem, f"leave it out, or write recipe: {recipes[0]}")


def why_no_effect(variant: Variant, setup: RecipeSetup) -> NoEffect | None:
    """The reason why a variant changes nothing in a setup; None if it may change something."""
    area, recipe = DESCRIBED[variant].area, setup.machine
    if area is not Area.RECIPES:
        return NoEffect(f"it is of {area.value}, and here are clients with a recipe", "add it to another scenario")
    if variant in OF_LOCKS and not setup.again:
        return NoEffect("it changes nothing where a lock is taken once", "write recipe: lock, and again: 1")
    if variant in QUEUE_VARIANTS and variant not in recipe.variants:
        return NoEffect("it changes nothing in a recipe without a queue", "write another recipe")
    if variant is Variant.SEARCH_WITHOUT_SYNC and not setup.lag:
        return NoEffect("it changes nothing where no server lags", "write lag: true, and servers: 2")
    if variant is Variant.LEAD_UNANNOUNCED and variant not in recipe.variants:
        return NoEffect("it changes nothing where leaders are not announced", "write recipe: fair-election")
    if variant is Variant.OLD_TOKEN and not (setup.exclusive.requeues and setup.writes):
        right = "write recipe: leader-latch, and writes: 1"
        return NoEffect("it changes nothing where no client queues anew and writes", right)
    if variant is Variant.NO_FENCING and not setup.writes:
        return NoEffect("it changes nothing where no client writes", "write writes: 1")
    if variant not in recipe.variants:
        return NoEffect(f"it changes nothing in a {recipe.name}", "write another recipe")
    return None


def known_actions(setup: RecipeSetup) -> Iterator[Action]:
    """The actions that a model of this setup has."""
    action = RecipeAction
    yield from (action.WANT, action.RETURN if setup.machine.calls else action.RELEASE)
    yield from (action.WRITE, action.REACH) if setup.writes else ()
    yield from (action.AGAIN,) if setup.again else ()
    yield from (action.QUIT,) if setup.quits else ()
    yield from (action.REMOVE,) if setup.removals else ()
    yield from rules.known_actions(setup.service)


def bounds_of(setup: RecipeSetup) -> Iterator[str]:
    """A description in words of everything that the model bounds."""
    verb = "hold" if isinstance(setup.machine, ExclusiveRecipe) else setup.machine.verb
    yield f"{setup.clients} clients, each of which wants to {verb} {_times(setup.rounds)}"
    yield f"{setup.servers} server{'s' * (setup.servers > 1)}{', which lag' if setup.lag else ' without lag'}"
    yield faults_of(setup.budgets) or "no fault"
    if setup.budgets.expiries:
        paused = setup.clocks is Clocks.PAUSED
        yield "a session may expire before its client knows" if paused else "a client knows before its session expires"
    if setup.writes:
        yield f"each client writes to the resource at most {_times(setup.writes)}"
    if setup.again:
        yield f"each client takes the lock again at most {_times(setup.again)}"
    if setup.quits:
        yield f"each client gives up at most {_times(setup.quits)}"
    if setup.removals:
        yield f"an operator deletes the znode of a client that waits at most {_times(setup.removals)}"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
