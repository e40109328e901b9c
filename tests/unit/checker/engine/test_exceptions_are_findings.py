"""An exception in a function of a model is a finding with a shortest run, in every kind of search."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

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
    Renaming,
    Rule,
    Send,
    Stop,
    Symmetry,
    plain,
    search,
)
from checker.engine.checkpoint import Checkpoint
from checker.engine.model import NO_EXCEPTION
from checker.engine.result import disagreements, verdict_disagreements
from checker.engine.steps import StepProperty
from checker.engine.symmetric_search import SYMMETRIC
from checker.explorer.walk import Walks
from checker.job import Job
from checker.present import DefaultPresenter
from checker.swarm.search import RandomWalks
from checker.traces import replay, trace_of
from checker.traces.minimise import minimised
from checker.traces.replay import ReplayError
from tests.support.command_line import cli
from tests.support.parts import search_in_parts

ENGINES = pytest.mark.parametrize("engine", [plain, search], ids=["plain", "tables"])
NAME = NO_EXCEPTION.name
MOST = 10


def count_up(values: tuple[int, ...], more: int) -> Outcome:
    return Outcome((values[0] + more,))


def ways(count: int) -> list[Move]:
    """Steps of one and two, up to a limit."""
    return [Move("add", (more,), (Send("count", more),)) for more in (1, 2)] if count < MOST else []


def two_counters(
    step: Any = count_up,
    moves: Any = ways,
    check: Any = lambda _: None,
    show: Any = None,
    kind: Kind = Kind.ALWAYS,
) -> Model:
    """A count to ten or eleven, and a clock that ticks three times at any moment; a run of one tick more is a state."""

    def tick(values: tuple[int, ...], _: Any) -> Outcome | None:
        return Outcome((values[0] + 1,)) if values[0] < 3 else None

    return Model(
        "two counters",
        (Column("count", 0), Column("clock", 0)),
        (Actor("count", ("count",), step), Actor("clock", ("clock",), tick)),
        (
            Rule("adding", (Read("count"),), moves),
            Rule("ticking", (Read("clock"), Read("count")), lambda *_: [Move("tick", (), (Send("clock", None),))]),
        ),
        (Property("P", (Read("count", show),), check, kind),),
    )


def at(count: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which raises where the count is this one."""

    def broken(value: Any, *others: Any) -> Any:
        assert (value[0] if isinstance(value, tuple) else value) != count
        return function(value, *others)

    return broken


BROKEN: dict[str, tuple[Callable[[], Model], str, int]] = {
    "a step": (lambda: two_counters(step=at(4, count_up)), "the step of 'count'", 2),
    "a rule": (lambda: two_counters(moves=at(5, ways)), "the rule 'adding'", 3),
    "a property": (lambda: two_counters(check=at(6, lambda _: None)), "the property 'P'", 3),
    "a projection": (lambda: two_counters(show=at(3, lambda count: count)), "the projection of 'count'", 2),
    "a property of the ends": (
        lambda: two_counters(check=at(11, lambda _: None), kind=Kind.FINAL),
        "the property 'P'",
        9,
    ),
    "a judge of steps": (
        lambda: two_counters().with_properties([StepProperty.over("Up", ("count",), at(4, lambda *_: None))]),
        "the property 'Up'",
        2,
    ),
    "the first state": (lambda: two_counters(check=at(0, lambda _: None)), "the property 'P'", 0),
}
EVERY = pytest.mark.parametrize("kind", BROKEN)


def finding_of(result: Exploration) -> Finding:
    assert result.stop is Stop.FOUND
    return result.found[NAME].finding


@EVERY
def test_both_engines_find_it_in_the_same_state_with_the_same_counts(kind: str) -> None:
    make, who, depth = BROKEN[kind]
    model = make()
    slow, fast, two = plain.explore(model), search.explore(model), search.explore(model, workers=2)
    assert disagreements(slow, fast) == disagreements(slow, two) == []
    for result in (slow, fast, two):
        found = result.found[NAME]
        assert found.finding.clause.startswith(f"{who} raises AssertionError: assert ")
        assert (found.depth, found.path) == (depth, slow.found[NAME].path)
        assert not result.exhausted


def test_the_counts_of_the_level_are_those_without_the_moves_of_the_state() -> None:
    """The counts 0 to 11 with 0 to 3 ticks; nothing leads on from the count 4 without ticks at depth 2."""
    whole, result = plain.explore(two_counters()), plain.explore(two_counters(moves=at(4, ways)))
    assert whole.levels[:4] == [1, 3, 5, 7]
    assert result.levels == [1, 3, 5, 6]  # without the states (6, 0); (5, 0) and (4, 1) have other runs
    assert result.transitions == 3 + 3 * 3 + 4 * 3


def test_successors_of_a_state_that_raises_are_found_by_other_runs() -> None:
    """A row that fails is dropped after its first successors were generated; later rows have the same ones."""

    def moves(count: int) -> list[Move]:
        more = [Move("add", (n,), (Send("count", n),)) for n in ((2, 4) if count == 0 else (4, 2))]
        return [*more, Move("break", (), (Send("count", "x"),))] if count == 2 else more if count < 5 else []

    model = two_counters(moves=moves)
    assert disagreements(plain.explore(model), search.explore(model)) == []


