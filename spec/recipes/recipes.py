"""Every recipe by its name: its rules, its initial state, its step, and projections of its state.

Rules of this module:

- Recipes differ by their rules alone where that is possible: election, lock and latch are one machine.
- `holds` is the client's own belief; `waits` means that it wants to hold and does not.
- A recipe says what a scenario and a trace need to know of it. No other module compares names of recipes.

Source: the requirements' R15 (unfair), R16 (fair), R18 (lock), R21 (LeaderLatch), R22 (LeaderSelector).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from spec.recipes import barrier, lock, names, queue, selector, unfair
from spec.recipes.events import Event, RecipeStep
from spec.recipes.member import Member, MemberPhase, QueueMember, QueueRules
from spec.tree.paths import below
from spec.tree.store import Store
from spec.variants import Variant

NONE: frozenset[Variant] = frozenset()
QUEUE_VARIANTS = frozenset(
    {
        Variant.NO_PROTECTION,
        Variant.SEARCH_WITHOUT_SYNC,
        Variant.WATCH_THE_LEADER,
        Variant.WATCH_THE_CHILDREN,
        Variant.EXISTS_AND_WATCH,
        Variant.NO_REREAD,
        Variant.RELEASE_ONCE,
        Variant.NO_RESET,
        Variant.OLD_TOKEN,
    }
)
CONTEST_VARIANTS = frozenset(
    {
        Variant.RETRY_WITHOUT_LOOKING,
        Variant.NO_REREAD_ON_RECONNECT,
        Variant.LEAD_WHILE_SUSPENDED,
        Variant.NO_FENCING,
    }
)


def fair_rules(path: str, variants: frozenset[Variant] = NONE, data: bytes = b"") -> QueueRules:
    """The official fair election, with an announcement of the leader next to the queue."""
    return QueueRules(path, "n_", data, announces=f"{path}-leader", variants=variants)


def lock_rules(path: str, variants: frozenset[Variant] = NONE, data: bytes = b"") -> QueueRules:
    """A lock. A lost lock is not acquired again automatically. The names are those of Curator's `InterProcessMutex`."""
    return QueueRules(path, "lock-", data, returns=False, variants=variants)


def latch_rules(path: str, variants: frozenset[Variant] = NONE, data: bytes = b"") -> QueueRules:
    """A latch. It queues again after every reconnect. The names are those of Curator's `LeaderLatch`."""
    return QueueRules(path, "latch-", data, resets=True, variants=variants)


def selector_rules(path: str, variants: frozenset[Variant] = NONE, data: bytes = b"") -> QueueRules:
    """The selector's queue; Curator uses an `InterProcessMutex`."""
    return QueueRules(path, "lock-", data, returns=False, variants=variants)


def unfair_rules(path: str, variants: frozenset[Variant] = NONE) -> unfair.UnfairRules:
    """One znode for all candidates, below the path."""
    return unfair.UnfairRules(below(path, "leader"), variants)


class Recipe(ABC):
    """A recipe: a step function, and projections of a client's state.

    `variants` are those that change it. `options` are the keys of a scenario that have a meaning for it. `verb`,
    `belief` and `farewell` describe a client that wants what the recipe gives, one that believes that it has it, and
    one that gives it up. `calls`: a client has it during a call of the application, which returns.
    """

    name: str
    initial: Any
    variants: frozenset[Variant] = NONE
    options: frozenset[str] = frozenset()
    verb: str
    belief: str
    farewell: str = "releases"
    calls: bool = False

    @abstractmethod
    def rules(self, path: str, variants: frozenset[Variant] = NONE, clients: int = 1, /) -> Any:
        """The rules of this many clients, with the znodes at this path."""

    @abstractmethod
    def step(self, rules: Any, state: Any, event: Event) -> RecipeStep[Any]:
        """The step of a client on an event."""

    def member(self, state: Any) -> Any:
        """The part of the state with the client's `phase` and its `link`."""
        return state

    @abstractmethod
    def active(self, state: Any) -> bool:
        """Whether the client believes that it has what it joined for."""

    def acts(self, state: Any) -> bool:
        """Whether it may act as if it were active (also while an interrupted procedure still runs)."""
        return self.active(state)

    @abstractmethod
    def waits(self, state: Any) -> bool:
        """Whether it wants something and does not have it."""

    @abstractmethod
    def idle(self, state: Any) -> bool:
        """Whether it may join."""

    @abstractmethod
    def out(self, state: Any) -> bool:
        """Whether it takes no part, and has no znode."""


