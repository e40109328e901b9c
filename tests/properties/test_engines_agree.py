"""Random models of any shape: the table engine agrees with the plain engine level by level."""

import zlib
from dataclasses import replace
from unittest.mock import patch

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
    Move,
    Outcome,
    Property,
    Read,
    Rule,
    Send,
    plain,
    search,
    worker,
)
from checker.engine.result import Limits, disagreements
from tests.support.pure_kernels import use_pure
from tests.support.sittings import small_blocks


def chance(*key) -> int:
    """Return a pseudo-random number, a function of its key."""
    return zlib.crc32(repr(key).encode())


def random_model(seed: int, columns: int, actors: int, rules: int, values: int) -> Model:
    """Return a model whose functions are drawn from `seed`; operations only send to actors with larger numbers."""
    names = [f"c{i}" for i in range(columns)]

    def some_columns(*key):
        width = 1 + chance(seed, "width", *key) % min(3, columns)
        first = chance(seed, "first", *key) % columns
        return tuple(names[(first + i) % columns] for i in range(width))

    def step_of(me, width):
        def step(current, operation):
            key = (seed, "step", me, current, operation)
            if chance(*key) % 5 == 0:
                return None
            after = tuple(chance(*key, i) % values if chance(*key, i, "?") % 2 else current[i] for i in range(width))
            onward = [
                Send(f"a{to}", chance(*key, to) % 3) for to in range(me + 1, actors) if chance(*key, to, "?") % 4 == 0
            ]
            return Outcome(after, tuple(onward))

        return step

    def projection_of(*key):
        kind = chance(seed, "projection", *key) % 3
        return [None, lambda v: v % 2, lambda v: None if v == 0 else v][kind]

    def reads_of(*key):
        return tuple(Read(column, projection_of(*key, column)) for column in some_columns(*key))

    def moves_of(me):
        def moves(*seen):
            count = chance(seed, "moves", me, seen) % 4
            return [
                Move(f"r{me}", (i,), tuple(
                    Send(f"a{chance(seed, me, seen, i, j) % actors}", chance(seed, me, seen, i, j, "op") % 3)
                    for j in range(1 + chance(seed, me, seen, i, "sends") % 2)
                ))
                for i in range(count)
            ]  # fmt: skip

        return moves

    def check_of(me):
        def check(*seen):
            answer = chance(seed, "check", me, seen) % 40
            return Finding(f"p{me}", (("seen", seen),)) if answer == 0 else TRIVIAL if answer < 20 else None

        return check

    shared = [reads_of("property", n) for n in range(2)]  # so that some properties read the same
    owned = [some_columns("actor", me) for me in range(actors)]
    kinds = [Kind.ALWAYS, Kind.SOMETIMES, Kind.FINAL]
    return Model(
        f"random {seed}",
        tuple(Column(name, chance(seed, name) % values) for name in names),
        tuple(Actor(f"a{me}", owned[me], step_of(me, len(owned[me]))) for me in range(actors)),
        tuple(Rule(f"r{me}", reads_of("rule", me), moves_of(me)) for me in range(rules)),
        tuple(Property(f"p{me}", shared[me % 2], check_of(me), kinds[me % 3]) for me in range(8)),
    )


shapes = st.tuples(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 5), st.integers(1, 8), st.integers(2, 5))


@settings(max_examples=150, deadline=None)
@given(shapes)
def test_tables_and_plain_agree_on_random_models(shape):
    model = random_model(*shape)
    limits = Limits(states=3000)
    assert disagreements(plain.explore(model, limits), search.explore(model, limits)) == []


