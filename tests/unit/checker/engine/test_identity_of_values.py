"""Values of models are told apart by comparison, never by a text: different ones may share `repr` and `str`.

Expected values: the same model with integers, which every text tells apart. A register that two servers do not
replicate is not linearizable (Herlihy and Wing 1990).
"""

import datetime
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from checker.engine import (
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
    Renaming,
    Rule,
    Send,
    Symmetry,
    plain,
    search,
)
from checker.engine.contract import described
from checker.engine.result import disagreements
from checker.engine.steps import StepProperty
from checker.engine.symmetric_search import SYMMETRIC
from checker.explorer.walk import Walks
from checker.job import Job
from checker.kit import Bag, Machine, Network, Reaction, network_model
from checker.kit.register import (
    GetFrom,
    GetReply,
    GetRequest,
    PutReply,
    PutRequest,
    PutTo,
    ScriptedClient,
    register_model,
)
from checker.present import DefaultPresenter
from checker.swarm.search import RandomWalks
from checker.traces import replay, trace_of
from checker.traces.minimise import minimised
from tests.support.parts import search_in_parts


class Twin:
    """A value that compares by its number, and looks like every other one."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Twin) and self.number == other.number

    def __hash__(self) -> int:
        return hash((Twin, self.number))

    def __repr__(self) -> str:
        return "twin"


@dataclass(frozen=True)
class Quiet:
    """A record whose text hides its field."""

    number: int

    def __repr__(self) -> str:
        return "quiet"


Make = Callable[[int], Any]
MAKERS: dict[str, Make] = {
    "twin": Twin,
    "record": Quiet,
    "decimal": Decimal,
    "fraction": Fraction,
    "date": lambda n: datetime.date(2026, 1, 1 + n),
    "uuid": lambda n: uuid.UUID(int=n),
    "integer": int,
}


def copies(make: Make, replicated: bool = False) -> Model:
    """A register of two servers; each answers from its own copy, or both clients use one server."""

    def server(value: Any, source: str, message: object) -> Reaction | None:
        match message:
            case PutRequest(request, new):
                return Reaction(new, ((source, PutReply(request)),))
            case GetRequest(request):
                return Reaction(value, ((source, GetReply(request, value)),))
        return None

    second = "s1" if replicated else "s2"
    clients = [
        ScriptedClient("c1", (PutTo("s1", make(1)), GetFrom(second))),
        ScriptedClient("c2", (PutTo(second, make(2)), GetFrom("s1"))),
    ]
    servers = [Machine(name, Reaction(make(0)), server) for name in ("s1", "s2")]
    return register_model("copies", servers, clients, initial=make(0))


def sums(make: Make) -> Model:
    """Two messages of equal texts are under way on one unordered link; the receiver keeps the order of arrival."""

    def keep(state: tuple[Any, ...], source: str, message: Any) -> Reaction:
        return Reaction((*state, message))

    def late(state: tuple[Any, ...]) -> Finding | None:
        return Finding("the second one was first") if state == (make(2), make(1)) else None

    machines = [Machine("a", Reaction(0, (("b", make(1)), ("b", make(2))))), Machine("b", Reaction(()), keep)]
    prop = Property("InOrder", (Read("b"),), late)
    return network_model("two messages", machines, Network(lossy=True), links=[("a", "b")], properties=[prop])


def shape(result: Exploration) -> tuple[object, ...]:
    found = {name: discovery.depth for name, discovery in result.found.items()}
    return result.levels, result.transitions, result.deadlocks, found


@pytest.mark.parametrize("model", [copies, sums])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_model_has_the_states_and_findings_that_it_has_with_integers(model: Callable[[Make], Model], make: Make):
    result = search.explore(model(make))
    assert disagreements(plain.explore(model(make)), result) == []
    assert shape(result) == shape(search.explore(model(int)))
    assert {"Linearizable", "InOrder"} & set(result.found)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_one_copy_is_linearizable(make: Make):
    assert "Linearizable" not in search.explore(copies(make, replicated=True)).found


@pytest.mark.parametrize("model", [copies, sums])
def test_a_run_of_values_that_look_alike_is_minimised_and_replayed(model: Callable[[Make], Model]):
    result = search.explore(model(Twin))
    job = Job("twins", result.model, DefaultPresenter(result.model), {})
    (found,) = result.violations
    shortest = minimised(job, found, result.least_moves(found.depth))
    again = replay(trace_of(job, shortest), job)
    assert again.found is not None
    assert again.found.path[-1].row == shortest.path[-1].row


def test_a_bag_counts_by_comparison():
    bag = Bag.of([Twin(1), Twin(2), Twin(1)])
    assert (bag.count(Twin(1)), bag.count(Twin(2)), len(bag.distinct())) == (2, 1, 2)


def test_a_process_of_a_cluster_refuses_values_that_are_no_data_even_a_single_one():
    """Two processes that each meet one of two such values would give them one fingerprint."""
    from checker.cluster.search_part import PartTables

    with pytest.raises(ModelError, match="values that their texts do not tell apart"):
        PartTables(copies(Decimal), 1).row(copies(Decimal).initial())
    PartTables(copies(Quiet), 1).row(copies(Quiet).initial())


def one_type() -> type:
    """A type whose module and name are those of another one."""

    @dataclass(frozen=True)
    class Alike:
        number: int

    return Alike


def holding(*values: Any) -> Model:
    """Two processes that choose among some values, and change places."""
    rules = tuple(
        Rule(name, (Read(name),), lambda there, to=name: [Move("go", (), (Send(to, v),)) for v in values if not there])
        for name in ("a", "b")
    )
    actors = tuple(Actor(name, (name,), lambda _, value: Outcome((value,))) for name in ("a", "b"))
    swapped = Symmetry((Renaming({"a": "b", "b": "a"}, lambda value: value),))
    return Model("holding", (Column("a", None), Column("b", None)), actors, rules, (), swapped)


TOLD_APART = "values that their texts do not tell apart"


def test_a_symmetric_search_refuses_values_that_are_no_data_even_a_single_one():
    with pytest.raises(ModelError, match=TOLD_APART):
        search.explore(holding(Twin(1)), frontier=SYMMETRIC)
    assert search.explore(holding(Quiet(1), Quiet(2)), frontier=SYMMETRIC).states == 6


def test_records_of_two_types_of_one_name_are_refused_where_their_texts_count():
    model = holding(one_type()(1), one_type()(1))
    assert search.explore(model).states == plain.explore(model).states == 9
    with pytest.raises(ModelError, match=TOLD_APART):
        search.explore(model, frontier=SYMMETRIC)
    with pytest.raises(ModelError, match=TOLD_APART):
        search_in_parts(model, parts=2)


@pytest.mark.parametrize("zeros", [(0.0, -0.0), (-0.0, 0.0)])
def test_equal_numbers_have_one_text_in_every_process(zeros: tuple[float, float]):
    assert {described(zero) for zero in zeros} == {"0.0"}


@pytest.mark.parametrize("zeros", [(0.0, -0.0), ((1, 0.0), (1, -0.0)), (frozenset({-0.0}), frozenset({0.0}))])
def test_zeros_of_both_signs_are_refused_since_they_are_equal_and_differ(zeros: tuple[Any, Any]):
    with pytest.raises(ModelError, match=r"gives -?0\.0 \(float\), which equals -?0\.0 \(float\)"):
        search.explore(holding(*zeros))


ALIKE = r"gives True \(bool\), which equals 1 \(int\)"


def test_every_search_refuses_equal_values_of_two_types():
    """One search that took them as one value would have four states, and not nine."""
    model = holding(1, True)
    walked = partial(search.explore, limits=Limits(depth=20, work=50), frontier=RandomWalks())
    for explore in (plain.explore, search.explore, walked, lambda _: next_states(Walks(model))):
        with pytest.raises(ModelError, match="which equals"):
            explore(model)


def next_states(walks: Walks) -> None:
    """Look at all states within two moves in the explorer."""
    for _, row in walks.next(walks.model.initial()):
        walks.next(row)


def test_the_first_state_counts_among_the_values_of_a_column():
    """The only move changes True to 1, which no other column and no other step has."""
    rule = Rule("r", (Read("x"),), lambda value: [Move("go", (), (Send("x", 1),))])
    model = Model("m", (Column("x", True),), (Actor("x", ("x",), lambda _, new: Outcome((new,))),), (rule,))
    for engine in (plain, search):
        with pytest.raises(ModelError, match="which equals"):
            engine.explore(model)


@dataclass(frozen=True)
class Partly:
    """A record that is compared by its number alone."""

    number: int
    note: Any = field(default="", compare=False)


@pytest.mark.parametrize("engine", [plain, search])
@pytest.mark.parametrize("note", ["other", 1.0, (1, "other"), Quiet(1)])
def test_records_whose_fields_are_not_all_compared_are_refused_if_these_differ(engine: Any, note: Any):
    with pytest.raises(ModelError, match=r"in a value that equals one with|which equals"):
        engine.explore(holding(Partly(1, Quiet(2) if note == Quiet(1) else type(note)()), Partly(1, note)))
    assert engine.explore(holding(Partly(1, note), Partly(2, note))).states == 9


@pytest.mark.parametrize("engine", [plain, search])
def test_operations_are_refused_if_they_are_equal_and_differ(engine: Any):
    """What remembers answers by the operation, as both do where a run is minimised, would mix up the two."""
    rule = Rule("r", (Read("x"),), lambda x: [Move("go", (), (Send("x", op),)) for op in (1, True) if x == "begin"])
    actor = Actor("x", ("x",), lambda _, op: Outcome((str(op),)))
    with pytest.raises(ModelError, match=ALIKE):
        engine.explore(Model("m", (Column("x", "begin"),), (actor,), (rule,)))


def test_messages_and_values_of_registers_are_refused_if_they_are_equal_and_differ():
    with pytest.raises(ModelError, match=ALIKE):
        Bag.of([1, True])
    assert Bag.of([1, 2, 1]).count(1) == 2

    def server(value: Any, source: str, message: object) -> Reaction:
        """Answer with the truth of the value alone."""
        if isinstance(message, PutRequest):
            return Reaction(message.value, ((source, PutReply(message.request)),))
        assert isinstance(message, GetRequest)
        return Reaction(value, ((source, GetReply(message.request, bool(value))),))

    client = ScriptedClient("c", (PutTo("s", 1), GetFrom("s")))
    with pytest.raises(ModelError, match=ALIKE):
        search.explore(register_model("truth", [Machine("s", Reaction(None), server)], [client]))


@pytest.mark.parametrize("engine", [plain, search])
def test_steps_are_counted_by_comparison_and_for_each_actor(engine: Any):
    """The hashes of -1 and -2 are equal; a and b carry out equal operations on equal values."""
    seen = StepProperty.over("Any", ("a", "b"), lambda *_: None)
    assert hash(-1) == hash(-2)
    found = engine.explore(holding(-1, -2).with_properties([seen]))
    assert found.evaluations["Any"].states == 4
