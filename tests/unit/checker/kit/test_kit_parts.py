"""The parts of the kit in models of any form: channels and shared budgets."""

from collections import Counter
from itertools import product
from typing import Any

import pytest

from checker.engine import Actor, Column, Model, ModelError, Move, Outcome, Read, Rule, Send, plain, search
from checker.engine.result import disagreements
from checker.kit import (
    Action,
    BudgetCounts,
    FaultAction,
    Insert,
    Network,
    Remove,
    Traits,
    channel,
    has_left,
    shared_budgets,
    spend,
)
from checker.present import job_of_model
from checker.report import judge, report_lines


class Budgets(BudgetCounts, frozen=True):
    steps: int = 0
    jumps: int = 0


class Way(Action):
    STEP = "step", Traits(budget="steps")
    JUMP = "jump", Traits(budget="jumps")
    REST = "rest", Traits(budget=None)


def walkers(budgets: BudgetCounts, *, spent: tuple[Any, ...] = (Way.STEP, "jumps")) -> Model:
    """Two walkers that share their budgets; a jump takes a step as well."""
    parts = shared_budgets(budgets)

    def rule(name: str) -> Rule:
        step = Move("step", (name,), (spend(spent[0]), Send(name, 1)))
        jump = Move("jump", (name,), (spend(spent[0]), spend(spent[1]), Send(name, 10)))
        return Rule(name, (Read(name),), lambda _: [step, jump])

    actors = tuple(Actor(name, (name,), lambda values, by: Outcome((values[0] + by,))) for name in "ab")
    columns = (Column("a", 0), Column("b", 0), *parts.columns)
    return Model("walkers", columns, (*actors, *parts.actors), (rule("a"), rule("b"), *parts.rules))


@pytest.mark.parametrize(("steps", "jumps"), list(product(range(4), range(3))))
def test_all_walkers_take_from_one_budget(steps: int, jumps: int) -> None:
    """A state is two pairs of steps and jumps whose sums are within the budgets; a walk is counted once."""
    found = search.explore(walkers(Budgets(steps, jumps)))
    assert disagreements(plain.explore(walkers(Budgets(steps, jumps))), found) == []
    ways = [(s, j) for s in range(steps + 1) for j in range(jumps + 1) if s + j <= steps]
    pairs = {(a, b) for a, b in product(ways, repeat=2) if a[1] + b[1] <= jumps and sum(a) + sum(b) <= steps}
    assert found.states == len(pairs)


def test_the_gate_of_a_budget_closes_with_it() -> None:
    parts = shared_budgets(Budgets(steps=2))
    rule = Rule("go", (has_left("steps"),), lambda _: [Move("go", (), (spend(Way.STEP), spend(Way.REST)))])
    assert search.explore(Model("gate", parts.columns, parts.actors, (rule,))).levels == [1, 1, 1]


def test_an_unknown_budget_is_an_error_that_names_the_others() -> None:
    for engine in (plain, search):
        with pytest.raises(ModelError, match="takes from the budget 'leaps', and the budgets are steps, jumps"):
            engine.explore(walkers(Budgets(1, 1), spent=("leaps", "jumps")))


def test_the_report_names_the_budgets() -> None:
    model = walkers(Budgets(steps=2, jumps=1))
    job, found = job_of_model(model), search.explore(model)
    assert any("2 steps, 1 jumps" in line for line in report_lines(job, found, judge(job, found)))


@pytest.mark.parametrize("network", [Network(ordered=True), Network(), Network(duplicating=True)])
def test_a_channel_delivers_what_was_inserted_in_the_order_of_its_network(network: Network) -> None:
    """The receiver sees the one order, every order of the two, or every sequence of at most three."""
    parts = channel(network, "a", "b", ("x", "y"))

    def hear(values: tuple[Any, ...], arrival: Any) -> Outcome | None:
        assert arrival.source == "a"
        return Outcome(((*values[0], arrival.message),)) if len(values[0]) < 3 else None

    columns = (Column("a", 0), Column("b", ()), *parts.columns)
    model = Model("channel", columns, (Actor("b", ("b",), hear), *parts.actors), parts.rules)
    found = search.explore(model)
    assert disagreements(plain.explore(model), found) == []
    heard = Counter(state["b"] for state in found.iter_states())
    if network.duplicating:
        assert heard == Counter(way for size in range(4) for way in product("xy", repeat=size))
    elif network.ordered:
        assert heard == Counter({(): 1, ("x",): 1, ("x", "y"): 1})
    else:
        assert heard == Counter({(): 1, ("x",): 1, ("y",): 1, ("x", "y"): 1, ("y", "x"): 1})


@pytest.mark.parametrize("network", [Network(ordered=True), Network()])
def test_a_model_with_own_deliveries_takes_and_clears_messages(network: Network) -> None:
    parts = channel(network, "a", "b")
    name = parts.columns[0].name

    def moves(content: Any) -> list[Move]:
        if not list(content):
            return [Move("send", (), (Send(name, Insert(("x", "y"))),))]
        take = [Move("take", (message,), (Send(name, Remove(message)),)) for message in ("x", "y", "z")]
        return [*take, Move("clear", (), (Send(name, FaultAction.CRASH),))]

    columns = (Column("a", 0), Column("b", 0), *parts.columns)
    found = search.explore(Model("own", columns, parts.actors, (Rule("own", (Read(name),), moves),)))
    fired = {action: count.fired for action, count in found.coverage.items()}
    if network.ordered:
        assert (found.states, fired) == (3, {"send": 1, "take": 2, "clear": 2})
    else:
        assert (found.states, fired) == (4, {"send": 1, "take": 4, "clear": 3})
