"""What a model of a recipe consists of: clients that want something, a service between them, what may go wrong.

Everything here is plain data, which scenarios make; `build` makes columns, actors and rules of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from checker.models.service import Budgets, Clocks, ServiceSetup
from spec.recipes.recipes import RECIPES, Recipe
from spec.tree.store import FrozenStore
from spec.tree.znode import Znode
from spec.variants import Variant

NO_FAULTS = Budgets()
ROOT = "/r"
"""Where the recipe has its znodes."""


class Facts(Enum):
    """What is written down of a run, each in a column of its own; only what a property reads is."""

    REIGNS = "reigns"  # whose znode was first, one after the other
    LED = "led"  # who has come to hold, and who was taken for the leader without that
    TOLD = "told"  # how many clients one event has notified at most


@dataclass(frozen=True)
class RecipeSetup:
    """Some clients with one recipe.

    `rounds`: how often each client wants to hold. `writes`: how often a client may write to the guarded resource, in
    all. `again`: how often it may take what it holds once more. `quits`: how often it may give up waiting, in all.
    `removals`: how many znodes of clients that wait an operator may delete.
    """

    recipe: str
    clients: int = 2
    servers: int = 1
    lag: bool = False
    clocks: Clocks = Clocks.TRUSTED
    budgets: Budgets = NO_FAULTS
    rounds: int = 1
    writes: int = 0
    again: int = 0
    quits: int = 0
    removals: int = 0
    variants: frozenset[Variant] = frozenset()
    facts: frozenset[Facts] = frozenset()

    @property
    def machine(self) -> Recipe:
        """The recipe's step function, and what may be asked of its state."""
        return RECIPES[self.recipe]

    @property
    def rules(self) -> object:
        """What the recipe goes by."""
        return self.machine.rules(ROOT, self.variants)

    @property
    def service(self) -> ServiceSetup:
        """The service between the clients."""
        return ServiceSetup(
            clients=self.clients,
            servers=self.servers,
            lag=self.lag,
            paths=(ROOT,),
            clocks=self.clocks,
            budgets=self.budgets,
            variants=self.variants,
            observe_commits=(REIGNS,) if Facts.REIGNS in self.facts else (),
            observe_watches=(TOLD,) if Facts.TOLD in self.facts else (),
        )

    @property
    def client_ids(self) -> tuple[int, ...]:
        """The clients, from 1."""
        return tuple(range(1, self.clients + 1))


REIGNS, LED, TOLD = (facts.value for facts in Facts)
RESOURCE = "resource"
OPERATOR = "removals left"


def mail_name(client: int) -> str:
    """The column of what a client has sent to the resource and has not arrived."""
    return f"mail {client}"


def first_of(setup: RecipeSetup, store: FrozenStore) -> tuple[str, Znode] | None:
    """What holds in truth: the znode that is first, with its path."""
    path = setup.machine.first(setup.rules, store)
    if path is None:
        return None
    znode = store.node(path)
    assert znode is not None, "what is first is there"
    return path, znode
