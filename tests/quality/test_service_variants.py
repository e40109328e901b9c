"""Mutation: the guarantees of the service that each variant breaks, as a table that is generated, part of the manual.

Every invariant must be broken by some variant, every variant must break some invariant, and without a variant the same
runs break none. REWRITE_GOLDEN=1 rewrites docs/reference-service-variants.md. Read the diff before you commit it: each
entry says that an invariant fails, and at which least depth.
"""

import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from checker.engine import Exploration, Kind, Limits, Stop
from checker.engine.search import explore
from checker.job import Job
from checker.models.service import Clocks, FaultBudgets, ServiceSetup
from checker.present import wording
from checker.properties.service import SERVICE_PROPERTIES
from checker.scenario.request_parser import CHOICE, script_of
from checker.scenario.service import applicable, service_job, why_no_effect
from spec.variants import DESCRIBED, Area, Variant
from tests.support.services import service_setup

PAGE = Path(__file__).parents[2] / "docs" / "reference-service-variants.md"
SERVICE_VARIANTS = tuple(variant for variant in Variant if DESCRIBED[variant].area is Area.SERVICE)
DEFAULTS = tuple(name for name, each in SERVICE_PROPERTIES.items() if each.default is not None)
WITNESSES = tuple(name for name, entry in SERVICE_PROPERTIES.items() if entry.kind is Kind.SOMETIMES)
SECONDS = 300  # the limit in which every variant must be caught, also on a busy machine
DEPTH = 13  # steps: runs with a variant are explored in full up to here, so the depths found are least


def run(*clients: list[Any], paths: str = "", pipeline: int = 1, **parameters: Any) -> dict[str, Any]:
    """Return the parameters of a run of two lagging servers and these clients."""
    return {"clients": [script_of(each, pipeline) for each in clients], "paths": paths.split(), **parameters}


RUNS: dict[str, dict[str, Any]] = {
    "numbers": run(["create -s /q/n_"], ["delete /q/n_0000000000", "create -s /q/n_"], paths="/q"),
    "answers": run(
        [
            "create -s /q/n_ => ok path=/q/n_0000000000",
            "delete /q/n_0000000000 => ok",
            "create -s /q/n_ => ok path=/q/n_0000000001",
        ],
        paths="/q",
    ),
    "znodes": run(
        ["create /a", "create -e -s /q/n_"],
        ["create /a", "delete /q/n_0000000000", "create -e -s /q/n_"],
        paths="/q",
        budgets=FaultBudgets(disconnects=1, expiries=1, crashes=1),
    ),
    "sessions that end late": run(
        ["create -e /e", "get /e"],
        ["stat -w /e", "create -e /e"],
        clocks=Clocks.PAUSED,
        budgets=FaultBudgets(disconnects=1, expiries=1),
    ),
    "updates": run(
        ["set /x", ["set /x", "set /y"], "get /x"],
        [["set /y", "set -v 0 /x"], "sync /x", "get /x"],
        paths="/x /y",
        pipeline=2,
        budgets=FaultBudgets(disconnects=1),
    ),
    "moving": run(
        ["get /x", "sync /x", "get /x"],
        ["set /x", "create /a"],
        ["create /a"],
        paths="/x",
        budgets=FaultBudgets(disconnects=1),
    ),
    "watches on data": run(
        ["get -w /x", "get -w /y", "get /x"], ["set /y", "set /x"], paths="/x /y", budgets=FaultBudgets(disconnects=2)
    ),
    "watches on children": run(
        ["ls -w /q", "stat -w /q/a", "ls -w /q", "stat /q/a"],
        ["create /q/a", "delete /q/a"],
        paths="/q",
        budgets=FaultBudgets(disconnects=2),
    ),
    "anything": run(
        [{CHOICE: ["create -e /a", "set /x", "get -w /x", "stat -w /a", "sync /x"]}, {CHOICE: ["get /x", "stat /a"]}],
        [{CHOICE: ["create /a", "set /x", ["set /x", "create /a"], "close"]}],
        paths="/x",
        budgets=FaultBudgets(disconnects=1, expiries=1),
    ),
}
"""The requests of the clients in each run, and the events that may occur."""


def setup_of(name: str, variant: Variant | None = None) -> ServiceSetup:
    return service_setup(**RUNS[name], variants=() if variant is None else (variant,))


def job_of(name: str, variant: Variant | None = None) -> Job:
    """Return the run of that name, with all invariants that apply to it."""
    clients = RUNS[name]["clients"]
    return service_job(name, setup_of(name, variant), clients, (*applicable(clients), *WITNESSES))


@cache
def unmodified(name: str) -> Exploration:
    return explore(job_of(name).model)


@cache
def broken_in(name: str, variant: Variant) -> dict[str, int]:
    """Return each invariant that fails in a run, with its least depth. One search finds all of them.

    Raises AssertionError if the search exceeds the time limit.
    """
    model = job_of(name, variant).model
    hoped_for = model.with_properties(
        replace(prop, kind=Kind.SOMETIMES) for prop in model.properties if prop.name not in WITNESSES
    )
    exploration = explore(hoped_for, Limits(depth=DEPTH, seconds=SECONDS))
    assert exploration.stop is not Stop.TIME
    return {name: each.depth for name, each in exploration.found.items()}


