"""Ways of working: the steps of each, what a proof covers, and the table of verdicts."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from checker.engine import Limits
from checker.rollout.answer import Plan, PlanRequest
from checker.rollout.assessor import LEADERS
from checker.rollout.inputs.platform import Operator, PodManagement, Readiness, UpdateStrategy, WayOfWorking
from checker.rollout.orders import (
    OrderError,
    ServerStep,
    Way,
    candidates,
    covers_runs,
    has_quorum,
    in_way,
    left_out,
    proof_covers,
    quorum_without,
    steps_of,
    way_of,
    with_waits,
)
from checker.rollout.planner import plan
from checker.rollout.runs import RunEnd, RunResult, SafetyVerdict, run_within
from checker.rollout.scenarios import CRASHES, Question, RunSpec
from checker.rollout.stages import whole
from checker.scenario import from_text
from tests.support.command_line import cli
from tests.support.rollout_runs import (
    FOLDERS,
    change_of,
    folder_of,
    made_up,
    never,
    plan_of,
    shipped,
    unfinished,
)
from tests.support.rollout_ways import steps_by_hand

SAFE, UNSAFE, OPEN = SafetyVerdict.SAFE, SafetyVerdict.UNSAFE, SafetyVerdict.OPEN


def told(steps: tuple[ServerStep, ...]) -> list[str]:
    """Each step as text, with a + if the next one waits."""
    return [f"{step}{'+' if step.wait else ''}" for step in steps]


STEPS = {
    Way.ONE_BY_ONE: (["start 4+", "start 5+", "restart 1+", "restart 3+", "restart 2+"]),
    Way.NO_WAIT: (["start 4", "start 5", "restart 1", "restart 3", "restart 2"]),
    Way.PARALLEL: (["start 4", "start 5", "restart 1+", "restart 3+", "restart 2+"]),
    Way.STOP_ALL: (["stop 1", "stop 3", "stop 2", "start 1", "start 2", "start 3", "start 4", "start 5"]),
    Way.CONTROLLER: (["start 4+", "start 5+", "restart 3+", "restart 2+", "restart 1+"]),
    Way.PARALLEL_CONTROLLER: (["start 4", "start 5", "restart 3+", "restart 2+", "restart 1+"]),
    Way.UNREADY_CONTROLLER: (["start 4", "start 5", "restart 3", "restart 2", "restart 1"]),
}


@pytest.mark.parametrize(("way", "steps"), STEPS.items(), ids=[way.value for way in STEPS])
def test_each_way_has_its_steps_from_three_to_five(way: Way, steps: list[str]) -> None:
    stage = change_of("three", "five")
    planned = in_way(way, stage, 2, next(candidates(stage, 2)))
    assert told(planned) == steps
    assert planned == steps_by_hand(way, stage, 2, planned)


@pytest.mark.parametrize("way", Way)
def test_each_way_can_be_written_as_a_scenario(way: Way) -> None:
    """From five to three: two servers only stop, and the others come back with their new file."""
    stage = change_of("five", "three")
    steps = in_way(way, stage, 2, next(candidates(stage, 2)))
    assert steps == steps_by_hand(way, stage, 2, steps)
    assert left_out(stage, steps) == ()
    spec = RunSpec(stage, steps, 2, Question.COMMITS, {CRASHES: 1}, writes=1, elections=2, way=way)
    text = spec.text
    assert text.count("stop: ") == (5 if way is Way.STOP_ALL else 2)
    assert text.count("wait: rejoined") == (0 if way in (Way.NO_WAIT, Way.STOP_ALL, Way.UNREADY_CONTROLLER) else 3)
    assert all(f"{sid}, file: after.cfg" in text for sid in (1, 2, 3))
    assert from_text(text, stage.texts.get).name == spec.name


def test_nothing_runs_between_the_stops_and_the_starts() -> None:
    """The fourth server of five that starts is the first one with a quorum of the new file, which is three."""
    stage = change_of("three", "five")
    steps = in_way(Way.STOP_ALL, stage, 2, ())
    running = [quorum_without(stage, steps, step) for step in steps[:3]]
    assert running == [True, False, False], "the first stop leaves two of three"
    assert not has_quorum(stage, frozenset(), frozenset())
    assert left_out(stage, steps[:4]) == (2, 3, 4, 5), "2 and 3 are stopped, and 4 and 5 never started"


def test_an_order_is_followed_with_the_waits_of_a_way_and_refused_by_a_way_that_has_its_own() -> None:
    stage = change_of("three", "five")
    order = steps_of(stage, (4, 1, 3, 2, 5))
    assert told(with_waits(Way.PARALLEL, order)) == ["start 4", "restart 1+", "restart 3+", "restart 2+", "start 5"]
    assert told(with_waits(Way.NO_WAIT, order)) == ["start 4", "restart 1", "restart 3", "restart 2", "start 5"]
    for way in (Way.STOP_ALL, Way.CONTROLLER, Way.UNREADY_CONTROLLER):
        with pytest.raises(OrderError, match=f"--how {way.value} fixes its order"):
            with_waits(way, order)


def test_runs_of_a_way_are_runs_of_one_with_fewer_waits() -> None:
    stage = change_of("three", "five")
    one, other = (in_way(way, stage, 2, next(candidates(stage, 2))) for way in (Way.ONE_BY_ONE, Way.NO_WAIT))
    assert covers_runs(other, one) and not covers_runs(one, other)
    assert not covers_runs(other, one[::-1])


def test_a_proof_covers_a_promotion_only_if_the_promoted_server_is_waited_for(tmp_path: Path) -> None:
    """The observer may have the epoch of a leader on its disk without that leader's transactions."""
    old, new = folder_of(tmp_path / "old", (1, 2), (3,)), folder_of(tmp_path / "new", (1, 2, 3))
    stage, back = whole(old, new), whole(new, old)
    first, last = steps_of(stage, (3, 1, 2)), steps_of(stage, (1, 2, 3))
    assert proof_covers(Way.ONE_BY_ONE, stage, first) and not proof_covers(Way.ONE_BY_ONE, stage, last)
    for way in (Way.NO_WAIT, Way.STOP_ALL, Way.CONTROLLER, Way.UNREADY_CONTROLLER):
        assert not proof_covers(way, stage, in_way(way, stage, 2, first))
    assert proof_covers(Way.STOP_ALL, back, in_way(Way.STOP_ALL, back, 2, ())), "a voter logs what it acknowledges"
    assert not proof_covers(Way.CONTROLLER, back, steps_of(back, (1, 2, 3))), "its new file lies ready"


