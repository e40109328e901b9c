"""The guarded resource, and the recorded facts of a run: reigns, leaders, and the largest herd of notified clients.

The resource accepts a write only if the token is not less than the greatest accepted one. It is judged by the truth and
not by the token: `reigns` has the znodes that were first in the leader's tree, in this order, by their czxids. Rules of
this module:

- A fact that no property reads is not recorded, since each one multiplies the states.
- A write is *stale* if a later reign's write was accepted before it. The accepted stale writes are counted.
- A write is *rightful* if the writer's znode was first when it wrote, and still is when the write arrives. The rejected
  rightful writes are counted.
- A write arrives at any time, or never: a client's pause, or a slow network, is not bounded.

Source: fencing tokens, as Chubby's sequencers (Burrows 2006, 2.4); here the znode's czxid (R20).
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from checker.engine import Actor, Outcome, Send
from checker.models.recipes.setup import HERD, LEADERS, REIGNS, RESOURCE, RecipeSetup, first_of, mail_name
from checker.models.service import CommitFact, WatchFact, client_of
from spec.variants import Variant


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
        largest: LargestHerd = values[0]
        return Outcome((LargestHerd(fired.path, fired.told) if fired.told > largest.clients else largest,))

    return Actor(HERD, (HERD,), step)


class SendWrite(msgspec.Struct, frozen=True):
    """A client sends a write to the resource, with the token that it holds; its znode is at this path."""

    token: int
    path: str


class WriteArrives(msgspec.Struct, frozen=True):
    """The oldest write in flight reaches the resource."""


class Write(msgspec.Struct, frozen=True):
    """A write with this token; `of` is the czxid of the writer's znode if that was first when it wrote, otherwise 0."""

    token: int
    of: int


class Resource(msgspec.Struct, frozen=True):
    """`token` is the greatest accepted token; `reign` is the latest reign with an accepted write, as an index."""

    token: int = 0
    reign: int = -1
    stale: int = 0
    rejected: int = 0


def resource_actor(setup: RecipeSetup) -> Actor:
    """The resource; it reads `reigns` only to count its mistakes."""
    fences = Variant.NO_FENCING not in setup.variants

    def step(values: tuple[Any, ...], write: Write) -> Outcome:
        resource: Resource = values[0]
        reigns: Reigns = values[1]
        if fences and write.token < resource.token:
            rightful = 0 != write.of == reigns.present
            return Outcome((replace(resource, rejected=resource.rejected + rightful), reigns))
        reign = reigns.place(write.token)
        stale = resource.stale + (reign < resource.reign)
        token = max(resource.token, write.token)
        return Outcome((Resource(token, max(reign, resource.reign), stale, resource.rejected), reigns))

    return Actor(RESOURCE, (RESOURCE, REIGNS), step)


def mail_actor(client: int) -> Actor:
    """The writes of one client in flight to the resource: any number, in FIFO order."""
    name = mail_name(client)

    def step(values: tuple[Any, ...], said: SendWrite | WriteArrives) -> Outcome:
        on_its_way: tuple[Write, ...] = values[0]
        reigns: Reigns = values[1]
        if isinstance(said, WriteArrives):
            return Outcome((on_its_way[1:], reigns), (Send(RESOURCE, on_its_way[0]),))
        is_first = (client, said.path) == (reigns.client, reigns.path)
        return Outcome(((*on_its_way, Write(said.token, reigns.present if is_first else 0)), reigns))

    return Actor(name, (name, REIGNS), step)
