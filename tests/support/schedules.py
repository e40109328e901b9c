"""Schedules of runs that a test writes down by the captions of their steps."""

from pathlib import Path

from checker.engine import Step
from checker.engine.semantics import successors
from checker.scenario import load
from harness.reproduce.schedule import Schedule, schedule_of


def run_of(file: Path, *captions: str) -> Schedule:
    """The run of a scenario whose steps have these captions, or begin with them."""
    job = load(file)
    path = [Step(None, job.model.initial())]
    for caption in captions:
        moves = successors(job.model, path[-1].row)
        path.append(next(Step(m, row) for m, row in moves if job.presenter.caption(m).startswith(caption)))
    return schedule_of(job, path)
