"""The writes that the guarded resource accepts, judged by the truth and not by tokens.

Source: R20; fencing as in Chubby's sequencers (Burrows 2006, 2.4).
"""

from __future__ import annotations

from typing import Any

from checker.engine import TRIVIAL, Finding, Kind, Property, Read
from checker.models.recipes import RESOURCE, RecipeSetup, Resource
from checker.properties.patterns import ParameterError
from checker.properties.recipes.projections import Answer


def fenced_in_order(_: RecipeSetup) -> Property:
    """R20: the resource accepts no write of an earlier reign after one of a later reign."""

    def check(resource: Resource) -> Answer:
        if resource.stale:
            said = "a write of an earlier reign was accepted after one of a later"
            return Finding(said, (("writes accepted out of order", resource.stale),))
        return None if resource.reign >= 0 else TRIVIAL

    return Property("FencedInOrder", (Read(RESOURCE),), check)


def rightful_is_accepted(_: RecipeSetup) -> Property:
    """R20: the resource rejects no write of a client whose znode is first."""

    def check(resource: Resource) -> Answer:
        if resource.rejected:
            return Finding("a write was rejected while its znode was first", (("rejected", resource.rejected),))
        return None if resource.reign >= 0 else TRIVIAL

    return Property("RightfulIsAccepted", (Read(RESOURCE),), check)


def stale_writes(setup: RecipeSetup, count: Any) -> Property:
    """R20: at least `count` writes of earlier reigns are accepted in one run."""
    most = setup.writes * setup.clients
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= most:
        raise ParameterError(f"{count!r} is no number of writes here", f"write 1 to {most}")

    def check(resource: Resource) -> Answer:
        if resource.stale >= count:
            return Finding(f"{count} writes out of order were accepted")
        return None

    return Property(f"StaleWrites({count})", (Read(RESOURCE),), check, Kind.SOMETIMES)
