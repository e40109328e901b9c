"""The input of a model of a recipe: clients with wishes, a service between them, budgets of faults.

Everything here is plain data, which scenarios make; `build` makes columns, actors and rules of it.
"""

from dataclasses import dataclass
from enum import Enum

from checker.models.service import Clocks, FaultBudgets, ServiceSetup
from checker.models.service.setup import NO_FAULTS
from spec.recipes.recipes import RECIPES, ExclusiveRecipe, Recipe
from spec.tree.data import Znode
from spec.tree.store import FrozenStore
from spec.variants import Variant

ROOT = "/r"
"""The parent of the recipe's znodes."""


class RecipeBudgets(FaultBudgets, frozen=True):
    """The budgets of a service, and the number of znodes that an operator may still delete."""

    removals: int = 0


class Facts(Enum):
    """The recorded facts of a run, each in a separate column; only facts that a property reads are recorded."""

    REIGNS = "reigns"  # the znodes that were first, in this order
    LEADERS = "leaders"  # the znodes whose owners hold, and one that was followed without that
    HERD = "herd"  # the greatest number of clients that one event has notified at one server


@dataclass(frozen=True)
class RecipeSetup:
    """Some clients with one recipe.

    `rounds`: the number of times that each client wants to hold. `writes`: the number of writes of each client to the
    guarded resource, in all. `again`: the number of times that it may take again what it holds. `quits`: the number of
    times that it may give up waiting, in all. `removals`: the number of znodes of waiting clients that an operator may
    delete.
    """

    recipe: str
    clients: int = 2
    servers: int = 1
    lag: bool = False
    clocks: Clocks = Clocks.TRUSTED
    budgets: FaultBudgets = NO_FAULTS
    rounds: int = 1
    writes: int = 0
    again: int = 0
    quits: int = 0
    removals: int = 0
    variants: frozenset[Variant] = frozenset()
    facts: frozenset[Facts] = frozenset()

    @property
    def machine(self) -> Recipe:
        """The recipe's step function, and the queries on its state."""
        return RECIPES[self.recipe]

    @property
    def rules(self) -> object:
        """The recipe's rules: its root and the variants."""
        return self.machine.rules(ROOT, self.variants, self.clients)

    @property
    def exclusive(self) -> ExclusiveRecipe:
        """The recipe, which has one holder at a time. Raises TypeError for any other recipe."""
        recipe = self.machine
        if not isinstance(recipe, ExclusiveRecipe):
            raise TypeError(f"{recipe.name} has no holder")
        return recipe

    @property
    def service(self) -> ServiceSetup:
        """The service between the clients."""
        return ServiceSetup(
            clients=self.clients,
            servers=self.servers,
            lag=self.lag,
            paths=(ROOT,),
            clocks=self.clocks,
            budgets=RecipeBudgets(**self.budgets.by_name, removals=self.removals),
            variants=self.variants,
            observe_commits=(REIGNS,) if Facts.REIGNS in self.facts else (),
            observe_watches=(HERD,) if Facts.HERD in self.facts else (),
        )

    @property
    def client_ids(self) -> tuple[int, ...]:
        """The clients, from 1."""
        return tuple(range(1, self.clients + 1))


REIGNS, LEADERS, HERD = (facts.value for facts in Facts)
RESOURCE = "resource"


def mail_name(client: int) -> str:
    """The column of the client's writes in flight to the resource."""
    return f"mail {client}"


def first_of(setup: RecipeSetup, store: FrozenStore) -> tuple[str, Znode] | None:
    """The first znode, with its path: its owner is the true holder. None if there is none."""
    path = setup.exclusive.first(setup.rules, store)
    if path is None:
        return None
    znode = store.node(path)
    assert znode is not None, "what is first is there"
    return path, znode
