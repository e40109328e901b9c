"""The planner's budget counts processor time of searches, ends them all, and counts nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from checker.engine import Exploration, Limits, Model, plain, search
from checker.engine.result import Stop
from checker.rollout import Engine, Wish, plan, read_folder
from checker.rollout.runs import Outcome, Ran, job_of
from checker.rollout.scenarios import Asked, Question
from checker.rollout.stages import whole
from checker.rollout.steps import steps_of
from checker.scenario import bundled
from tests.support.graphs import graph

TWO_STEPS = graph([(0, "go", 1), (1, "go", 2)])
FOLDERS = bundled()[0].parent.parent / "rollouts"


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


@pytest.mark.parametrize("explore", [search.explore, plain.explore], ids=["tables", "plain"])
def test_a_search_that_waits_uses_no_processor_time(explore: Callable[..., Exploration]) -> None:
    def wait(_: Exploration) -> None:
        time.sleep(0.3)

    search.explore(TWO_STEPS)  # compiles kernels, which is work
    assert explore(TWO_STEPS, Limits(processor=0.25), progress=wait).stop is Stop.EXHAUSTED


@pytest.mark.parametrize("explore", [search.explore, plain.explore], ids=["tables", "plain"])
def test_a_search_ends_when_its_processor_time_is_used_up(explore: Callable[..., Exploration]) -> None:
    def work(_: Exploration) -> None:
        burn(0.3)

    result = explore(TWO_STEPS, Limits(processor=0.25), progress=work)
    assert result.stop is Stop.TIME and not result.exhausted


class Greedy:
    """A runner whose every run uses all the time that it is given, and reaches no end."""

    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def run(self, asked: Asked, seconds: float) -> Ran:
        self.now += seconds
        return Ran(asked, Outcome.OPEN, "not all", 10, 2, seconds, (), asked.name)


@pytest.mark.parametrize("seconds", [1.0, 60.0])
@pytest.mark.parametrize(
    ("old", "new"), [("three", "five"), ("five", "three"), ("three", "four"), ("observer", "voters")]
)
def test_runs_that_use_all_their_time_keep_the_budget(old: str, new: str, seconds: float) -> None:
    greedy = Greedy()
    plan(Wish(read_folder(FOLDERS / old), read_folder(FOLDERS / new), seconds=seconds), greedy.run, greedy.clock)
    assert greedy.now == pytest.approx(seconds) or greedy.now < seconds


def test_compilation_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = whole(read_folder(FOLDERS / "three"), read_folder(FOLDERS / "four"))
    asked = Asked(stage, steps_of(stage, (4, 1, 2, 3)), 3, Question.ELECTION, always=("OneLeader",))
    empty = Exploration(job_of(asked).model, "tables", Limits(), levels=[1])

    def explore(_: Model, limits: Limits, **__: object) -> Exploration:
        burn(1.0 if limits.depth == 1 else 0.01)  # the first search compiles
        return empty

    monkeypatch.setattr(search, "explore", explore)
    engine = Engine()
    began = engine.clock()
    engine.run(asked, 10.0)
    engine.run(asked, 10.0)
    assert engine.clock() - began < 1.0
