"""What clients believe, held to each other and to the truth: mutual exclusion, and who is taken for the leader.

Rules of this module: belief is what a client's recipe says; whose znode is first in the leader's tree is the truth,
written down as `reigns` for those properties that read it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from checker.engine import TRIVIAL, Finding, Kind, Property, Read
from checker.models.recipes import LED, REIGNS, Client, Leaders, RecipeSetup, Reigns
from checker.properties.recipes.reads import Answer, clients, holders, those, tokens_of_holders


def one_holder(setup: RecipeSetup) -> Property:
    """R15, R16, R18, R21, R22: no two clients believe at once that they hold."""

    def check(*holds: bool) -> Answer:
        holders = those(holds)
        if len(holders) > 1:
            return Finding("two clients believe at once that they hold", (("clients", holders),))
        return None if holders else TRIVIAL

    return Property("OneHolder", holders(setup), check)


def holds_by_right(setup: RecipeSetup) -> Property:
    """R16, R18: whoever believes that it holds has had the first znode."""

    def check(reigns: Reigns, *tokens: Any) -> Answer:
        held = {client: token for client, token in enumerate(tokens, 1) if token is not False}
        wrong = tuple(client for client, token in held.items() if token not in reigns.past)
        if wrong:
            return Finding("a client believes that it holds, and its znode was never first", (("clients", wrong),))
        return None if held else TRIVIAL

    return Property("HoldsByRight", (Read(REIGNS), *tokens_of_holders(setup)), check)


def follows_a_leader(_: RecipeSetup) -> Property:
    """R16: whoever is taken for the leader knows, or has known, that it leads."""

    def check(leaders: Leaders) -> Answer:
        if leaders.mistaken is not None:
            said = "a client is taken for the leader, and has never come to know that it leads"
            return Finding(said, (("znode", leaders.mistaken),))
        return None if leaders.led else TRIVIAL

    return Property("FollowsALeader", (Read(LED),), check)


def held_until_released(setup: RecipeSetup) -> Property:
    """R18: a lock is held until it was released as often as it was taken, unless it is lost."""

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
    """Some client holds."""

    def check(*holds: bool) -> Answer:
        return Finding("a client holds", (("client", those(holds)[0]),)) if any(holds) else None

    return Property("Held", holders(setup), check, Kind.SOMETIMES)


def two_hold(setup: RecipeSetup) -> Property:
    """R20, the window: a client whose session has expired believes that it holds, while another does."""

    def check(*holds: bool) -> Answer:
        holders = those(holds)
        return Finding("two clients believe that they hold", (("clients", holders),)) if len(holders) > 1 else None

    return Property("TwoHold", holders(setup), check, Kind.SOMETIMES)
