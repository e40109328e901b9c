"""Counts the cost of a leader's death in the model of the checker: one run, with the step functions of the clients.

Rules of this module:

- A strategy is a recipe of `spec.recipes` and the variants that change its watches; nothing else differs. The first
  four are those that R17 compares. The last one is the official fair election, whose leader announces its leadership
  before it leads: this costs a write.
- The scheduler is fixed: all messages and requests in flight travel first, in the order of the model's rules; then the
  next client joins; when all wait, the leader crashes and its session lapses.
- The counts begin with the crash: requests that arrive, and notifications that are delivered. The leader crashes
  without closing its session, so none of the requests is the leader's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from checker.engine import Model, Move, Row, semantics
from checker.models.recipes import RecipeSetup, recipe_model
from checker.models.service import FaultBudgets, WatchNotification, client_name
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


TRAVELS = ("arrive", "deliver")


@dataclass(frozen=True)
class Count:
    """The cost of one death for the clients that are left."""

    notifications: int
    requests: int


class NoLeaderError(RuntimeError):
    """The run ended without a leader, or with more than one."""


def count(strategy: Strategy, clients: int) -> Count:
    """Count the cost of the leader's death with this number of clients. Raises NoLeaderError."""
    setup = RecipeSetup(strategy.recipe, clients=clients, budgets=FaultBudgets(crashes=1), variants=strategy.variants)
    run = _Run(recipe_model("herd", setup), setup)
    for client in setup.client_ids:
        run.do("want", client)
        run.travel()
    leader = run.leader()
    run.forget()
    run.do("crash", leader)
    run.do("lapse", leader)
    run.travel()
    if run.leader() == leader:
        raise NoLeaderError(f"client {leader} has crashed and leads")
    return Count(run.notifications, run.requests)


class _Run:
    """One run of a model: a row, and the counts of the messages that have travelled."""

    def __init__(self, model: Model, setup: RecipeSetup) -> None:
        self._model, self._setup = model, setup
        self._row: Row = model.initial()
        self.forget()

    def forget(self) -> None:
        self.notifications = self.requests = 0

    def do(self, action: str, client: int) -> None:
        move = next(move for move in self._moves() if move.action == action and move.arguments == (client,))
        self._fire(move)

    def travel(self) -> None:
        while (move := next((move for move in self._moves() if move.action in TRAVELS), None)) is not None:
            self.requests += move.action == "arrive"
            self.notifications += move.action == "deliver" and isinstance(move.arguments[-1], WatchNotification)
            self._fire(move)

    def leader(self) -> int:
        """The only client that believes that it leads. Raises NoLeaderError."""
        states = {n: self._row[self._model.index[client_name(n)]] for n in self._setup.client_ids}
        holds = self._setup.exclusive.holds
        leaders = [n for n, client in states.items() if not client.crashed and holds(client.recipe)]
        if len(leaders) != 1:
            raise NoLeaderError(f"exactly one leader was expected, and the clients that lead are {leaders or 'none'}")
        return leaders[0]

    def _moves(self) -> Iterator[Move]:
        for rule in self._model.rules:
            arguments = semantics.read(self._model, rule.reads, self._row)
            if arguments is not None:
                yield from rule.moves(*arguments) or ()

    def _fire(self, move: Move) -> None:
        after = semantics.fire(self._model, self._row, move)
        if after is None:
            raise NoLeaderError(f"{move.action} {move.arguments} is impossible")
        self._row = after
