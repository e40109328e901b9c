"""The refinement: which condition of abstract Zab each known defect and mutant breaks, as a page of the manual.

Each scenario of a variant is explored with the property RefinesAbstractZab alone, and again without its variant. A
variant that loses data must break the refinement, not later than the invariant of its scenario; without the variant the
refinement holds in the whole space. REWRITE_GOLDEN=1 rewrites docs/reference-refinement.md. Read the diff before you
commit it: each entry says that a condition fails, and at which least depth.
"""

import os
import re
from functools import cache
from pathlib import Path

import pytest
import yaml

from checker.engine import Discovery, Exploration, Limits, plain
from checker.engine.result import disagreements
from checker.engine.search import explore
from checker.job import Job
from checker.refinement.abstract_steps import REFINEMENT
from checker.scenario import bundled, from_text

PAGE = Path(__file__).parents[2] / "docs" / "reference-refinement.md"
FOLDERS = ("known-defects", "zab-mutants")
OBSERVER = "r4-observer-promoted-loses-a-write"
SCENARIOS = {
    path.stem: path
    for path in sorted(bundled())
    if path.stem == OBSERVER or (path.parent.name in FOLDERS and "protocol: zab" in path.read_text("utf-8"))
}
UNBROKEN = {
    "zookeeper-4394": "The learner exits, and its log stays as it is: availability suffers, and not the history.",
    "zookeeper-4837": "The server is an observer by every file, and abstract Zab has voters alone.",
}
"""The variants that abstract Zab allows, with the reason."""
LATER = {"observer-counted"}
"""Its invariant is about the counting, and abstract Zab only needs a quorum of voters among the counted."""
LARGE = {"no-truncation", "sync-without-tail", "ack-before-log", "log-out-of-order", "torn-record", "observer-counted",
         "commit-before-quorum", "half-is-a-quorum"}  # fmt: skip
"""Mutants; without the variant their scenarios are one space, of which other tests explore a part."""


SLOW = {"zookeeper-3642"}
"""A space that `test_known_defects` explores in the gate, for all invariants."""


def job(name: str, *, corrected: bool = False) -> Job:
    """Return the job of a scenario with the refinement as its only property."""
    path = SCENARIOS[name]
    text = re.sub(r"^(always|violations|expect):.*\n(?: +.*\n)*", "", path.read_text("utf-8"), flags=re.MULTILINE)
    if corrected:
        text = re.sub(r"^variants: .*\n", "", text, flags=re.MULTILINE)
    text += f"always: [{REFINEMENT}]\nexpect: passed\n"
    return from_text(text, lambda file: (path.parent / file).read_text("utf-8"))


@cache
def broken_by(name: str) -> Discovery | None:
    """Return the shortest run of a scenario that breaks the refinement."""
    return explore(job(name).model, Limits()).found.get(REFINEMENT)


def invariants_of(name: str) -> dict[str, int]:
    """Return the invariants that a scenario says it violates, with the depths of the shortest runs."""
    return dict(yaml.safe_load(SCENARIOS[name].read_text("utf-8")).get("violations", {}))


@pytest.mark.parametrize("name", sorted(SCENARIOS.keys() - UNBROKEN.keys() - LATER))
def test_a_variant_that_loses_data_breaks_the_refinement_not_later_than_its_invariant(name: str) -> None:
    found = broken_by(name)
    assert found is not None
    assert found.depth <= min(invariants_of(name).values())


@pytest.mark.parametrize("name", sorted(LATER))
def test_a_variant_that_abstract_zab_allows_at_first_breaks_the_refinement(name: str) -> None:
    assert broken_by(name) is not None


@pytest.mark.parametrize("name", sorted(UNBROKEN))
def test_a_variant_that_abstract_zab_allows_does_not_break_it_in_the_whole_space(name: str) -> None:
    assert broken_by(name) is None


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name in sorted(SCENARIOS.keys() - LARGE - {OBSERVER})
    ],
)
def test_without_its_variant_the_refinement_holds_in_the_whole_space(name: str) -> None:
    found = explore(job(name, corrected=True).model, Limits())
    assert found.exhausted
    assert not found.found
    assert found.evaluations[REFINEMENT].premise > 0


def test_both_engines_agree_on_the_refinement() -> None:
    def both(model_of: Job) -> tuple[Exploration, Exploration]:
        return explore(model_of.model), plain.explore(model_of.model)

    assert disagreements(*both(job("zookeeper-2845"))) == []
    assert disagreements(*both(job("zookeeper-2845", corrected=True))) == []


def test_the_page_in_the_manual_is_what_the_checker_finds() -> None:
    page = "\n".join(_page()) + "\n"
    if os.environ.get("REWRITE_GOLDEN"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page


def _page() -> list[str]:
    lines = [
        *_HEAD,
        "",
        "| scenario | action and condition | depth | invariant and depth |",
        "| --- | --- | --- | --- |",
    ]
    for name, path in SCENARIOS.items():
        found = broken_by(name)
        clause, depth = (found.finding.clause, str(found.depth)) if found else ("none", "")
        invariants = ", ".join(f"{each} ({least})" for each, least in invariants_of(name).items())
        lines.append(f"| [{name}](../{path.relative_to(PAGE.parents[1])}) | {clause} | {depth} | {invariants} |")
    lines += ["", "Two defects break no condition:", ""]
    return [*lines, *(f"- `{name}`. {reason}" for name, reason in UNBROKEN.items())]


_HEAD = """\
# Variants and the conditions of abstract Zab

Abstract Zab is proved safe, and each step of the specification has to be one of its actions: [the
refinement](explanation-proofs-of-zab.md#the-refinement). A known defect or a mutant that loses data takes a step that
no action allows. This page has, for each scenario of a variant, the first condition that fails on a shortest run, the
depth of that run, and beside it the invariant of the scenario. The refinement fails where the mistake is made. An
invariant that is about the loss fails later. The test `tests/quality/test_refinement.py` writes this page, and fails if
the page differs from the results of the checker.
""".splitlines()
