"""The guarantees of the table engine for any model: several columns, deadlocks, witnesses, bounds, clear errors."""

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numba
import pytest

from checker.engine import (
    TRIVIAL,
    Actor,
    Column,
    Finding,
    Kind,
    Limits,
    Model,
    ModelError,
    Move,
    Outcome,
    Property,
    Read,
    Rule,
    Send,
    Stop,
    plain,
    search,
)
from checker.engine.kernels import build_kernels, hash_tables, jit, search_kernels
from checker.engine.kernels.jit import OPTIONS
from checker.engine.result import disagreements

ENGINES = pytest.mark.parametrize("engine", [plain, search], ids=["plain", "tables"])


def counter(limit, properties=(), step=None, initial=0):
    """Return a model with one column that counts to a limit."""

    def count(values, amount):
        return Outcome((values[0] + amount,)) if values[0] + amount <= limit else None

    return Model(
        "counter",
        (Column("n", initial),),
        (Actor("n", ("n",), step or count),),
        (Rule("count", (Read("n"),), lambda n: [Move("one", (), (Send("n", 1),)), Move("two", (), (Send("n", 2),))]),),
        tuple(properties),
    )


def two_column_actor(properties=()):
    """Return a server with a log in a second column: it writes while it is up, and a crash loses unsynced entries."""

    def server(values, event):
        up, log = values
        if event == "write":
            return Outcome((up, (*log, "new"))) if up and len(log) < 3 else None
        if event == "sync":
            synced = tuple("old" for _ in log)
            return Outcome((up, synced), (Send("told", len(log)),)) if synced != log else None
        return Outcome((not up, tuple(entry for entry in log if entry == "old")))

    def events(up):
        return [
            Move(event, (), (Send("server", event),)) for event in ("write", "sync", "crash") if up or event == "crash"
        ]

    return Model(
        "server with a log",
        (Column("up", True), Column("log", ()), Column("told", 0)),
        (
            Actor("server", ("up", "log"), server),
            Actor("told", ("told",), lambda values, n: Outcome((max(values[0], n),))),
        ),
        (Rule("events", (Read("up"),), events),),
        tuple(properties),
    )


@ENGINES
def test_an_actor_may_own_two_columns_and_send_to_a_third(engine):
    def lost(log, told):
        return Finding("a synced entry is lost", (("log", log), ("told", told))) if log.count("old") < told else None

    result = engine.explore(two_column_actor([Property("Durable", (Read("log"), Read("told")), lost)]))
    assert result.stop is Stop.EXHAUSTED
    # Independent count: told = number of old entries o (0..3); up: up to 3-o new ones, 4-o logs; down: only the old.
    assert result.states == sum((4 - old) + 1 for old in range(4))


def test_the_engines_agree_on_an_actor_of_two_columns():
    model = two_column_actor()
    assert disagreements(plain.explore(model), search.explore(model)) == []


@ENGINES
def test_a_state_without_successor_is_a_deadlock_unless_the_model_expects_it(engine):
    expected = Property(
        "EndsAtFour", (Read("n"),), lambda n: None if n == 4 else Finding("stuck", (("n", n),)), Kind.FINAL
    )
    assert engine.explore(counter(4, [expected])).stop is Stop.EXHAUSTED
    unexpected = Property(
        "EndsAtFive", (Read("n"),), lambda n: None if n == 5 else Finding("stuck", (("n", n),)), Kind.FINAL
    )
    result = engine.explore(counter(4, [unexpected]))
    assert (result.stop, result.found["EndsAtFive"].depth, result.deadlocks) == (Stop.FOUND, 2, 1)


@ENGINES
def test_a_witness_is_the_shortest_and_does_not_end_the_search(engine):
    three = Property("Three", (Read("n"),), lambda n: Finding("n is 3") if n == 3 else None, Kind.SOMETIMES)
    result = engine.explore(counter(9, [three]))
    assert (result.stop, result.states, result.found["Three"].depth) == (Stop.EXHAUSTED, 10, 2)


