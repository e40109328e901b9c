"""A bound on the depth covers ends: a run of exactly that many steps that ends badly is found by every search.

The expected ends are found by a search of its own, over rows and without the engines.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from checker.cli.main import main
from checker.engine import (
    Actor,
    Column,
    Exploration,
    Finding,
    Kind,
    Limits,
    Model,
    Move,
    Outcome,
    Property,
    Read,
    Rule,
    Send,
    Stop,
    plain,
    search,
)
from checker.engine.checkpoint import Checkpoint
from checker.engine.result import disagreements
from checker.engine.search import Request
from checker.engine.semantics import successors
from checker.engine.steps import StepProperty
from checker.swarm.search import RandomWalks
from tests.properties.test_engines_agree import random_model
from tests.support.parts import search_in_parts, small_rounds

NEXT = {"start": ("well", "on"), "on": ("badly", "further"), "further": ("worse",)}
TWO_ENDS = """
from checker.engine import Actor, Column, Finding, Kind, Model, Move, Outcome, Property, Read, Rule, Send

NEXT = {"start": ("well", "on"), "on": ("badly",)}


def model():
    return Model(
        "two ends",
        (Column("x", "start"),),
        (Actor("x", ("x",), lambda values, state: Outcome((state,))),),
        (Rule("r", (Read("x"),), lambda s: [Move("go", (to,), (Send("x", to),)) for to in NEXT.get(s, ())], ("go",)),),
        (Property("EndsWell", (Read("x"),), lambda s: Finding("it ends badly") if s == "badly" else None, Kind.FINAL),),
    )
"""


def ending(*properties: Property) -> Model:
    """Runs that end after one, two or three steps; only the first one ends well."""
    final = Property("EndsWell", (Read("x"),), lambda s: None if s == "well" else Finding("it ends badly"), Kind.FINAL)
    rule = Rule("r", (Read("x"),), lambda s: [Move("go", (to,), (Send("x", to),)) for to in NEXT.get(s, ())], ("go",))
    step = Actor("x", ("x",), lambda _, state: Outcome((state,)))
    return Model("three ends", (Column("x", "start"),), (step,), (rule,), (final, *properties))


def by_parts(model: Model, limits: Limits) -> Exploration:
    with small_rounds(divided=2, rows=3, block=4):
        return search_in_parts(model, limits, parts=2)[0]


SEARCHES: dict[str, Callable[[Model, Limits], Exploration]] = {
    "plain": plain.explore,
    "tables": search.explore,
    "two threads": lambda model, limits: search.explore(model, limits, workers=2),
    "two parts": by_parts,
}
EVERY = pytest.mark.parametrize("explore", SEARCHES.values(), ids=SEARCHES)


@EVERY
def test_a_run_of_as_many_steps_as_the_bound_that_ends_badly_is_found(
    explore: Callable[[Model, Limits], Exploration],
) -> None:
    assert explore(ending(), Limits(depth=1)).stop is Stop.DEPTH
    found = explore(ending(), Limits(depth=2))
    (violation,) = found.violations
    assert (found.stop, violation.depth, violation.path[-1].row) == (Stop.FOUND, 2, ("badly",))


@EVERY
def test_nothing_behind_the_bound_is_counted(explore: Callable[[Model, Limits], Exploration]) -> None:
    """Three steps are within the bound: to well, on and badly; the fourth one is the move to further."""
    judged = StepProperty.over("AnyStep", ("x",), lambda *_: None)
    model = ending(judged).with_properties([judged, *ending().finals])
    found = explore(model, Limits(depth=1))
    assert (found.levels, found.transitions, found.deadlocks) == ([1, 2], 2, 1)
    assert found.coverage["go"].fired == 2
    assert found.evaluations["EndsWell"].states == 1
    if explore is not by_parts:  # on a cluster, steps are those that a process has judged
        assert found.evaluations["AnyStep"].states == 2


def ends_by_hand(model: Model, depth: int) -> int:
    """The states without a successor within a depth."""
    level, seen, ends = {model.initial()}, {model.initial()}, 0
    for _ in range(depth + 1):
        following = [[after for _, after in successors(model, row)] for row in level]
        ends += sum(not rows for rows in following)
        level = {row for rows in following for row in rows} - seen
        seen |= level
    return ends


@pytest.mark.parametrize("seed", range(30))
def test_every_search_counts_the_ends_within_a_depth(seed: int) -> None:
    model = random_model(seed, 1 + seed % 4, 1 + seed % 3, 1 + seed % 3, 2 + seed % 3)
    model = model.with_properties(Property(p.name, p.reads, lambda *_: None, Kind.FINAL) for p in model.properties)
    for depth in range(4):
        limits = Limits(depth=depth)
        found = plain.explore(model, limits)
        assert found.deadlocks == ends_by_hand(model, depth)
        assert disagreements(found, search.explore(model, limits, workers=1 + seed % 2)) == []
        assert disagreements(found, by_parts(model, limits)) == []


@pytest.mark.parametrize("seed", range(30))
def test_every_search_finds_the_same_end_at_every_depth(seed: int) -> None:
    model = random_model(seed, 1 + seed % 4, 1 + seed % 3, 1 + seed % 3, 2 + seed % 3)
    for depth in range(4):
        limits = Limits(depth=depth)
        assert disagreements(plain.explore(model, limits), search.explore(model, limits)) == []


def test_a_search_that_resumes_at_the_same_depth_examines_the_same_level(tmp_path: Path) -> None:
    """The level is saved before it is examined, and no further one is expanded."""
    well = Property("EndsWell", (Read("x"),), lambda _: None, Kind.FINAL)
    model = ending().with_properties([well])
    for depth in (1, 1, 2, 3):
        found = search.explore(model, Limits(depth=depth), checkpoint=Checkpoint(tmp_path / "saved", resume=True))
        assert disagreements(plain.explore(model, Limits(depth=depth)), found) == []


def test_a_limit_inside_the_examination_is_the_reason_for_the_end() -> None:
    """The work of the two levels within the bound is done, that of the examination is not."""
    within = search.explore(ending().with_properties([]), Limits(depth=1)).work
    model = ending()
    assert search.explore(model, Limits(depth=1, work=within)).stop is Stop.WORK


def test_a_walk_of_the_greatest_length_that_ends_badly_is_found() -> None:
    outcome = RandomWalks().explore(Request(ending(), Limits(depth=2, work=200)))
    assert outcome.found["EndsWell"].depth == 2


@pytest.mark.parametrize("options", [["--engine", "both"], ["--engine", "plain"]])
def test_the_command_line_has_the_deadlock_at_its_depth(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "two_ends.py"
    file.write_text(TWO_ENDS)
    assert main(["run", f"{file}:model", "--depth", "2", *options]) == 11
    assert "EndsWell at depth 2: it ends badly" in capsys.readouterr().out
    assert main(["run", f"{file}:model", "--depth", "0", *options]) == 21
    assert "EndsWell was never examined, since no run of at most 0 steps ends" in capsys.readouterr().out
