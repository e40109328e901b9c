"""The content that grows with the depth is measured, and named where a bound ended the search."""

from types import ModuleType
from typing import Any

import pytest

from checker.engine import Actor, Column, Exploration, Limits, Model, Move, Outcome, Read, Rule, Send, plain, search
from checker.engine.checkpoint import Checkpoint
from checker.engine.growth import Growth
from checker.engine.model import Channel
from checker.job import Job
from checker.kit import Bag, Machine, Network, Reaction, network_model
from checker.present import DefaultPresenter
from checker.report.text import report_lines
from checker.report.verdict import judge

ENGINES = pytest.mark.parametrize("engine", [plain, search], ids=["plain", "tables"])


def sender(network: Network, most: int | None = None) -> Model:
    """A machine that sends again and again, perhaps up to a number of messages."""

    def choices(state: int) -> list[str]:
        return ["send"] if most is None or state < most else []

    def on_choice(state: int, _: str) -> Reaction:
        return Reaction(state if most is None else state + 1, (("s2", "m"),))

    machines = [Machine("s1", Reaction(0), choices=choices, on_choice=on_choice), Machine("s2", Reaction(0))]
    return network_model("sender", machines, network, links=[("s1", "s2")])


@ENGINES
@pytest.mark.parametrize("network", [Network(), Network(ordered=True)])
def test_a_channel_that_is_never_read_grows(engine: ModuleType, network: Network) -> None:
    def never(state: Any, source: str, message: str) -> None:
        return None

    machines = [
        Machine("s1", Reaction(0), choices=lambda _: ["send"], on_choice=lambda s, _: Reaction(s, (("s2", "m"),))),
        Machine("s2", Reaction(0), never if not network.ordered else lambda *_: Reaction(0)),
    ]
    model = network_model("sender", machines, network, links=[("s1", "s2")])
    assert engine.explore(model, Limits(depth=14)).growth == (
        "s1->s2 grows with the depth, from 7 messages at depth 7 and 10 at depth 10 to 14 at depth 14; "
        "without a bound the model is infinite"
    )


def counter(step: Any, first: Any) -> Model:
    rule = Rule("r", (Read("c"),), lambda _: [Move("add", (), (Send("c", None),))])
    return Model("counter", (Column("c", first),), (Actor("c", ("c",), step),), (rule,))


@ENGINES
def test_a_number_in_a_tuple_grows_where_the_states_given_end_the_search(engine: ModuleType) -> None:
    model = counter(lambda values, _: Outcome(((values[0][0] - 2, "x"),)), (0, "x"))
    assert engine.explore(model, Limits(states=9)).growth.startswith("c[] grows with the depth, from 8 at depth 4 and ")


@ENGINES
def test_content_with_an_end_is_not_named(engine: ModuleType) -> None:
    result = engine.explore(sender(Network(ordered=True), most=5), Limits(depth=9))
    assert (result.exhausted, result.growth) == (False, "")


@ENGINES
def test_a_search_that_no_bound_ended_names_nothing(engine: ModuleType) -> None:
    model = counter(lambda values, _: Outcome((values[0] + 1,)) if values[0] < 50 else None, 0)
    assert engine.explore(model).growth == ""
    assert engine.explore(model, Limits(depth=40)).growth.startswith("c grows with the depth, from 20 at depth 20")


def test_a_resumed_search_measures_what_it_saw_since(tmp_path: Any) -> None:
    model = counter(lambda values, _: Outcome((values[0] + 1,)), 0)
    search.explore(model, Limits(depth=10), checkpoint=Checkpoint(tmp_path))
    result = search.explore(model, Limits(depth=30), checkpoint=Checkpoint(tmp_path, resume=True))
    assert result.growth.startswith("c grows with the depth, from 20 at depth 20 and 25 at depth 25 to 30 at depth 30")


def test_a_memory_that_runs_out_is_a_reason_with_the_content() -> None:
    model = counter(lambda values, _: Outcome(((*values[0], "x"),)), ())
    result = search.explore(model, Limits(depth=20))
    job = Job("counter", model, DefaultPresenter(model), source={})
    assert any(line.split()[:3] == ["growth", "c", "grows"] for line in report_lines(job, result, judge(job, result)))
    bounded: Exploration = search.explore(model, Limits(states=20))
    sentence = judge(job, bounded).sentence
    assert "the number of states given (20) ended the search; c grows with the depth, from 9 items" in sentence


def test_a_bag_counts_its_copies_and_a_record_its_fields() -> None:
    columns = (Column("mail", Bag(), Channel("a", "b")), Column("a", 0), Column("b", 0))
    growth = Growth(Model("bags", columns, (), ()))
    for copies in range(9):
        growth.add_depth([("mail", Bag.of(["m"] * copies))])
    assert growth.in_words(20).startswith("mail grows with the depth, from 4 messages at depth 16 and 6 at depth 18 to")