def test_no_kernel_uses_an_index_out_of_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search is in Python, where NumPy checks each index; compiled kernels check none."""
    use_pure(monkeypatch)
    for seed in range(40):
        model = random_model(seed, 1 + seed % 5, 1 + seed % 4, 1 + seed % 7, 2 + seed % 4)
        limits = Limits(states=150)
        assert disagreements(plain.explore(model, limits), search.explore(model, limits)) == []


@settings(max_examples=100, deadline=None)
@given(shapes)
def test_tables_and_plain_agree_on_random_models_without_properties(shape):
    model = random_model(*shape).with_properties([])
    limits = Limits(states=3000)
    assert disagreements(plain.explore(model, limits), search.explore(model, limits)) == []


@settings(max_examples=60, deadline=None)
@given(shapes, st.integers(2, 5), st.integers(1, 40))
def test_any_number_of_workers_finds_what_the_plain_engine_finds_down_to_the_paths(shape, workers, rows):
    """Small blocks give many rounds of several slices. States have the same numbers as in the plain engine."""
    model = random_model(*shape)
    limits = Limits(states=3000)
    by_sets, one = plain.explore(model, limits), search.explore(model, limits, workers=1)
    with small_blocks(rows):
        many = search.explore(model, limits, workers=workers)
    for found in (one, many):
        assert disagreements(by_sets, found) == []
        assert {name: each for name, each in found.coverage.items() if each.fired} == by_sets.coverage
        assert {name: each.path for name, each in found.found.items()} == {
            name: each.path for name, each in by_sets.found.items()
        }
    assert many.work == one.work


@settings(max_examples=60, deadline=None)
@given(shapes, st.integers(2, 5), st.integers(1, 40))
def test_any_number_of_workers_judges_liveness_alike(shape, workers, rows):
    model = random_model(*shape)
    kinds = [Kind.RECOVERABLE, Kind.EVENTUALLY, Kind.SOMETIMES]
    model = model.with_properties(replace(prop, kind=kinds[n % 3]) for n, prop in enumerate(model.properties))
    limits = Limits(states=3000)
    one = search.explore(model, limits)
    with small_blocks(rows):
        many = search.explore(model, limits, workers=workers)
    assert disagreements(one, many) == []
    assert {name: (each.path, each.loop) for name, each in one.found.items()} == {
        name: (each.path, each.loop) for name, each in many.found.items()
    }


@settings(max_examples=80, deadline=None)
@given(shapes)
def test_rows_that_look_alike_may_be_forgotten_at_any_time(shape):
    """The lists of moves of joint rules are cached up to a limit; with room for two they evict each other."""
    model = random_model(*shape)
    limits = Limits(states=3000)
    with patch.object(worker, "JOINT_CACHE", 2):
        by_tables = search.explore(model, limits)
    assert disagreements(plain.explore(model, limits), by_tables) == []


@settings(max_examples=100, deadline=None)
@given(shapes)
def test_tables_and_plain_agree_on_where_runs_of_random_models_lead(shape):
    """All shapes: actors over several columns, rules that read several, projections that say "never"."""
    model = random_model(*shape)
    kinds = [Kind.RECOVERABLE, Kind.EVENTUALLY, Kind.SOMETIMES]
    lively = [replace(prop, kind=kinds[n % 3]) for n, prop in enumerate(model.properties)]
    model, limits = model.with_properties(lively), Limits(states=3000)
    assert disagreements(plain.explore(model, limits), search.explore(model, limits)) == []


def test_more_than_64_joint_rules_are_all_looked_at():
    """Enabled joint rules are stored as bits of 64-bit words; the 65th and later ones are in a further word."""
    model = random_model(7, 4, 3, 1, 5)
    pair = (Read("c0", lambda v: None if v == 0 else v), Read("c1"))
    rules = tuple(
        Rule(f"j{i}", pair, lambda a, b, i=i: [Move(f"j{i}", (), (Send("a0", (a + b + i) % 3),))]) for i in range(150)
    )
    model = Model("many rules", model.columns, model.actors, (*model.rules, *rules))
    by_plain, by_tables = plain.explore(model), search.explore(model)
    assert disagreements(by_plain, by_tables) == []
    assert sum(coverage.fired > 0 for action, coverage in by_plain.coverage.items() if action.startswith("j")) > 100


def test_more_than_64_bundles_are_all_judged():
    """Bundles that a move affects are bits of one word; the 64th and later ones share its last bit."""
    names = [f"c{n}" for n in range(70)]

    def step(values, by):
        return Outcome((values[0] + by,))

    model = Model(
        "many bundles",
        tuple(Column(name, 0) for name in names),
        tuple(Actor(name, (name,), step) for name in names),
        tuple(
            Rule(name, (Read(name),), lambda n, name=name: [Move(name, (), (Send(name, 1),))] if n < 1 else [])
            for name in names
        ),
        tuple(
            Property(name, (Read(name),), lambda n: Finding("one") if n else TRIVIAL, Kind.SOMETIMES) for name in names
        ),
    )
    limits = Limits(depth=2)
    by_sets, by_tables = plain.explore(model, limits), search.explore(model, limits)
    assert disagreements(by_sets, by_tables) == []
    assert len(by_tables.found) == 70
