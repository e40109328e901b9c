"""Golden transcripts of the counterexamples that the documentation quotes.

Each was compared with the facts before it was committed. R10 ends with the leaders 3 and 5 behind {1, 3} and {2, 4, 5},
as on the real system; the partition leaves 2 with {2, 3} and gives 5 the rest. They change only on purpose: rewrite
them with REWRITE_GOLDEN=1, read the diff, and give the reason in the commit message.
"""

import os
from pathlib import Path

import pytest

from checker.engine.search import explore
from checker.scenario import bundled, load
from checker.traces import read_itf, replay, to_itf, to_mermaid, to_text, trace_of

GOLDEN = Path(__file__).parent / "golden"
SCENARIOS = {path.stem: path for path in bundled()}


def counterexample(name, refined):
    job = load(SCENARIOS[name])
    result = explore(job.model, job.limits)
    (found,) = result.violations
    if refined:
        assert job.refinement is not None
        job, found = job.refinement.found(found)
    return job, trace_of(job, found)


@pytest.mark.parametrize("view", [to_text, to_mermaid])
@pytest.mark.parametrize(
    ("name", "refined"),
    [("r10-wrong-order", False), ("r10-wrong-order", True), ("r10-leader-last-partition", False)],
)
def test_a_counterexample_reads_as_it_did(name, refined, view):
    _, trace = counterexample(name, refined)
    suffix = "txt" if view is to_text else "mmd"
    golden = GOLDEN / f"{name}{'-refined' if refined else ''}.{suffix}"
    shown = view(trace) + "\n"
    if os.environ.get("REWRITE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(shown, encoding="utf-8")
    assert shown == golden.read_text(encoding="utf-8"), "rewrite it with REWRITE_GOLDEN=1, if the new one is right"


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
