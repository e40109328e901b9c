"""The strategies to wait for a leader's death that are compared: the watches of each client.

Rules of this module:

- A strategy is a recipe of `spec.recipes` and the variants that change its watches; nothing else differs.
- The first four are those that R17 compares. The last one is the official fair election, whose leader announces its
  leadership before it leads: this costs a write.

Source: ZooKeeper's recipes, "Locks" and "Leader Election" (the herd effect).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spec.recipes.recipes import RECIPES, ExclusiveRecipe
from spec.variants import Variant


@dataclass(frozen=True)
class Strategy:
    """A strategy to wait. `herd`: the death of the leader notifies all waiting clients, and not only one."""

    name: str
    recipe: str
    variants: frozenset[Variant] = frozenset()
    herd: bool = True

    @property
    def machine(self) -> ExclusiveRecipe:
        """The recipe's step function, and the queries of its state."""
        recipe = RECIPES[self.recipe]
        assert isinstance(recipe, ExclusiveRecipe), "a strategy waits for a leader"
        return recipe

    def rules(self, root: str) -> Any:
        """The recipe's rules, with its znodes at this path."""
        return self.machine.rules(root, self.variants)

    def expected(self, clients: int) -> int:
        """The number of clients that the death of a leader should notify, by the requirements."""
        return clients - 1 if self.herd else 1


STRATEGIES: Mapping[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        Strategy("one ephemeral", "unfair-election"),
        Strategy("smallest znode", "leader-latch", frozenset({Variant.WATCH_THE_LEADER})),
        Strategy("all children", "leader-latch", frozenset({Variant.WATCH_THE_CHILDREN})),
        Strategy("predecessor", "leader-latch", herd=False),
        Strategy("predecessor, announced", "fair-election", herd=False),
    )
}
"""All strategies by name, in the order of the table."""
