"""The releases of single servers: a mixed ensemble, as in an upgrade.

A server of a scenario, and an entry of the plan, may have `like: 3.8.4`, a release whose known defects that server
has, or `variants`, a list of defects. A server without either key runs the specification.

Rules of this module: defects of a release that change nothing in a run are left out; a variant by name that changes
nothing is an error, as for the whole ensemble.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from checker.models.ensemble import PlannedAction, Setup, Software
from checker.scenario.kind import word
from checker.scenario.schema import PlanEntry, ServerEntry
from checker.scenario.yaml_lines import LikeError, NoEffect, Path, YamlDocument, like_named, position, variant_names
from spec.releases import defects_of
from spec.variants import Variant


def software_of(entry: ServerEntry | PlanEntry, document: YamlDocument, path: Path) -> Software | None:
    """The software that an entry names; None without both keys. Raises ScenarioError."""
    if entry.like is None and not entry.variants:
        return None
    defects: list[Variant] = []
    if entry.like is not None:
        try:
            defects += defects_of(like_named(entry.like))
        except LikeError as error:
            raise document.error((*path, "like"), error.reason.what, error.reason.right) from None
    valid = [each.value for each in Variant]
    named = [
        Variant(word(document, name, valid, (*path, "variants", position(number))))
        for number, name in enumerate(entry.variants)
    ]
    parts = [f"ZooKeeper {entry.like}"] if entry.like else []
    parts += [f"variants {variant_names(named)}"] if named else []
    return Software(" and ".join(parts), frozenset((*defects, *named)))


WhyNoEffect = Callable[[Variant, Setup], NoEffect | None]


def without_idle_defects(setup: Setup, why_no_effect: WhyNoEffect) -> Setup:
    """The setup without those defects of its releases that change nothing in it; a defect may need another one."""
    while idle := {each for each in _defects(setup.releases) if why_no_effect(each, setup) is not None}:
        setup = _without(setup, frozenset(idle))
    return setup


def _defects(releases: Iterable[Software]) -> Iterator[Variant]:
    for release in releases:
        yield from release.defects


def _without(setup: Setup, idle: frozenset[Variant]) -> Setup:
    """The setup without these defects at any server."""
    left = {release: replace(release, defects=release.defects - idle) for release in setup.releases}
    members = tuple(replace(member, software=left[member.software]) for member in setup.members)
    plan = tuple(
        replace(planned, software=left[planned.software])
        if isinstance(planned, PlannedAction) and planned.software is not None
        else planned
        for planned in setup.plan
    )
    return replace(setup, members=members, plan=plan)
