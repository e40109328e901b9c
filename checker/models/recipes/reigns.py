"""What is written down of a run, for the properties that read it: who reigned, who led, how many were told.

Rules of this module:

- `reigns` is the truth: whose znode was first in the leader's tree, one after the other, by their czxids.
- A fact that no property reads is not written down, since each multiplies the states.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from checker.engine import Actor, Outcome
from checker.models.recipes.setup import LED, REIGNS, TOLD, RecipeSetup, first_of
from checker.models.recipes.words import Follow, Led
from checker.models.service import Committed, Fired, client_of


class Reigns(msgspec.Struct, frozen=True):
    """The czxids of the znodes that were first, one after the other.

    `present` is that of the one that is first now, of this client and at this path; 0 while there is none.
    """

    past: tuple[int, ...] = ()
    present: int = 0
    client: int = 0
    path: str = ""

    def place(self, token: int) -> int:
        """Which reign a token is of, counted from 0; -1 for none."""
        return self.past.index(token) if token in self.past else -1


def reigns_actor(setup: RecipeSetup) -> Actor:
    """Writes down who is first, after every transaction."""

    def step(values: tuple[Any, ...], committed: Committed) -> Outcome:
        reigns: Reigns = values[0]
        first = first_of(setup, committed.store)
        if first is None:
            return Outcome((Reigns(reigns.past),))
        path, znode = first
        past = reigns.past if znode.czxid in reigns.past else (*reigns.past, znode.czxid)
        return Outcome((Reigns(past, znode.czxid, client_of(znode.ephemeral_owner), path),))

    return Actor(REIGNS, (REIGNS,), step)


class Leaders(msgspec.Struct, frozen=True):
    """The znodes whose owners have come to hold, and one that was taken for a leader's without that."""

    led: frozenset[str] = frozenset()
    mistaken: str | None = None


def led_actor() -> Actor:
    """Writes down who has come to hold, and whom the others take for the leader."""

    def step(values: tuple[Any, ...], said: Led | Follow) -> Outcome:
        leaders: Leaders = values[0]
        if isinstance(said, Led):
            return Outcome((replace(leaders, led=leaders.led | {said.path}),))
        mistaken = None if said.path in leaders.led else said.path
        return Outcome((replace(leaders, mistaken=leaders.mistaken or mistaken),))

    return Actor(LED, (LED,), step)


class Told(msgspec.Struct, frozen=True):
    """The event that has notified the most clients at once."""

    path: str = ""
    clients: int = 0


def told_actor() -> Actor:
    """Writes down how many clients one event has notified at most."""

    def step(values: tuple[Any, ...], fired: Fired) -> Outcome:
        told: Told = values[0]
        return Outcome((Told(fired.path, fired.told) if fired.told > told.clients else told,))

    return Actor(TOLD, (TOLD,), step)