class ExclusiveRecipe(Recipe):
    """A recipe with one holder at a time: a lock, or an election."""

    variants = CONTEST_VARIANTS
    options = frozenset({"rounds", "writes", "quits", "removals"})
    verb = "lead"
    belief = "leads"
    announces: bool = False
    """Whether leaders announce themselves."""
    requeues: bool = False
    """Whether a holder queues again after it was disconnected."""

    def holds(self, state: Any) -> bool:
        """The belief of the client."""
        return bool(self.member(state).holds)

    def active(self, state: Any) -> bool:
        """Whether it holds."""
        return self.holds(state)

    def waits(self, state: Any) -> bool:
        """Whether it wants to hold and does not."""
        return self.member(state).wanted and not self.holds(state)

    def idle(self, state: Any) -> bool:
        """Whether it may be wanted again."""
        return not self.member(state).wanted

    def out(self, state: Any) -> bool:
        """Whether it has no znode and is not wanted."""
        member = self.member(state)
        return member.phase is MemberPhase.OUT and not member.wanted

    def token(self, state: Any) -> int | None:
        """The czxid of its znode, or the token of the running call."""
        token: int | None = self.member(state).token
        return token

    @abstractmethod
    def path(self, rules: Any, state: Any, /) -> str:
        """The path of its znode, empty if it has none."""

    @abstractmethod
    def first(self, rules: Any, store: Store) -> str | None:
        """The path of the znode that holds according to the tree."""


class QueueRecipe(ExclusiveRecipe):
    """A recipe on a queue."""

    variants = CONTEST_VARIANTS | QUEUE_VARIANTS
    initial: Any = QueueMember()

    def step(self, rules: QueueRules, state: Any, event: Event) -> RecipeStep[Any]:
        """The step of a member of the queue."""
        return queue.step(rules, state, event)

    def path(self, _rules: QueueRules, state: Any, /) -> str:
        """The path of its place in the queue."""
        return self.member(state).path or ""

    def first(self, rules: QueueRules, store: Store) -> str | None:
        """The first place in the queue."""
        return next(iter(names.paths(rules.root, store.children(rules.root), rules.word)), None)


class FairRecipe(QueueRecipe):
    """The official election, with an announcement."""

    name = "fair-election"
    variants = CONTEST_VARIANTS | QUEUE_VARIANTS | {Variant.LEAD_UNANNOUNCED}
    announces = True

    def rules(self, path: str, variants: frozenset[Variant] = NONE, _clients: int = 1, /) -> QueueRules:
        """See `fair_rules`."""
        return fair_rules(path, variants)


class LockRecipe(QueueRecipe):
    """A re-entrant lock."""

    name = "lock"
    initial = lock.Lock()
    variants = CONTEST_VARIANTS | QUEUE_VARIANTS | {Variant.ENTER_TWICE, Variant.LEAVE_AT_ONCE}
    options = ExclusiveRecipe.options | {"again"}
    verb = "hold"
    belief = "holds"

    def rules(self, path: str, variants: frozenset[Variant] = NONE, _clients: int = 1, /) -> QueueRules:
        """See `lock_rules`."""
        return lock_rules(path, variants)

    def step(self, rules: QueueRules, state: lock.Lock, event: Event) -> RecipeStep[lock.Lock]:
        """The step of a lock."""
        return lock.step(rules, state, event)

    def member(self, state: lock.Lock) -> QueueMember:
        """Its part in the queue."""
        return state.place


