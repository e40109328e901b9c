"""The keys that all scenarios have: properties by name, the verdict, violations, actions that may not fire.

Rules of this module: each property is of the kind of its list, and names are unique; an error names the line of the
item that is wrong, and the nearest valid name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, TypeVar

import msgspec

from checker.engine import Kind, Property
from checker.job import Verdict
from checker.properties.registry import ParameterError, Registry, UnknownPropertyError
from checker.scenario.errors import nearest
from checker.scenario.schema import Common
from checker.scenario.variants import NoEffect, VariantError, names
from checker.scenario.yaml_lines import Path, YamlDocument, position
from spec.variants import Variant

Setup = TypeVar("Setup")
Fact = TypeVar("Fact")


def properties(
    scenario: Common,
    located: YamlDocument,
    registry: Registry[Setup, Fact],
    setup: Setup,
) -> Iterator[Property]:
    """The properties of all lists."""
    always = list(registry.defaults(setup)) if scenario.always is msgspec.UNSET else scenario.always
    seen: set[str] = set()
    for kind in Kind:
        items = always if kind is Kind.ALWAYS else getattr(scenario, kind.value)
        for number, item in enumerate(items or ()):
            path: Path = (kind.value, position(number))
            prop = _property(located, path, item, kind, registry, setup)
            if prop.name in seen:
                raise located.error(path, f"{prop.name} is there twice", "remove one, or give it a name")
            seen.add(prop.name)
            yield prop


def named_in(scenario: Common) -> Iterator[Any]:
    """The names in the lists, without parameters."""
    for kind in Kind:
        items = getattr(scenario, kind.value)
        for item in () if items is msgspec.UNSET else items:
            yield next(iter(item)) if isinstance(item, dict) and item else item


def _property(
    located: YamlDocument,
    path: Path,
    item: Any,
    kind: Kind,
    registry: Registry[Setup, Fact],
    setup: Setup,
) -> Property:
    name, parameter = item, None
    if isinstance(item, dict) and len(item) == 1:
        ((name, parameter),) = item.items()
    try:
        declared = registry.find(name)
        if declared.kind is not kind:
            right = f"write it under {declared.kind.value}"
            raise located.error(path, f"{name} is not a property of this kind", right)
        return declared.build(setup, parameter)
    except UnknownPropertyError as error:
        raise located.error(path, error.what, error.right) from None
    except ParameterError as error:
        raise located.error((*path, name, *_places(parameter, error.inside)), error.what, error.right) from None


def _places(value: Any, inside: Path) -> Iterator[str | int]:
    """A path into a parameter; positions in lists are distinct from keys."""
    for key in inside:
        is_place = isinstance(value, list) and isinstance(key, int)
        yield position(int(key)) if is_place else key
        value = value[key] if is_place or (isinstance(value, dict) and key in value) else None


def name_of(scenario: Common, located: YamlDocument, added: Iterable[Variant]) -> str:
    """The name of a run: the name of the scenario or of its file, with the added variants."""
    with_variants = names(added)
    return (scenario.name or FilePath(located.file).stem) + (f" with {with_variants}" if with_variants else "")


def expected(scenario: Common, located: YamlDocument) -> Verdict | None:
    """The verdict that a scenario states."""
    if scenario.expect is None:
        return None
    words = [each.value for each in Verdict if each is not Verdict.ERROR]  # which says nothing about the ensemble
    if scenario.expect not in words:
        what = f"{scenario.expect[:60]!r} is no verdict"
        raise located.error(("expect",), what, nearest(scenario.expect, words))
    return Verdict(scenario.expect)


def violations(scenario: Common, located: YamlDocument, properties: Iterable[Property]) -> Mapping[str, int] | None:
    """The properties that a scenario expects to be violated, with the depth of each; None if it names none."""
    stated = scenario.violations
    if stated is msgspec.UNSET:
        return None
    path: Path = ("violations",)
    if scenario.expect not in (Verdict.VIOLATED.value, Verdict.DEADLOCK.value):
        raise located.error(path, "the scenario expects no violation", "write expect: violated, or remove the key")
    if not isinstance(stated, dict) or not stated:
        raise located.error(path, "it is not a map from properties to depths", "write it like {OneLeader: 8}")
    names = [prop.name for prop in properties if prop.kind is not Kind.SOMETIMES]
    for name, depth in stated.items():
        if name not in names:
            what = f"no property that can be violated is called {str(name)[:60]!r} here"
            raise located.error((*path, name), what, nearest(name, names))
        if type(depth) is not int or depth < 0:
            raise located.error((*path, name), "the depth is no number of steps", "write a whole number from 0")
    return stated


def may_not_fire(scenario: Common, known: Collection[str], located: YamlDocument) -> frozenset[str]:
    """The actions that need not fire according to the scenario."""
    for number, action in enumerate(scenario.may_not_fire):
        if action not in known:
            path: Path = ("may_not_fire", position(number))
            raise located.error(path, f"no action is called {action[:60]!r} here", nearest(action, sorted(known)))
    return frozenset(scenario.may_not_fire)


def refuse_without_effect(
    scenario: Common, added: Iterable[Variant], located: YamlDocument, why_idle: Callable[[Variant], NoEffect | None]
) -> None:
    """Reject a variant that would change nothing, named by the scenario or added to it.

    Raises ScenarioError with the line of a variant of the scenario, and VariantError for an added one.
    """
    for number, name in enumerate(scenario.variants):
        idle = why_idle(Variant(name))
        if idle is not None:
            raise located.error(("variants", position(number)), f"the variant {name}: {idle.what}", idle.right)
    for variant in sorted(added, key=lambda each: each.value):
        idle = why_idle(variant)
        if idle is not None:
            raise VariantError(variant.value, idle)