@ENGINES
def test_a_search_may_end_with_its_witnesses(engine):
    three = Property("Three", (Read("n"),), lambda n: Finding("n is 3") if n == 3 else None, Kind.SOMETIMES)
    result = engine.explore(counter(900, [three]), until_witnessed=True)
    assert (result.stop, result.depth) == (Stop.WITNESSED, 2)


@ENGINES
def test_premises_are_counted_apart_from_evaluations(engine):
    even = Property("Even", (Read("n"),), lambda n: TRIVIAL if n % 2 else None)
    counts = engine.explore(counter(9, [even])).evaluations["Even"]
    assert (counts.states, counts.premise) == (10, 5)


@ENGINES
def test_properties_that_read_the_same_are_told_apart(engine):
    """They are looked up together, but each must get separate counts, a separate finding, and its own kind."""
    read = (Read("n", lambda n: n if n > 2 else None),)
    witnesses = [
        Property(
            f"From{limit}",
            read,
            lambda n, limit=limit: Finding("there") if n == limit else TRIVIAL if n < limit else None,
            Kind.SOMETIMES,
        )
        for limit in range(40)
    ]
    final = Property("EndsAtFifty", read, lambda n: None if n == 50 else Finding("stuck"), Kind.FINAL)
    result = engine.explore(counter(50, [*witnesses, final]))
    counts = {name: (count.states, count.premise) for name, count in result.evaluations.items()}
    assert counts == {f"From{limit}": (51, 51 - max(limit, 3)) for limit in range(40)} | {"EndsAtFifty": (1, 1)}
    assert {name: found.depth for name, found in result.found.items()} == {
        f"From{limit}": -(-limit // 2) for limit in range(3, 40)
    }


@ENGINES
def test_a_projection_that_says_never_makes_a_rule_silent_and_a_property_trivial(engine):
    base = counter(3)
    rule = Rule(
        "joint",
        (Read("n", lambda n: True if n == 2 else None), Read("n")),
        lambda *_: [Move("back", (), (Send("n", -2),))],
    )
    seen = Property("Odd", (Read("n", lambda n: n if n % 2 else None), Read("n")), lambda *_: None)
    model = Model("back", base.columns, base.actors, (*base.rules, rule), (seen,))
    result = engine.explore(model)
    assert (result.coverage["back"].fired, result.evaluations["Odd"].premise) == (1, 2)


@ENGINES
@pytest.mark.parametrize(
    ("limits", "stop"),
    [
        (Limits(depth=3), Stop.DEPTH),
        (Limits(states=5), Stop.STATES),
        (Limits(seconds=0), Stop.TIME),
    ],
)
def test_a_bound_that_cut_something_off_is_named_and_never_called_exhausted(engine, limits, stop):
    assert engine.explore(counter(100), limits).stop is stop


@ENGINES
def test_a_depth_beyond_the_last_level_cuts_nothing_off(engine):
    assert engine.explore(counter(4), Limits(depth=50)).stop is Stop.EXHAUSTED


@ENGINES
def test_memory_is_bounded(engine):
    # A process that has freed memory before need not grow, so only a limit of 0 is certain to be reached.
    result = engine.explore(counter(100_000), Limits(memory=0))
    assert result.stop is Stop.MEMORY


def test_a_step_that_is_not_a_function_is_named_with_the_likely_cause():
    ticks = itertools.count()
    with pytest.raises(ModelError, match=r"the step of 'n' is not deterministic.*clock.*random"):
        search.explore(counter(9, step=lambda values, _: Outcome((values[0] + next(ticks),))))


def test_what_was_seen_is_kept_when_the_plain_engine_is_interrupted_between_two_levels():
    """The interrupt comes while a level is checked, and while its end is reported. Unchecked states are not counted."""

    def interrupted(number: int) -> None:
        if number == 5:
            raise KeyboardInterrupt

    model = counter(9, [Property("P", (Read("n"),), interrupted)])
    found = plain.explore(model)
    assert (found.stop, found.levels, found.evaluations["P"].states) == (Stop.INTERRUPTED, [1, 2, 2], 5)
    found = plain.explore(counter(9), progress=lambda seen: interrupted(seen.depth + 2))
    assert (found.stop, found.levels) == (Stop.INTERRUPTED, [1, 2, 2, 2])


def test_a_value_that_cannot_be_hashed_is_named_with_what_to_use():
    with pytest.raises(ModelError, match=r"step of 'n' puts into the column 'n'.*at \[1\]\[0\], a list; use a tuple"):
        search.explore(counter(9, step=lambda values, n: Outcome(((n, ([],)),))))


def test_equal_values_of_different_types_are_an_error_however_deep_they_are():
    """Two messages that are equal as tuples would be confused, and states would be lost silently."""

    class Ping(NamedTuple):
        number: int

    class Pong(NamedTuple):
        number: int

    with pytest.raises(ModelError, match=r"Pong.*equals.*Ping"):
        step = lambda values, n: Outcome(((Ping(1) if n == 1 else Pong(1),),))  # noqa: E731
        search.explore(counter(9, initial=(Ping(1),), step=step))


@ENGINES
def test_an_operation_for_nobody_is_named(engine):
    model = counter(9, step=lambda values, _: Outcome(values, (Send("m", 1),)))
    with pytest.raises(ModelError, match="to 'm'; no actor has that name"):
        engine.explore(model)


def test_a_reader_of_an_unknown_column_is_named_when_the_model_is_made():
    with pytest.raises(ModelError, match="property 'P' names the column 'm'"):
        counter(9, [Property("P", (Read("m"),), lambda m: None)])


def test_operations_that_never_end_are_an_error_and_not_a_hang():
    with pytest.raises(ModelError, match="without end"):
        search.explore(counter(9, step=lambda values, n: Outcome(values, (Send("n", n), Send("n", n)))))


def test_kernels_count_no_references():
    """The private option that disables reference counting must keep working: counting was the largest single cost."""
    search.explore(counter(3, [Property("P", (Read("n"),), lambda n: None)]))
    for kernel in (search_kernels.expand, hash_tables.probe, build_kernels.build, build_kernels.judge_rows):
        anew = numba.njit(**OPTIONS)(kernel.py_func)  # code from the cache cannot be inspected
        anew.compile(kernel.signatures[0])
        code = "".join(anew.inspect_llvm().values())
        assert kernel.__name__ in code
        assert "NRT_incref" not in code


@pytest.mark.parametrize("file", ["hash_tables.py", "jit.py"])
def test_compiled_kernels_are_kept_apart_from_those_of_any_other_source(tmp_path, file):
    """A kernel contains functions of other files, and Numba's own cache does not detect changes of these."""
    folder = Path(jit.__file__).parent
    copied = Path(shutil.copytree(folder, tmp_path / "engine"))
    assert jit.digest(copied) == jit.digest(folder)
    with (copied / file).open("a", encoding="utf-8") as source:
        source.write("# changed\n")
    assert jit.digest(copied) != jit.digest(folder)
    assert jit.digest(folder) in jit.cache_folder().name


def test_the_kernels_have_their_folder_also_after_an_import_of_numba() -> None:
    """Otherwise they would be compiled beside their sources, where a change of an inlined function is not noticed."""
    code = "import os, numba, checker.engine.kernels.jit; print(os.environ['NUMBA_CACHE_DIR'], numba.config.CACHE_DIR)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    expected, actual = ran.stdout.split()
    assert actual == expected


def test_the_collision_probability_is_that_of_64_bits():
    result = search.explore(counter(1000))
    assert result.collision_probability == pytest.approx(1001 * 1000 / 2 / 2**64)
