"""The final states and the goals of recipes: no client waits forever, no znode is left, a mistaken client learns it.

Rules of this module: a condition on states without a next step is a property of final states; a condition that must
become true is a liveness property, with the fairness that the rules of the model declare.
"""

from collections.abc import Hashable
from typing import Any

from checker.engine import TRIVIAL, Finding, Kind, Read
from checker.kit.actions import FAULTS
from checker.models.recipes import ROOT, Client, RecipeSetup
from checker.models.recipes.client import WISHES
from checker.models.service import LEADER, Leader
from checker.properties.recipes.safety import (
    EXCLUSIVE,
    RECIPE_PROPERTIES,
    clients,
    first_token,
    those,
    tokens_of_holders,
    waiters,
)
from checker.properties.registry import Answer, Condition


@RECIPE_PROPERTIES.declare(
    "NobodyWaits",
    Kind.FINAL,
    meaning="In every state without a next step, no client waits",
    requirements=("R15", "R16", "R18", "R19", "R21", "R22"),
)
def _nobody_waits(setup: RecipeSetup) -> Condition:
    def check(*waits: bool) -> Answer:
        waiting = those(waits)
        return Finding("clients wait, and nothing more can happen", (("clients", waiting),)) if waiting else None

    return Condition(waiters(setup), check)


@RECIPE_PROPERTIES.declare(
    "NothingIsLeft",
    Kind.FINAL,
    meaning="In every state without a next step, a znode is left only if some client knows its znode",
    requirements=("R19",),
    notes="It compares existence, not paths: one client that knows its znode excuses every znode that is left.",
    needs=EXCLUSIVE,
)
def _nothing_is_left(setup: RecipeSetup) -> Condition:
    def paths(leader: Leader) -> Hashable:
        return frozenset(path for path, _ in leader.store.nodes if path.startswith(ROOT) and path != ROOT)

    def known(client: Client) -> Hashable:
        return setup.exclusive.token(client.recipe) is not None

    def check(there: frozenset[str], *knows: bool) -> Answer:
        # A client with a token has one znode, or two if it has announced itself.
        if there and not any(knows):
            return Finding("znodes are left that no client knows of", (("paths", tuple(sorted(there))),))
        return None

    return Condition((Read(LEADER, paths), *clients(setup, known)), check)


@RECIPE_PROPERTIES.declare(
    "SomebodyHolds",
    Kind.EVENTUALLY,
    meaning="On every fair run, some live waiter takes a lock or leadership that is free",
    requirements=("R18",),
    notes="It demands that some client holds, or that no client waits.",
    needs=EXCLUSIVE,
)
def _somebody_holds(setup: RecipeSetup) -> Condition:
    recipe = setup.exclusive

    def see(client: Client) -> Hashable:
        if recipe.holds(client.recipe):
            return "holds"
        return "waits" if recipe.waits(client.recipe) else "out"

    def check(*seen: Any) -> Answer:
        if "holds" in seen:
            return Finding("a client holds")
        return None if "waits" in seen else Finding("nobody waits")

    return Condition(clients(setup, see), check)


@RECIPE_PROPERTIES.declare(
    "EveryWaiterIsServed",
    Kind.EVENTUALLY,
    meaning="On every fair run, again and again a state is reached where no client waits",
    requirements=("R18",),
    notes="A client stops waiting when it holds, gives up or crashes.",
)
def _every_waiter_is_served(setup: RecipeSetup) -> Condition:
    def check(*waits: bool) -> Answer:
        return None if any(waits) else Finding("nobody waits")

    return Condition(waiters(setup), check)


@RECIPE_PROPERTIES.declare(
    "TheHolderLearns",
    Kind.EVENTUALLY,
    meaning="On every fair run, a client that wrongly believes that it holds stops believing it",
    requirements=("R20",),
    notes="The belief is wrong if the znode of the client is not the first one. Actions of applications are not "
    "fair here, so that a release does not count as learning.",
    needs=EXCLUSIVE,
)
def _the_holder_learns(setup: RecipeSetup) -> Condition:
    def check(present: int, *tokens: Any) -> Answer:
        wrong = any(token not in (False, present) for token in tokens)
        return None if wrong else Finding("nobody believes that it holds what it does not")

    reads = (first_token(setup), *tokens_of_holders(setup))
    return Condition(reads, check, frozenset(WISHES))


@RECIPE_PROPERTIES.declare(
    "Recovers",
    Kind.RECOVERABLE,
    meaning="From every state some run reaches a state where no client waits",
    requirements=("R19",),
)
def _recovers(setup: RecipeSetup) -> Condition:
    def check(*waits: bool) -> Answer:
        return None if any(waits) else Finding("nobody waits")

    return Condition(waiters(setup), check)


@RECIPE_PROPERTIES.declare(
    "RecoversByExpiry",
    Kind.RECOVERABLE,
    meaning="From every state where a session may still expire, some run reaches a state where no client waits",
    requirements=("R19",),
)
def _recovers_by_expiry(setup: RecipeSetup) -> Condition:
    def check(may_expire: bool, *waits: bool) -> Answer:
        if not any(waits):
            return Finding("nobody waits")
        return None if may_expire else TRIVIAL

    budget = Read(FAULTS, lambda faults: faults.left.expiries > 0)
    return Condition((budget, *waiters(setup)), check)
