"""Fairness of models of the kit: by default no fault, loss or choice has to happen.

Expected values: TLA+ demands WF or SF for each action that must happen; stateright's `eventually` counts a run that
ends without the condition as a counterexample.
"""

from dataclasses import replace

import pytest

from checker.engine import Finding, Kind, Model, ModelError, Property, Read, plain, search
from checker.engine.model import Strength
from checker.engine.result import disagreements
from checker.job import Job
from checker.kit import Machine, Network, Reaction, network_model
from checker.present import DefaultPresenter
from checker.report import judge, report_lines


def standby(fair: bool | tuple[str, ...] = False) -> Model:
    """A standby leads only after the primary has crashed."""
    primary = Machine(
        "primary",
        Reaction("up"),
        choices=lambda state: ["crash"] if state == "up" else [],
        on_choice=lambda state, choice: Reaction("down", (("standby", "lost"),)),
        actions=("crash",),
        fair=fair,
    )
    waiting = Machine("standby", Reaction("waits"), lambda state, source, message: Reaction("leads"))

    def leads(state: str) -> Finding | None:
        return Finding("leads") if state == "leads" else None

    goal = Property("StandbyLeads", (Read("standby"),), leads, Kind.EVENTUALLY)
    return network_model("crash", [primary, waiting], properties=[goal])


def ignored() -> Model:
    """A message that its receiver ignores leaves a lossy network only if it is lost."""

    def gone(waiting: object) -> Finding | None:
        return None if waiting else Finding("gone")

    goal = Property("Gone", (Read("a->b"),), gone, Kind.EVENTUALLY)
    machines = [Machine("a", Reaction(0, (("b", "x"),))), Machine("b", Reaction(0))]
    return network_model("loss", machines, Network(lossy=True), properties=[goal])


@pytest.mark.parametrize(("model", "action"), [(standby(), "crash"), (ignored(), "lose")], ids=["crash", "lose"])
def test_a_property_that_only_a_fault_fulfils_is_violated_and_the_fault_is_named(model: Model, action: str) -> None:
    result, other = search.explore(model), plain.explore(model)
    assert disagreements(other, result) == []
    (name,) = result.found
    assert result.liveness[name].forced == (action,)
    job = Job("model", model, DefaultPresenter(model), {})
    lines = report_lines(job, result, judge(job, result))
    assert lines[0].endswith(f"; it holds only if these actions must happen: {action}")
    assert "  happens if it stays possible  deliver" in lines
    assert f"  need never happen             {action}" in lines


@pytest.mark.parametrize("fair", [True, ("crash",)])
def test_a_choice_that_is_declared_fair_is_made(fair: bool | tuple[str, ...]) -> None:
    result = search.explore(standby(fair))
    assert result.found == {}
    job = Job("model", result.model, DefaultPresenter(result.model), {})
    lines = report_lines(job, result, judge(job, result))
    assert "  happens if it stays possible  crash, deliver" in lines


@pytest.mark.parametrize("fair", [True, "strong"])
def test_on_a_lossy_link_a_message_that_is_sent_again_and_again_arrives_if_deliveries_are_strong(
    fair: Strength,
) -> None:
    """The fair-loss link of Cachin, Guerraoui and Rodrigues, "Reliable and Secure Distributed Programming", 2.4.2."""
    sender = Machine(
        "a", Reaction("sends"), choices=lambda _: ["send"], on_choice=lambda state, _: Reaction(state, (("b", "x"),)),
        actions=("send",), fair=True,
    )  # fmt: skip
    receiver = Machine("b", Reaction("waits"), lambda *_: Reaction("has it"))

    def has_it(state: str) -> Finding | None:
        return Finding("it has") if state == "has it" else None

    goal = Property("Arrives", (Read("b"),), has_it, Kind.EVENTUALLY)
    network = Network(lossy=True, duplicating=True, fair=fair)
    model = network_model("resend", [sender, receiver], network, links=[("a", "b")], properties=[goal])
    result = search.explore(model)
    assert disagreements(plain.explore(model), result) == []
    assert ("Arrives" in result.found) is (fair is True)
    job = Job("model", model, DefaultPresenter(model), {})
    lines = report_lines(job, result, judge(job, result))
    assert ("  happens if it is possible again and again  deliver" in lines) is (fair == "strong")


@pytest.mark.parametrize("fair", ["crash", ("crush",), {"crush": True}], ids=["a string", "misspelt", "also misspelt"])
def test_a_wrong_declaration_is_an_error(fair: object) -> None:
    """A string would declare each action whose name is a part of it."""
    with pytest.raises(ModelError, match="the rule 'choices of primary' declares"):
        standby(fair)  # type: ignore[arg-type]


def test_an_unknown_strength_is_an_error() -> None:
    with pytest.raises(ModelError, match="the fairness 'often' of 'crash'; write True, False or 'strong'"):
        standby(fair={"crash": "often"})  # type: ignore[dict-item, arg-type]


def test_an_unfair_action_that_the_model_does_not_have_is_an_error() -> None:
    model = standby(fair=True)
    misspelt = replace(model.properties[0], unfair=frozenset({"crsh"}))
    with pytest.raises(ModelError, match="'crsh' is unfair, and the actions are only crash, deliver"):
        model.with_properties([misspelt])
