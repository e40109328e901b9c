"""Any number of interruptions at any place: a resumed search has the result of a search without a break."""

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from checker.engine import Kind, Limits, plain, search
from checker.engine.result import disagreements
from tests.properties import test_engines_agree as engines
from tests.properties import test_liveness_agrees as lively
from tests.support.sittings import assert_same, in_sittings, small_blocks

BOUND = Limits(states=300)
breaks = st.lists(st.tuples(st.integers(1, 40), st.sampled_from(["interrupt", "crash"])), max_size=6)
blocks, workers = st.integers(1, 12), st.sampled_from([1, 2])


def holds_in_sittings(model, schedule, block, threads):
    with small_blocks(block):
        whole = search.explore(model, BOUND)
        with tempfile.TemporaryDirectory() as folder:
            broken, _ = in_sittings(model, Path(folder), schedule, BOUND, workers=threads)
    assert_same(broken, whole)
    assert disagreements(plain.explore(model, BOUND), broken) == []


@settings(max_examples=50, deadline=None)
@given(engines.shapes, breaks, blocks, workers)
def test_a_search_of_a_random_model_may_be_put_down_or_killed_at_any_time(shape, schedule, block, threads):
    holds_in_sittings(engines.random_model(*shape), schedule, block, threads)


@settings(max_examples=25, deadline=None)
@given(engines.shapes, breaks, blocks, workers)
def test_so_may_one_that_keeps_the_graph(shape, schedule, block, threads):
    model, kinds = engines.random_model(*shape), [Kind.RECOVERABLE, Kind.EVENTUALLY, Kind.SOMETIMES]
    properties = [replace(prop, kind=kinds[n % 3]) for n, prop in enumerate(model.properties)]
    holds_in_sittings(model.with_properties(properties), schedule, block, threads)


@settings(max_examples=25, deadline=None)
@given(lively.shapes, breaks, blocks, workers)
def test_and_where_runs_lead_is_judged_alike_down_to_the_loops(shape, schedule, block, threads):
    holds_in_sittings(lively.random_model(*shape), schedule, block, threads)


@settings(max_examples=8, deadline=None)
@given(engines.shapes, st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_a_bound_may_be_raised_level_by_level(shape, steps):
    """Each sitting ends at a depth, and the next one continues from there to a greater one."""
    model, depth = engines.random_model(*shape), 0
    with tempfile.TemporaryDirectory() as folder:
        for step in steps:
            depth += step
            broken, _ = in_sittings(model, Path(folder), [], Limits(depth=depth, states=600))
            assert_same(broken, search.explore(model, Limits(depth=depth, states=600)))