@ENGINES
def test_a_projection_that_raises_does_not_matter_where_another_one_never_applies(engine: ModuleType) -> None:
    reads = (Read("count", at(3, lambda count: count)), Read("clock", lambda clock: None))
    model = two_counters().with_properties([Property("Never", reads, lambda *_: Finding("seen"))])
    assert engine.explore(model).exhausted


@ENGINES
def test_a_projection_of_a_value_that_no_state_has_does_not_matter(engine: ModuleType) -> None:
    """The first operation gives the count 3, and the second one more, in one move."""

    def moves(count: int) -> list[Move]:
        return [Move("add", (4,), (Send("count", 3), Send("count", 1)))] if count == 0 else []

    model = two_counters(moves=moves, show=at(3, lambda count: count))
    assert engine.explore(model).exhausted


@ENGINES
def test_a_violation_at_the_same_depth_is_found_too(engine: ModuleType) -> None:
    def check(count: int) -> Finding | None:
        return Finding("two") if count == 2 else None

    result = engine.explore(two_counters(moves=at(2, ways), check=check))
    assert [found.prop.name for found in result.violations] == ["P"]
    model = two_counters(check=at(2, lambda _: None)).with_properties(
        [*two_counters(check=at(2, lambda _: None)).properties, Property("Q", (Read("count"),), check)]
    )
    assert [found.prop.name for found in engine.explore(model).violations] == ["Q", NAME]


@ENGINES
def test_the_shallower_of_two_exceptions_in_one_level_is_reported(engine: ModuleType) -> None:
    """The states at depth 1 are expanded, and those at depth 2 judged, in one level."""
    found = engine.explore(two_counters(moves=at(1, ways), check=at(4, lambda _: None))).found[NAME]
    assert (found.depth, found.finding.clause[:17]) == (1, "the rule 'adding'")


@ENGINES
def test_a_witness_and_a_goal_are_not_exceptions(engine: ModuleType) -> None:
    for kind in (Kind.SOMETIMES, Kind.RECOVERABLE, Kind.EVENTUALLY):
        result = engine.explore(two_counters(check=at(2, lambda _: None), kind=kind))
        assert [*result.found] == [NAME]
        assert result.unjudged == ([] if kind is Kind.SOMETIMES else ["P"])


@ENGINES
def test_states_at_the_depth_given_are_not_expanded(engine: ModuleType) -> None:
    model = two_counters(step=at(4, count_up))
    assert engine.explore(model, Limits(depth=2)).stop is Stop.DEPTH
    assert finding_of(engine.explore(model, Limits(depth=3)))


@ENGINES
def test_a_wrong_result_names_the_state_and_the_run(engine: ModuleType) -> None:
    def step(values: tuple[int, ...], more: int) -> Any:
        return Outcome((values[0] + more,)) if values[0] < 4 else 5

    with pytest.raises(ModelError, match=r"returned 5; .* in the state \(4, 0\) after 2 moves: add 2, add 2$"):
        engine.explore(two_counters(step=step))


def test_a_function_that_raises_only_once_is_no_function() -> None:
    calls: list[int] = []

    def moves(count: int) -> list[Move]:
        calls.append(count)
        assert len(calls) != 5
        return ways(count)

    with pytest.raises(
        ModelError, match=r"so that it is no function; this is in the state \(2, 0\) after 1 move: add 2$"
    ):
        search.explore(two_counters(moves=moves))


def test_wrong_parameters_are_an_error_of_the_model() -> None:
    with pytest.raises(ModelError, match="positional argument"):
        search.explore(two_counters(step=lambda values: count_up(values, 1)))


def test_no_other_property_has_the_name() -> None:
    with pytest.raises(ModelError, match="every model has the property 'NoException'"):
        two_counters().with_properties([Property(NAME, (Read("count"),), lambda _: None)])


# -- other searches ------------------------------------------------------------------------------------------


@EVERY
def test_a_swarm_finds_it(kind: str) -> None:
    make, who, _ = BROKEN[kind]
    found = finding_of(search.explore(make(), Limits(depth=30, work=200), frontier=RandomWalks()))
    assert found.clause.startswith(who)


def test_a_swarm_stops_before_a_move_that_raises_and_that_it_does_not_take() -> None:
    """The walk goes on where its own move is possible; the run to its violation passes an exception."""

    def moves(count: int) -> list[Move]:
        return [Move("break", (), (Send("count", "x"),)), Move("add", (1,), (Send("count", 1),))] if count < 9 else []

    model = two_counters(moves=moves, check=lambda count: Finding("nine") if count == 9 else None)
    result = search.explore(model, Limits(depth=30, work=64), frontier=RandomWalks())
    assert [*result.found] == [NAME]


def test_parts_of_a_search_find_the_same() -> None:
    model = two_counters(moves=at(5, ways))
    expected = plain.explore(model)
    result, _ = search_in_parts(model, parts=2)
    assert disagreements(expected, result) == []
    assert result.found[NAME].path == expected.found[NAME].path