@cache
def broken_by(variant: Variant) -> dict[str, int]:
    """Return each invariant that a variant breaks in any run on which it can have an effect, with its least depth."""
    depths: dict[str, int] = {}
    for name, parameters in RUNS.items():
        if why_no_effect(variant, setup_of(name), parameters["clients"]) is None:
            for invariant, depth in broken_in(name, variant).items():
                depths[invariant] = min(depth, depths.get(invariant, depth))
    return depths


@pytest.mark.parametrize("variant", SERVICE_VARIANTS, ids=lambda variant: str(variant.value))
def test_every_variant_breaks_an_invariant(variant: Variant) -> None:
    assert broken_by(variant)


@pytest.mark.parametrize("name", DEFAULTS)
def test_every_invariant_is_broken_by_a_variant(name: str) -> None:
    assert [variant.value for variant in SERVICE_VARIANTS if name in broken_by(variant)]


@pytest.mark.parametrize("name", RUNS)
def test_without_a_variant_everything_holds_in_the_whole_space(name: str) -> None:
    exploration = unmodified(name)

    assert exploration.exhausted
    assert exploration.violations == []


@pytest.mark.parametrize("name", DEFAULTS)
def test_every_invariant_has_something_to_say_in_a_run(name: str) -> None:
    assert any(
        exploration.evaluations[name].premise
        for exploration in map(unmodified, RUNS)
        if name in exploration.evaluations
    )


@pytest.mark.parametrize("name", WITNESSES)
def test_what_is_allowed_does_happen(name: str) -> None:
    assert any(name in unmodified(run).found for run in RUNS)


def test_where_a_variant_is_said_to_change_nothing_it_breaks_nothing() -> None:
    idle = [
        (name, variant)
        for name, parameters in RUNS.items()
        for variant in SERVICE_VARIANTS
        if why_no_effect(variant, setup_of(name), parameters["clients"]) is not None
    ]

    assert idle
    assert {(name, variant): broken_in(name, variant) for name, variant in idle} == {each: {} for each in idle}


def test_the_table_in_the_manual_is_what_the_checker_finds() -> None:
    page = "\n".join(_page()) + "\n"
    if os.environ.get("REWRITE_GOLDEN"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page


def _page() -> list[str]:
    lines = [*_HEAD, "", "| property | meaning |", "| --- | --- |"]
    lines += [
        f"| {name} | {entry.meaning} |" for name, entry in SERVICE_PROPERTIES.items() if entry.kind is Kind.ALWAYS
    ]
    lines += ["", *_WITNESSED, "", "| property | meaning |", "| --- | --- |"]
    lines += [f"| {name} | {SERVICE_PROPERTIES[name].meaning} |" for name in WITNESSES]
    lines += ["", "## Variants", "", "| variant | what is wrong | breaks |", "| --- | --- | --- |"]
    lines += [f"| {v.value} | {DESCRIBED[v].wrong} | {_listed(broken_by(v))} |" for v in SERVICE_VARIANTS]
    lines += ["", "## Invariant against variant", "", "| invariant | broken by |", "| --- | --- |"]
    for name in DEFAULTS:
        by = {str(v.value): broken_by(v)[name] for v in SERVICE_VARIANTS if name in broken_by(v)}
        lines.append(f"| {name} | {_listed(by)} |")
    lines += ["", "## The runs", "", *_RUNS]
    for name, parameters in RUNS.items():
        lines += ["", f"### {name[0].upper()}{name[1:]}", ""]
        lines += [f"- client {n}: {_told(script)}" for n, script in enumerate(parameters["clients"], 1)]
        lines += [f"- {bound}" for bound in job_of(name).bounds[1:]]
    return lines


_HEAD = """\
# The service as clients see it: guarantees, and variants that break them

ZooKeeper's documentation promises clients consistency guarantees, and makes promises about watches and znodes. Each
promise is an invariant here. The checker explores clients that run scripts on servers that lag, while connections are
lost, sessions expire and clients crash. A variant is the service with one mistake, at one place.
`tests/quality/test_service_variants.py` writes this page, and fails if it differs from the results of the checker. The
number behind a name is the least number of steps to the failure of the invariant; the search ends after 13 steps.

## Invariants
""".splitlines()
_WITNESSED = """\
Two behaviours are allowed although they surprise, and a run must show each:
""".splitlines()
_RUNS = """\
There are two servers, and each applies committed transactions at any later time. Requests have the form of ZooKeeper's
command line. Without a variant each run is explored to its end, and no invariant fails.
""".splitlines()


def _told(script: Any) -> str:
    steps = (" or ".join(f"`{wording.request(record)}`" for record in step) for step in script.steps)
    return ", ".join(steps)


def _listed(depths: dict[str, int]) -> str:
    return ", ".join(f"{name} ({depth})" for name, depth in sorted(depths.items(), key=lambda pair: (pair[1], pair[0])))
