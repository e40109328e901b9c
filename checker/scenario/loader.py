"""From a scenario to a job: the model with its properties, its lens, its limits and what is expected of it.

    load(path)                    a scenario file, with the zoo.cfg files beside it
    from_text(text, read, file)   the same without a file system
    from_source(job.source)       the same again, from what a job or a trace carries

All of them take variants to add to the scenario's own. Then it is another run, of which the scenario expects nothing.

Rules of this module: `Job.bounds` says in words everything that the model itself bounds, and `Job.source`
holds every text that was read, so that both can be trusted by somebody who has nothing but the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

import msgspec

from checker.engine import Kind, Model, Property
from checker.job import Job, Json, Verdict
from checker.models.ensemble import Grain, Setup, ensemble
from checker.properties import ParameterError, UnknownPropertyError, build, defaults, entry
from checker.scenario.actions import known_actions, may_be_silent
from checker.scenario.bounds import bounds_of
from checker.scenario.errors import ScenarioError, nearest
from checker.scenario.files import Files, Read, beside, names_beside
from checker.scenario.lens import EnsembleLens
from checker.scenario.located import Located, Path, position, read_yaml
from checker.scenario.network import fast
from checker.scenario.opening import opened
from checker.scenario.parts import limits_of, setup_of
from checker.scenario.refined import with_refinement
from checker.scenario.schema import Scenario, decode
from checker.scenario.variants import named, names, with_variants
from spec.variants import Variant

KIND = "scenario"
FAST = "fast"
NETWORKS = ("any", FAST)
_LISTS = {Kind.ALWAYS: "always", Kind.SOMETIMES: "sometimes", Kind.FINAL: "final"}


def load(path: FilePath, added: Iterable[Variant] = ()) -> Job:
    """The job of a scenario file, with these variants too.

    Raises ScenarioError, spec.config.ConfigError for a file it names, and VariantError for a variant that changes
    nothing in it.
    """
    try:
        text = path.read_text(encoding="utf-8")
        known = names_beside(path)
    except OSError as error:
        raise ScenarioError(str(path), 0, "", f"it cannot be read ({error.strerror})", "name a file") from None
    except ValueError:
        raise ScenarioError(path.name, 0, "", "it is no text in UTF-8", "save it as UTF-8") from None
    return _job(text, beside(path), path.name, known, frozenset(added))


def from_text(text: str, read: Read, file: str = "scenario.yaml", added: Iterable[Variant] = ()) -> Job:
    """The job of a scenario's text; `read` gives the zoo.cfg files. Raises as `load` does."""
    return _job(text, read, file, (), frozenset(added))


def from_source(source: Mapping[str, Json]) -> Job:
    """The job that has this source. Raises as `load` does, also for a source that is none."""
    text, file, files = source.get("text"), source.get("file"), source.get("files")
    added = source.get("variants", [])
    if (
        source.get("kind") != KIND
        or not isinstance(text, str)
        or not isinstance(files, Mapping)
        or not isinstance(added, list)
    ):
        right = "take the source of a job that was made from a scenario"
        raise ScenarioError(str(file), 0, "source", "this is no source of a scenario", right)
    texts = {str(name): each for name, each in files.items() if isinstance(each, str)}
    return _job(text, texts.get, str(file), tuple(texts), frozenset(named(str(name)) for name in added))


def _job(text: str, read: Read, file: str, known: tuple[str, ...], added: frozenset[Variant]) -> Job:
    located = read_yaml(text, file)
    scenario = decode(Scenario, located, located.value, ())
    files = Files(located, read, known)
    setup = with_variants(setup_of(scenario, located, files), added)
    name = (scenario.name or FilePath(file).stem) + (f" with {names(added)}" if added else "")
    model = _model(name, setup, tuple(_properties(scenario, setup, located)), located)
    if _is_fast(scenario, setup, located):
        model = fast(model, setup)
    model, steps = opened(model, scenario.opening, setup, located)
    job = Job(
        name=name,
        model=model,
        lens=EnsembleLens(model, setup),
        source=_source(file, text, files, added),
        grain=setup.grain.value,
        limits=limits_of(scenario, located),
        expected=None if added else _expected(scenario, located),
        until_witnessed=scenario.until_witnessed,
        bounds=bounds_of(setup, steps, fast=scenario.network == FAST),
        allowed_silent=may_be_silent(setup) | _may_not_fire(scenario, model, located),
    )
    return with_refinement(job, setup)


def _source(file: str, text: str, files: Files, added: frozenset[Variant]) -> dict[str, Json]:
    """What the job can be made from again."""
    source = {"kind": KIND, "file": file, "text": text, "files": dict(files.texts)}
    return {**source, "variants": sorted(variant.value for variant in added)} if added else source


def _model(name: str, setup: Setup, properties: tuple[Property, ...], located: Located) -> Model:
    try:
        return ensemble(name, setup, properties)
    except ValueError as error:
        raise located.error(("history",), str(error), "start servers in an order that is possible") from None


def _is_fast(scenario: Scenario, setup: Setup, located: Located) -> bool:
    if scenario.network not in NETWORKS:
        what = f"{scenario.network[:60]!r} is no kind of network"
        raise located.error(("network",), what, nearest(scenario.network, NETWORKS))
    if scenario.network == FAST and setup.grain is Grain.ORACLE:
        raise located.error(("network",), "with the oracle there are no messages", "write grain: fine")
    return scenario.network == FAST


def _properties(scenario: Scenario, setup: Setup, located: Located) -> Iterator[Property]:
    """The properties of the three lists; each of the kind of its list, and no two of one name."""
    always = list(defaults(setup)) if scenario.always is msgspec.UNSET else scenario.always
    seen: set[str] = set()
    lists = (Kind.ALWAYS, always), (Kind.SOMETIMES, scenario.sometimes), (Kind.FINAL, scenario.final)
    for kind, items in lists:
        for number, item in enumerate(items or ()):
            path: Path = (_LISTS[kind], position(number))
            prop = _property(setup, located, path, item, kind)
            if prop.name in seen:
                raise located.error(path, f"{prop.name} is there twice", "remove one, or give it a name")
            seen.add(prop.name)
            yield prop


def _property(setup: Setup, located: Located, path: Path, item: Any, kind: Kind) -> Property:
    name, parameter = item, None
    if isinstance(item, dict) and len(item) == 1:
        ((name, parameter),) = item.items()
    try:
        if entry(name).kind is not kind:
            right = f"write it under {_LISTS[entry(name).kind]}"
            raise located.error(path, f"{name} is not a property of this kind", right)
        return build(setup, name, parameter)
    except UnknownPropertyError as error:
        raise located.error(path, error.what, error.right) from None
    except ParameterError as error:
        raise located.error((*path, name, *error.inside), error.what, error.right) from None


def _expected(scenario: Scenario, located: Located) -> Verdict | None:
    if scenario.expect is None:
        return None
    words = [each.value for each in Verdict]
    if scenario.expect not in words:
        what = f"{scenario.expect[:60]!r} is no verdict"
        raise located.error(("expect",), what, nearest(scenario.expect, words))
    return Verdict(scenario.expect)


def _may_not_fire(scenario: Scenario, model: Model, located: Located) -> frozenset[str]:
    """What need not fire, as the scenario says."""
    known = known_actions(model)
    for number, action in enumerate(scenario.may_not_fire):
        if action not in known:
            path: Path = ("may_not_fire", position(number))
            raise located.error(path, f"no action is called {action[:60]!r} here", nearest(action, known))
    return frozenset(scenario.may_not_fire)
