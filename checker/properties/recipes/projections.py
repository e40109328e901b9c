"""The registry of the properties of recipes, what they read of each client, and the fairness of steps.

Rules of this module:

- A client that has crashed is False, for every projection.
- The steps of servers, networks and client libraries are fair, and so is a release by a client that holds. Faults, and
  other actions of an application or an operator, need never happen.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from checker.engine import Move, Read
from checker.models.recipes import Client, Facts, RecipeSetup, first_of
from checker.models.recipes.client import ApplicationAction
from checker.models.service import FAULTS, LEADER, Leader, client_name
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

UNFORCED = frozenset({ApplicationAction.WANT, ApplicationAction.AGAIN, ApplicationAction.QUIT, ApplicationAction.WRITE})
NEED_NOT = FAULTS | {"remove"} | {wish.value for wish in UNFORCED}
"""The actions that need never happen."""


def fair(rule: str, move: Move) -> Hashable:
    """The unit of fairness of a move: the moves of one rule under one name; None for a move that need not happen."""
    return None if move.action in NEED_NOT else (rule, move.action)


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
