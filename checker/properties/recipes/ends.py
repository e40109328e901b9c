"""Where runs of recipes end, or must lead: nobody waits for ever, nothing is left, whoever is mistaken learns it.

Rules of this module: what holds where nothing more can happen is a property of final states; what must come is one of
liveness, under the fairness of `checker.properties.recipes.reads`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from checker.engine import TRIVIAL, Finding, Kind, Move, Property, Read
from checker.models.recipes import ROOT, Client, RecipeSetup
from checker.models.recipes.client import Wish
from checker.models.service import FAULTS_LEFT, LEADER, Leader
from checker.properties.recipes.reads import Answer, clients, fair, first_token, those, tokens_of_holders, waiters


def nobody_waits(setup: RecipeSetup) -> Property:
    """R15 to R22: where nothing more can happen, no client waits."""

    def check(*waits: bool) -> Answer:
        waiting = those(waits)
        return Finding("clients wait, and nothing more can happen", (("clients", waiting),)) if waiting else None

    return Property("NobodyWaits", waiters(setup), check, Kind.FINAL)


def nothing_is_left(setup: RecipeSetup) -> Property:
    """R19: where nothing more can happen, no znode is left that no client knows of."""

    def paths(leader: Leader) -> Hashable:
        return frozenset(path for path, _ in leader.store.nodes if path.startswith(ROOT) and path != ROOT)

    def known(client: Client) -> Hashable:
        return setup.machine.token(client.recipe) is not None

    def check(there: frozenset[str], *knows: bool) -> Answer:
        # Every client that has a znode has one, or two where it has announced itself.
        if there and not any(knows):
            return Finding("znodes are left that no client knows of", (("paths", tuple(sorted(there))),))
        return None

    return Property("NothingIsLeft", (Read(LEADER, paths), *clients(setup, known)), check, Kind.FINAL)


def somebody_holds(setup: RecipeSetup) -> Property:
    """R18: what is free is taken by some live waiter, on every fair run."""
    machine = setup.machine

    def see(client: Client) -> Hashable:
        if machine.holds(client.recipe):
            return "holds"
        return "waits" if machine.waits(client.recipe) else "out"

    def check(*seen: Any) -> Answer:
        if "holds" in seen:
            return Finding("a client holds")
        return None if "waits" in seen else Finding("nobody waits")

    return Property("SomebodyHolds", clients(setup, see), check, Kind.EVENTUALLY, fair=fair)


def every_waiter_is_served(setup: RecipeSetup) -> Property:
    """R18: whoever waits comes to hold, or waits no more, on every fair run."""

    def check(*waits: bool) -> Answer:
        return None if any(waits) else Finding("nobody waits")

    return Property("EveryWaiterIsServed", waiters(setup), check, Kind.EVENTUALLY, fair=fair)


def the_holder_learns(setup: RecipeSetup) -> Property:
    """R20: whoever believes that it holds, and whose znode is not first, comes to know it; releasing is not knowing."""

    def check(present: int, *tokens: Any) -> Answer:
        wrong = any(token not in (False, present) for token in tokens)
        return None if wrong else Finding("nobody believes that it holds what it does not")

    def by_itself(rule: str, move: Move) -> Hashable:
        return None if move.action in {wish.value for wish in Wish} else fair(rule, move)

    reads = (first_token(setup), *tokens_of_holders(setup))
    return Property("TheHolderLearns", reads, check, Kind.EVENTUALLY, fair=by_itself)


def recovers(setup: RecipeSetup) -> Property:
    """R19: from every state some run comes to one in which nobody waits."""

    def check(*waits: bool) -> Answer:
        return None if any(waits) else Finding("nobody waits")

    return Property("Recovers", waiters(setup), check, Kind.RECOVERABLE, fair=fair)


def recovers_by_expiry(setup: RecipeSetup) -> Property:
    """R19: from every state in which a session may yet expire, some run comes to one in which nobody waits."""

    def check(may_expire: bool, *waits: bool) -> Answer:
        if not any(waits):
            return Finding("nobody waits")
        return None if may_expire else TRIVIAL

    left = Read(FAULTS_LEFT, lambda left: left.expiries > 0)
    return Property("RecoversByExpiry", (left, *waiters(setup)), check, Kind.RECOVERABLE, fair=fair)
