"""A symmetric search keeps one state of each class, and the answers and depths of the full search.

The classes are counted by brute force: every permutation of the names is applied to every state of the full space.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.engine import (
    TRIVIAL,
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
from checker.engine.discovery import Step
from checker.engine.model import Trivial
from checker.engine.result import Exploration, Limits, Stop, verdict_disagreements
from checker.engine.search import Request, by_threads
from checker.engine.semantics import rebuild, successors
from checker.engine.symmetric_search import SYMMETRIC, answers_of_model

NAMES = ("a", "b", "c")

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
    return Symmetry(tuple(map(renaming, list(permutations(NAMES))[1:])))


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
    reduced, full = search.explore(model, frontier=SYMMETRIC), plain.explore(model)
    assert verdict_disagreements(reduced, full) == []
    assert reduced.levels == levels_of_classes(model, len(reduced.levels) - 1)


FREE = system([(0, "any", 1, False), (1, "any", 2, True), (2, "yes", 0, False)], [(1, 1, 2, 0)])
"""A system without a violation."""


def test_three_alike_processes_have_several_times_fewer_states() -> None:
    reduced, full = search.explore(FREE, frontier=SYMMETRIC), plain.explore(FREE)
    assert reduced.states == sum(levels_of_classes(FREE, full.states)) < full.states / 3
    assert reduced.reduction.startswith("states that differ in names count once (6 renamings; ")


def is_run(model: Model, path: Sequence[Step]) -> bool:
    begins = path[0] == Step(None, model.initial())
    return begins and all((step.move, step.row) in list(successors(model, row)) for (_, row), step in pairwise(path))


def test_a_path_is_a_run_of_the_model_and_shortest() -> None:
    model = system([(0, "any", 1, False), (1, "any", 3, True)], [])
    (found,), (expected,) = (search.explore(model, frontier=SYMMETRIC).violations, plain.explore(model).violations)
    assert found.depth == expected.depth == 4
    assert is_run(model, found.path)


# A rule that compares names: `choose` takes the greatest process in some states to another one, if none is there, and
# gives it the token. In the over-approximation it takes any of them.

choices = st.tuples(st.frozensets(states, min_size=1), states)


def choosing(before: frozenset[int], after: int, *, of_any_name: bool) -> Rule:
    def moves(*locals_: int) -> Iterator[Move]:
        waiting = [name for name, local in zip(NAMES, locals_, strict=True) if local in before and after not in locals_]
        for name in waiting if of_any_name else waiting[-1:]:
            yield Move("choose", (name,), (Send(name, after), Send("owner", name)))

    return Rule("choose", tuple(map(Read, NAMES)), moves)


def with_choice(model: Model, before: frozenset[int], after: int) -> Model:
    wider = (*model.rules, choosing(before, after, of_any_name=True))
    rules = (*model.rules, choosing(before, after, of_any_name=False))
    return replace(model, rules=rules, symmetry=replace(everywhere(), wider=wider))


def with_premise(model: Model, premise: tuple[int, ...], owned: bool) -> Model:
    """The model with a property that says something where processes have these states, and perhaps one a token."""

    def check(owner: str, *locals_: int) -> Trivial | None:
        return None if tuple(sorted(locals_)) == premise and bool(owner) == owned else TRIVIAL

    speaks = Property("Speaks", tuple(map(Read, ("owner", *NAMES))), check)
    return model.with_properties([*model.properties, speaks])


premises = st.tuples(st.tuples(states, states, states).map(sorted).map(tuple), st.booleans())


@settings(max_examples=100, deadline=None)
@given(own_rules, pair_rules, choices, premises)
def test_a_model_that_compares_names_has_the_answers_of_the_full_search(
    own: Any, pairs: Any, choice: Any, premise: Any
) -> None:
    model = with_premise(with_choice(system(own, pairs), *choice), *premise)
    reduced, full = search.explore(model, frontier=SYMMETRIC), plain.explore(model)
    assert verdict_disagreements(reduced, full, ends=False) == []
    assert all(is_run(model, found.path) for found in reduced.violations)


IN_TURN = with_choice(system([(1, "any", 2, True)], []), frozenset({0}), 1)
"""The processes reach state 2 one after the other, in the model the greatest one first."""


def test_an_over_approximation_may_have_fewer_classes_than_the_model_has_states() -> None:
    model = with_choice(FREE, frozenset({3}), 1)
    reduced, full = search.explore(model, frontier=SYMMETRIC), plain.explore(model)
    assert reduced.reduction.endswith("in an over-approximation")
    assert reduced.states < full.states / 3


def test_a_path_of_the_over_approximation_is_renamed_to_a_run_of_the_model() -> None:
    def check(owner: str, *locals_: int) -> Finding | None:
        return Finding(f"{owner} is in state 2") if locals_.count(2) == 1 and 1 not in locals_ else None

    model = IN_TURN.with_properties([Property("NoneGetsThere", tuple(map(Read, ("owner", *NAMES))), check)])
    (found,) = search.explore(model, frontier=SYMMETRIC).violations
    assert (found.depth, found.finding) == (2, Finding("c is in state 2"))
    assert is_run(model, found.path)


def only_one_leaves() -> Model:
    """The greatest process leaves state 0 again and again, and no other one does, except in the over-approximation."""
    model = with_choice(system([(1, "any", 2, True)], []), frozenset({0, 2}), 1)

    def check(*locals_: int) -> Finding | None:
        return Finding("two have left") if locals_.count(0) < 2 else None

    return model.with_properties([Property("OneLeaves", tuple(map(Read, NAMES)), check)])


def test_a_violation_of_the_over_approximation_alone_is_none_of_the_model() -> None:
    model = only_one_leaves()
    assert search.explore(model.with_rules(model.symmetry.wider)).violations  # type: ignore[union-attr, arg-type]
    found = search.explore(model, frontier=SYMMETRIC)
    assert found.violations == []
    assert found.stop is Stop.EXHAUSTED
    assert found.reduction.endswith("then explored in full, as a path found there is no run of the model")


def not_searched(_: Limits) -> Exploration:
    raise AssertionError("another search begins")


def test_an_interrupt_ends_the_run_without_findings_that_no_run_of_the_model_shows() -> None:
    model = only_one_leaves()
    assert model.symmetry is not None and model.symmetry.wider is not None
    found = replace(search.explore(model.with_rules(model.symmetry.wider)), stop=Stop.INTERRUPTED)
    assert found.violations

    answers, _ = answers_of_model(model, model.symmetry, found, {}, not_searched, Limits)
    assert (answers.stop, answers.violations) == (Stop.INTERRUPTED, [])


def test_the_search_in_full_has_the_limits_that_are_left() -> None:
    model, given = only_one_leaves(), list[Limits]()
    assert model.symmetry is not None and model.symmetry.wider is not None
    found = search.explore(model.with_rules(model.symmetry.wider))

    def in_full(limits: Limits) -> Exploration:
        given.append(limits)
        return search.explore(model, limits)

    answers_of_model(model, model.symmetry, found, {}, in_full, lambda: Limits(depth=7, work=found.work + 5))
    assert given == [Limits(depth=7, work=5)]


@pytest.mark.parametrize("depth", range(8))
def test_a_limit_of_depth_is_no_disagreement(depth: int) -> None:
    model, limits = with_choice(FREE, frozenset({3}), 1), Limits(depth=depth)
    assert (
        verdict_disagreements(
            search.explore(model, limits, frontier=SYMMETRIC), plain.explore(model, limits), ends=False
        )
        == []
    )


def test_an_action_that_fires_in_the_over_approximation_alone_has_not_fired() -> None:
    """Two processes that have left meet, which they do in the over-approximation alone."""
    model = only_one_leaves().with_properties([])

    def meet(*locals_: int) -> list[Move]:
        return [Move("gather", (), (Send("owner", ""),))] if locals_.count(2) == 2 else []

    gather = Rule("gather", tuple(map(Read, NAMES)), meet)
    assert model.symmetry is not None and model.symmetry.wider is not None
    symmetry = replace(model.symmetry, wider=(*model.symmetry.wider, gather))
    found = search.explore(replace(model, rules=(*model.rules, gather), symmetry=symmetry), frontier=SYMMETRIC)
    assert {action for action, each in found.coverage.items() if each.fired} == {"choose", "step"}
    assert found.reduction.endswith("then explored in full, as an action fires or a premise holds there alone")


def test_a_premise_that_holds_in_the_over_approximation_alone_has_not_held() -> None:
    def check(*locals_: int) -> Finding | Trivial | None:
        return TRIVIAL if locals_.count(0) > 1 else None

    prop = Property("TwoThatHaveLeftAreWell", tuple(map(Read, NAMES)), check)
    found = search.explore(only_one_leaves().with_properties([prop]), frontier=SYMMETRIC)
    assert found.evaluations[prop.name].premise == 0 < found.evaluations[prop.name].states
    assert found.reduction.endswith("then explored in full, as an action fires or a premise holds there alone")


def test_a_premise_is_shown_by_a_renamed_run_of_the_over_approximation() -> None:
    def check(*locals_: int) -> Finding | Trivial | None:
        return None if locals_.count(2) == 1 and 1 not in locals_ else TRIVIAL

    prop = Property("OneHasArrived", tuple(map(Read, NAMES)), check)
    model = IN_TURN.with_properties([prop])
    assert model.symmetry is not None and model.symmetry.wider is not None
    of_one = by_threads(Request(model.with_rules(model.symmetry.wider)), premise_runs=1)
    found = of_one.run()
    ((ordinals,),) = of_one.premises.values()
    assert not is_run(model, rebuild(found.model, ordinals))
    answers, said = answers_of_model(model, model.symmetry, found, of_one.premises, not_searched, Limits)
    assert (answers.exhausted, answers.evaluations[prop.name].premise > 0, said) == (True, True, "")


def test_names_that_matter_are_noticed() -> None:
    with pytest.raises(ModelError, match=r"the model is not symmetric: with '.' for '.' the move"):
        search.explore(replace(IN_TURN, symmetry=everywhere()), frontier=SYMMETRIC)


def test_an_over_approximation_that_lacks_a_move_is_noticed() -> None:
    lacking = replace(everywhere(), wider=tuple(rule for rule in FREE.rules if "meets" not in rule.name))
    with pytest.raises(ModelError, match="the over-approximation lacks the move"):
        search.explore(replace(FREE, symmetry=lacking), frontier=SYMMETRIC)


def test_a_name_that_is_not_renamed_is_noticed() -> None:
    columns = [each.columns for each in everywhere().renamings]
    broken = Symmetry(tuple(Renaming(each, lambda value: value) for each in columns))
    with pytest.raises(ModelError, match=r"the model is not symmetric: with '.' for '.' the move"):
        search.explore(replace(FREE, symmetry=broken), frontier=SYMMETRIC)


def test_a_property_of_one_process_is_noticed() -> None:
    only_a = Property("NotA", (Read("a"),), lambda local: Finding("a is in state 2") if local == 2 else None)
    with pytest.raises(ModelError, match="'NotA' is not symmetric: with"):
        search.explore(FREE.with_properties([only_a]), frontier=SYMMETRIC)


def test_models_that_cannot_be_reduced_are_searched_in_full() -> None:
    goal = Property("Ends", (Read("a"),), lambda local: Finding("a is there") if local == 2 else None, Kind.RECOVERABLE)
    final = replace(goal, kind=Kind.FINAL)
    for model, why in (
        (FREE.with_properties([goal]), "none is possible: the property 'Ends' is one of liveness"),
        (IN_TURN.with_properties([final]), "none is possible: the property 'Ends' is one of states without a succ"),
        (replace(FREE, symmetry=None), "none is possible: the model declares no symmetry"),
    ):
        found = search.explore(model, frontier=SYMMETRIC)
        assert found.reduction.startswith(why)
        assert found.states == search.explore(model).states


def test_any_number_of_workers_gives_the_same_levels() -> None:
    assert search.explore(FREE, workers=3, frontier=SYMMETRIC).levels == search.explore(FREE, frontier=SYMMETRIC).levels