class LatchRecipe(QueueRecipe):
    """Curator's latch."""

    name = "leader-latch"
    requeues = True

    def rules(self, path: str, variants: frozenset[Variant] = NONE, _clients: int = 1, /) -> QueueRules:
        """See `latch_rules`."""
        return latch_rules(path, variants)


class SelectorRecipe(QueueRecipe):
    """Curator's selector: leadership is a call."""

    name = "leader-selector"
    initial = selector.Selector(requeues=False)
    calls = True

    def rules(self, path: str, variants: frozenset[Variant] = NONE, _clients: int = 1, /) -> QueueRules:
        """See `selector_rules`."""
        return selector_rules(path, variants)

    def step(self, rules: QueueRules, state: selector.Selector, event: Event) -> RecipeStep[selector.Selector]:
        """The step of a selector."""
        return selector.step(rules, state, event)

    def member(self, state: selector.Selector) -> QueueMember:
        """Its part in the queue."""
        return state.place

    def acts(self, state: selector.Selector) -> bool:
        """Whether it leads, or its procedure still runs."""
        return self.holds(state) or state.runs

    def idle(self, state: selector.Selector) -> bool:
        """Whether it may be wanted again."""
        return super().idle(state) and not state.runs

    def out(self, state: selector.Selector) -> bool:
        """Whether it has no znode, is not wanted, and its procedure has returned."""
        return super().out(state) and not state.runs

    def token(self, state: selector.Selector) -> int | None:
        """The token of the running call, or the czxid of its znode."""
        return super().token(state) if state.called is None else state.called


class UnfairRecipe(ExclusiveRecipe):
    """The election on one znode."""

    name = "unfair-election"
    initial = Member()

    def rules(self, path: str, variants: frozenset[Variant] = NONE, _clients: int = 1, /) -> unfair.UnfairRules:
        """See `unfair_rules`."""
        return unfair_rules(path, variants)

    def step(self, rules: unfair.UnfairRules, state: Member, event: Event) -> RecipeStep[Member]:
        """The step of a candidate."""
        return unfair.step(rules, state, event)

    def path(self, rules: unfair.UnfairRules, state: Member, /) -> str:
        """The contested path, if the znode there is the candidate's."""
        return rules.path if state.token is not None else ""

    def first(self, rules: unfair.UnfairRules, store: Store) -> str | None:
        """The contested path, if there is a znode."""
        return rules.path if store.node(rules.path) is not None else None


class DoubleBarrier(Recipe):
    """Clients that start together and leave together."""

    name = "double-barrier"
    initial = barrier.BarrierMember()
    verb = "enter"
    belief = "is inside"
    farewell = "leaves"

    def rules(self, path: str, _variants: frozenset[Variant] = NONE, clients: int = 1, /) -> barrier.BarrierRules:
        """A barrier for all clients."""
        return barrier.BarrierRules(path, clients)

    def step(
        self, rules: barrier.BarrierRules, state: barrier.BarrierMember, event: Event
    ) -> RecipeStep[barrier.BarrierMember]:
        """The step of a participant."""
        return barrier.step(rules, state, event)

    def active(self, state: barrier.BarrierMember) -> bool:
        """Whether it is inside."""
        return state.inside

    def waits(self, state: barrier.BarrierMember) -> bool:
        """Whether it is to enter or to leave, and has not."""
        return not self.out(state) and not self.active(state)

    def idle(self, state: barrier.BarrierMember) -> bool:
        """Whether it may enter."""
        return state.phase is barrier.BarrierPhase.OUT and not state.wanted

    def out(self, state: barrier.BarrierMember) -> bool:
        """Whether it has left, or has not begun."""
        return self.idle(state) or state.phase is barrier.BarrierPhase.LEFT


RECIPES: Mapping[str, Recipe] = {
    recipe.name: recipe
    for recipe in (UnfairRecipe(), FairRecipe(), LockRecipe(), LatchRecipe(), SelectorRecipe(), DoubleBarrier())
}
"""All recipes, by the names that scenarios use."""
