"""The ways to wait for a leader's death that are compared: what each client watches.

Rules of this module:

- A way is a recipe of `spec.recipes` and the variants that make it watch something else; nothing else differs.
- The first four are what R17 compares. The last one is the official fair election, whose leader says that it leads
  before it does: the price of that is a write.

Source: ZooKeeper's recipes, "Locks" and "Leader Election" (the herd effect).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spec.recipes.recipes import RECIPES, Recipe
from spec.variants import Variant


@dataclass(frozen=True)
class Way:
    """What is watched; `herd`: by all who wait, and not by one of them."""

    name: str
    recipe: str
    variants: frozenset[Variant] = frozenset()
    herd: bool = True

    @property
    def machine(self) -> Recipe:
        """The recipe's step function, and what may be asked of its state."""
        return RECIPES[self.recipe]

    def rules(self, root: str) -> Any:
        """What the recipe goes by, with its znodes at this path."""
        return self.machine.rules(root, self.variants)

    def expected(self, clients: int) -> int:
        """How many are to be notified of the death of a leader, by the requirements."""
        return clients - 1 if self.herd else 1


WAYS: Mapping[str, Way] = {
    way.name: way
    for way in (
        Way("one ephemeral", "unfair-election"),
        Way("smallest znode", "leader-latch", frozenset({Variant.WATCH_THE_LEADER})),
        Way("all children", "leader-latch", frozenset({Variant.WATCH_THE_CHILDREN})),
        Way("predecessor", "leader-latch", herd=False),
        Way("predecessor, announced", "fair-election", herd=False),
    )
}
"""All ways by name, in the order of the table."""
