"""The planner's budget counts work, which is the same on every machine; it ends every search, and is kept."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import pytest

from checker.engine import Exploration, Limits, plain, search
from checker.engine.result import VALUE, Stop
from checker.rollout import Wish, plan, read_folder
from checker.rollout.runs import Outcome, Ran, job_of, run_within
from checker.rollout.scenarios import CRASHES, Asked, Question
from checker.rollout.stages import whole
from checker.rollout.steps import steps_of
from checker.scenario import bundled
from tests.support.graphs import graph

TWO_STEPS = graph([(0, "go", 1), (1, "go", 2)])
FOLDERS = bundled()[0].parent.parent / "rollouts"


def slowed(clock: Callable[[], float]) -> float:
    """A clock that shows a hundred times as much between two looks at it."""
    return 100 * clock()


def four_servers() -> Asked:
    """A question with millions of states."""
    stage = whole(read_folder(FOLDERS / "three"), read_folder(FOLDERS / "four"))
    return Asked(
        stage, steps_of(stage, (4, 1, 2, 3)), 3, Question.COMMITS, {CRASHES: 1}, writes=1, elections=2,
        always=("OneLeader", "CommittedLogDurability"),
    )  # fmt: skip


@pytest.mark.parametrize("explore", [search.explore, plain.explore], ids=["tables", "plain"])
def test_a_search_that_waits_does_no_work(explore: Callable[..., Exploration]) -> None:
    result = explore(TWO_STEPS, Limits(work=20 * VALUE), progress=lambda _: time.sleep(0.1))
    assert result.stop is Stop.EXHAUSTED and result.work < 20 * VALUE


def test_a_search_ends_between_two_levels_when_its_work_is_done() -> None:
    result = plain.explore(TWO_STEPS, Limits(work=VALUE))
    assert result.stop is Stop.WORK and result.states == 2 and not result.exhausted


@pytest.mark.parametrize("workers", [1, 2])
def test_a_search_ends_inside_a_level_at_the_same_place_each_time(workers: int) -> None:
    """Delays between two batches stand for a busy machine."""
    model = job_of(four_servers()).model

    def ended(pause: float) -> tuple[object, ...]:
        result = search.explore(
            model, Limits(work=3_000_000), workers=workers, progress=lambda _: time.sleep(pause)
        )  # fmt: skip
        return result.stop, result.levels, result.work, result.python_calls

    first = ended(0.0)
    assert first[0] is Stop.WORK
    assert ended(0.05) == first


def test_the_work_of_a_search_is_its_transitions_and_the_values_of_its_calls() -> None:
    """Six transitions; a step of one column has its values and an operation, and every call is made twice at first."""
    model = graph([(n, "go", n + 1) for n in range(6)])
    result = search.explore(model)
    assert (result.transitions, result.python_calls, result.python_steps) == (6, 13, 6)
    assert result.work == 6 + 2 * VALUE * (6 * 2 + 7)


def test_a_run_does_not_depend_on_the_order_of_python_sets() -> None:
    """Each process has another hash of strings, and so another order of sets."""
    program = (
        "from tests.unit.test_rollout_budget import four_servers\n"
        "from checker.rollout.runs import run\n"
        "ran = run(four_servers(), 1.0)\n"
        "print(ran.outcome, ran.levels, ran.seconds)"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1 and b"OPEN" in printed.pop()


@pytest.mark.parametrize("seconds", [1.0, 60.0])
@pytest.mark.parametrize(
    ("old", "new"), [("three", "five"), ("five", "three"), ("three", "four"), ("observer", "voters")]
)
def test_runs_that_use_all_their_work_keep_the_budget(old: str, new: str, seconds: float) -> None:
    used: list[float] = []

    def greedy(asked: Asked, seconds: float) -> Ran:
        used.append(seconds)
        return Ran(asked, Outcome.OPEN, "not all", 10, 2, seconds, (), asked.name)

    made = plan(Wish(read_folder(FOLDERS / old), read_folder(FOLDERS / new), seconds=seconds), greedy)
    assert sum(used) <= seconds * (1 + 1e-9)
    assert made.seconds == pytest.approx(sum(used))


def test_a_slow_machine_gives_the_same_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    wish = Wish(read_folder(FOLDERS / "observer"), read_folder(FOLDERS / "voters"), seconds=3.0)

    def runs() -> list[tuple[object, ...]]:
        made = plan(wish, lambda asked, seconds: run_within(asked, Limits(work=round(seconds * 1_000_000))))
        return [(ran.asked.name, ran.outcome, ran.states, ran.levels) for _, ran in made.runs]

    quiet = runs()
    for clock in (time.monotonic, time.process_time, time.perf_counter):
        monkeypatch.setattr(time, clock.__name__, partial(slowed, clock))
    assert runs() == quiet and len(quiet) > 3
