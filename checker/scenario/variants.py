"""Variants in a setup: which of them change something there, and how to add one.

Rules of this module: a variant that cannot change anything is rejected, since a run with it would suggest that the
defect is harmless.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import msgspec

from checker.models.ensemble import Grain, Setup
from checker.scenario.errors import nearest
from spec.variants import DESCRIBED, Area, Variant

OF_THE_DISK = frozenset(
    {
        Variant.EPOCH_BEFORE_LOG,
        Variant.NEWLEADER_ACK_BEFORE_SYNC,
        Variant.QUEUE_SURVIVES_SHUTDOWN,
        Variant.ACK_BEFORE_LOG,
        Variant.TORN_RECORD,
    }
)
"""Variants that differ from the protocol only while a requested disk operation is not complete."""


_ELSEWHERE = {
    Area.SERVICE: "add it to a scenario with the key service",
    Area.RECIPES: "add it to a scenario with the key recipe",
}


class NoEffect(NamedTuple):
    """The reason why a variant changes nothing, and the correction."""

    what: str
    right: str


class VariantError(Exception):
    """A variant that does not exist, or that changes nothing in its run."""

    def __init__(self, name: str, idle: NoEffect) -> None:
        super().__init__(f"the variant {name}: {idle.what}; {idle.right}")
        self.name, self.idle = name, idle


def named(name: str) -> Variant:
    """The variant of that name. Raises VariantError."""
    try:
        return Variant(name)
    except ValueError:
        right = nearest(name, [each.value for each in Variant])
        raise VariantError(name[:60], NoEffect("there is none of that name", right)) from None


def names(variants: Iterable[Variant]) -> str:
    """The names of variants, sorted, as text."""
    return ", ".join(sorted(variant.value for variant in variants))


def why_idle(variant: Variant, setup: Setup) -> NoEffect | None:
    """The reason why a variant changes nothing in a setup; None if it may change something."""
    area = DESCRIBED[variant].area
    if area in (Area.SERVICE, Area.RECIPES):
        return NoEffect(f"it is of {area.value}, and here are servers alone", _ELSEWHERE[area])
    if area is Area.ELECTION:
        if setup.grain is Grain.ORACLE:
            return NoEffect("it changes nothing where an election is one step", "write grain: fine")
        return None
    if setup.zab is None:
        return NoEffect("it changes nothing where the election is all there is", "write protocol: zab")
    if variant in OF_THE_DISK and not setup.zab.asynchronous_disk:
        return NoEffect("it changes nothing where the disk is never late", "write disk: async")
    if variant is Variant.SYNC_FROM_APPLIED and not setup.zab.asynchronous_commits:
        return NoEffect("it changes nothing where what is committed is applied at once", "write commits: async")
    return None


def with_variants(setup: Setup, added: Iterable[Variant]) -> Setup:
    """The setup with these variants added. Raises VariantError for a variant that changes nothing there."""
    variants = setup.variants | frozenset(added)
    for variant in sorted(variants, key=lambda each: each.value):
        idle = why_idle(variant, setup)
        if idle is not None:
            raise VariantError(variant.value, idle)
    zab = None if setup.zab is None else msgspec.structs.replace(setup.zab, variants=variants)
    return replace(setup, variants=variants, zab=zab)
