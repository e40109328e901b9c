"""A symmetric search keeps one state of each class, and the answers and depths of the full search.

The classes are counted by brute force: every permutation of the names is applied to every state of the full space.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.engine import (
    Actor,
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
    Symmetry,
    plain,
    search,
)
from checker.engine.reduction import reduced_search
from checker.engine.result import verdict_disagreements
from checker.engine.semantics import successors

NAMES = ("a", "b", "c")
explore = partial(reduced_search.explore, mode="symmetric")
Row = tuple[Any, ...]

# A system of three alike processes with local states 0 to 3, and a column that names the owner of a token. A rule is
# (state, whether the process must own the token, state afterwards, whether it owns it then); a pair rule is two states,
# and those afterwards.

states = st.integers(0, 3)
own_rules = st.lists(st.tuples(states, st.sampled_from(("yes", "no", "any")), states, st.booleans()), max_size=5)
pair_rules = st.lists(st.tuples(states, states, states, states), max_size=3)


def system(own: list[tuple[int, str, int, bool]], pairs: list[tuple[int, int, int, int]]) -> Model:
    def set_to(_: Row, operation: Any) -> Outcome:
        return Outcome((operation,))

    def own_moves(name: str) -> Rule:
        def moves(local: int, owner: str) -> Iterator[Move]:
            for before, needs, after, owns in own:
                if local == before and {"yes": owner == name, "no": owner != name, "any": True}[needs]:
                    sends = (Send(name, after), Send("owner", name if owns else "" if owner == name else owner))
                    yield Move("step", (name,), sends)

        return Rule(name, (Read(name), Read("owner")), moves)

    def pair_moves(one: str, other: str) -> Rule:
        def moves(first: int, second: int) -> Iterator[Move]:
            for a, b, after, then in pairs:
                if (first, second) == (a, b):
                    yield Move("meet", (one, other), (Send(one, after), Send(other, then)))

        return Rule(f"{one} meets {other}", (Read(one), Read(other)), moves)

    def two_at_the_end(*locals_: int) -> Finding | None:
        return Finding("two are in state 3") if locals_.count(3) > 1 else None

    return Model(
        "alike",
        (*(Column(name, 0) for name in NAMES), Column("owner", "")),
        tuple(Actor(name, (name,), set_to) for name in (*NAMES, "owner")),
        (*map(own_moves, NAMES), *(pair_moves(*pair) for pair in permutations(NAMES, 2))),
        (Property("NotTwo", tuple(map(Read, NAMES)), two_at_the_end),),
        symmetry=everywhere(),
    )


def everywhere() -> Symmetry:
    return Symmetry(tuple(map(renaming, list(permutations(NAMES))[1:])), "owner", lambda _: True)


def renaming(order: tuple[str, ...]) -> Renaming:
    to = dict(zip(NAMES, order, strict=True))
    return Renaming(to, lambda value: to.get(value, value))


def the_least(row: Row) -> Row:
    """The least of all rows that differ from a row in names, by another renaming than that of the model."""
    found = []
    for order in permutations(range(3)):
        owner = "" if row[3] == "" else NAMES[order.index(NAMES.index(row[3]))]
        found.append((*(row[place] for place in order), owner))
    return min(found)


def levels_of_classes(model: Model, until: int) -> list[int]:
    """The number of classes that are first reached at each depth, up to a depth."""
    seen, level, found = {the_least(model.initial())}, {model.initial()}, list[int]()
    while level and len(found) <= until:
        found.append(len({the_least(row) for row in level}))
        following = {after for row in level for _, after in successors(model, row)}
        level = {row for row in following if the_least(row) not in seen}
        seen |= {the_least(row) for row in level}
    return found


@settings(max_examples=60, deadline=None)
@given(own_rules, pair_rules)
def test_a_random_system_has_as_many_states_at_each_depth_as_classes(own: Any, pairs: Any) -> None:
    model = system(own, pairs)
    reduced, full = explore(model), plain.explore(model)
    assert verdict_disagreements(reduced, full, deadlocks=False) == []
    assert reduced.levels == levels_of_classes(model, len(reduced.levels) - 1)


FREE = system([(0, "any", 1, False), (1, "any", 2, True), (2, "yes", 0, False)], [(1, 1, 2, 0)])
"""A system without a violation."""


def test_three_alike_processes_have_several_times_fewer_states() -> None:
    reduced, full = explore(FREE), plain.explore(FREE)
    assert reduced.states == sum(levels_of_classes(FREE, full.states)) < full.states / 3
    assert reduced.reduction.startswith("states that differ in names count once (6 renamings; ")


def test_a_path_is_a_run_of_the_model_and_shortest() -> None:
    model = system([(0, "any", 1, False), (1, "any", 3, True)], [])
    (found,), (expected,) = (explore(model).violations, plain.explore(model).violations)
    assert found.depth == expected.depth == 4
    for before, step in zip(found.path, found.path[1:], strict=False):
        assert (step.move, step.row) in list(successors(model, before.row))


# A symmetry from some state on: `c` alone may give the token to `b`, and from then on names do not matter.


def with_a_beginning() -> Model:
    model = system([(0, "no", 2, False), (2, "no", 1, True), (1, "any", 2, True)], [])

    def begin(owner: str, local: int) -> list[Move]:
        return [Move("begin", (), (Send("owner", "b"),))] if (owner, local) == ("", 2) else []

    return replace(model, rules=(*model.rules, Rule("begin", (Read("owner"), Read("c")), begin)))


def test_names_that_matter_are_noticed() -> None:
    with pytest.raises(ModelError, match="other states follow"):
        explore(with_a_beginning())


def test_states_count_once_only_where_the_symmetry_holds() -> None:
    model = replace(with_a_beginning(), symmetry=replace(everywhere(), holds=lambda owner: owner != ""))
    reached = {model.initial()}
    waiting = [model.initial()]
    while waiting:
        new = {after for _, after in successors(model, waiting.pop())} - reached
        reached |= new
        waiting += new
    before = {row for row in reached if row[3] == ""}
    after = {the_least(row) for row in reached - before}

    assert explore(model).states == len(before) + len(after) < len(reached)


def test_a_name_that_is_not_renamed_is_noticed() -> None:
    columns = [each.columns for each in everywhere().renamings]
    broken = Symmetry(tuple(Renaming(each, lambda value: value) for each in columns), "owner", lambda _: True)
    with pytest.raises(ModelError, match="other states follow"):
        explore(replace(FREE, symmetry=broken))


def test_a_property_of_one_process_is_noticed() -> None:
    only_a = Property("NotA", (Read("a"),), lambda local: Finding("a is in state 2") if local == 2 else None)
    with pytest.raises(ModelError, match="'NotA' has different answers"):
        explore(FREE.with_properties([only_a]))


def test_a_symmetry_that_ends_is_noticed() -> None:
    ends = replace(everywhere(), holds=lambda owner: owner == "")
    with pytest.raises(ModelError, match="the symmetry ends"):
        explore(replace(FREE, symmetry=ends))


def test_liveness_and_models_without_symmetry_are_searched_in_full() -> None:
    goal = Property("Ends", (Read("a"),), lambda local: Finding("a is there") if local == 2 else None, Kind.RECOVERABLE)
    for model, why in (
        (FREE.with_properties([goal]), "none is possible: the property 'Ends' is one of liveness"),
        (replace(FREE, symmetry=None), "none is possible: the model declares no symmetry"),
    ):
        found = explore(model)
        assert found.reduction.startswith(why)
        assert found.states == search.explore(model).states


def test_any_number_of_workers_gives_the_same_levels() -> None:
    assert explore(FREE, workers=3).levels == explore(FREE).levels
