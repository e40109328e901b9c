"""A walk without a finding is a trace too: it is saved, shown and replayed, and never presented as a finding."""

import json

import pytest

from checker.engine.discovery import Step
from checker.engine.model import Row
from checker.engine.semantics import successors
from checker.job import Job
from checker.models.small_election import election
from checker.present import DefaultPresenter
from checker.traces import ReplayError, Trace, TraceFileError, read_itf, replay, to_itf, walk_of
from checker.traces.formats import FORMATS


@pytest.fixture(scope="module")
def job() -> Job:
    model = election(3)
    return Job("election", model, DefaultPresenter(model), {"kind": "test"})


@pytest.fixture(scope="module")
def walk(job: Job) -> Trace:
    """Return a walk that takes the first possible move four times."""
    path = [Step(None, job.model.initial())]
    for _ in range(4):
        row: Row = path[-1].row
        path.append(Step(*next(iter(successors(job.model, row)))))
    return walk_of(job, tuple(path))


def test_a_walk_says_that_it_found_nothing(walk: Trace) -> None:
    assert walk.headline == "walked: 4 moves, without a finding"
    assert (walk.kind, walk.verdict, walk.prop, walk.clause) == (None, None, "", "")


def test_a_saved_walk_is_read_back_and_replays_step_by_step(job: Job, walk: Trace) -> None:
    read = read_itf(to_itf(walk))
    assert read == walk
    replayed = replay(read, job)
    assert replayed.found is None
    assert len(replayed.path) == 5


def test_a_walk_that_cannot_happen_is_refused(job: Job, walk: Trace) -> None:
    file = json.loads(to_itf(walk))
    file["#meta"]["moves"][2]["action"] = file["states"][3]["mbt::actionTaken"] = "fly"
    with pytest.raises(ReplayError, match="in step 3 it says fly"):
        replay(read_itf(json.dumps(file)), job)


@pytest.mark.parametrize("name", list(FORMATS))
def test_every_format_shows_a_walk(walk: Trace, name: str) -> None:
    shown = FORMATS[name].view(walk)
    assert "violated" not in shown
    assert "start" in shown


@pytest.mark.parametrize("of_a_finding", ["verdict", "property", "clause", "values"])
def test_a_walk_with_something_of_a_finding_is_refused(walk: Trace, of_a_finding: str) -> None:
    file = json.loads(to_itf(walk))
    file["#meta"][of_a_finding] = {"verdict": "violated", "values": [["leaders", 2]]}.get(of_a_finding, "OneLeader")
    with pytest.raises(TraceFileError, match="its kind is missing, and it has parts of a finding"):
        read_itf(json.dumps(file))
