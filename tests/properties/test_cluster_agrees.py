"""A search by any number of parts, some of which are lost at any time, has the result of the plain engine."""

import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from checker.engine import Kind, Limits, plain, search
from checker.engine.result import disagreements
from tests.properties.test_engines_agree import random_model
from tests.support.parts import search_in_parts, small_rounds

BOUND = Limits(states=2000)
shapes = st.tuples(st.integers(0, 10**6), st.integers(2, 5), st.integers(2, 5), st.integers(2, 8), st.integers(2, 5))
sizes = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 20), st.integers(3, 40))
losses = st.dictionaries(st.integers(1, 400), st.integers(0, 4), max_size=5)


def models(shape, keeps_invariants):
    """A random model; most of them without invariants, whose violations would end the search early."""
    model = random_model(*shape)
    kept = [prop for prop in model.properties if keeps_invariants or prop.kind is not Kind.ALWAYS]
    return model.with_properties(kept)


def assert_equal(found, by_sets):
    assert disagreements(by_sets, found) == []
    assert {name: each for name, each in found.coverage.items() if each.fired} == by_sets.coverage
    assert {name: each.path for name, each in found.found.items()} == {
        name: each.path for name, each in by_sets.found.items()
    }


@settings(max_examples=120, deadline=None)
@given(shapes, st.booleans(), st.integers(1, 5), sizes)
def test_any_number_of_parts_finds_what_the_plain_engine_finds_down_to_the_paths(shape, invariants, parts, size):
    model = models(shape, invariants)
    with small_rounds(*size):
        found, _ = search_in_parts(model, BOUND, parts=parts)
    assert_equal(found, plain.explore(model, BOUND))


@settings(max_examples=150, deadline=None)
@given(shapes, st.booleans(), st.integers(1, 5), sizes, losses)
@example((18022, 2, 2, 3, 4), False, 2, (2, 1, 1, 3), {17: 0})  # saved after it was divided
def test_a_lost_part_changes_no_result(shape, invariants, parts, size, lost):
    model = models(shape, invariants)
    with small_rounds(*size), tempfile.TemporaryDirectory() as folder:
        found, _ = search_in_parts(model, BOUND, parts=parts, files=Path(folder), losses=lost)
    assert_equal(found, plain.explore(model, BOUND))


@settings(max_examples=40, deadline=None)
@given(shapes, st.integers(2, 4), sizes, losses)
def test_a_lost_part_changes_no_result_of_a_search_that_was_never_saved(shape, parts, size, lost):
    model = models(shape, False)
    with small_rounds(*size):
        found, _ = search_in_parts(model, BOUND, parts=parts, losses=lost)
    assert_equal(found, plain.explore(model, BOUND))


@settings(max_examples=40, deadline=None)
@given(shapes, st.integers(1, 5), sizes)
def test_parts_count_the_coverage_of_new_states_as_threads_do(shape, parts, size):
    model = models(shape, False)
    with small_rounds(*size):
        found, _ = search_in_parts(model, BOUND, parts=parts)
    threads = search.explore(model, BOUND, workers=2)
    assert disagreements(threads, found) == []
    assert sum(each.new for each in found.coverage.values()) == found.states - 1
    assert found.transitions == sum(each.fired for each in found.coverage.values())
