"""Step properties: found at the depth of the transition, only if the whole move is possible, by both engines alike."""

from __future__ import annotations

from typing import Any

import pytest

from checker.engine import (
    TRIVIAL,
    Actor,
    Column,
    Exploration,
    Finding,
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
from checker.engine.result import disagreements

TOP = 4


def decreases(values: tuple[Any, ...], operation: Any, outcome: Outcome) -> Any:
    """Return a finding for a counter that decreases; the premise is that it changes at all."""
    if outcome.values == values:
        return TRIVIAL
    return Finding("the count decreases", (("from", values[0]),)) if outcome.values[0] < values[0] else None


FALLS = StepProperty.over("NeverDecreases", ("counter",), decreases)


def counter(*, gate_opens: bool, properties: tuple[Property, ...] = (FALLS,)) -> Model:
    """Return a counter up to TOP that may fall back to 0 from TOP, if the gate, which is asked last, allows it."""

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


def test_an_unknown_actor_is_an_error_that_names_it() -> None:
    with pytest.raises(ModelError, match="about the steps of 'nobody', and no actor has that name"):
        counter(gate_opens=True, properties=(StepProperty.over("P", ("nobody",), decreases),))
