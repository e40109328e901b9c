"""The planner's budget counts work, which is the same on every machine; it ends every search, and is never exceeded."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from checker.engine import Exploration, Limits, plain, search
from checker.engine.checkpoint import Checkpoint
from checker.engine.result import VALUE, Stop
from checker.rollout import PlanRequest, plan
from checker.rollout.orders import steps_of
from checker.rollout.runs import RunEnd, RunResult, SafetyVerdict, job_of, run_within
from checker.rollout.scenarios import CRASHES, Question, RunSpec
from tests.support.command_line import cli
from tests.support.graphs import graph, recoverable
from tests.support.rollout_runs import change_of, folder_of, made_up, plan_of, shipped

TWO_STEPS = graph([(0, "go", 1), (1, "go", 2)])


def slowed(clock: Callable[[], float]) -> float:
    """Return a clock that runs a hundred times as fast between two readings."""
    return 100 * clock()


def four_servers() -> RunSpec:
    """Return a question with millions of states."""
    stage = change_of("three", "four")
    return RunSpec(
        stage, steps_of(stage, (4, 1, 2, 3)), 3, Question.COMMITS, {CRASHES: 1}, writes=1, elections=2,
        always=("OneLeader", "CommittedLogDurability"),
    )  # fmt: skip


def test_hundreds_of_servers_end_with_the_budget(tmp_path: Path) -> None:
    """The plan of these needs minutes between its runs, and makes none."""
    for name, count in (("before", 3), ("after", 255)):
        folder_of(tmp_path / name, range(1, count + 1))
    began = time.thread_time()
    ended = cli("rollout", "--from", tmp_path / "before", "--to", tmp_path / "after", "--budget", "1s", "--no-cache")
    assert ended.code == 20 and "not decided" in ended.err and not ended.out
    assert time.thread_time() - began < 4


@pytest.mark.parametrize("explore", [search.explore, plain.explore], ids=["tables", "plain"])
def test_a_search_that_waits_does_no_work(explore: Callable[..., Exploration]) -> None:
    result = explore(TWO_STEPS, Limits(work=20 * VALUE), progress=lambda _: time.sleep(0.1))
    assert result.stop is Stop.EXHAUSTED and result.work < 20 * VALUE


def test_a_search_ends_between_two_levels_when_its_work_is_done() -> None:
    result = plain.explore(TWO_STEPS, Limits(work=VALUE))
    assert result.stop is Stop.WORK and result.states == 2 and not result.exhausted


@pytest.mark.parametrize("workers", [1, 2])
def test_a_search_ends_inside_a_level_at_the_same_place_each_time(workers: int) -> None:
    """Delays between two batches simulate a busy machine."""
    model = job_of(four_servers()).model

    def ended(pause: float) -> tuple[object, ...]:
        result = search.explore(
            model, Limits(work=1_000_000), workers=workers, progress=lambda _: time.sleep(pause)
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
    """Each process hashes strings differently, so the order of sets differs."""
    program = (
        "from tests.unit.checker.rollout.test_rollout_budget import four_servers\n"
        "from checker.rollout.runs import run\n"
        "ran = run(four_servers(), 0.5)\n"
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

    def greedy(spec: RunSpec, seconds: float) -> RunResult:
        used.append(seconds)
        return made_up(spec, SafetyVerdict.OPEN, seconds=seconds)

    made = plan_of(old, new, greedy, seconds=seconds)
    assert sum(used) <= seconds * (1 + 1e-9)
    assert made.seconds == pytest.approx(sum(used))


def test_a_slow_machine_gives_the_same_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    request = PlanRequest(shipped("observer"), shipped("voters"), seconds=3.0)

    def runs() -> list[tuple[object, ...]]:
        made = plan(request, lambda spec, seconds: run_within(spec, Limits(work=round(seconds * 1_000_000))))
        return [(ran.spec.name, ran.outcome, ran.states, ran.levels) for ran in made.runs]

    quiet = runs()
    for clock in (time.monotonic, time.process_time, time.perf_counter):
        monkeypatch.setattr(time, clock.__name__, partial(slowed, clock))
    assert runs() == quiet and len(quiet) > 3


def test_judging_liveness_is_work() -> None:
    """A graph of a thousand states with one goal: the judgement examines states and edges in addition to the search."""
    chain = [(n, "go", n + 1) for n in range(1000)]
    alone = search.explore(graph(chain))
    judged = search.explore(graph(chain, recoverable(1000)))
    stats = judged.liveness["Back"]
    answers = VALUE * (judged.python_calls - alone.python_calls)
    assert judged.work >= alone.work + answers + stats.states + stats.edges > alone.work + answers + 1500


def test_a_resumed_search_has_its_own_work(tmp_path: Path) -> None:
    model = job_of(four_servers()).model
    first = search.explore(model, Limits(depth=8), checkpoint=Checkpoint(tmp_path))
    again = search.explore(model, Limits(depth=8), checkpoint=Checkpoint(tmp_path, resume=True))
    assert first.work > 0 and again.work == 0 and again.levels == first.levels


@pytest.mark.parametrize(("limits", "end"), [(Limits(memory=0), RunEnd.MEMORY), (Limits(work=1), RunEnd.WORK)])
def test_a_run_says_which_limit_ended_it(limits: Limits, end: RunEnd) -> None:
    assert run_within(four_servers(), limits).end is end


def test_an_interrupt_ends_the_plan_and_not_only_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = Exploration(job_of(four_servers()).model, "tables", Limits(), levels=[1], stop=Stop.INTERRUPTED)
    monkeypatch.setattr(search, "explore", lambda *_, **__: stopped)
    with pytest.raises(KeyboardInterrupt):
        run_within(four_servers(), Limits())