def twins(step: Any) -> Model:
    """Two counters that differ in their names, up to three each."""

    def moves(name: str, count: int) -> list[Move]:
        return [Move("add", (), (Send(name, 1),))] if count < 3 else []

    names = ("a", "b")
    other = {"a": "b", "b": "a"}
    return Model(
        "twins",
        tuple(Column(name, 0) for name in names),
        tuple(Actor(name, (name,), step) for name in names),
        tuple(Rule(f"of {name}", (Read(name),), partial(moves, name)) for name in names),
        (Property("P", (Read("a"), Read("b")), lambda a, b: None),),
        Symmetry((Renaming(other, lambda value: value),)),
    )


def test_a_symmetric_search_finds_it_at_the_same_depth() -> None:
    model = twins(at(2, count_up))
    result, full = search.explore(model, frontier=SYMMETRIC), plain.explore(model)
    assert verdict_disagreements(result, full) == []
    assert result.found[NAME].depth == full.found[NAME].depth == 2
    assert sum(result.levels) < sum(full.levels)


def test_a_symmetric_search_names_the_state_of_a_wrong_result() -> None:
    model = twins(lambda values, more: Outcome((values[0] + more,)) if values[0] < 2 else 5)
    with pytest.raises(ModelError, match=r"returned 5; .* in the state \((2, 0|0, 2)\) after 2 moves: add, add$"):
        search.explore(model, frontier=SYMMETRIC)


def test_the_explorer_shows_it_at_the_end_of_a_walk() -> None:
    walks = Walks(two_counters(moves=at(0, ways)))
    path = walks.path([])
    assert [found.prop.name for found in walks.findings(path)] == [NAME]
    assert walks.next(path[-1].row) == ()


def test_a_saved_search_finds_it_after_a_resumption(tmp_path: Path) -> None:
    model = two_counters(moves=at(6, ways))
    search.explore(model, Limits(states=5), checkpoint=Checkpoint(tmp_path))
    result = search.explore(model, checkpoint=Checkpoint(tmp_path, resume=True))
    assert disagreements(plain.explore(model), result) == []


# -- the run -------------------------------------------------------------------------------------------------


def job_of(model: Model) -> Job:
    return Job(model.name, model, DefaultPresenter(model), source={})


@EVERY
def test_its_trace_replays_and_is_minimised(kind: str) -> None:
    job = job_of(BROKEN[kind][0]())
    found = search.explore(job.model).found[NAME]
    shortest = minimised(job, found)
    assert (shortest.finding.clause, shortest.depth) == (found.finding.clause, found.depth)
    again = replay(trace_of(job, shortest), job)
    assert again.found is not None
    assert again.found.finding == shortest.finding


def test_a_trace_does_not_replay_on_a_model_that_raises_no_more() -> None:
    job = job_of(two_counters(moves=at(4, ways)))
    trace = trace_of(job, search.explore(job.model).found[NAME])
    with pytest.raises(ReplayError, match="it finds nothing"):
        replay(trace, job_of(two_counters()))


FILE = """\
from checker.engine import Actor, Column, Model, Move, Outcome, Property, Read, Rule, Send


def step(values, operation):
    assert values[0] < 2
    return Outcome((values[0] + 1,))


def moves(count):
    return [Move("add", (), (Send("c", "x"),))]


def model():
    actor, rule = Actor("c", ("c",), step), Rule("r", (Read("c"),), moves)
    return Model("own", (Column("c", 0),), (actor,), (rule,), (Property("P", (Read("c"),), lambda count: None),))
"""


def test_every_report_of_the_command_line_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(FILE)
    reports = ("--report", "r.json", "--junit", "r.xml", "--sarif", "r.sarif", "--traces", "kept")
    ran = cli("run", "own.py:model", *reports)
    clause = "the step of 'c' raises AssertionError: assert values[0] < 2"
    assert ran.code == 12
    assert ran.out.startswith(f"violated: NoException at depth 2: {clause} (move = [add], operation = 'x', line = 5 of")
    (run,) = json.loads(Path("r.json").read_text())["runs"]
    assert [(prop["name"], prop["outcome"]) for prop in run["properties"]] == [
        ("P", "no violation seen"),
        (NAME, "VIOLATED at depth 2"),
    ]
    assert clause.replace("<", "&lt;") in Path("r.xml").read_text()
    (result,) = json.loads(Path("r.sarif").read_text())["runs"][0]["results"]
    assert (result["ruleId"], len(result["codeFlows"][0]["threadFlows"][0]["locations"])) == (NAME, 3)
    replayed = cli("replay", next(Path("kept").glob("*.itf.json")), "--model", "own.py:model", "--format", "none")
    assert replayed.out.strip() == f"replayed: 2 steps, and NoException again: {clause}"
    swarm = cli("swarm", "own.py:model", "--walks", 10, "--json")
    assert (swarm.code, json.loads(swarm.out)["sentence"].split(":")[1]) == (12, " NoException at depth 2")
