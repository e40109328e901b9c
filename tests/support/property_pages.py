"""The lists of properties in the manual, made from the declarations.

A page has introductions written by hand, and blocks between two comments that this module replaces. Each block has the
texts of the declarations, and for each property the shipped scenarios that state its violation.

Rules of this module: a text comes from a declaration, from the list of requirements, or from the name of a scenario; a
new property needs no change here.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import Any

import yaml

from checker.engine import Kind
from checker.properties import ENSEMBLE_PROPERTIES, ZAB
from checker.properties.recipes import RECIPE_PROPERTIES
from checker.properties.reconfiguration import RECONFIGURED
from checker.properties.registry import Declaration
from checker.properties.service import SERVICE_PROPERTIES

ROOT = Path(__file__).parents[2]
SCENARIOS = ROOT / "spec" / "scenarios"
PAGES = ("reference-properties.md", "reference-zab-invariants.md", "reference-scenarios.md")
SHOWN = 4  # scenarios for each property
WIDTH = 120  # characters of a line
BLOCK = re.compile(
    r"(?<=<!-- begin properties: )(?P<name>\w+)(?P<rest> -->\n).*?(?=<!-- end properties -->)", re.DOTALL
)

Declared = Declaration[Any, Any]


def page(text: str) -> str:
    """A page with the present text of its blocks."""
    requirements = requirement_names()

    def written(found: re.Match[str]) -> str:
        lines = "\n".join(BLOCKS[found["name"]](requirements)).rstrip()
        return f"{found['name']}{found['rest']}\n{lines}\n\n"

    return BLOCK.sub(written, text)


def requirement_names() -> dict[str, str]:
    """The names of the requirements by number, from the page that defines them."""
    text = (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| (R\d+'?) \| ([^|]+) \|", text, re.MULTILINE))


@cache
def violated_in() -> Mapping[str, tuple[Path, ...]]:
    """For each property, the shipped scenarios that state its violation."""
    places: dict[str, list[Path]] = {}
    for path in sorted(SCENARIOS.glob("*/*.yaml")):
        for name in yaml.safe_load(path.read_text(encoding="utf-8")).get("violations", {}):
            places.setdefault(name.partition("(")[0], []).append(path)
    return {name: tuple(paths) for name, paths in places.items()}


def _by_kind(declared: Iterable[Declared], requirements: Mapping[str, str]) -> Iterator[str]:
    entries = list(declared)
    for kind in Kind:
        if any(entry.kind is kind for entry in entries):
            yield from (f"## {kind.value.capitalize()}", "")
            yield from _sections((entry for entry in entries if entry.kind is kind), requirements)


def _sections(declared: Iterable[Declared], requirements: Mapping[str, str]) -> Iterator[str]:
    for entry in declared:
        yield from (*_section(entry, requirements), "")


def _section(each: Declared, requirements: Mapping[str, str]) -> Iterator[str]:
    yield from (f"### {each.name}", "", fill(_text(each), WIDTH, break_long_words=False, break_on_hyphens=False), "")
    yield from ("| | |", "| --- | --- |", f"| kind | {each.kind.value} |")
    yield f"| by default | {'no' if each.default is None else each.default.text}{_needed(each)} |"
    if each.parameter is not None:
        yield f"| parameter | {each.parameter.description}, as in `{each.name}: {each.parameter.example}` |"
    if each.violation:
        yield f"| a violation means | {each.violation} |"
    if each.premise:
        yield f"| premise | {each.premise}. |"
    if each.requirements:
        yield f"| requirement | [{_named(each.requirements, requirements)}](requirements.md) |"
    if each.source:
        yield f"| source | {each.source}. |"
    if scenarios := violated_in().get(each.name):
        yield f"| violated in | {_listed(scenarios)} |"


def _text(each: Declared) -> str:
    return " ".join(filter(None, (f"{each.meaning}.", each.notes)))


def _named(numbers: Iterable[str], requirements: Mapping[str, str]) -> str:
    return ", ".join(f"{requirements[number]} ({number})" for number in numbers)


def _needed(each: Declared) -> str:
    needs = "" if each.needs is None or each.default is not None else f"; it applies {each.needs.text}"
    return needs + ("; the validation of journals examines it" if each.in_journals else "")


def _listed(scenarios: tuple[Path, ...]) -> str:
    links = [f"[{path.stem}](../{path.relative_to(ROOT).as_posix()})" for path in scenarios[:SHOWN]]
    more = len(scenarios) - len(links)
    return ", ".join(links) + (f", and {more} more" if more else "")


def _table(declared: Iterable[Declared], requirements: Mapping[str, str]) -> Iterator[str]:
    yield from ("| key | property | meaning | requirement |", "| --- | --- | --- | --- |")
    for entry in sorted(declared, key=lambda entry: list(Kind).index(entry.kind)):
        name = entry.name if entry.parameter is None else f"{entry.name}: {entry.parameter.example}"
        text = _text(entry) + (f" It applies {entry.needs.text}." if entry.needs is not None else "")
        yield f"| `{entry.kind.value}` | `{name}` | {text} | {_named(entry.requirements, requirements)} |"


def _index(declared: Iterable[Declared]) -> Iterator[str]:
    yield from ("| property | meaning |", "| --- | --- |")
    for entry in declared:
        yield f"| [{entry.name}](reference-zab-invariants.md#{entry.name.lower()}) | {entry.meaning}. |"


def _of_ensembles(*, zab: bool, default: bool) -> list[Declared]:
    return [
        prop
        for prop in ENSEMBLE_PROPERTIES.values()
        if (prop.needs in (ZAB, RECONFIGURED)) is zab and (not zab or (prop.default is not None) is default)
    ]


def _in_module(module: str) -> Callable[[Mapping[str, str]], Iterator[str]]:
    def lines(requirements: Mapping[str, str]) -> Iterator[str]:
        declared = _of_ensembles(zab=True, default=True)
        entries = (entry for entry in declared if entry.construct.__module__.endswith(f".{module}"))
        return _sections(entries, requirements)

    return lines


BLOCKS: Mapping[str, Callable[[Mapping[str, str]], Iterable[str]]] = {
    "elections": lambda names: _by_kind(_of_ensembles(zab=False, default=False), names),
    "zab": lambda _: _index(_of_ensembles(zab=True, default=True)),
    "on_request": lambda names: _sections(_of_ensembles(zab=True, default=False), names),
    **{name: _in_module(name) for name in ("leadership", "delivery_order", "leader_and_learner", "reconfiguration")},
    "recipes": lambda names: _table(RECIPE_PROPERTIES.values(), names),
    "service": lambda names: _table(SERVICE_PROPERTIES.values(), names),
}
"""The blocks by name, each with a function from the names of the requirements to its lines."""
