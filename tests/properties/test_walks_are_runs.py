"""Random walks over random models: each is a run of the plain engine, and every count is that of its states."""

from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from checker.engine import Kind, plain
from checker.engine.result import Limits
from checker.engine.search import Request
from checker.execution import Deadline
from checker.swarm.outcome import WalkCounts
from checker.swarm.search import RandomWalks
from checker.swarm.shorten import Rerun, searched
from checker.swarm.walker import WalkRunner
from tests.properties.test_engines_agree import random_model, shapes
from tests.support.walks import counted, paths_of, recounted

seeds = st.integers(0, 10**9)


@settings(max_examples=60, deadline=None)
@example((2511, 4, 4, 6, 3), 3)  # a walk that meets a deadlock at the limit of its steps
@given(shapes, seeds)
def test_the_counts_of_walks_are_those_of_their_runs_in_the_plain_engine(shape, seed):
    model, walks = random_model(*shape), range(24)
    runner = WalkRunner(model, seed, depth=40)
    assert counted(runner, walks) == recounted(model, paths_of(runner, walks))


@settings(max_examples=30, deadline=None)
@given(shapes, seeds)
def test_every_prefix_of_a_walk_is_a_run_that_both_engines_execute_alike(shape, seed):
    runner = WalkRunner(random_model(*shape), seed, depth=30)
    for walk in range(4):
        whole, _ = runner.repeat(walk)
        for steps in range(len(whole)):
            assert runner.path(walk, steps) == whole[: steps + 1]


@settings(max_examples=30, deadline=None)
@given(shapes, seeds, st.integers(1, 63))
def test_a_walk_does_not_depend_on_what_the_tables_have_learnt_before(shape, seed, cut):
    model = random_model(*shape)
    whole = counted(WalkRunner(model, seed, depth=40), range(64))
    backwards, total = WalkRunner(model, seed, depth=40), WalkCounts()
    second, first = backwards.run(cut, 64 - cut), backwards.run(0, cut)
    for part in (first, second):
        total.add(part)
    assert (total.transitions, total.deadlocks, total.depths) == (whole["steps"], whole["dead"], whole["depths"])
    assert {name: tuple(each) for name, each in total.sightings.items()} == whole["sightings"]
    assert {name: count for name, count in total.local_states.items() if count} == whole["local"]


@settings(max_examples=40, deadline=None)
@given(shapes, seeds)
def test_a_found_violation_is_real_and_its_shortened_run_is_no_longer_than_its_walk(shape, seed):
    model = random_model(*shape)
    model = model.with_properties([replace(model.properties[0], kind=Kind.ALWAYS)])
    outcome = RandomWalks().explore(Request(model, Limits(depth=40, work=200), seed=seed))
    shortest = plain.explore(model, Limits(states=20_000))
    for name, found in outcome.found.items():
        assert found.depth == outcome.sightings[name].step
        short = Rerun(model, found.prop).without_parts(found, Deadline(20.0))
        best = searched(model, short, Deadline(20.0))
        assert shortest.found[name].depth == best.found.depth <= short.depth <= found.depth
        assert best.is_shortest
    assert outcome.found or not outcome.sightings
