"""Every recipe by its name, in one shape: the rules it goes by, what it begins with, and what it believes.

Rules of this module:

- A recipe is told apart by its rules alone where that is possible: election, lock and latch are one machine.
- `holds` is what the client would say now; `waits` is that it wants to hold and does not.

Source: the requirements' R15 (unfair), R16 (fair), R18 (lock), R21 (LeaderLatch), R22 (LeaderSelector).
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from spec.recipes import lock, queue, selector, unfair
from spec.recipes.events import Event, Step
from spec.recipes.place import Phase, Place, Rules
from spec.tree.paths import below
from spec.variants import Variant

NONE: frozenset[Variant] = frozenset()


def fair_rules(path: str, data: bytes = b"", variants: frozenset[Variant] = NONE) -> Rules:
    """The official fair election, with an announcement of the leader beside the queue."""
    return Rules(path, "n_", data, announces=f"{path}-leader", variants=variants)


def lock_rules(path: str, data: bytes = b"", variants: frozenset[Variant] = NONE) -> Rules:
    """A lock that was lost is not taken again by itself. The names are those of Curator's `InterProcessMutex`."""
    return Rules(path, "lock-", data, returns=False, variants=variants)


def latch_rules(path: str, data: bytes = b"", variants: frozenset[Variant] = NONE) -> Rules:
    """A latch stands again whenever it comes back. The names are those of Curator's `LeaderLatch`."""
    return Rules(path, "latch-", data, resets=True, variants=variants)


def selector_rules(path: str, data: bytes = b"", variants: frozenset[Variant] = NONE) -> Rules:
    """The selector's own queue; Curator's is an `InterProcessMutex`."""
    return Rules(path, "lock-", data, returns=False, variants=variants)


def unfair_rules(path: str, variants: frozenset[Variant] = NONE) -> unfair.Rules:
    """One znode for all, below the path."""
    return unfair.Rules(below(path, "leader"), variants)


class Recipe(msgspec.Struct, frozen=True):
    """A recipe: `step(rules, state, event)`, and what may be asked of its state.

    `own` is the path of the client's znode and its czxid, as far as the client knows; `runs` says that a procedure of
    the application runs, which may still act as a leader.
    """

    name: str
    rules: Callable[[str, frozenset[Variant]], Any]
    initial: Any
    step: Callable[[Any, Any, Event], Step[Any]]
    holds: Callable[[Any], bool]
    waits: Callable[[Any], bool]
    out: Callable[[Any], bool]
    token: Callable[[Any], int | None]


def _queues(place: Place) -> bool:
    return place.wanted and not place.holds


def _is_out(place: Place) -> bool:
    return place.phase is Phase.OUT and not place.wanted


def _of_queue(name: str, rules: Callable[..., Rules]) -> Recipe:
    return Recipe(
        name,
        lambda path, variants: rules(path, variants=variants),
        Place(),
        queue.step,
        lambda place: place.holds,
        _queues,
        _is_out,
        lambda place: place.token,
    )


RECIPES: Mapping[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "unfair-election",
            lambda path, variants: unfair_rules(path, variants),
            unfair.Candidate(),
            unfair.step,
            lambda candidate: candidate.holds,
            lambda candidate: candidate.wanted and not candidate.holds,
            lambda candidate: candidate.phase is unfair.Phase.OUT and not candidate.wanted,
            lambda candidate: candidate.token,
        ),
        _of_queue("fair-election", fair_rules),
        Recipe(
            "lock",
            lambda path, variants: lock_rules(path, variants=variants),
            lock.Lock(),
            lock.step,
            lambda held: held.place.holds,
            lambda held: _queues(held.place),
            lambda held: _is_out(held.place),
            lambda held: held.place.token,
        ),
        _of_queue("leader-latch", latch_rules),
        Recipe(
            "leader-selector",
            lambda path, variants: selector_rules(path, variants=variants),
            selector.Selector(),
            selector.step,
            lambda one: one.place.holds,
            lambda one: _queues(one.place),
            lambda one: _is_out(one.place) and not one.runs,
            lambda one: one.place.token,
        ),
    )
}
"""All recipes, by the names that scenarios use."""
