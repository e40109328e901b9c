"""Answers that were wrong once: each test states what a real platform, or a real disk, does.

Sources: Kubernetes, "StatefulSets": a rolling update restarts the highest ordinal first, under either pod management
policy, and waits for each pod; a server on another host has no data there.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from checker.command import ExitCode
from checker.rollout.answer import Plan, PlanRequest
from checker.rollout.disks import DiskHazard
from checker.rollout.inputs.folders import Folder, read_folder
from checker.rollout.inputs.platform import PodManagement, UpdateStrategy, WayOfWorking
from checker.rollout.orders import Way
from checker.rollout.output.markdown import markdown
from checker.rollout.planner import plan
from checker.rollout.runs import SafetyVerdict, run
from checker.rollout.scenarios import Question
from tests.support.rollout_runs import folder_of, shipped


def judged(old: Folder, new: Folder, **options: object) -> Plan:
    return plan(PlanRequest(old, new, **options), run)  # type: ignore[arg-type]


def alone(path: Path, host: str) -> Folder:
    """The folder of a standalone server on this host."""
    path.mkdir()
    text = f"tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/data\nclientPort=2181\nserver.1={host}:2888:3888\n"
    (path / "zoo.cfg").write_text(text, encoding="utf-8")
    return read_folder(path)


# Controllers.


@pytest.mark.parametrize("way", [Way.CONTROLLER, Way.PARALLEL_CONTROLLER])
def test_a_stateful_set_that_grows_from_three_to_four_comes_to_a_stop(way: Way) -> None:
    """The restarted server 3 and the new one are two of four: neither is ready, and the controller waits for ever."""
    made = judged(shipped("three"), shipped("four"), how=way, leader=3)
    (order,) = made.direct.orders
    assert all(step.wait for step in order.steps if step.action == "restart"), "no wait is removed"
    assert (made.outcome, made.exit_code) == (SafetyVerdict.STALLS, ExitCode.LIVENESS)
    stalled = made.direct.answer(Question.HEALING, faulty=False).finding
    assert stalled is not None and stalled.stuck == 3 and set(stalled.looking) == {3, 4}


def test_the_table_of_ways_shows_that_a_controller_stops() -> None:
    made = judged(shipped("three"), shipped("four"), leader=3)
    outcomes = {each.way: each.outcome for each in made.ways}
    assert outcomes[Way.CONTROLLER] is outcomes[Way.PARALLEL_CONTROLLER] is SafetyVerdict.STALLS
    assert outcomes[Way.ONE_BY_ONE] is SafetyVerdict.SAFE


def test_under_either_policy_the_highest_ordinal_restarts_first() -> None:
    working = WayOfWorking(PodManagement.PARALLEL, UpdateStrategy.ROLLING_UPDATE)
    made = judged(shipped("observer"), replace(shipped("voters"), working=working), seconds=1.0)
    restarts = [step.sid for step in made.direct.orders[0].steps if step.action == "restart"]
    assert restarts == sorted(restarts, reverse=True)
    assert not made.direct.is_settled_by_proof, "its order counts an observer, and its new files lie ready"
    assert made.exit_code is not ExitCode.PASSED


# Disks.


def test_one_to_three_with_the_old_server_on_another_host_loses_all(tmp_path: Path) -> None:
    made = judged(alone(tmp_path / "old", "hosta"), folder_of(tmp_path / "new", (1, 2, 3)))
    assert (made.outcome_with_disks, made.outcome) == (SafetyVerdict.SAFE, SafetyVerdict.UNSAFE)


def test_the_ways_are_not_compared_where_disks_are_given() -> None:
    """Each of them would need the disks, too."""
    made = judged(shipped("three"), shipped("three"), disks={3: DiskHazard.FOREIGN})
    assert made.exit_code is ExitCode.SAFETY
    assert made.ways == ()


# Sentences.


def test_only_three_to_five_has_the_figure_of_three_to_five(tmp_path: Path) -> None:
    few, grown = folder_of(tmp_path / "three", (1, 2, 3)), folder_of(tmp_path / "five", (1, 2, 3, 4, 5))
    other = folder_of(tmp_path / "six", (1, 2, 3, 6, 7, 8))
    options = {"leader": 2, "faults": 0, "how": Way.ONE_BY_ONE}
    seen = judged(few, grown, order=(4, 5, 2, 1, 3), **options)
    unseen = judged(few, other, order=(6, 7, 8, 2, 1, 3), **options)
    for made in (seen, unseen):
        assert made.direct.answer(Question.ELECTION, faulty=False).outcome is SafetyVerdict.UNSAFE
    assert "16 of 16" in markdown(seen) and "16 of 16" not in markdown(unseen)
