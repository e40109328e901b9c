"""Every recipe by its name, with one interface: its rules, its initial state, and projections of its state.

Rules of this module:

- Recipes differ by their rules alone where that is possible: election, lock and latch are one machine.
- `holds` is the client's own belief; `waits` means that it wants to hold and does not.

Source: the requirements' R15 (unfair), R16 (fair), R18 (lock), R21 (LeaderLatch), R22 (LeaderSelector).
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from spec.recipes import lock, names, queue, selector, unfair
from spec.recipes.events import Event, RecipeStep
from spec.recipes.member import MemberPhase, QueueMember, QueueRules
from spec.tree.paths import below
from spec.tree.store import Store
from spec.variants import Variant

NONE: frozenset[Variant] = frozenset()


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


class Recipe(msgspec.Struct, frozen=True):
    """A recipe: `step(rules, state, event)`, and projections of a client's state or of a tree.

    `place` is the client's place, or candidacy. `holds` is its belief, `acts` that it may act as a leader (also while
    an interrupted procedure still runs), `waits` that it wants to hold and does not, `idle` that it may be wanted
    again, `out` that it also has no znode. `token` is the czxid of its znode, or the token of the running call, `path`
    the path of its znode, empty if it has none. `first` is the path of the znode that holds according to the tree.
    `calls`: leadership is a call, which returns.
    """

    name: str
    rules: Callable[[str, frozenset[Variant]], Any]
    initial: Any
    step: Callable[[Any, Any, Event], RecipeStep[Any]]
    place: Callable[[Any], Any]
    holds: Callable[[Any], bool]
    acts: Callable[[Any], bool]
    waits: Callable[[Any], bool]
    idle: Callable[[Any], bool]
    out: Callable[[Any], bool]
    token: Callable[[Any], int | None]
    path: Callable[[Any, Any], str]
    first: Callable[[Any, Store], str | None]
    calls: bool = False


def _first_in_queue(rules: QueueRules, store: Store) -> str | None:
    return next(iter(names.paths(rules.root, store.children(rules.root), rules.word)), None)


def _only(rules: unfair.UnfairRules, store: Store) -> str | None:
    return rules.path if store.node(rules.path) is not None else None


_OUT = QueueMember()


def _of_queue(
    name: str,
    rules: Callable[[str, frozenset[Variant]], QueueRules],
    initial: Any = _OUT,
    step: Callable[[Any, Any, Event], RecipeStep[Any]] = queue.step,
    place: Callable[[Any], QueueMember] = lambda state: state,
    called: Callable[[Any], int | None] = lambda _: None,
    *,
    calls: bool = False,
) -> Recipe:
    """A recipe on a place in a queue: `place` extracts it from the state; `called` is the token of a running call."""
    return Recipe(
        name,
        rules,
        initial,
        step,
        place,
        holds=lambda state: place(state).holds,
        acts=lambda state: place(state).holds or called(state) is not None,
        waits=lambda state: place(state).wanted and not place(state).holds,
        idle=lambda state: not place(state).wanted and called(state) is None,
        out=lambda state: place(state).phase is MemberPhase.OUT and not place(state).wanted and called(state) is None,
        token=lambda state: place(state).token if called(state) is None else called(state),
        path=lambda _, state: place(state).path or "",
        first=_first_in_queue,
        calls=calls,
    )


_UNFAIR = Recipe(
    "unfair-election",
    unfair_rules,
    unfair.Candidate(),
    unfair.step,
    place=lambda candidate: candidate,
    holds=lambda candidate: candidate.holds,
    acts=lambda candidate: candidate.holds,
    waits=lambda candidate: candidate.wanted and not candidate.holds,
    idle=lambda candidate: not candidate.wanted,
    out=lambda candidate: candidate.phase is unfair.CandidatePhase.OUT and not candidate.wanted,
    token=lambda candidate: candidate.token,
    path=lambda rules, candidate: rules.path if candidate.token is not None else "",
    first=_only,
)

RECIPES: Mapping[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        _UNFAIR,
        _of_queue("fair-election", fair_rules),
        _of_queue("lock", lock_rules, lock.Lock(), lock.step, lambda held: held.place),
        _of_queue("leader-latch", latch_rules),
        _of_queue(
            "leader-selector",
            selector_rules,
            selector.Selector(requeues=False),
            selector.step,
            lambda one: one.place,
            lambda one: one.called,
            calls=True,
        ),
    )
}
"""All recipes, by the names that scenarios use."""
