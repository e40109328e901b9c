"""Bounds: states outside are counted and judged, and not expanded; the verdict names a bound that cut something off."""

import zlib
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.engine import (
    Actor,
    Bound,
    Column,
    Exploration,
    Finding,
    Kind,
    Limits,
    Model,
    ModelError,
    Move,
    Outcome,
    Property,
    Read,
    Rule,
    Send,
    plain,
    search,
)
from checker.engine.checkpoint import Checkpoint
from checker.engine.result import Evaluations, disagreements
from checker.engine.symmetric_search import SYMMETRIC
from checker.job import Verdict
from checker.kit import interchangeable
from checker.present import job_of_model
from checker.report import judge
from tests.support.graphs import eventually, graph, recoverable


def both(model: Model, **options: object) -> Exploration:
    by_tables = search.explore(model, **options)  # type: ignore[arg-type]
    assert disagreements(plain.explore(model, **options), by_tables) == []  # type: ignore[arg-type]
    return by_tables


def counters(*properties: Property) -> Model:
    """Two counters that grow without an end."""

    def rule(name: str) -> Rule:
        return Rule(name, (Read(name),), lambda _: [Move("add", (name,), (Send(name, 1),))])

    actors = tuple(Actor(name, (name,), lambda values, by: Outcome((values[0] + by,))) for name in ("c1", "c2"))
    return Model("counters", (Column("c1", 0), Column("c2", 0)), actors, (rule("c1"), rule("c2")), properties)


def below(most: int, *columns: str) -> Bound:
    return Bound.of("Small", columns or ("c1", "c2"), lambda *values: sum(values) < most)


def test_states_outside_are_counted_and_not_expanded() -> None:
    """With a sum below 3 inside: 1 + 2 + 3 states are inside, and the 4 with the sum 3 are outside."""
    found = both(counters(below(3)))
    assert (found.states, found.transitions, found.levels) == (10, 12, [1, 2, 3, 4])
    assert found.evaluations["Small"] == Evaluations(states=10, premise=4)
    assert found.outcome(found.model.properties[0]) == "cut off 4 states"


def test_the_verdict_names_a_bound_that_cut_something_off() -> None:
    def verdict(model: Model) -> tuple[Verdict, str]:
        judgement = judge(job_of_model(model), search.explore(model))
        return judgement.verdict, judgement.sentence

    cut_off = "and what follows 4 of them beyond the bound Small is unknown"
    assert verdict(counters(below(3))) == (
        Verdict.PASSED,
        f"passed: no violation, space exhausted: 10 states, {cut_off}",
    )
    inside = graph([(0, "on", 1)]).with_properties([Bound.of("Small", ("at",), lambda at: at < 5)])
    assert verdict(inside) == (Verdict.PASSED, "passed: no violation, space exhausted: 2 states")


def test_properties_are_judged_in_states_outside() -> None:
    three = Property("Three", (Read("c1"),), lambda count: Finding("three") if count == 3 else None)
    four = Property("Four", (Read("c1"),), lambda count: Finding("four") if count == 4 else None)
    assert both(counters(below(3), three)).found["Three"].depth == 3
    assert both(counters(below(3), four)).found == {}


def test_several_bounds_hold_together() -> None:
    one, two = (Bound.of(name, (name,), lambda count: count < 2) for name in ("c1", "c2"))
    found = both(counters(one, two))
    assert found.states == len([*product(range(3), repeat=2)]) - 1  # not (2, 2), whose predecessors are outside
    assert [found.evaluations[name].premise for name in ("c1", "c2")] == [2, 2]


@pytest.mark.parametrize(
    "prop",
    [recoverable(1), eventually(1), Property("End", (Read("at"),), lambda _: Finding("end"), Kind.FINAL)],
    ids=lambda prop: prop.kind.value,
)
def test_a_property_of_the_ends_of_runs_is_refused(prop: Property) -> None:
    with pytest.raises(
        ModelError, match=f"{prop.name!r} needs the end of every run, and the bound 'Small' cuts runs off"
    ):
        graph([(0, "on", 1)], prop, below(3, "at"))


def test_an_exception_of_a_bound_is_a_finding() -> None:
    def within(first: int, second: int) -> bool:
        assert first + second != 2
        return True

    for engine in (plain, search):
        found = engine.explore(counters(Bound.of("Odd", ("c1", "c2"), within)), Limits(depth=5)).found["NoException"]
        assert "AssertionError" in found.finding.clause
        assert found.depth == 2


def test_a_bound_can_be_taken_out_again() -> None:
    model = counters(below(3))
    assert [actor.name for actor in model.with_properties([]).actors] == ["c1", "c2"]
    assert both(replace(model, name="copy")).states == 10
    assert both(model.with_rules(model.rules).with_properties(model.properties)).states == 10


def test_with_symmetry_as_many_classes_are_outside() -> None:
    found = search.explore(interchangeable(counters(below(3)), ["c1", "c2"]), frontier=SYMMETRIC)
    assert (found.states, found.evaluations["Small"].premise) == (1 + 1 + 2 + 2, 2)


def test_a_search_that_is_saved_counts_all_states_outside(tmp_path: Path) -> None:
    model = counters(below(8))
    search.explore(model, Limits(depth=4), checkpoint=Checkpoint(tmp_path / "kept", {}))
    rest = search.explore(model, checkpoint=Checkpoint(tmp_path / "kept", {}, resume=True))
    assert rest.evaluations == search.explore(model).evaluations == {"Small": Evaluations(45, 9)}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_a_bounded_search_sees_what_a_search_by_hand_sees(seed: int) -> None:
    edges: dict[int, list[int]] = {}
    for source in range(12):
        count = zlib.crc32(repr((seed, source)).encode()) % 4
        edges[source] = [zlib.crc32(repr((seed, source, way)).encode()) % 12 for way in range(count)]
    outside = {place for place in range(12) if zlib.crc32(repr((seed, "out", place)).encode()) % 3 == 0}
    seen, todo, moves = {0}, [0], 0
    while todo:
        place = todo.pop()
        for after in () if place in outside else edges[place]:
            moves += 1
            if after not in seen:
                seen.add(after)
                todo.append(after)
    listed = [(source, "on", after) for source, ends in edges.items() for after in ends]
    found = both(graph(listed, Bound.of("In", ("at",), lambda at: at not in outside)))
    assert (found.states, found.transitions) == (len(seen), moves)
    assert found.evaluations["In"].premise == len(seen & outside)