def test_a_server_comes_back_with_its_new_file_early_only_with_a_controller_where_roles_change(tmp_path: Path) -> None:
    old, new = folder_of(tmp_path / "old", (1, 2), (3,)), folder_of(tmp_path / "new", (1, 2, 3))
    stage = whole(old, new)
    spec = RunSpec(stage, steps_of(stage, (3, 2, 1)), 2, Question.COMMITS, {CRASHES: 1})
    assert "other_files" not in spec.text
    assert replace(spec, way=Way.CONTROLLER).text.count("other_files: [after.cfg]") == 3


def rolling(pods: PodManagement, readiness: Readiness) -> WayOfWorking:
    return WayOfWorking(pods, UpdateStrategy.ROLLING_UPDATE, readiness=readiness)


@pytest.mark.parametrize(
    ("working", "way"),
    [
        (None, None),
        (WayOfWorking(PodManagement.PARALLEL, UpdateStrategy.ROLLING_UPDATE), Way.PARALLEL_CONTROLLER),
        (WayOfWorking(PodManagement.ORDERED_READY, UpdateStrategy.ROLLING_UPDATE, partition=3), None),
        (WayOfWorking(PodManagement.ORDERED_READY, UpdateStrategy.ROLLING_UPDATE), Way.CONTROLLER),
        (WayOfWorking(PodManagement.ORDERED_READY, UpdateStrategy.ON_DELETE), None),
        (WayOfWorking(operator=Operator.STRIMZI, updates=UpdateStrategy.ROLLING_UPDATE), None),
        (rolling(PodManagement.PARALLEL, Readiness.SERVING), Way.PARALLEL_CONTROLLER),
        (rolling(PodManagement.ORDERED_READY, Readiness.SERVING), Way.CONTROLLER),
        (rolling(PodManagement.PARALLEL, Readiness.ALIVE), Way.UNREADY_CONTROLLER),
        (rolling(PodManagement.ORDERED_READY, Readiness.NONE), Way.UNREADY_CONTROLLER),
        (WayOfWorking(PodManagement.PARALLEL, UpdateStrategy.ON_DELETE, readiness=Readiness.ALIVE), None),
    ],
)
def test_the_way_of_a_platform_is_the_default(working: WayOfWorking | None, way: Way | None) -> None:
    assert way_of(working) is way
    three = shipped("three")
    request = PlanRequest(three, replace(three, working=working))
    assert request.way is (way or Way.ONE_BY_ONE)
    assert replace(request, how=Way.NO_WAIT).way is Way.NO_WAIT
    assert replace(request, order=(1, 2, 3)).way is Way.ONE_BY_ONE


