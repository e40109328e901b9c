"""The final states and the goals of recipes: no client waits forever, no znode is left, a mistaken client learns it.

Rules of this module: a condition on states without a next step is a property of final states; a condition that must
become true is a liveness property, with the fairness of `checker.properties.recipes.projections`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from checker.engine import TRIVIAL, Finding, Kind, Move, Property, Read
from checker.models.recipes import ROOT, Client, RecipeSetup
from checker.models.recipes.client import ApplicationAction
from checker.models.service import FAULTS_LEFT, LEADER, Leader
from checker.properties.recipes.projections import Answer, clients, fair, first_token, those, tokens_of_holders, waiters


def nobody_waits(setup: RecipeSetup) -> Property:
    """R15 to R22: in a state without a next step, no client waits."""

    def check(*waits: bool) -> Answer:
        waiting = those(waits)
        return Finding("clients wait, and nothing more can happen", (("clients", waiting),)) if waiting else None

    return Property("NobodyWaits", waiters(setup), check, Kind.FINAL)


def nothing_is_left(setup: RecipeSetup) -> Property:
    """R19: in a state without a next step, znodes are left only if some client knows its znode."""

    def paths(leader: Leader) -> Hashable:
        return frozenset(path for path, _ in leader.store.nodes if path.startswith(ROOT) and path != ROOT)

    def known(client: Client) -> Hashable:
        return setup.machine.token(client.recipe) is not None

    def check(there: frozenset[str], *knows: bool) -> Answer:
        # A client with a token has one znode, or two if it has announced itself.
        if there and not any(knows):
            return Finding("znodes are left that no client knows of", (("paths", tuple(sorted(there))),))
        return None

    return Property("NothingIsLeft", (Read(LEADER, paths), *clients(setup, known)), check, Kind.FINAL)


def somebody_holds(setup: RecipeSetup) -> Property:
    """R18: on every fair run, some live waiter takes a lock or leadership that is free."""
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
    """R18: on every fair run, a client that waits holds eventually, or stops waiting."""

    def check(*waits: bool) -> Answer:
        return None if any(waits) else Finding("nobody waits")

    return Property("EveryWaiterIsServed", waiters(setup), check, Kind.EVENTUALLY, fair=fair)


def the_holder_learns(setup: RecipeSetup) -> Property:
    """R20: a client that believes that it holds, although its znode is not first, learns of it.

    Actions of applications are not fair here, so that a release does not count as learning.
    """

    def check(present: int, *tokens: Any) -> Answer:
        wrong = any(token not in (False, present) for token in tokens)
        return None if wrong else Finding("nobody believes that it holds what it does not")

    def by_itself(rule: str, move: Move) -> Hashable:
        return None if move.action in {wish.value for wish in ApplicationAction} else fair(rule, move)

    reads = (first_token(setup), *tokens_of_holders(setup))
    return Property("TheHolderLearns", reads, check, Kind.EVENTUALLY, fair=by_itself)


def recovers(setup: RecipeSetup) -> Property:
    """R19: from every state some run reaches one in which no client waits."""

    def check(*waits: bool) -> Answer:
        return None if any(waits) else Finding("nobody waits")

    return Property("Recovers", waiters(setup), check, Kind.RECOVERABLE, fair=fair)


def recovers_by_expiry(setup: RecipeSetup) -> Property:
    """R19: from every state in which a session may still expire, some run reaches one in which no client waits."""

    def check(may_expire: bool, *waits: bool) -> Answer:
        if not any(waits):
            return Finding("nobody waits")
        return None if may_expire else TRIVIAL

    left = Read(FAULTS_LEFT, lambda left: left.expiries > 0)
    return Property("RecoversByExpiry", (left, *waiters(setup)), check, Kind.RECOVERABLE, fair=fair)
