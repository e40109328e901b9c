"""The recorded facts of a run: reigns, leaders, and the greatest number of clients that one event has notified.

Rules of this module:

- `reigns` is the truth: the znodes that were first in the leader's tree, in this order, by their czxids.
- A fact that no property reads is not recorded, since each one multiplies the states.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from checker.engine import Actor, Outcome
from checker.models.recipes.setup import HERD, LEADERS, REIGNS, RecipeSetup, first_of
from checker.models.service import CommitFact, WatchFact, client_of


class HoldReport(msgspec.Struct, frozen=True):
    """The client with the znode at this path reports that it holds, or that it is first."""

    path: str


class FollowReport(msgspec.Struct, frozen=True):
    """A client follows the owner of the znode at this path as the leader."""

    path: str


class Reigns(msgspec.Struct, frozen=True):
    """The czxids of the znodes that were first, in this order.

    `present` is the czxid of the znode that is first now, which belongs to `client` and is at `path`; 0 if there is
    none.
    """

    past: tuple[int, ...] = ()
    present: int = 0
    client: int = 0
    path: str = ""

    def place(self, token: int) -> int:
        """The index of the reign of a token, from 0; -1 if there is none."""
        return self.past.index(token) if token in self.past else -1


def reigns_actor(setup: RecipeSetup) -> Actor:
    """Record the first znode after every transaction."""

    def step(values: tuple[Any, ...], committed: CommitFact) -> Outcome:
        reigns: Reigns = values[0]
        first = first_of(setup, committed.store)
        if first is None:
            return Outcome((Reigns(reigns.past),))
        path, znode = first
        past = reigns.past if znode.czxid in reigns.past else (*reigns.past, znode.czxid)
        return Outcome((Reigns(past, znode.czxid, client_of(znode.ephemeral_owner), path),))

    return Actor(REIGNS, (REIGNS,), step)


class Leaders(msgspec.Struct, frozen=True):
    """The znodes whose owners have reported that they hold, and one that was followed although its owner had not."""

    led: frozenset[str] = frozenset()
    mistaken: str | None = None


def leaders_actor() -> Actor:
    """Record the znodes whose owners hold, and the first znode that a client follows without that."""

    def step(values: tuple[Any, ...], said: HoldReport | FollowReport) -> Outcome:
        leaders: Leaders = values[0]
        if isinstance(said, HoldReport):
            return Outcome((replace(leaders, led=leaders.led | {said.path}),))
        mistaken = None if said.path in leaders.led else said.path
        return Outcome((replace(leaders, mistaken=leaders.mistaken or mistaken),))

    return Actor(LEADERS, (LEADERS,), step)


class LargestHerd(msgspec.Struct, frozen=True):
    """The event that has notified the most clients of one server, and their number."""

    path: str = ""
    clients: int = 0


def herd_actor() -> Actor:
    """Record the greatest number of clients that one event has notified at one server."""

    def step(values: tuple[Any, ...], fired: WatchFact) -> Outcome:
        told: LargestHerd = values[0]
        return Outcome((LargestHerd(fired.path, fired.told) if fired.told > told.clients else told,))

    return Actor(HERD, (HERD,), step)
