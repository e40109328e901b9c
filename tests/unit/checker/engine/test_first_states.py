"""Several first states: each has depth 0, as the states of Init in TLA+, and every engine begins in all of them."""

import zlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.engine import (
    Actor,
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
from checker.engine.result import disagreements
from checker.engine.symmetric_search import SYMMETRIC
from checker.execution import Deadline
from checker.kit import Machine, Network, Reaction, Refinement, interchangeable, network_model
from checker.present import job_of_model
from checker.swarm.shorten import Rerun
from checker.swarm.walker import WalkRunner
from checker.traces import ReplayError, read_itf, replay, to_itf, trace_of
from tests.support.graphs import eventually, graph, recoverable

FOUR = [(0, "on", 1), (2, "on", 3), (3, "on", 4), (4, "back", 2)]
"""Edges in two parts, which no move joins."""


def at(*places: int) -> list[dict[str, int]]:
    return [{"at": place} for place in places]


def both(model: Model, **options: Any) -> Exploration:
    by_tables = search.explore(model, **options)
    assert disagreements(plain.explore(model, **options), by_tables) == []
    return by_tables


def never(*places: int) -> Property:
    return Property("Never", (Read("at"),), lambda place: Finding("there") if place in places else None)


def test_each_first_state_has_depth_0_and_equal_ones_count_once() -> None:
    found = both(graph(FOUR).with_firsts(at(0, 2, 0)))
    assert found.levels == [2, 2, 1]
    assert (found.states, found.transitions, found.depth) == (5, 4, 2)
    assert found.coverage["on"].new == 3


def test_a_first_state_that_is_reached_again_is_no_new_state() -> None:
    assert both(graph(FOUR).with_firsts(at(4, 2))).levels == [2, 1]


def test_a_finding_has_the_shortest_run_from_any_first_state() -> None:
    model = graph(FOUR, never(4))
    found = both(model.with_firsts(at(0, 2, 3))).found["Never"]
    assert [step.row for step in found.path] == [(3,), (4,)]
    assert both(model.with_firsts(at(2, 0))).found["Never"].depth == 2
    assert both(model.with_firsts(at(0, 4))).found["Never"].path[0].row == (4,)


def test_without_firsts_the_first_state_has_the_initial_values() -> None:
    assert graph(FOUR, start=2).first_rows == ((2,),)
    assert graph(FOUR, start=2).with_firsts([{}, {"at": 0}]).first_rows == ((2,), (0,))
    assert graph(FOUR).with_firsts(at(2)).initial() == (2,)


@pytest.mark.parametrize("engine", [plain, search])
def test_liveness_is_judged_from_every_first_state(engine: ModuleType) -> None:
    edges = [(0, "on", 1), (2, "on", 3), (3, "round", 2)]
    model = graph(edges, recoverable(1), eventually(1)).with_firsts(at(0, 2))
    found = engine.explore(model).found
    assert [step.row for step in found["Back"].path] == [(2,), (3,), (2,)]
    assert (found["Back"].depth, found["Back"].loop, found["Back"].since) == (0, 0, 0)
    assert [step.row for step in found["There"].path] == [(2,), (3,), (2,)]
    assert (found["There"].depth, found["There"].loop, found["There"].since) == (0, 0, 0)
    job = job_of_model(model)
    for run in found.values():
        assert replay(trace_of(job, run), job).found.finding == run.finding
    assert engine.explore(graph(edges, recoverable(1), eventually(1)).with_firsts(at(0, 1))).found == {}


def test_a_trace_says_in_which_first_state_it_begins_and_is_replayed_from_there() -> None:
    model = graph(FOUR, never(4)).with_firsts(at(0, 2))
    job = job_of_model(model)
    found = search.explore(model).found["Never"]
    trace = read_itf(to_itf(trace_of(job, found)))
    assert [step.row for step in replay(trace, job).path] == [(2,), (3,), (4,)]
    with pytest.raises(ReplayError, match=r"in step 0 it says .* and the model says"):
        replay(trace, job_of_model(graph(FOUR, never(4)).with_firsts(at(0, 1))))


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_search_that_is_saved_goes_on_from_the_same_first_states(depth: int, tmp_path: Path) -> None:
    edges = [(n, "on", n + 1) for n in range(20)]
    model = graph(edges, never(12), recoverable(20)).with_firsts(at(0, 5, 3))
    search.explore(model, Limits(depth=depth), checkpoint=Checkpoint(tmp_path / "kept", {}))
    rest = search.explore(model, checkpoint=Checkpoint(tmp_path / "kept", {}, resume=True))
    assert disagreements(search.explore(model), rest) == []
    assert rest.found == search.explore(model).found
    assert rest.found["Never"].path[0].row == (5,)


def test_another_set_of_first_states_does_not_take_up_a_search(tmp_path: Path) -> None:
    model = graph(FOUR).with_firsts(at(0, 2))
    search.explore(model, Limits(depth=0), checkpoint=Checkpoint(tmp_path / "kept", {}))
    with pytest.raises(ModelError, match="kept"):
        search.explore(model.with_firsts(at(0, 3)), checkpoint=Checkpoint(tmp_path / "kept", {}, resume=True))


def test_the_states_and_the_graph_of_a_search_begin_with_all_first_states() -> None:
    result = search.explore(graph(FOUR).with_firsts(at(0, 2)))
    assert [(state.number, state.depth, state["at"]) for state in result.iter_states()] == [
        (0, 0, 0), (1, 0, 2), (2, 1, 1), (3, 1, 3), (4, 2, 4)
    ]  # fmt: skip
    drawing = result.graph().to_dot()
    assert drawing.count("penwidth=2") == 2


def company(number: int) -> Model:
    """Workers of which some set is ready at first, and each other one becomes ready."""
    names = [f"w{n}" for n in range(1, number + 1)]
    workers = [
        Machine(name, Reaction("idle"), choices=lambda state: ["work"] if state == "idle" else [],
                on_choice=lambda *_: Reaction("ready")) for name in names
    ]  # fmt: skip
    return network_model("company", workers, Network(), links=[]).with_firsts([{name: "ready"} for name in names])


def test_a_symmetric_search_begins_in_one_of_renamed_first_states() -> None:
    model = interchangeable(company(4), ["w1", "w2", "w3", "w4"])
    assert both(model).levels == [4, 6, 4, 1]
    assert search.explore(model, frontier=SYMMETRIC).levels == [1, 1, 1, 1]
    assert [state.depth for state in search.explore(model, frontier=SYMMETRIC).iter_states()] == [0, 1, 2, 3]
    done = Property("Done", (Read("w1"), Read("w4")), lambda *all_: Finding("both") if {*all_} == {"ready"} else None)
    found = search.explore(interchangeable(company(2), ["w1", "w2"]), frontier=SYMMETRIC)
    assert found.levels == [1, 1]
    assert both(model.with_properties([done])).found["Done"].depth == 1


def test_first_states_that_a_renaming_changes_are_not_symmetric() -> None:
    model = company(3).with_firsts([{"w1": "ready"}, {"w2": "ready"}])
    with pytest.raises(ModelError, match="'w2' and 'w3' are not interchangeable: their first states differ"):
        interchangeable(model, ["w1", "w2", "w3"])


def test_walks_begin_in_every_first_state_and_their_runs_are_runs() -> None:
    edges = [(n, "on", n + 1) for n in range(40)]
    model = graph(edges, never(25)).with_firsts(at(*range(16)))
    runner = WalkRunner(model, seed=1, depth=64, keep_going=True)
    counts = runner.run(0, 400)
    assert counts.walks == 400
    starts = {runner.path(walk, 3)[0].row for walk in range(0, 400, 8)}
    assert len(starts) > 8  # of 16, by 50 groups
    for walk in (0, 8, 17, 399):
        path, found = runner.repeat(walk)
        assert path[0].row in model.first_rows
        assert [run.finding.clause for run in found] == ["there"]
        assert len(path) - 1 == 25 - path[0].row[0]
    run = runner.repeat(0)[1][0]
    assert Rerun(model, run.prop).without_parts(run, Deadline(5.0)).path == run.path


def test_a_refinement_needs_each_first_state_to_be_one_of_the_abstract_model() -> None:
    def refined(abstract: Model, model: Model) -> Model:
        return model.with_properties([Refinement.of("R", abstract, ("at",), lambda place: {"at": place})])

    abstract = graph(FOUR).with_firsts(at(0, 2))
    assert both(refined(abstract, graph(FOUR).with_firsts(at(2, 0)))).violations == []
    found = both(refined(abstract, graph(FOUR).with_firsts(at(2, 3)))).found["R"]
    assert (found.depth, found.path[0].row[0]) == (0, 3)


def test_what_needs_one_first_state_says_so() -> None:
    model = graph(FOUR).with_firsts(at(0, 2))
    with pytest.raises(ModelError, match="the model 'graph' has 2 first states, and this needs one alone"):
        model.initial()


@pytest.mark.parametrize(
    ("firsts", "message"),
    [
        ([{"by": 1}], "a first state names the column 'by', which the model 'graph' does not have"),
        ([{"at": [1]}], r"the initial state puts into the column 'at' a value that cannot be hashed"),
        ([{"at": place} for place in range(40_000)], "at most 32,768 first states"),
    ],
)
def test_a_wrong_first_state_is_an_error(firsts: list[dict[str, Any]], message: str) -> None:
    for engine in (plain, search):
        with pytest.raises(ModelError, match=message):
            engine.explore(graph(FOUR).with_firsts(firsts))


def test_one_mapping_in_place_of_a_tuple_of_mappings_is_an_error() -> None:
    with pytest.raises(ModelError, match="write a tuple of mappings"):
        replace(graph(FOUR), firsts={"at": 1})  # type: ignore[arg-type]


def chance(*key: object) -> int:
    return zlib.crc32(repr(key).encode())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_many_first_states_are_one_first_state_with_a_move_to_each(seed: int, firsts: int) -> None:
    """By an independent model of the same states, whose first state leads to all first states."""

    def moves(places: Any) -> Iterable[Move]:
        if places == (-1, -1):
            return [Move("begin", (), (Send("at", to),)) for to in starts]
        ways = [
            (chance(seed, places, way) % 5, chance(seed, way, places) % 5) for way in range(chance(seed, places) % 3)
        ]
        return [Move("go", (), (Send("at", to),)) for to in ways]

    def check(places: Any) -> Finding | None:
        return Finding("goal") if chance(seed, "goal", places) % 7 == 0 and places != (-1, -1) else None

    starts = list(dict.fromkeys((chance(seed, "a", n) % 5, chance(seed, "b", n) % 5) for n in range(firsts)))
    token = Actor("at", ("at",), lambda _, to: Outcome((to,)))
    kinds = (Kind.ALWAYS,) if seed % 2 else (Kind.SOMETIMES, Kind.RECOVERABLE, Kind.EVENTUALLY)
    props = tuple(Property(kind.value, (Read("at"),), check, kind) for kind in kinds)
    rule = Rule("go", (Read("at"),), moves, fair=True)
    virtual = Model("virtual", (Column("at", (-1, -1)),), (token,), (rule,), props)
    real = Model("real", (Column("at", 0),), (token,), (rule,), props, firsts=tuple({"at": to} for to in starts))
    one, several = both(virtual), both(real)
    assert several.levels == one.levels[1:]
    assert several.transitions == one.transitions - len(starts)
    assert several.stop is one.stop
    assert set(several.found) == set(one.found)
    for name, run in several.found.items():
        if not run.prop.kind.is_liveness:
            assert run.depth == one.found[name].depth - 1
