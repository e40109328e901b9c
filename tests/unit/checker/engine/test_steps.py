"""Step properties: found at the depth of the transition, only if the whole move is possible, by both engines alike."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checker.engine import (
    TRIVIAL,
    Actor,
    Column,
    Exploration,
    Finding,
    Limits,
    Model,
    ModelError,
    Move,
    Outcome,
    Property,
    Read,
    Rule,
    Send,
    StepProperty,
    plain,
    search,
)
from checker.engine.checkpoint import Checkpoint
from checker.engine.result import Evaluations, disagreements
from checker.job import Job, Verdict
from checker.present import job_of_model
from checker.report.verdict import judge
from checker.swarm.walker import WalkRunner
from tests.support.parts import search_in_parts, small_rounds

TOP = 4


def decreases(values: tuple[Any, ...], operation: Any, outcome: Outcome) -> Any:
    """Return a finding for a counter that decreases; the premise is that it changes at all."""
    if outcome.values == values:
        return TRIVIAL
    return Finding("the count decreases", (("from", values[0]),)) if outcome.values[0] < values[0] else None


FALLS = StepProperty.over("NeverDecreases", ("counter",), decreases)


def counter(*, gate_opens: bool, properties: tuple[Property, ...] = (FALLS,)) -> Model:
    def step(values: tuple[Any, ...], operation: Any) -> Outcome:
        return Outcome((operation,))

    def gate(values: tuple[Any, ...], operation: Any) -> Outcome | None:
        return Outcome(values) if gate_opens else None

    def moves(count: int) -> list[Move]:
        if count < TOP:
            return [Move("Add", (), (Send("counter", count + 1),))]
        return [Move("Fall", (), (Send("counter", 0), Send("gate", "fall")))]

    return Model(
        "counter",
        (Column("count", 0), Column("gate", 0)),
        (Actor("counter", ("count",), step), Actor("gate", ("gate",), gate)),
        (Rule("move", (Read("count"),), moves),),
        properties,
    )


def both(model: Model) -> tuple[Exploration, Exploration]:
    return search.explore(model), plain.explore(model)


def test_a_step_is_found_at_the_depth_of_its_transition_though_it_leads_to_an_old_state() -> None:
    for explored in both(counter(gate_opens=True)):
        found = explored.found["NeverDecreases"]
        assert (found.depth, found.finding.clause) == (TOP + 1, "the count decreases")
        assert [step.move.action for step in found.path if step.move] == ["Add"] * TOP + ["Fall"]


def test_a_step_of_a_move_that_is_impossible_is_not_found() -> None:
    for explored in both(counter(gate_opens=False)):
        assert explored.exhausted
        assert not explored.found


@pytest.mark.parametrize("gate_opens", [True, False])
def test_both_engines_agree_also_on_the_number_of_steps_judged(gate_opens: bool) -> None:
    assert disagreements(*both(counter(gate_opens=gate_opens))) == []


def test_a_property_without_findings_adds_no_state() -> None:
    with_property = search.explore(counter(gate_opens=False))
    assert with_property.states == search.explore(counter(gate_opens=False, properties=())).states == TOP + 1


def test_steps_whose_premise_does_not_hold_are_counted_apart() -> None:
    def never(*_: Any) -> Any:
        return TRIVIAL

    model = counter(gate_opens=False, properties=(StepProperty.over("Nothing", ("gate", "counter"), never),))
    for explored in both(model):
        assert explored.evaluations["Nothing"].premise == 0 < explored.evaluations["Nothing"].states


def test_two_properties_judge_the_same_step() -> None:
    other = StepProperty.over("StaysBelow", ("counter",), lambda v, o, a: Finding("top") if o == TOP else None)
    for explored in both(counter(gate_opens=True, properties=(FALLS, other))):
        assert {name: found.depth for name, found in explored.found.items()} == {"StaysBelow": TOP}


def test_a_model_with_other_properties_judges_these_alone() -> None:
    model = counter(gate_opens=True).with_properties(())
    assert [column.name for column in model.columns] == ["count", "gate"]
    assert search.explore(model).exhausted


def test_a_property_whose_actor_takes_no_step_is_vacuous_and_may_be_allowed_to_be() -> None:
    """The gate is asked only at the top, which the model of one step never reaches."""
    idle = StepProperty.over("GateStaysShut", ("gate",), lambda *_: None)
    model = counter(gate_opens=True, properties=(idle,)).with_rules(
        [Rule("move", (Read("count"),), lambda n: [Move("Add", (), (Send("counter", 1),))] if not n else [])]
    )
    for job, expected in ((job_of_model(model), Verdict.VACUOUS), (allowed(model), Verdict.PASSED)):
        for explored in both(model):
            judgement = judge(job, explored)
            assert judgement.verdict is expected
            assert ("GateStaysShut was never examined" in judgement.sentence) is (expected is Verdict.VACUOUS)


def allowed(model: Model) -> Job:
    return replace(job_of_model(model), allowed_silent=frozenset({"GateStaysShut"}))


def test_steps_count_in_a_resumed_search_and_after_a_lost_part(tmp_path: Path) -> None:
    """The steps before the save, or before the loss, are not asked again; the premise held in them alone."""

    def first(values: tuple[Any, ...], operation: Any, outcome: Outcome) -> Any:
        return None if values == (0,) else TRIVIAL

    model = counter(gate_opens=False, properties=(StepProperty.over("First", ("counter",), first),))
    search.explore(model, Limits(depth=2), checkpoint=Checkpoint(tmp_path / "kept"))
    resumed = search.explore(model, checkpoint=Checkpoint(tmp_path / "kept", resume=True))
    with small_rounds(divided=1):
        lost, transport = search_in_parts(model, parts=1, files=tmp_path / "parts", losses={12: 0})
    assert transport.lost == 1
    assert any("continued from depth" in line for line in lost.workers)
    for explored in (resumed, lost):
        assert explored.evaluations["First"] == plain.explore(model).evaluations["First"] == Evaluations(TOP + 1, 1)


def test_a_swarm_does_not_count_the_states_in_which_a_property_of_steps_is_read() -> None:
    counts = WalkRunner(counter(gate_opens=False), 1, 20).run(0, 5)
    assert counts.transitions
    assert FALLS.name not in counts.evaluations


@pytest.mark.parametrize("part", ["column", "actor"])
def test_a_part_of_the_model_with_the_name_of_the_findings_is_refused(part: str) -> None:
    """The actor of the model finds every unknown operation impossible, and would hide the violation."""
    actor = Actor("steps" if part == "actor" else "own", ("steps" if part == "column" else "gate",), lambda *_: None)
    model = counter(gate_opens=True, properties=())
    columns = (*model.columns, *([Column("steps", ())] if part == "column" else []))
    with pytest.raises(ModelError, match="'NeverDecreases' keeps findings in 'steps', and the model 'counter' has"):
        Model("counter", columns, (*model.actors, actor), model.rules, (FALLS,))
    again = counter(gate_opens=True)
    assert search.explore(Model("again", again.columns, again.actors, again.rules, (FALLS,))).found


def test_an_unknown_actor_is_an_error_that_names_it() -> None:
    with pytest.raises(ModelError, match="about the steps of 'nobody', and no actor has that name"):
        counter(gate_opens=True, properties=(StepProperty.over("P", ("nobody",), decreases),))
