"""Of all shortest runs to a finding, the trace is the one with the fewest faults, and then the fewest switches.

The oracle here enumerates every run of that length, and counts independently.
"""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from checker.engine import Discovery, plain
from checker.engine.discovery import Step
from checker.engine.model import Actor, Column, Finding, Kind, Model, Move, Outcome, Property, Read, Row, Rule, Send
from checker.engine.search import explore
from checker.engine.semantics import answer, successors
from checker.job import Job
from checker.kit.actions import is_fault
from checker.present import DefaultPresenter
from checker.scenario import bundled, load
from checker.traces import minimise
from checker.traces.minimise import minimised

PATHS = {path.stem: path for path in bundled()}
FEW = ["r13-stale-after-moving", "r14-events-out-of-order", "r10-wrong-order", "r20-window", "r12-two-creators"]


def runs(model: Model, path: tuple[Step, ...], length: int) -> Iterator[tuple[Step, ...]]:
    if length == 0:
        yield path
        return
    for move, row in successors(model, path[-1].row):
        yield from runs(model, (*path, Step(move, row)), length - 1)


def counted(job: Job, path: tuple[Step, ...]) -> tuple[int, int]:
    """Return the faults and switches of a run, from the lanes as a reader sees them."""
    faults = sum(step.move is not None and is_fault(step.move.action) for step in path)
    touched: list[set[str]] = []
    for one, other in pairwise(path):
        before, after = job.presenter.lanes(one.row), job.presenter.lanes(other.row)
        lanes = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        touched.append(lanes or (touched[-1] if touched else set()))
    return faults, sum(bool(one) and not one & other for one, other in pairwise(touched))


def found_in(name: str) -> tuple[Job, Discovery]:
    job = load(PATHS[name])
    (found,) = explore(job.model).violations
    return job, found


def ends_in(job: Job, found: Discovery, row: Row) -> bool:
    return answer(job.model, found.prop, row) == found.finding


@pytest.mark.parametrize("name", ["r12-two-creators", "r10-wrong-order", "r12-ephemeral-outlives-session"])
def test_no_run_of_that_length_is_better(name: str) -> None:
    job, found = found_in(name)
    every = runs(job.model, found.path[:1], found.depth)
    best = min(counted(job, path) for path in every if ends_in(job, found, path[-1].row))
    assert counted(job, minimised(job, found).path) == best


@pytest.mark.parametrize("name", FEW)
def test_every_step_of_the_better_run_can_happen_and_the_finding_is_the_same(name: str) -> None:
    job, found = found_in(name)
    better = minimised(job, found)
    assert (better.prop, better.finding, better.depth) == (found.prop, found.finding, found.depth)
    assert counted(job, better.path) <= counted(job, found.path)
    for one, other in pairwise(better.path):
        assert (other.move, other.row) in list(successors(job.model, one.row))
    assert ends_in(job, found, better.path[-1].row)


@pytest.mark.parametrize("name", FEW)
def test_the_least_moves_are_those_of_all_states_before_the_finding(name: str) -> None:
    job = load(PATHS[name])
    exploration = explore(job.model)
    (found,) = exploration.violations
    level, met, executed = [job.model.initial()], {job.model.initial()}, 0
    for _ in range(found.depth):
        rows = [row for before in level for _, row in successors(job.model, before)]
        executed += len(rows)
        level = list({*rows} - met)
        met.update(level)
    assert exploration.least_moves(found.depth) == executed


def lamps() -> Job:
    """Return a model of three lamps. The third takes two steps once both others are lit, or one step after a crash."""
    lamp = {name: Actor(name, (name,), lambda _, operation: Outcome((operation,))) for name in ("one", "two", "three")}

    def moves(one: str, two: str, three: str) -> Iterator[Move]:
        yield Move("crash", (), (Send("one", "lit"), Send("two", "lit"), Send("three", "half")))
        yield Move("light", ("one",), (Send("one", "lit"),))
        yield Move("light", ("two",), (Send("two", "lit"),))
        if three == "half" or one == two == "lit":
            yield Move("light", ("three",), (Send("three", "half" if three == "dark" else "lit"),))

    model = Model(
        "lamps",
        tuple(Column(name, "dark") for name in lamp),
        tuple(lamp.values()),
        (Rule("any", tuple(Read(name) for name in lamp), moves),),
        (Property("Dark", (Read("three"),), lambda three: Finding("it is lit") if three == "lit" else None),),
    )
    return Job("lamps", model, DefaultPresenter(model), {})


def path_of(job: Job, *wanted: tuple[str, tuple[str, ...]]) -> tuple[Step, ...]:
    path = [Step(None, job.model.initial())]
    for move in wanted:
        possible = successors(job.model, path[-1].row)
        path.append(next(Step(*each) for each in possible if (each[0].action, each[0].arguments) == move))
    return tuple(path)


def test_fewer_actions_come_before_fewer_faults() -> None:
    job = lamps()
    lit = [("light", (name,)) for name in ("one", "two", "three", "three")]
    path = path_of(job, *lit)
    found = Discovery(job.model.properties[0], Finding("it is lit"), len(path) - 1, path)
    assert [step.move.action for step in minimised(job, found).path[1:] if step.move] == ["crash", "light"]


