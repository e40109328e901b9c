"""The guarded resource: it accepts a write only if the token is not less than the greatest accepted one.

The resource is judged by the truth and not by the token: `reigns` has the order of the first znodes. Rules of this
module:

- A write is *stale* if a later reign's write was accepted before it. The accepted stale writes are counted.
- A write is *rightful* if the writer's znode was first when it wrote, and still is when the write arrives. The rejected
  rightful writes are counted.
- A write arrives at any time, or never: a client's pause, or a slow network, is not bounded.

Source: fencing tokens, as Chubby's sequencers (Burrows 2006, 2.4); here the znode's czxid (R20).
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from checker.engine import Actor, Outcome, Send
from checker.models.recipes.observations import Reigns
from checker.models.recipes.setup import REIGNS, RESOURCE, RecipeSetup, mail_name
from spec.variants import Variant


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