def rows(made: Plan) -> dict[str, tuple[str, str | None]]:
    return {
        part.way.value: (
            part.worst(faulty=False).outcome.value,
            part.worst(faulty=True).outcome.value if part.faults else None,
        )
        for part in made.ways
    }


def test_no_run_is_made_where_a_proof_covers_every_way() -> None:
    three = shipped("three")
    made = plan(PlanRequest(three, three), never)
    assert rows(made) == {way.value: ("safe", "safe") for way in Way}
    assert rows(plan(PlanRequest(three, three, faults=0), never))["controller"] == ("safe", "safe"), "its restarts"
    assert rows(plan(PlanRequest(three, three, faults=0), never))["parallel"] == ("safe", None)
    assert plan(PlanRequest(three, three, how=Way.NO_WAIT), never).ways == ()


def test_what_was_not_explored_to_the_end_is_undecided() -> None:
    made = plan_of("three", "five", unfinished)
    found = rows(made)
    assert found.pop("one-by-one") == ("safe", "safe"), "its order has a proof"
    assert set(found.values()) == {("undecided", "undecided")}


def test_a_violation_of_one_way_is_one_of_each_way_with_fewer_waits() -> None:
    """Every run is finished, and only that of the commits in the planned order has a violation."""

    def lost(spec: RunSpec, seconds: float) -> RunResult:
        waits = all(step.wait for step in spec.steps)
        unsafe = spec.question is Question.COMMITS and waits and spec.way is Way.ONE_BY_ONE and not spec.faults
        return made_up(spec, UNSAFE if unsafe and len(spec.steps) == 5 else SAFE)

    made = plan_of("three", "five", lost, (4, 5, 1, 2, 3), 3)
    found = rows(made)
    assert {way for way, row in found.items() if row == ("unsafe", "unsafe")} == {"one-by-one", "no-wait", "parallel"}
    assert found["stop-all"] == found["controller"] == ("safe", "safe")


def test_the_command_judges_a_way_and_refuses_an_order_that_the_way_has_itself() -> None:
    folders = ("--from", str(FOLDERS / "three"), "--to", str(FOLDERS / "three"))
    ended = cli("rollout", *folders, "--json")
    answer = json.loads(ended.out)
    assert (ended.code, answer["how"]) == (0, "one-by-one")
    assert [row["way"] for row in answer["ways"]] == [way.value for way in Way]
    assert {row["under_faults"]["reason"] for row in answer["ways"]} == {"proved"}
    stopped = json.loads(cli("rollout", *folders, "--json", "--how", "stop-all").out)
    assert (stopped["how"], stopped["ways"]) == ("stop-all", [])
    refused = cli("rollout", *folders, "--how", "controller", "--order", "1,2,3")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "leave out --order" in refused.err


def test_servers_that_wait_for_init_limit_are_no_stop() -> None:
    """A restarted server acknowledges the epoch that it accepted before with -1, which the leader does not count.

    All wait then until `initLimit`, and look again (`Learner.registerWithLeader`, `Leader.waitForEpochAck`).
    """
    stage = change_of("three", "four")
    steps = in_way(Way.UNREADY_CONTROLLER, stage, 2, ())
    spec = RunSpec(
        stage, steps, 2, Question.ELECTION, always=LEADERS, recoverable=True, way=Way.UNREADY_CONTROLLER
    )  # fmt: skip
    found = run_within(spec, Limits(states=400_000))
    assert (found.end, found.outcome, found.looking) == (RunEnd.INIT_LIMIT, SafetyVerdict.OPEN, ())


def test_a_story_of_a_way_without_waits_names_no_wait() -> None:
    """All servers stop, and start with the files of five: a write is lost, and nobody has waited for any of them."""
    folders = ("--from", FOLDERS / "three", "--to", FOLDERS / "five", "--in-one-go")
    ended = cli("rollout", *folders, "--how", "stop-all", "--budget", "5s", "--faults", 0)
    assert ended.code == 12 and "it is lost." in ended.out
    assert "without waiting for" not in ended.out
