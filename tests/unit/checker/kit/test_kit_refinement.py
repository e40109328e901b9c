"""Refinement: both engines find the first move that is no move of an abstract model, as a comparison of all moves does.

`TCommit` and the theorem that two-phase commit implements it are those of Gray and Lamport, "Consensus on Transaction
Commit" (2006). The planted error is a transaction manager that does not wait for the last vote.
"""

import zlib
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.engine import (
    Actor,
    Column,
    Exploration,
    Limits,
    Model,
    ModelError,
    Move,
    Outcome,
    Read,
    Rule,
    Send,
    StepProperty,
    plain,
    search,
)
from checker.engine.checkpoint import Checkpoint
from checker.engine.result import disagreements
from checker.engine.semantics import successors
from checker.engine.symmetric_search import SYMMETRIC
from checker.job import Verdict
from checker.kit import Refinement, interchangeable
from checker.present import job_of_model
from checker.report.verdict import judge
from checker.traces import replay, to_text, trace_of
from tests.unit.checker.kit.test_kit_register import example


@pytest.fixture(scope="module")
def two_phase() -> ModuleType:
    return example("two_phase_commit")


def tcommit(names: list[str]) -> Model:
    """The module TCommit, each action as a move."""

    def moves(*states: str) -> list[Move]:
        listed = []
        for name, state in zip(names, states, strict=True):
            if state == "working":
                listed.append(("Prepare", name, "prepared"))
            if state in ("working", "prepared") and "committed" not in states:
                listed.append(("Decide", name, "aborted"))
            if state == "prepared" and {*states} <= {"prepared", "committed"}:
                listed.append(("Decide", name, "committed"))
        return [Move(action, (name,), (Send(name, to),)) for action, name, to in listed]

    actors = tuple(Actor(name, (name,), lambda _, to: Outcome((to,))) for name in names)
    columns = tuple(Column(name, "working") for name in names)
    return Model("TCommit", columns, actors, (Rule("moves", tuple(Read(name) for name in names), moves),))


def refining(model: Model, number: int, mapping: Any = None) -> Model:
    names = [f"rm{n}" for n in range(1, number + 1)]
    same = mapping or (lambda *states: dict(zip(names, states, strict=True)))
    return model.with_properties([*model.properties, Refinement.of("Refines", tcommit(names), tuple(names), same)])


def impatient(model: Model) -> Model:
    """Two-phase commit of three in which the transaction manager may commit after two votes."""
    everybody = frozenset({"rm1", "rm2", "rm3"})

    def hastened(rule: Rule) -> Rule:
        def moves(state: Any) -> Any:
            return rule.moves(everybody if isinstance(state, frozenset) and len(state) == 2 else state)

        return replace(rule, moves=moves) if rule.name == "choices of tm" else rule

    return model.with_rules([hastened(rule) for rule in model.rules])


def both(model: Model) -> Exploration:
    by_tables = search.explore(model)
    assert disagreements(plain.explore(model), by_tables) == []
    return by_tables


def first_wrong(model: Model, abstract: Model, image: Any) -> int | None:
    """The least depth of a move of a model that is no move of an abstract one and no stutter, by brute force."""
    seen, level, depth = {model.initial()}, [model.initial()], 0
    if image(model.initial()) != abstract.initial():
        return 0
    while level:
        depth, before, level = depth + 1, level, []
        for row in before:
            allowed = {image(row)} | {after for _, after in successors(abstract, image(row))}
            for _, after in successors(model, row):
                if image(after) not in allowed:
                    return depth
                if after not in seen:
                    seen.add(after)
                    level.append(after)
    return None


def test_two_phase_commit_refines_tcommit_without_a_further_state(two_phase: ModuleType) -> None:
    model = two_phase.model(3)
    found, alone = both(refining(model, 3)), search.explore(model)
    assert found.violations == []
    assert (found.states, found.transitions) == (alone.states, alone.transitions)
    count = found.evaluations["Refines"]
    assert 0 < count.premise < count.states  # a vote that arrives is a stutter
    job = job_of_model(refining(model, 3), {})
    assert judge(job, search.explore(job.model)).verdict is Verdict.PASSED


def test_a_manager_that_does_not_wait_for_a_vote_is_found_with_its_shortest_run(two_phase: ModuleType) -> None:
    model = impatient(two_phase.model(3))
    found = both(refining(model, 3))
    run = found.found["Refines"]
    assert run.depth == first_wrong(model, tcommit(["rm1", "rm2", "rm3"]), lambda row: row[1:4])
    assert run.finding.clause == "'TCommit' has no such move"
    states = dict(run.finding.values)
    assert sorted(states) == ["after", "before"]
    assert "working" in states["before"]
    assert "committed" not in states["before"]
    assert "committed" in states["after"]
    job = job_of_model(refining(model, 3), {})
    trace = trace_of(job, run)
    assert replay(trace, job).found.finding == run.finding
    assert "Refines fails" in to_text(trace)


def test_a_symmetric_search_judges_the_refinement_too(two_phase: ModuleType) -> None:
    names = ["rm1", "rm2", "rm3"]
    model = two_phase.model(3)
    found = search.explore(interchangeable(refining(model, 3), names), frontier=SYMMETRIC)
    assert found.violations == []
    assert found.states == search.explore(interchangeable(model, names), frontier=SYMMETRIC).states
    wrong = search.explore(interchangeable(refining(impatient(model), 3), names), frontier=SYMMETRIC)
    assert wrong.found["Refines"].depth == search.explore(refining(impatient(model), 3)).found["Refines"].depth


