"""Swarms: plans of walks, the estimate of states, parts, findings and limits."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from checker.engine.checkpoint import Checkpoint
from checker.engine.kernels.walk_kernels import observe_all
from checker.engine.model import ModelError
from checker.engine.result import Limits, Stop
from checker.engine.search import Request, explore
from checker.execution import Deadline
from checker.scenario import bundled, load
from checker.swarm.outcome import REGISTERS, STANDARD_ERROR, WalkCounts, estimate
from checker.swarm.search import RandomWalks, part
from checker.swarm.shorten import shortened
from checker.swarm.walker import WalkRunner, key_of, mixed, plans, safety

SCENARIOS = {path.stem: path for path in bundled()}


def scenario(name: str):
    job = load(SCENARIOS[name])
    return replace(job, model=safety(job.model))


def splitmix(word: int) -> int:
    """The published finalizer of splitmix64, in Python's integers."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
    return word ^ word >> 31


def test_the_numbers_of_plans_are_those_of_splitmix64():
    words = [0, 1, 2**63, 2**64 - 1, 123456789]
    assert mixed(np.array(words, np.uint64)).tolist() == [splitmix(word) for word in words]


def test_the_plan_of_a_walk_does_not_depend_on_the_walks_beside_it():
    together = plans(7, 0, 200, 1000)
    for number in (0, 1, 77, 199):
        alone = plans(7, number, 1, 1000)
        assert all((a[number] == b[0]).all() for a, b in zip(together, alone, strict=True))


@pytest.mark.parametrize("depth", [1, 15, 16, 1000, 60_000])
def test_no_walk_is_longer_than_the_greatest_depth_and_half_of_them_may_be_as_long(depth):
    limits = plans(3, 0, 4096, depth).limits
    assert limits.max() == depth and limits.min() >= min(depth, 16)
    assert (limits == depth).mean() > 0.4


def test_other_seeds_and_numbers_give_other_keys():
    keys = np.concatenate([key_of(seed, np.arange(1000, dtype=np.uint64)) for seed in (1, 2)])
    assert len(set(keys.tolist())) == 2000


def test_parts_are_consecutive_and_begin_small():
    parts = [part(number) for number in range(300)]
    assert parts[0] == (0, 64) and parts[-1].size == 4096
    assert all(before.first + before.size == after.first for before, after in pairwise(parts))


@pytest.mark.parametrize("states", [0, 1, 100, 10_000, 100_000, 1_000_000])
def test_the_estimate_of_states_is_within_four_standard_errors(states):
    registers = np.zeros(REGISTERS, np.uint8)
    observe_all(registers, mixed(np.arange(states, dtype=np.uint64)))
    assert abs(estimate(registers) - states) <= 1 + 4 * STANDARD_ERROR * states


def test_counts_in_any_order_have_the_same_sum():
    model = safety(scenario("zookeeper-4712").model)
    parts = [WalkRunner(model, 1, 50).run(first, 40) for first in (0, 40, 80)]
    one, other = WalkCounts(), WalkCounts()
    for each in parts:
        one.add(each)
    for each in reversed(parts):
        other.add(each)
    assert (one.transitions, one.states, one.depths, one.coverage) == (
        other.transitions,
        other.states,
        other.depths,
        other.coverage,
    )
    assert (one.evaluations, one.sightings, one.local_states) == (
        other.evaluations, other.sightings, other.local_states,
    )  # fmt: skip


DEFECTS = ("zookeeper-1549", "zookeeper-3911", "zookeeper-4712", "zookeeper-4925", "zookeeper-5094", "fuzzy-snapshot")


@pytest.mark.parametrize("name", DEFECTS)
def test_a_swarm_finds_a_known_defect_and_shortens_its_run_to_the_least_depth(name):
    """The least depth is that which the scenario states, and the exhaustive search of its test confirms."""
    job = scenario(name)
    outcome = RandomWalks().explore(Request(job.model, Limits(depth=200, work=200_000)))
    assert outcome.stop is Stop.FOUND
    for prop in outcome.violated:
        short = shortened(job, outcome.found[prop], Deadline(120.0))
        assert short.is_shortest
        assert {prop: short.found.depth} == dict(job.violations)


def test_a_swarm_that_keeps_going_executes_all_walks():
    job = scenario("zookeeper-4712")
    outcome = RandomWalks(keep_going=True).explore(Request(job.model, Limits(depth=200, work=500)))
    assert outcome.stop is Stop.WORK and outcome.walks == 500
    assert outcome.violated == ["HistoryConsistency"]


def test_a_limit_of_time_ends_a_swarm_and_counts_the_walks_it_cut():
    job = load(SCENARIOS["swarm-five-servers-oracle"])
    outcome = RandomWalks().explore(Request(job.model, Limits(seconds=1.0)))
    assert outcome.stop is Stop.TIME and outcome.cut > 0
    assert sum(outcome.depths.values()) == outcome.walks
    assert sum(depth * walks for depth, walks in outcome.depths.items()) == outcome.transitions
    assert outcome.samples[-1].steps == outcome.transitions


def test_a_limit_of_memory_ends_a_swarm_and_not_only_a_part_of_it():
    outcome = RandomWalks().explore(Request(scenario("zab-syncs").model, Limits(memory=1, work=20_000)))
    assert outcome.stop is Stop.MEMORY and outcome.walks == part(0).size


def test_an_interrupt_ends_a_swarm_with_its_counts_so_far():
    def interrupt(outcome):
        if outcome.transitions > 1000:
            raise KeyboardInterrupt

    job = load(SCENARIOS["swarm-five-servers-oracle"])
    outcome = RandomWalks().explore(Request(job.model, Limits(seconds=60.0), progress=interrupt))
    assert outcome.stop is Stop.INTERRUPTED and outcome.transitions > 1000


def test_random_walks_with_a_checkpoint_are_refused(tmp_path):
    model = scenario("zookeeper-4643").model
    with pytest.raises(ModelError, match="random walks save no checkpoint; a seed and a number repeat each walk"):
        explore(model, frontier=RandomWalks(), checkpoint=Checkpoint(tmp_path))


@pytest.mark.parametrize("arguments", [{"limits": Limits(states=10)}, {"until_witnessed": True}])
def test_what_would_not_end_random_walks_is_refused(arguments):
    with pytest.raises(ModelError, match="random walks end at no number of states and at no witnesses"):
        explore(scenario("zab-syncs").model, frontier=RandomWalks(), **arguments)


def test_a_swarm_that_cannot_make_its_model_elsewhere_has_one_process():
    outcome = explore(scenario("zab-syncs").model, Limits(work=8), frontier=RandomWalks(), workers=3)
    assert outcome.workers == ["1"]


def test_the_coverage_over_time_never_falls():
    outcome = RandomWalks().explore(Request(scenario("zookeeper-4643").model, Limits(depth=100, work=3000)))
    assert len(outcome.samples) > 10
    for before, after in pairwise(outcome.samples):
        assert all(a <= b for a, b in zip(before, after, strict=True))


def test_the_shipped_scenarios_of_a_swarm_have_five_servers():
    for name in ("swarm-five-servers", "swarm-five-servers-oracle"):
        assert Path(SCENARIOS[name]).parent.name == "swarm"
        assert len(load(SCENARIOS[name]).presenter.lanes(load(SCENARIOS[name]).model.initial())) == 5
