"""The states of a search, made again: as many as it counted at each depth, with their moves, and as a drawing."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
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
from checker.engine.symmetric_search import SYMMETRIC
from checker.swarm.search import RandomWalks

TOP = 3
BOTH = pytest.mark.parametrize("explore", [plain.explore, search.explore])
Explore = Callable[..., Exploration]


def below_top(count: int) -> list[int]:
    return [count + 1] if count < TOP else []


def counters(
    *names: str, properties: tuple[Property, ...] = (), following: Callable[[int], list[int]] = below_top
) -> Model:
    """Counters from 0 to TOP, each of which adds one at a time."""

    def rule(name: str) -> Rule:
        return Rule(
            f"moves of {name}",
            (Read(name),),
            lambda count: [Move("add", (name,), (Send(name, after),)) for after in following(count)],
        )

    return Model(
        "counters",
        tuple(Column(name, 0) for name in names),
        tuple(Actor(name, (name,), lambda _, after: Outcome((after,))) for name in names),
        tuple(map(rule, names)),
        properties,
    )


def reaches(*values: int, kind: Kind = Kind.ALWAYS) -> Property:
    def check(*counts: int) -> Finding | None:
        return Finding("reached") if counts == values else None

    return Property("Below", (Read("a"), Read("b")), check, kind)


@BOTH
def test_every_state_is_listed_once_at_its_least_depth(explore: Explore) -> None:
    states = list(explore(counters("a", "b")).iter_states())
    assert {state.row: state.depth for state in states} == {
        (a, b): a + b for a in range(TOP + 1) for b in range(TOP + 1)
    }
    assert [state.number for state in states] == list(range((TOP + 1) ** 2))
    assert [state.depth for state in states] == sorted(state.depth for state in states)


def test_a_state_has_its_values_by_the_names_of_the_columns() -> None:
    last = list(plain.explore(counters("a", "b")).iter_states())[-1]
    assert (last["a"], last["b"], last.columns) == (TOP, TOP, {"a": TOP, "b": TOP})


@BOTH
@pytest.mark.parametrize("limits", [Limits(), Limits(depth=2), Limits(states=4)])
def test_the_moves_of_the_graph_are_those_that_the_search_counted(explore: Explore, limits: Limits) -> None:
    result = explore(counters("a", "b", "c"), limits)
    graph = result.graph()
    assert Counter(state.depth for state in graph.states) == dict(enumerate(result.levels))
    assert Counter(edge.action for edge in graph.edges) == {"add": result.coverage["add"].fired}
    assert {edge.source for edge in graph.edges} <= set(range(graph.expanded))
    assert (graph.expanded == len(graph.states)) is result.exhausted


def test_an_edge_has_the_states_before_and_after_the_move_and_its_arguments() -> None:
    graph = plain.explore(counters("a", "b")).graph()
    for edge in graph.edges:
        before, after = graph.states[edge.source], graph.states[edge.target]
        assert after.columns == {**before.columns, edge.arguments[0]: before[edge.arguments[0]] + 1}


@BOTH
def test_a_search_that_ends_at_a_finding_has_seen_its_last_level_and_not_expanded_it(explore: Explore) -> None:
    result = explore(counters("a", "b", properties=(reaches(1, 1),)))
    graph = result.graph()
    assert (result.stop, len(graph.states), graph.expanded) == (Stop.FOUND, 6, 3)


@BOTH
def test_a_search_that_ends_at_a_final_state_has_expanded_its_last_level(explore: Explore) -> None:
    result = explore(counters("a", "b", properties=(reaches(TOP, TOP, kind=Kind.FINAL),)))
    graph = result.graph()
    assert result.stop is Stop.FOUND
    assert graph.expanded == len(graph.states) == (TOP + 1) ** 2


@BOTH
def test_a_search_to_a_depth_has_examined_its_last_level_for_final_states_and_not_expanded_it(explore: Explore) -> None:
    result = explore(counters("a", "b", properties=(reaches(TOP, TOP, kind=Kind.FINAL),)), Limits(depth=2 * TOP))
    assert (result.stop, result.graph().expanded) == (Stop.FOUND, (TOP + 1) ** 2 - 1)


def test_a_level_that_was_cut_short_is_left_out() -> None:
    whole = plain.explore(counters("a", "b"))
    cut = replace(whole, levels=[1, 2, 1], stop=Stop.TIME)
    assert [state.depth for state in cut.iter_states()] == [0, 1, 1]
    assert cut.graph().expanded == 1


def test_a_list_of_the_first_states_makes_no_others() -> None:
    calls = []

    def following(count: int) -> list[int]:
        calls.append(count)
        return [count + 1] if count < 1000 else []

    result = plain.explore(counters("a", following=following))
    calls.clear()
    assert [state["a"] for state in islice(result.iter_states(), 3)] == [0, 1, 2]
    assert calls == [0, 1]


def swapped(model: Model) -> Model:
    names = {"a": "b", "b": "a"}
    return model.with_symmetry(Symmetry((Renaming(names, lambda value: value),)))


def test_a_symmetric_search_lists_one_state_of_each_class_and_the_moves_of_it() -> None:
    result = search.explore(swapped(counters("a", "b")), frontier=SYMMETRIC)
    graph = result.graph()
    classes = {frozenset(Counter(state.row).items()) for state in graph.states}
    assert graph.of_classes
    assert len(classes) == len(graph.states) == result.states == 10  # of 4 values, two that may be equal
    assert len(graph.edges) == result.transitions
    for edge in graph.edges:
        before, after = graph.states[edge.source], graph.states[edge.target]
        moved = {**before.columns, edge.arguments[0]: before[edge.arguments[0]] + 1}
        assert sorted(moved.values()) == sorted(after.columns.values())


def test_a_symmetric_search_of_an_over_approximation_lists_the_states_of_that_system() -> None:
    """The model lets `a` move only behind `b`; the wider rules compare nothing."""
    model, free = counters("a", "b"), counters("a", "b").rules
    behind = Rule(
        "a follows",
        (Read("a"), Read("b")),
        lambda a, b: [Move("add", ("a",), (Send("a", a + 1),))] if a < b else [],
    )
    model = swapped(model.with_rules([behind, free[1]]))
    assert model.symmetry is not None
    result = search.explore(model.with_symmetry(replace(model.symmetry, wider=free)), frontier=SYMMETRIC)
    assert len(list(result.iter_states())) == result.states == 10


def test_a_symmetric_search_that_searched_in_full_lists_every_state() -> None:
    result = search.explore(counters("a", "b"), frontier=SYMMETRIC)
    assert result.reduction.startswith("none is possible")
    graph = result.graph()
    assert (len(graph.states), graph.of_classes) == (16, False)


def test_random_walks_list_no_states() -> None:
    walks = search.explore(counters("a"), Limits(depth=5, work=10), frontier=RandomWalks(True), workers=1)
    with pytest.raises(ModelError, match=r"^random walks do not list the states"):
        next(walks.iter_states())


@pytest.mark.parametrize("levels", [[1, 2, 4], [1, 2, 2]])
def test_another_number_of_states_than_the_search_counted_is_an_error(levels: list[int]) -> None:
    result = replace(plain.explore(counters("a", "b"), Limits(depth=2)), levels=levels)
    with pytest.raises(ModelError, match=r"'counters' sees (3|more than 2) states at depth 2, and the search"):
        list(result.iter_states())


def test_another_number_of_moves_than_the_search_counted_is_an_error() -> None:
    with pytest.raises(ModelError, match="sees 24 moves, and the search 23"):
        replace(plain.explore(counters("a", "b")), transitions=23).graph()


@pytest.mark.parametrize(
    ("method", "most", "advice"), [("graph", 5, "(Limits(depth=1))"), ("to_dot", 1, "(Limits(depth=0))")]
)
def test_a_graph_that_is_too_large_is_an_error_with_what_to_do(method: str, most: int, advice: str) -> None:
    result = plain.explore(counters("a", "b"))
    with pytest.raises(ModelError) as error:
        getattr(result, method)(most=most)
    assert str(error.value) == (
        f"the search has seen 16 states, and {method}() takes at most {most}: make the model smaller, search less deep "
        f"{advice}, or ask for more ({method}(most=16))"
    )
    assert getattr(result, method)(most=16)


# -- the drawing ---------------------------------------------------------------------------------------------

NODE = re.compile(r'^  (\d+) \[style=(\S+), label="((?:[^"\\]|\\.)*)"(.*)\];$', re.MULTILINE)
ARROW = re.compile(r'^  (\d+) -> (\d+) \[label="((?:[^"\\]|\\.)*)"\];$', re.MULTILINE)


def test_a_drawing_has_every_state_and_every_move() -> None:
    result = plain.explore(counters("a", "b"))
    text, graph = result.to_dot(), result.graph()
    assert [int(number) for number, *_ in NODE.findall(text)] == [state.number for state in graph.states]
    assert ARROW.findall(text) == [
        (str(edge.source), str(edge.target), f"add {edge.arguments[0]}") for edge in graph.edges
    ]


def test_a_state_is_drawn_with_what_differs_from_the_first_one() -> None:
    labels = [label for _, _, label, _ in NODE.findall(plain.explore(counters("a", "b"), Limits(depth=1)).to_dot())]
    assert labels == [r"0\la = 0\lb = 0\l", r"1\la = 1\l", r"2\lb = 1\l"]


def test_a_state_that_violates_a_property_is_red_and_names_it() -> None:
    nodes = NODE.findall(plain.explore(counters("a", "b", properties=(reaches(1, 1),))).to_dot())
    assert [label for *_, label, marks in nodes if "color=red" in marks] == [r"4\la = 1\lb = 1\lviolates Below\l"]


def test_a_state_that_was_not_expanded_has_a_dashed_frame() -> None:
    nodes = NODE.findall(plain.explore(counters("a", "b"), Limits(depth=1)).to_dot())
    assert [style for _, style, *_ in nodes] == ["rounded", '"rounded,dashed"', '"rounded,dashed"']


@pytest.mark.parametrize("text", ['quote " here', "\\N is a command of Graphviz", "two\nlines", "\x1b[31m", "</b>&"])
def test_a_text_of_the_author_stays_inside_its_string(text: str) -> None:
    def change(_: Any, after: Any) -> Outcome:
        return Outcome((after,))

    rule = Rule(
        "change",
        (Read(text),),
        lambda value: [Move(text, (text,), (Send("actor", text),))] if value != text else [],
    )
    model = Model(text, (Column(text, ""),), (Actor("actor", (text,), change),), (rule,))
    drawing = plain.explore(model).to_dot()
    assert (len(NODE.findall(drawing)), len(ARROW.findall(drawing))) == (2, 1)
    strings = re.findall(r'"((?:[^"\\]|\\.)*)"', drawing)
    assert not re.sub(r'"(?:[^"\\]|\\.)*"', "", drawing).count('"')
    assert all(set(re.findall(r"\\(.)", string)) <= {"\\", '"', "l"} for string in strings)
    assert drawing.isprintable() or set(re.findall(r"[^ -~]", drawing)) == {"\n"}