def test_a_symmetry_that_was_declared_before_the_refinement_is_refused(two_phase: ModuleType) -> None:
    model = interchangeable(two_phase.model(2), ["rm1", "rm2"])
    with pytest.raises(ModelError, match="the symmetry of 'two-phase commit of 2' was declared without 'Refines'"):
        refining(model, 2)


def test_a_first_state_that_is_none_of_the_abstract_model_is_a_finding_at_depth_0(two_phase: ModuleType) -> None:
    found = both(refining(two_phase.model(2), 2, lambda *_: {"rm1": "aborted", "rm2": "working"})).found["Refines"]
    assert found.depth == 0
    assert found.finding.clause == "no first state of 'TCommit'"
    assert found.finding.values == (("at first", "rm1 = aborted, rm2 = working"),)


def test_an_exception_of_a_mapping_is_a_finding_of_the_state(two_phase: ModuleType) -> None:
    def mapping(one: str, two: str) -> dict[str, str]:
        assert one != "prepared"
        return {"rm1": one, "rm2": two}

    for engine in (plain, search):
        found = engine.explore(refining(two_phase.model(2), 2, mapping)).found["NoException"]
        assert found.finding.clause.startswith("the mapping of 'Refines' raises AssertionError")
        assert found.depth == 0  # the state whose move leads to such a state


@pytest.mark.parametrize("image", [None, ("a", "b"), {"rm1": "working"}, {"rm1": "working", "rm2": "", "rm3": ""}])
def test_a_mapping_to_another_form_is_an_error(two_phase: ModuleType, image: Any) -> None:
    with pytest.raises(ModelError, match=r"the mapping of 'Refines' returned .* return a value for each of rm1, rm2"):
        refining(two_phase.model(2), 2, lambda *_: image)


def test_a_mapping_of_an_unknown_column_is_an_error(two_phase: ModuleType) -> None:
    with pytest.raises(ModelError, match="the mapping of 'R' reads the column 'rm7', and there is none"):
        two_phase.model(2).with_properties([Refinement.of("R", tcommit(["rm1"]), ("rm7",), lambda one: {"rm1": one})])


def test_a_model_can_take_a_refinement_and_leave_it(two_phase: ModuleType) -> None:
    model = two_phase.model(2)
    refined = refining(model, 2)
    assert [column.name for column in refined.columns][-3:] == ["Refines rm1", "Refines rm2", "steps"]
    again = refined.with_rules(refined.rules).with_properties(refined.properties)
    assert search.explore(again).states == search.explore(model).states
    assert refined.with_properties([]).columns == model.columns
    assert search.explore(refined.with_properties([])).states == search.explore(model).states
    assert replace(refined, name="copy").columns == refined.columns


def test_two_refinements_and_a_step_property_stand_side_by_side(two_phase: ModuleType) -> None:
    model = impatient(two_phase.model(3))
    names = ["rm1", "rm2", "rm3"]
    one = Refinement.of("One", tcommit(["rm1"]), ("rm1",), lambda _: {"rm1": "working"})
    three = Refinement.of("All", tcommit(names), tuple(names), lambda *states: dict(zip(names, states, strict=True)))
    steps = StepProperty.over("Steps", ("tm",), lambda *_: None)
    found = both(model.with_properties([steps, one, three]))
    assert list(found.found) == ["All"]


def test_a_search_that_is_saved_goes_on_with_its_refinement(two_phase: ModuleType, tmp_path: Any) -> None:
    model = refining(impatient(two_phase.model(3)), 3)
    first = search.explore(model, Limits(depth=2), checkpoint=Checkpoint(tmp_path / "kept", {}))
    assert first.violations == []
    rest = search.explore(model, checkpoint=Checkpoint(tmp_path / "kept", {}, resume=True))
    assert rest.found["Refines"] == search.explore(model).found["Refines"]


def chance(*key: object) -> int:
    return zlib.crc32(repr(key).encode())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 9), st.integers(2, 4))
def test_random_models_are_judged_as_by_a_comparison_of_all_moves(seed: int, places: int, images: int) -> None:
    def walk(name: str, size: int, moves: int) -> Model:
        def listed(at: int) -> list[Move]:
            ways = range(chance(seed, name, at) % (moves + 1))
            return [Move("go", (way,), (Send("at", chance(seed, name, at, way) % size),)) for way in ways]

        token = Actor("at", ("at",), lambda _, to: Outcome((to,)))
        return Model(name, (Column("at", 0),), (token,), (Rule("go", (Read("at"),), listed),))

    def image(at: int) -> int:
        return chance(seed, "image", at) % images if at else chance(seed, "first") % 8 // 7

    model, abstract = walk("concrete", places, 2), walk("abstract", images, 3)
    refined = model.with_properties([Refinement.of("R", abstract, ("at",), lambda at: {"at": image(at)})])
    found = both(refined).found.get("R")
    assert (None if found is None else found.depth) == first_wrong(model, abstract, lambda row: (image(row[0]),))


def test_a_search_from_inside_a_run_judges_the_moves_that_follow(two_phase: ModuleType) -> None:
    """As the explorer makes its models: of the columns, the actors and the rules of another one."""
    refined = refining(impatient(two_phase.model(3)), 3)
    run = search.explore(refined).found["Refines"].path
    row = run[2].row
    columns = tuple(replace(column, initial=value) for column, value in zip(refined.columns, row, strict=True))
    model = Model("later", columns, refined.actors, refined.rules, (refined.properties[-1],))
    assert both(model).found["Refines"].depth == len(run) - 3
