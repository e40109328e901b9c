"""The belief of clients, compared with one another and with the truth: mutual exclusion, and the supposed leader.

Rules of this module: the belief is the state of a client's recipe; the truth is the first znode in the leader's tree,
recorded as `reigns` for the properties that read it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from checker.engine import TRIVIAL, Finding, Kind, Property, Read
from checker.models.recipes import LEADERS, REIGNS, Client, Leaders, RecipeSetup, Reigns
from checker.properties.recipes.projections import Answer, clients, holders, those, tokens_of_holders


def one_holder(setup: RecipeSetup) -> Property:
    """R15, R16, R18, R21, R22: no two clients believe at the same time that they hold."""

    def check(*holds: bool) -> Answer:
        holders = those(holds)
        if len(holders) > 1:
            return Finding("two clients believe at once that they hold", (("clients", holders),))
        return None if holders else TRIVIAL

    return Property("OneHolder", holders(setup), check)


def holds_by_right(setup: RecipeSetup) -> Property:
    """R16, R18: the znode of a client that believes that it holds is, or was, the first one."""

    def check(reigns: Reigns, *tokens: Any) -> Answer:
        held = {client: token for client, token in enumerate(tokens, 1) if token is not False}
        wrong = tuple(client for client, token in held.items() if token not in reigns.past)
        if wrong:
            return Finding("a client believes that it holds, and its znode was never first", (("clients", wrong),))
        return None if held else TRIVIAL

    return Property("HoldsByRight", (Read(REIGNS), *tokens_of_holders(setup)), check)


def follows_a_leader(_: RecipeSetup) -> Property:
    """R16: a client that others follow as the leader knows, or has known, that it leads."""

    def check(leaders: Leaders) -> Answer:
        if leaders.mistaken is not None:
            said = "a client is taken for the leader, and has never come to know that it leads"
            return Finding(said, (("znode", leaders.mistaken),))
        return None if leaders.led else TRIVIAL

    return Property("FollowsALeader", (Read(LEADERS),), check)


def held_until_released(setup: RecipeSetup) -> Property:
    """R18: a lock is held until it has been released as often as it was taken, unless it is lost."""

    def check(*taken: Any) -> Answer:
        early = tuple(client for client, each in enumerate(taken, 1) if each == "given up")
        if early:
            return Finding("a lock was given up by a release too few", (("clients", early),))
        return None if "twice" in taken else TRIVIAL

    def see(client: Client) -> Hashable:
        if client.given_up:
            return "given up"
        return "twice" if client.taken > 1 else "once or not"

    return Property("HeldUntilReleased", clients(setup, see), check)


def held(setup: RecipeSetup) -> Property:
    """A witness: some client holds."""

    def check(*holds: bool) -> Answer:
        return Finding("a client holds", (("client", those(holds)[0]),)) if any(holds) else None

    return Property("Held", holders(setup), check, Kind.SOMETIMES)


def two_hold(setup: RecipeSetup) -> Property:
    """R20, the window: two clients believe that they hold, one of them after its session has expired."""

    def check(*holds: bool) -> Answer:
        holders = those(holds)
        return Finding("two clients believe that they hold", (("clients", holders),)) if len(holders) > 1 else None

    return Property("TwoHold", holders(setup), check, Kind.SOMETIMES)