def test_with_as_many_actions_the_run_without_a_fault_is_told() -> None:
    """If a crash and a step have the same effect in as many steps, the search finds the crash, because it is first."""
    actor = Actor("a", ("a",), lambda values, _: Outcome((values[0] + 1,)))
    both = [Move(name, (), (Send("a", None),)) for name in ("crash", "step")]
    prop = Property("Low", (Read("a"),), lambda a: Finding("high") if a == 3 else None)
    rule = Rule("count", (Read("a"),), lambda a: both if a < 3 else None)
    model = Model("count", (Column("a", 0),), (actor,), (rule,), (prop,))
    job = Job("count", model, DefaultPresenter(model), {})
    found = plain.explore(model).found["Low"]
    assert counted(job, found.path)[0] == 3
    assert counted(job, minimised(job, found).path)[0] == 0
    assert is_fault("crash")


@pytest.mark.parametrize(("steps", "switches"), [("a h a", 0), ("a h b", 1), ("h a h h b a", 2), ("h", 0)])
def test_a_step_that_no_lane_shows_is_no_switch(steps: str, switches: int) -> None:
    names = {"a": "a", "b": "b", "h": "a->b"}
    actors = tuple(Actor(name, (name,), lambda values, _: Outcome((values[0] + 1,))) for name in names.values())
    every = [Move(key, (), (Send(name, None),)) for key, name in names.items()]
    rule = Rule("count", (Read("a"),), lambda _: every)
    prop = Property("P", (Read("a"),), lambda _: Finding("so it is"))
    model = Model("count", tuple(Column(name, 0) for name in names.values()), actors, (rule,), (prop,))
    job = Job("count", model, DefaultPresenter(model), {})
    path = path_of(job, *((step, ()) for step in steps.split()))
    found = Discovery(prop, Finding("so it is"), len(path) - 1, path)
    assert minimise.cost(job, found) == (len(path) - 1, 0, switches)


def test_of_two_ways_to_a_state_that_is_kept_from_which_the_rest_is_no_switch() -> None:
    """Both a b and b a lead to one state with one switch; a third step a adds no switch only after b a."""
    actors = tuple(Actor(name, (name,), lambda values, _: Outcome((values[0] + 1,))) for name in "ab")

    def moves(a: int, b: int) -> list[Move]:
        possible = "ab" if (a, b) == (0, 0) else "b" if b == 0 else "a"
        return [Move(name, (), (Send(name, None),)) for name in possible]

    rule = Rule("count", (Read("a"), Read("b")), moves)
    prop = Property("P", (Read("a"),), lambda a: Finding("twice") if a == 2 else None)
    model = Model("count", (Column("a", 0), Column("b", 0)), actors, (rule,), (prop,))
    job = Job("count", model, DefaultPresenter(model), {})
    found = plain.explore(model).found["P"]
    assert [step.move.action for step in found.path[1:] if step.move] == ["a", "b", "a"]
    assert [step.move.action for step in minimised(job, found).path[1:] if step.move] == ["b", "a", "a"]


def test_a_deadlock_is_told_by_a_run_to_a_state_where_nothing_can_happen() -> None:
    """A step without a fault leads to a state where the property has the same finding, but which is not a deadlock."""
    actor = Actor("a", ("a",), lambda _, operation: Outcome((operation,)))
    after = {"start": [Move("crash", (), (Send("a", "end"),)), Move("step", (), (Send("a", "on"),))]}
    rule = Rule("go", (Read("a"),), lambda a: after.get(a, [Move("step", (), (Send("a", a),))] if a == "on" else None))
    prop = Property("Goes", (Read("a"),), lambda _: Finding("it stands"), Kind.FINAL)
    model = Model("standing", (Column("a", "start"),), (actor,), (rule,), (prop,))
    exploration = plain.explore(model)
    found = exploration.found["Goes"]
    assert (exploration.transitions, exploration.least_moves(found.depth)) == (3, 2)
    assert minimised(Job("standing", model, DefaultPresenter(model), {}), found) is found


def test_what_would_take_too_long_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    job, found = found_in("r14-events-out-of-order")
    monkeypatch.setattr(minimise, "MOVES", 5)
    assert minimised(job, found) is found


def test_where_all_moves_are_too_many_those_of_the_run_are_reordered(monkeypatch: pytest.MonkeyPatch) -> None:
    job, found = found_in("r14-events-out-of-order")
    exact = minimised(job, found)
    monkeypatch.setattr(minimise, "MOVES", 600)
    better = minimised(job, found)
    assert counted(job, exact.path) <= counted(job, better.path) < counted(job, found.path)
    assert {repr(step.move) for step in better.path} <= {repr(step.move) for step in found.path}


def test_a_run_that_never_comes_to_its_goal_stays_as_it_is() -> None:
    job = load(PATHS["zookeeper-1419-never-elects"])
    violations = plain.explore(job.model).violations
    assert violations
    for found in violations:
        assert found.prop.kind in (Kind.RECOVERABLE, Kind.EVENTUALLY)
        assert minimised(job, found) is found
