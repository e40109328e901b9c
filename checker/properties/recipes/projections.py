"""The registry of the properties of recipes, and what they read of each client.

Rule of this module: a client that has crashed is False, for every projection.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from checker.engine import Read
from checker.models.recipes import Client, Facts, RecipeSetup, first_of
from checker.models.service import LEADER, Leader, client_name
from checker.properties.registry import Registry, Scope
from spec.recipes.recipes import ExclusiveRecipe

RECIPE_PROPERTIES: Registry[RecipeSetup, Facts] = Registry("recipes")
"""All properties of recipes, by name."""

EXCLUSIVE: Scope[RecipeSetup] = Scope(
    lambda setup: isinstance(setup.machine, ExclusiveRecipe),
    "to recipes with one holder",
    "speaks of a holder",
    "write recipe: lock, or an election",
)
WRITES: Scope[RecipeSetup] = Scope(
    lambda setup: setup.writes > 0, "with `writes`", "speaks of writes to the resource", "write writes: 1"
)
ANNOUNCED: Scope[RecipeSetup] = Scope(
    lambda setup: isinstance(setup.machine, ExclusiveRecipe) and setup.machine.announces,
    "with `recipe: fair-election`",
    "speaks of leaders that announce themselves",
    "write recipe: fair-election",
)


def clients(setup: RecipeSetup, see: Callable[[Client], Hashable]) -> tuple[Read, ...]:
    """A read of each client; a client that has crashed is False."""
    return tuple(
        Read(client_name(client), lambda state: False if state.crashed else see(state)) for client in setup.client_ids
    )


def holders(setup: RecipeSetup) -> tuple[Read, ...]:
    """Whether each client believes that it holds."""
    return clients(setup, lambda client: setup.exclusive.holds(client.recipe))


def waiters(setup: RecipeSetup) -> tuple[Read, ...]:
    """Whether each client wants to hold and does not."""
    return clients(setup, lambda client: setup.machine.waits(client.recipe))


def tokens_of_holders(setup: RecipeSetup) -> tuple[Read, ...]:
    """The token by which each client believes that it holds; False if it does not."""
    recipe = setup.exclusive

    def token(client: Client) -> Hashable:
        return recipe.token(client.recipe) if recipe.holds(client.recipe) else False

    return clients(setup, token)


def first_token(setup: RecipeSetup) -> Read:
    """The czxid of the first znode in the leader's tree; 0 if there is none."""

    def first(leader: Leader) -> Hashable:
        found = first_of(setup, leader.store)
        return 0 if found is None else found[1].czxid

    return Read(LEADER, first)


def those(seen: Iterable[object]) -> tuple[int, ...]:
    """The numbers of the clients with a true value."""
    return tuple(client for client, true in enumerate(seen, 1) if true)
