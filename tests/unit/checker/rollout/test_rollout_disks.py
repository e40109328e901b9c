"""Disks that are not what they were: lost, old, or of another cluster."""

from pathlib import Path

import pytest

from checker.engine import Limits
from checker.execution import run_job
from checker.models.ensemble.environment import EARLIER_DISK
from checker.rollout.answer import Plan, PlanRequest
from checker.rollout.disks import DiskHazard, DiskRemedy, RemedyKind
from checker.rollout.inputs.folders import read_folder
from checker.rollout.orders import Way
from checker.rollout.planner import plan
from checker.rollout.route_verdict import Reason
from checker.rollout.runs import SafetyVerdict, run
from checker.rollout.scenarios import NO_LOSS, Question
from checker.scenario import bundled, from_text
from tests.support.rollout_runs import folder_of

THREE = bundled()[0].parent.parent / "rollouts" / "three"
EMPTY, STALE, FOREIGN = DiskHazard
SAFE, UNSAFE = SafetyVerdict.SAFE, SafetyVerdict.UNSAFE


def planned(disks: dict[int, DiskHazard], *, leader: int | None = None, faults: int = 1) -> Plan:
    """Nothing changes but the disks of three servers."""
    three = read_folder(THREE)
    return plan(PlanRequest(three, three, None, leader, faults, how=Way.ONE_BY_ONE, disks=disks), run)


@pytest.mark.parametrize("hazard", [EMPTY, STALE])
def test_a_server_of_three_that_forgot_a_write_loses_it_after_a_crash(hazard: DiskHazard) -> None:
    """Leader 2 and server 3 have the write. 3 forgets it, 2 crashes, and {1, 3} elect a leader without it."""
    made = planned({3: hazard}, leader=2)
    plain, faulty = (made.direct.answer(Question.GIVEN_DISKS, faulty=each) for each in (False, True))
    assert (plain.outcome, faulty.outcome, made.outcome) == (SAFE, UNSAFE, UNSAFE)
    assert faulty.finding is not None and faulty.finding.prop == "LeaderLogCompleteness"
    assert dict(faulty.finding.spec.faults) == {"crashes": 1}
    assert made.remedies == (
        DiskRemedy(RemedyKind.RETURN_LATE, (3,), proved=True),
        DiskRemedy(RemedyKind.NEW_ID, (3,), proved=True),
    )
    assert made.seconds < 10, "the default budget is 60"


def test_a_leader_that_forgets_loses_a_write_without_a_fault() -> None:
    answer = planned({3: EMPTY}, leader=3, faults=0).direct.answer(Question.GIVEN_DISKS, faulty=False)
    assert answer.outcome is UNSAFE and answer.finding is not None


RETURN = """
servers:
  1: {{file: before.cfg, epoch: 1, zxid: '1:1', log: ['1:2']}}
  2: {{file: before.cfg, epoch: 1, zxid: '1:1', log: ['1:2']}}
  3: {{file: before.cfg}}
history: [{{start: [1, 2]}}]
plan: [{{start: 3, wait: rejoined}}]
grain: oracle
protocol: zab
disk: sync
discovery: one-step
elections: 2
workload: {{writes: 1}}
faults: {{{faults}}}
always: [{always}]
"""


@pytest.mark.parametrize("faults", ["crashes: 1, restarts: 1", "partitions: 1", "disconnects: 1"])
def test_a_lost_server_that_returns_when_the_others_have_every_write_loses_nothing(faults: str) -> None:
    """The remedy RETURN_LATE, explored to the end."""
    text = RETURN.format(faults=faults, always=", ".join(NO_LOSS))
    zoo = (THREE / "zoo.cfg").read_text(encoding="utf-8")
    explored = run_job(from_text(text, {"before.cfg": zoo}.get), Limits())
    assert explored.exhausted and not explored.violations and explored.states > 100


def test_two_restored_backups_of_three_lose_a_write_without_a_fault() -> None:
    made = planned({1: STALE, 2: STALE}, leader=3, faults=0)
    answer = made.direct.answer(Question.GIVEN_DISKS, faulty=False)
    assert answer.outcome is UNSAFE and answer.finding is not None and answer.finding.trace is not None
    captions = [step.caption for step in answer.finding.trace.steps]
    assert sum(EARLIER_DISK in caption for caption in captions) == 2
    assert made.remedies == (), "server 3 alone is no quorum, so nobody is known to have every write"


def test_a_disk_of_another_cluster_takes_over_after_a_crash_of_the_leader() -> None:
    made = planned({3: FOREIGN}, leader=2)
    answer = made.direct.answer(Question.GIVEN_DISKS, faulty=True)
    assert answer.outcome is UNSAFE and answer.finding is not None and answer.finding.trace is not None
    assert dict(answer.finding.trace.values)["leader"] == 3


def test_a_stale_disk_under_a_new_id_is_no_danger_and_one_of_another_cluster_is(tmp_path: Path) -> None:
    """4 joins 1, 2 and 3. It never acknowledged anything, so the proof covers its old disk."""
    old, new = folder_of(tmp_path / "old", (1, 2, 3)), folder_of(tmp_path / "new", (1, 2, 3, 4))
    stale = plan(PlanRequest(old, new, leader=3, how=Way.ONE_BY_ONE, disks={4: STALE}), run)
    answer = stale.direct.answer(Question.GIVEN_DISKS, faulty=True)
    assert (answer.outcome, answer.reason, stale.outcome) == (SAFE, Reason.PROVED, SAFE)
    foreign = plan(PlanRequest(old, new, leader=3, faults=0, how=Way.ONE_BY_ONE, disks={4: FOREIGN}), run)
    assert foreign.direct.answer(Question.GIVEN_DISKS, faulty=False).outcome is UNSAFE
    assert foreign.remedies == (DiskRemedy(RemedyKind.ERASE, (4,), proved=True),)
