"""All properties of recipes by name: the constructor, the meaning, and the facts that each one reads.

- `reads`: the projections of clients, and fairness
- `belief`: mutual exclusion in the belief of clients
- `fencing`: the writes that the guarded resource accepts
- `watches`: the herd effect, and watches that remain
- `ends`: no client waits forever, and no client is mistaken forever

Source: R15 to R22; each property names its requirement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from checker.engine import Kind, Property
from checker.models.recipes import Facts, RecipeSetup
from checker.properties.lookup import UnknownPropertyError
from checker.properties.patterns import ParameterError, check_parameter
from checker.properties.recipes.belief import (
    follows_a_leader,
    held,
    held_until_released,
    holds_by_right,
    one_holder,
    two_hold,
)
from checker.properties.recipes.fencing import fenced_in_order, rightful_is_accepted, stale_writes
from checker.properties.recipes.liveness import (
    every_waiter_is_served,
    nobody_waits,
    nothing_is_left,
    recovers,
    recovers_by_expiry,
    somebody_holds,
    the_holder_learns,
)
from checker.properties.recipes.watches import no_watch_left, one_is_told


@dataclass(frozen=True)
class Entry:
    """A property that can be named; `parameter` describes its parameter. The model records `facts` for it."""

    name: str
    kind: Kind
    meaning: str
    build: Callable[[RecipeSetup, Any], Property]
    facts: frozenset[Facts] = field(default_factory=frozenset)
    parameter: str = ""
    needs_writes: bool = False
    needs_announcements: bool = False


def _plain(name: str, kind: Kind, meaning: str, make: Callable[[RecipeSetup], Property], *facts: Facts) -> Entry:
    return Entry(name, kind, meaning, lambda setup, _: make(setup), frozenset(facts))


_WRITTEN = frozenset({Facts.REIGNS})
_ALL = (
    _plain("OneHolder", Kind.ALWAYS, "no two clients believe at once that they hold", one_holder),
    _plain("HoldsByRight", Kind.ALWAYS, "whoever holds has had the first znode", holds_by_right, Facts.REIGNS),
    Entry("FencedInOrder", Kind.ALWAYS, "the guarded resource accepts no write of an earlier reign after a later one",
          lambda setup, _: fenced_in_order(setup), _WRITTEN, needs_writes=True),
    Entry("RightfulIsAccepted", Kind.ALWAYS, "the guarded resource rejects no write whose znode is first",
          lambda setup, _: rightful_is_accepted(setup), _WRITTEN, needs_writes=True),
    _plain("OneIsTold", Kind.ALWAYS, "no event notifies more than one client", one_is_told, Facts.HERD),
    _plain("NoWatchLeft", Kind.ALWAYS, "no watch is left where no znode is any more", no_watch_left),
    Entry("FollowsALeader", Kind.ALWAYS, "whoever is taken for the leader has known that it is first",
          lambda setup, _: follows_a_leader(setup), frozenset({Facts.LEADERS}), needs_announcements=True),
    _plain("HeldUntilReleased", Kind.ALWAYS, "a lock is held until released as often as taken", held_until_released),
    _plain("Held", Kind.SOMETIMES, "some client holds", held),
    _plain("TwoHold", Kind.SOMETIMES, "two clients believe at once that they hold", two_hold),
    Entry("StaleWrites", Kind.SOMETIMES, "so many writes of earlier reigns are accepted in one run", stale_writes,
          _WRITTEN, "a number of writes", needs_writes=True),
    _plain("NobodyWaits", Kind.FINAL, "where nothing more can happen, no client waits", nobody_waits),
    _plain("NothingIsLeft", Kind.FINAL, "where nothing more can happen, every znode is known to a client",
           nothing_is_left),
    _plain("SomebodyHolds", Kind.EVENTUALLY, "what is free is taken by some live waiter", somebody_holds),
    _plain("EveryWaiterIsServed", Kind.EVENTUALLY, "whoever waits comes to hold, or gives up", every_waiter_is_served),
    _plain("TheHolderLearns", Kind.EVENTUALLY, "whoever believes that it holds, and does not, comes to know it",
           the_holder_learns),
    _plain("Recovers", Kind.RECOVERABLE, "from every state some run leads to where nobody waits", recovers),
    _plain("RecoversByExpiry", Kind.RECOVERABLE, "the same from every state in which a session may yet expire",
           recovers_by_expiry),
)  # fmt: skip
RECIPE_PROPERTIES: Mapping[str, Entry] = {entry.name: entry for entry in _ALL}
"""All properties of recipes, by name."""
DEFAULTS = ("OneHolder",)
"""The properties of a recipe, unless its scenario names others."""


def entry(name: object) -> Entry:
    """The property of that name. Raises UnknownPropertyError."""
    if not isinstance(name, str) or name not in RECIPE_PROPERTIES:
        raise UnknownPropertyError(name, RECIPE_PROPERTIES)
    return RECIPE_PROPERTIES[name]


def build(setup: RecipeSetup, name: object, parameter: Any = None) -> Property:
    """A property of a recipe. Raises UnknownPropertyError, and ParameterError."""
    found = entry(name)
    check_parameter(name, found.parameter, parameter)
    if found.needs_writes and not setup.writes:
        raise ParameterError(f"{name} speaks of writes to the resource", "write writes: 1")
    if found.needs_announcements and setup.recipe != "fair-election":
        raise ParameterError(f"{name} speaks of leaders that announce themselves", "write recipe: fair-election")
    return found.build(setup, parameter)
