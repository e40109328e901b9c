"""Saved counterexamples of R10 replay, and the refined one ends with the buckets of the table.

How they read is in `tests/transcripts/traces/r10.txt`.
"""

import pytest

from checker.engine.search import explore
from checker.scenario import bundled, load
from checker.traces import read_itf, replay, to_itf, trace_of

SCENARIOS = {path.stem: path for path in bundled()}


def counterexample(name, refined):
    job = load(SCENARIOS[name])
    result = explore(job.model, job.limits)
    (found,) = result.violations
    if refined:
        assert job.refinement is not None
        job, found = job.refinement.found(found)
    return job, trace_of(job, found)


@pytest.mark.parametrize("refined", [False, True])
def test_a_saved_counterexample_replays_to_the_same_violation(refined):
    job, trace = counterexample("r10-wrong-order", refined)
    replayed = replay(read_itf(to_itf(trace)), job)
    assert replayed.found.finding.clause == "two servers lead, each followed by a quorum of its own view"


def test_the_refined_run_ends_with_the_receive_buckets_of_the_table():
    """R10: servers 4 and 5 have 2 -> 5, 4 -> 5, 5 -> 5; servers 1 and 3 have 1 -> 3, 3 -> 3."""
    _, trace = counterexample("r10-wrong-order", refined=True)
    buckets = {lane: fields["bucket"] for lane, fields in trace.steps[-1].lanes.items()}
    behind_three, behind_five = {"1": 3, "3": 3}, {"2": 5, "4": 5, "5": 5}
    assert [buckets[f"server.{sid}"] for sid in range(1, 6)] == [
        behind_three, behind_five, behind_three, behind_five, behind_five,
    ]  # fmt: skip
