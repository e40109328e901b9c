"""Symmetry: as many states as there are classes of equivalent states, which are counted by brute force.

The brute force explores the model without symmetry, applies every permutation of the names to every state, and counts
the smallest ones. It has its own renaming (`relabelled`), by the text of a state.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, permutations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.engine import (
    TRIVIAL,
    Actor,
    Channel,
    Column,
    Finding,
    Kind,
    Model,
    ModelError,
    Move,
    Outcome,
    Property,
    Read,
    Renaming,
    Rule,
    Send,
    StepProperty,
    Symmetry,
    plain,
    search,
)
from checker.engine.asymmetry import difference
from checker.engine.contract import described
from checker.engine.result import verdict_disagreements
from checker.engine.semantics import successors
from checker.engine.symmetric_search import SYMMETRIC
from checker.engine.tables import Tables
from checker.kit import Machine, Network, Reaction, interchangeable, network_model, to_each
from checker.present import job_of_model
from checker.report.verdict import judge
from tests.unit.checker.kit.test_kit_register import example


def relabelled(model: Model, row: tuple[Any, ...], renaming: dict[str, str]) -> str:
    """The text of a state after a renaming: columns and values by name, sets in order."""
    texts = {}
    for column, value in zip(model.columns, row, strict=True):
        name = "->".join(renaming.get(part, part) for part in column.name.split("->"))
        texts[name] = text_of(value, renaming)
    return str(sorted(texts.items()))


def text_of(value: Any, renaming: dict[str, str]) -> str:
    if isinstance(value, str):
        return renaming.get(value, value)
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(text_of(each, renaming) for each in value)) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(text_of(each, renaming) for each in value) + ")"
    counts = getattr(value, "counts", None)
    return repr(value) if counts is None else text_of(counts, renaming)


def reachable(model: Model) -> set[tuple[Any, ...]]:
    seen, waiting = {model.initial()}, [model.initial()]
    while waiting:
        for _, after in successors(model, waiting.pop()):
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    return seen


def classes(model: Model, names: list[str]) -> int:
    renamings = [dict(zip(names, order, strict=True)) for order in permutations(names)]
    return len({min(relabelled(model, row, each) for each in renamings) for row in reachable(model)})


@pytest.mark.parametrize("managers", [2, 3, 4])
def test_two_phase_commit_has_as_many_states_as_classes(managers: int) -> None:
    model = example("two_phase_commit").model(managers)
    names = [f"rm{n}" for n in range(1, managers + 1)]
    whole, result = plain.explore(model), search.explore(interchangeable(model, names), frontier=SYMMETRIC)
    assert result.states == classes(model, names) < whole.states
    assert verdict_disagreements(result, whole) == []


def test_equal_actors_that_cannot_be_exchanged_have_one_representative() -> None:
    """Three actors in a ring that each may point at any other: 2^3 states in which all point, in 2 classes.

    None has chosen: 1 class. One has chosen: 1 class, since both targets are alike. Two, a and b: they point at each
    other; one points at the other and that one at c; or both point at c: 3 classes. Three: a ring, and the others: 2.
    """
    names = ["a", "b", "c"]

    def choices(me: str) -> Any:
        return lambda state: [("point", name) for name in names if name != me] if state == "" else []

    machines = [
        Machine(name, Reaction(""), choices=choices(name), on_choice=lambda _, choice: Reaction(choice[1]))
        for name in names
    ]
    model = network_model("pointers", machines, links=[])
    result = search.explore(interchangeable(model, names), frontier=SYMMETRIC)
    assert result.levels == [1, 1, 3, 2]
    assert result.states == classes(model, names)


tables = st.fixed_dictionaries(
    {
        (state, message): st.none() | st.tuples(st.integers(0, 2), st.sampled_from(["reply", "all", "nothing"]))
        for state in range(3)
        for message in "xy"
    }
)


def gossip(number: int, table: dict[Any, Any], network: Network) -> Model:
    """Machines with one table: each begins by a choice, and then replies to its sender, or tells all others."""
    names = [f"m{n}" for n in range(1, number + 1)]

    def machine(name: str) -> Machine:
        others = [each for each in names if each != name]

        def on_message(state: tuple[Any, ...], source: str, message: str) -> Reaction | None:
            reply = table[state[0], message]
            if reply is None:
                return None
            sends = {"reply": ((source, "y"),), "all": to_each(others, "y"), "nothing": ()}[reply[1]]
            return Reaction((reply[0], source), sends if state[1] == "" else ())

        begin = lambda state: ["begin"] if state == (0, "") else []  # noqa: E731
        on_choice = lambda state, choice: Reaction((1, ""), to_each(others, "x"))  # noqa: E731
        return Machine(name, Reaction((0, "")), on_message, begin, on_choice)

    def clash(*states: Any) -> Finding | None:
        return Finding("two are in state 2") if [state[0] for state in states].count(2) >= 2 else None

    prop = Property("Clash", tuple(Read(name) for name in names), clash)
    return network_model("gossip", [machine(name) for name in names], network, properties=[prop])


@given(tables, st.sampled_from([Network(), Network(ordered=True), Network(duplicating=True)]))
@settings(deadline=None, max_examples=25)
def test_random_symmetric_models_have_as_many_states_as_classes(table: dict[Any, Any], network: Network) -> None:
    names = ["m1", "m2", "m3"]
    model = gossip(3, table, network)
    whole = plain.explore(model.with_properties(()), limits(3000))
    if not whole.exhausted:
        return
    found = search.explore(interchangeable(model.with_properties(()), names), frontier=SYMMETRIC)
    assert found.states == classes(model, names)
    violated, expected = search.explore(interchangeable(model, names), frontier=SYMMETRIC), plain.explore(model)
    assert {name: finding.depth for name, finding in violated.found.items()} == {
        name: finding.depth for name, finding in expected.found.items()
    }


def limits(states: int) -> Any:
    from checker.engine import Limits

    return Limits(states=states)


def exchanged_within(names: list[str], *sizes: int) -> list[dict[str, str]]:
    """The renamings that exchange the first names, then the next ones, and so on."""
    parts, rest = [], names
    for size in sizes:
        parts.append(rest[:size])
        rest = rest[size:]
    return [dict(zip(names, chain(*order), strict=True)) for order in product(*map(permutations, parts))]


@pytest.mark.parametrize(("managers", "sizes"), [(6, [6]), (7, [4, 3]), (8, [4, 4]), (9, [3, 3, 3])])
def test_many_names_are_exchanged_within_parts_of_them(managers: int, sizes: list[int]) -> None:
    """At most 720 renamings: 6!, 4! 3!, 4! 4!, 3! 3! 3!."""
    names = [f"n{n}" for n in range(managers)]
    declared = interchangeable(switches(names), names).symmetry
    assert declared is not None
    expected = exchanged_within(names, *sizes)
    assert len(declared.renamings) + 1 == len(expected) <= 720
    assert {tuple(renaming.columns[name] for name in names) for renaming in declared.renamings} == {
        tuple(each[name] for name in names) for each in expected
    } - {tuple(names)}


def switches(names: list[str]) -> Model:
    return network_model("switches", [chooser(name) for name in names], links=[])


def test_seven_names_have_as_many_states_as_classes_under_those_renamings() -> None:
    """2^7 states; with 4 and 3 names that are exchanged, 5 times 4 numbers of those that are on."""
    names = [f"n{n}" for n in range(7)]
    assert search.explore(interchangeable(switches(names), names), frontier=SYMMETRIC).states == 5 * 4


# -- what is refused -----------------------------------------------------------------------------------------


def chooser(name: str, start: Any = 0, step: Any = lambda state, choice: Reaction(1)) -> Machine:
    return Machine(name, Reaction(start), choices=lambda s: ["go"] if s == start else [], on_choice=step)


def refused(model: Model, *names: str) -> str:
    with pytest.raises(ModelError) as raised:
        search.explore(interchangeable(model, names), frontier=SYMMETRIC)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def pair(*properties: Property, **changed: Any) -> Model:
    return network_model("pair", [chooser("a"), chooser("b", **changed)], properties=properties)


def test_names_that_cannot_be_interchangeable_are_refused() -> None:
    assert "actor 'c' has no column in the model 'pair'" in refused(pair(), "a", "c")
    assert "actor 'a->b' has no column" in refused(pair(), "a", "a->b")
    assert "name two or more different interchangeable actors, not a" in refused(pair(), "a")
    assert "not a, a" in refused(pair(), "a", "a")
    assert "'a' and 'b' are not interchangeable: their first states differ" in refused(pair(start=5), "a", "b")
    part = network_model("part", [chooser("a"), chooser("b"), chooser("c")], links=[("a", "c")])
    assert "there is 'a->c', and no 'b->c'" in refused(part, "a", "b")


def test_a_step_that_treats_actors_differently_is_refused() -> None:
    text = refused(pair(step=lambda state, choice: Reaction(2)), "a", "b")
    assert "the move go 'a' gives 'b' the value 2, and not 1; the likely cause is a comparison" in text


def test_a_property_that_treats_actors_differently_is_refused() -> None:
    first = Property("First", (Read("a"),), lambda a: Finding("a goes") if a else None, Kind.SOMETIMES)
    text = refused(pair(first), "a", "b")
    assert "the property 'First' is not symmetric: with 'b' for 'a' it finds " in text
    assert " where 'a' is 1" in text


@pytest.mark.parametrize("kind", [Kind.EVENTUALLY, Kind.RECOVERABLE])
def test_liveness_is_refused(kind: Kind) -> None:
    live = Property("Live", (Read("a"), Read("b")), lambda a, b: TRIVIAL, kind)
    assert "the property 'Live' is one of liveness: symmetry does not" in refused(pair(live), "a", "b")


def test_a_property_of_steps_is_judged_with_symmetry() -> None:
    """Either actor steps from 0 to 1, which is the only step."""
    late = StepProperty.over("Late", ("a", "b"), lambda values, *_: Finding("late") if values != (0,) else None)
    result = search.explore(interchangeable(pair(late), ["a", "b"]), frontier=SYMMETRIC)
    assert result.states == 3
    assert (result.evaluations["Late"].premise, result.found) == (2, {})


def test_a_pass_says_how_far_the_symmetry_was_compared() -> None:
    safe = Property("Safe", (Read("a"), Read("b")), lambda *_: None)
    model = interchangeable(pair(safe), ["a", "b"])
    sentence = judge(job_of_model(model), search.explore(model, frontier=SYMMETRIC)).sentence
    assert sentence == (
        "passed: no violation, space exhausted: 3 states; renamed states were taken as alike, and 4 were compared"
    )


def test_a_value_that_may_hide_a_name_is_refused() -> None:
    class Opaque:
        pass

    value = Opaque()
    text = refused(network_model("opaque", [chooser("a", value), chooser("b", value)]), "a", "b")
    assert "symmetry cannot look for names in" in text
    assert "of the type Opaque; use strings" in text


def test_the_text_of_a_state_does_not_depend_on_the_order_of_sets() -> None:
    assert text_of(frozenset({"a", "b"}), {"a": "b", "b": "a"}) == "{a, b}"
    assert described(frozenset({"a", "b"})) == described(frozenset({"b", "a"}))


# -- channels by other names ---------------------------------------------------------------------------------

LONG = 300  # parts of a value, so that two states have thousands of characters


def ring(name_of: Callable[[str, str], str], *, declared: bool = False) -> Model:
    """Three alike processes, each of which may send once, and a channel between every two of them."""
    names = ("s1", "s2", "s3")
    pairs = {name_of(a, b): (a, b) for a in names for b in names if a != b}
    channels = (Column(name, (), Channel(*pair) if declared else None) for name, pair in pairs.items())
    columns = (*(Column(name, ("idle",) * LONG) for name in names), *channels)
    actors = tuple(Actor(column.name, (column.name,), lambda _, value: Outcome((value,))) for column in columns)

    def rule(channel: str, sender: str) -> Rule:
        sends = (Send(sender, ("sent",) * LONG), Send(channel, ("hello",) * LONG))
        return Rule(channel, (Read(sender),), lambda s: [Move("send", (channel,), sends)] if s[0] == "idle" else [])

    return Model("ring", columns, actors, tuple(rule(channel, pair[0]) for channel, pair in pairs.items()))


NAMES_OF_RING = ("s1", "s2", "s3")


@pytest.mark.parametrize("text", ["{}->{}", "{} to {}", "{}_{}", "from {}.to {}", "link({}, {})"])
def test_channels_with_two_names_are_renamed(text: str) -> None:
    model = ring(text.format)
    assert search.explore(interchangeable(model, NAMES_OF_RING), frontier=SYMMETRIC).states == 7


def wire(sender: str, receiver: str) -> str:
    """A name without the names of the ends as words."""
    return f"wire{3 * int(sender[1]) + int(receiver[1])}"


def test_a_declared_channel_is_renamed_by_its_ends() -> None:
    model = ring(wire, declared=True)
    assert search.explore(interchangeable(model, NAMES_OF_RING), frontier=SYMMETRIC).states == 7


def test_two_channels_with_the_same_ends_need_names_that_tell_them_apart() -> None:
    columns = (Column("a", 0), Column("b", 0), *(Column(name, (), Channel("a", "b")) for name in ("x", "y")))
    others = tuple(Column(name, (), Channel("b", "a")) for name in ("u", "v"))
    with pytest.raises(ModelError, match="there is 'x', and no 'b->a'"):
        interchangeable(Model("wires", (*columns, *others), (), ()), ["a", "b"])


def test_a_column_of_some_actors_alone_is_refused() -> None:
    columns = tuple(Column(name, 0) for name in ("a", "b", "c", "log of a", "log of b"))
    with pytest.raises(ModelError, match=r"there is 'log of [ab]', and no 'log of c'"):
        interchangeable(Model("logs", columns, (), ()), ["a", "b", "c"])


def test_the_error_for_a_channel_without_names_is_one_short_line() -> None:
    with pytest.raises(ModelError) as raised:
        search.explore(interchangeable(ring(wire), NAMES_OF_RING), frontier=SYMMETRIC)
    text = str(raised.value)
    assert len(text) <= 300
    assert re.match(
        r"the model is not symmetric: with 's\d' for 's\d' the move send 'wire\d' gives 'wire\d' the ", text
    )


def test_the_error_for_a_property_is_one_short_line() -> None:
    first = Property("First", (Read("s1"),), lambda s: Finding("it sends") if s[0] == "sent" else None, Kind.SOMETIMES)
    model = ring(wire, declared=True).with_properties([first])
    with pytest.raises(
        ModelError, match=r"the property 'First' is not symmetric: .* where 's1\[0\]' is '\w+', and f"
    ) as raised:
        search.explore(interchangeable(model, NAMES_OF_RING), frontier=SYMMETRIC)
    assert len(str(raised.value)) <= 300


def test_long_names_and_values_leave_one_short_line() -> None:
    names = ["a" * 500, "b" * 500]
    model = network_model("long", [chooser(names[0]), chooser(names[1], step=lambda *_: Reaction("x" * 999))], links=[])
    assert len(refused(model, *names)) <= 300


def test_the_first_parts_that_differ_are_named() -> None:
    one = (1, Record(frozenset({"a", "b"}), ("x", "y")))
    other = (1, Record(frozenset({"a", "b"}), ("x", "z")))
    assert difference(one, other) == ("[1].log[1]", "y", "z")
    assert difference(frozenset({"a", "b"}), frozenset({"b", "c"})) == ("", frozenset({"a"}), frozenset({"c"}))
    assert difference((1,), (1, 2)) == ("", (1,), (1, 2))


@dataclass(frozen=True)
class Record:
    """A value with fields."""

    names: frozenset[str]
    log: tuple[str, ...]


def test_renamings_of_values_that_are_no_group_are_an_error() -> None:
    """The images of a renamed value are taken from those of the value, so the renamings must agree."""
    columns = (Column("a", "a"), Column("b", "a"))
    model = Model("no group", columns, (), ())
    away = Renaming({"a": "b", "b": "a"}, lambda value: {"a": "b", "b": "c"}[value])
    tables = Tables(model.with_symmetry(Symmetry((away,))), symmetric=True)

    tables.cell(0, "a", "a test")
    with pytest.raises(ModelError, match="no group: those of 'b'"):
        tables.cell(1, "b", "a test")
