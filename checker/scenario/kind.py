"""The base of the kinds of scenarios: the keys that all of them have, and the job that they become.

A kind describes the model of a scenario; this module adds the properties by name, the limits, the expected verdict and
violations, and the actions that may not fire. Rules of this module:

- Each property is of the kind of its list, and names are unique.
- An error names the line of the item that is wrong, and the nearest valid name.
- The expectations of a scenario do not apply to a run with an added variant, or with the defects of an added release.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from checker.engine import Kind, Limits, Property
from checker.job import Job, Json, Verdict
from checker.properties.registry import ParameterError, Registry, UnknownPropertyError
from checker.scenario.files import Files
from checker.scenario.schema import Common, LimitsEntry, decode
from checker.scenario.yaml_lines import (
    LikeError,
    NoEffect,
    Path,
    VariantError,
    YamlDocument,
    nearest,
    position,
    variant_names,
)
from spec.releases import Release
from spec.text import required_decimal
from spec.variants import Variant

Keys = TypeVar("Keys", bound=Common)
Setup = TypeVar("Setup")
Fact = TypeVar("Fact")
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}  # as on the command line and in reports


class ScenarioKind(ABC, Generic[Keys]):
    """A scenario of one kind, which `job` converts to a job."""

    schema: ClassVar[type[Common]]

    def __init__(
        self,
        document: YamlDocument,
        files: Files,
        source: Mapping[str, Json],
        added: frozenset[Variant],
        like: Release | None,
    ) -> None:
        self.document, self.files, self.source, self.added, self.like = document, files, source, added, like
        self.keys: Keys = decode(self.schema, document, document.value, ())  # type: ignore[assignment]

    @abstractmethod
    def describe(self) -> Job:
        """The job with its model, presenter, bounds and actions. Raises ScenarioError and VariantError."""

    def job(self) -> Job:
        """The job, with the limits and expectations of the scenario.

        Raises ScenarioError, spec.config.ConfigError and VariantError.
        """
        job = self.describe()
        changed = bool(self.added) or self.like is not None
        return replace(
            job,
            limits=self._limits(),
            expected=None if changed else self._expected_verdict(),
            violations=None if changed else self._expected_violations(job.model.properties),
            until_witnessed=self.keys.until_witnessed,
            allowed_silent=job.allowed_silent | self._may_not_fire(job),
        )

    @property
    def name(self) -> str:
        """The name of the scenario or of its file, with the added variants and the added release."""
        with_variants = f" with {variant_names(self.added)}" if self.added else ""
        like = f" like {self.like}" if self.like else ""
        return (self.keys.name or FilePath(self.document.file).stem) + like + with_variants

    # Properties.

    def properties(self, registry: Registry[Setup, Fact], setup: Setup) -> Iterator[Property]:
        """The properties of all lists."""
        always = list(registry.defaults(setup)) if self.keys.always is msgspec.UNSET else self.keys.always
        names: set[str] = set()
        for kind in Kind:
            items = always if kind is Kind.ALWAYS else getattr(self.keys, kind.value)
            for number, item in enumerate(items or ()):
                path: Path = (kind.value, position(number))
                prop = self._property(path, item, kind, registry, setup)
                if prop.name in names:
                    raise self.document.error(path, f"{prop.name} is there twice", "remove one, or give it a name")
                names.add(prop.name)
                yield prop

    def named_properties(self) -> Iterator[Any]:
        """The names in the lists, without parameters."""
        for kind in Kind:
            items = getattr(self.keys, kind.value)
            for item in () if items is msgspec.UNSET else items:
                yield next(iter(item)) if isinstance(item, dict) and item else item

    def _property(self, path: Path, item: Any, kind: Kind, registry: Registry[Setup, Fact], setup: Setup) -> Property:
        name, parameter = item, None
        if isinstance(item, dict) and len(item) == 1:
            ((name, parameter),) = item.items()
        try:
            declared = registry.find(name)
            if declared.kind is not kind:
                right = f"write it under {declared.kind.value}"
                raise self.document.error(path, f"{name} is not a property of this kind", right)
            return declared.build(setup, parameter)
        except UnknownPropertyError as error:
            raise self.document.error(path, error.what, error.right) from None
        except ParameterError as error:
            inside = (*path, name, *_places(parameter, error.inside))
            raise self.document.error(inside, error.what, error.right) from None

    # Variants.

    def variants(self) -> frozenset[Variant]:
        """The known defects and mutants that the scenario reproduces, without the added ones."""
        valid = [variant.value for variant in Variant]
        return frozenset(
            Variant(word(self.document, name, valid, ("variants", position(number))))
            for number, name in enumerate(self.keys.variants)
        )

    def refuse_without_effect(self, why_no_effect: Callable[[Variant], NoEffect | None]) -> None:
        """Reject a variant that would change nothing, named by the scenario or added to it.

        Raises ScenarioError with the line of a variant of the scenario, and VariantError for an added one. For
        scenarios of clients: an added release, whose defects are those of servers, is a LikeError.
        """
        if self.like is not None:
            problem = "it changes nothing where clients are explored and no servers"
            raise LikeError(str(self.like), NoEffect(problem, "name a scenario with protocol: zab"))
        for number, name in enumerate(self.keys.variants):
            reason = why_no_effect(Variant(name))
            if reason is not None:
                path: Path = ("variants", position(number))
                raise self.document.error(path, f"the variant {name}: {reason.what}", reason.right)
        for variant in sorted(self.added, key=lambda each: each.value):
            reason = why_no_effect(variant)
            if reason is not None:
                raise VariantError(variant.value, reason)

    # Limits and expectations.

    def _limits(self) -> Limits:
        if self.keys.limits is msgspec.UNSET:
            return Limits()
        entry = decode(LimitsEntry, self.document, self.keys.limits, ("limits",))
        for name in ("depth", "states", "seconds"):
            if (getattr(entry, name) or 0) < 0:
                raise self.document.error(("limits", name), "a limit below zero", "write a number above 0")
        return Limits(entry.depth, entry.states, self._bytes(entry.memory), entry.seconds)

    def _bytes(self, memory: int | str | None) -> int | None:
        if memory is None:
            return None
        match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,3})?) ?([KMGT]?B)?", str(memory), re.IGNORECASE)
        number = required_decimal(match[1]) if match is not None else 0
        if match is None or not number:
            problem = f"{str(memory)[:40]!r} is not a size"
            raise self.document.error(("limits", "memory"), problem, "write it like 500MB or 2GB")
        return int(number * _UNITS[(match[2] or "B").upper()])

    def _expected_verdict(self) -> Verdict | None:
        if self.keys.expect is None:
            return None
        words = [kind.value for kind in Verdict if kind is not Verdict.ERROR]  # which says nothing about the ensemble
        if self.keys.expect not in words:
            problem = f"{self.keys.expect[:60]!r} is not a verdict"
            raise self.document.error(("expect",), problem, nearest(self.keys.expect, words))
        return Verdict(self.keys.expect)

    def _expected_violations(self, properties: Iterable[Property]) -> Mapping[str, int] | None:
        """The properties that are expected to be violated, with the depth of each; None if the scenario names none."""
        stated = self.keys.violations
        if stated is msgspec.UNSET:
            return None
        path: Path = ("violations",)
        if self.keys.expect not in (Verdict.VIOLATED.value, Verdict.DEADLOCK.value):
            right = "write expect: violated, or remove the key"
            raise self.document.error(path, "the scenario expects no violation", right)
        if not isinstance(stated, dict) or not stated:
            raise self.document.error(path, "it is not a map from properties to depths", "write it like {OneLeader: 8}")
        names = [prop.name for prop in properties if prop.kind is not Kind.SOMETIMES]
        for name, depth in stated.items():
            if name not in names:
                problem = f"no property that can be violated is called {str(name)[:60]!r} here"
                raise self.document.error((*path, name), problem, nearest(name, names))
            if type(depth) is not int or depth < 0:
                right = "write a whole number from 0"
                raise self.document.error((*path, name), "the depth is not a number of steps", right)
        return stated

    def _may_not_fire(self, job: Job) -> frozenset[str]:
        known = sorted(
            job.actions | {prop.name for prop in job.model.properties if prop.kind in (Kind.ALWAYS, Kind.FINAL)}
        )
        for number, name in enumerate(self.keys.may_not_fire):
            if name not in known:
                path: Path = ("may_not_fire", position(number))
                problem = f"no action and no invariant is called {name[:60]!r} here"
                raise self.document.error(path, problem, nearest(name, known))
        return frozenset(self.keys.may_not_fire)


def word(document: YamlDocument, written: str, words: Iterable[str], path: Path) -> str:
    """Return a word if it is one of these. Raises ScenarioError with the nearest one."""
    valid = list(words)
    if written not in valid:
        raise document.error(path, f"{written[:60]!r} is not known here", nearest(written, valid))
    return written


def _places(value: Any, inside: Path) -> Iterator[str | int]:
    """A path into a parameter; positions in lists are distinct from keys."""
    for key in inside:
        is_place = isinstance(value, list) and isinstance(key, int)
        yield position(key) if is_place and isinstance(key, int) else key
        value = value[key] if is_place or (isinstance(value, dict) and key in value) else None
