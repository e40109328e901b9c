"""Counterexamples of the checker on real servers: `python -m harness reproduce`.

The defect acks-survive-truncation loses an acknowledged write on every released server; without the disconnection of
the follower, the same schedule loses nothing. The other schedules, and roll-outs that go wrong, are slow tests. Six
older defects are shown by 3.8.0: their claims are those of the scenarios, and their issues say what the servers do.
"""

from pathlib import Path

import pytest

from checker.engine import Step
from checker.engine.semantics import successors
from checker.scenario import from_text
from harness.releases import DEBIAN
from harness.reproduce.driver import reproduce
from harness.reproduce.ends import Outcome, Reproduction, WriteFate
from harness.reproduce.gates import compile_shim
from harness.reproduce.schedule import load_schedule, schedule_of, with_losses, without

SCENARIOS = Path(__file__).parents[2] / "spec" / "scenarios"
DEFECTS = SCENARIOS / "known-defects"
TRUNCATION = DEFECTS / "acks-survive-truncation.yaml"
APPLIED = DEFECTS / "sync-from-applied.yaml"
LEADER_LAST = SCENARIOS / "r10-whole-protocol" / "r10-zab-leader-last-loses-a-write.yaml"
HEALING = SCENARIOS / "r10-whole-protocol" / "r10-zab-healing.yaml"
PROMOTED = SCENARIOS / "r4-observers" / "r4-observer-promoted-loses-a-write.yaml"
EPOCH_FIRST = DEFECTS / "zookeeper-4643.yaml"
ACK_FIRST = DEFECTS / "zookeeper-4646.yaml"
DECISIVE = {TRUNCATION: 5, APPLIED: 6, EPOCH_FIRST: 15, ACK_FIRST: 13}
"""The step of each schedule without which nothing is lost: a lost connection, or a crash before a write to the log."""
OTHERS = (
    ("zookeeper-3023", DEBIAN), ("zookeeper-4394", "3.8.6"), ("zookeeper-4685", DEBIAN), ("zookeeper-4712", DEBIAN)
)  # fmt: skip


def execute(file: Path, directory: Path, release: str, *, control: bool = False) -> Reproduction:
    schedule = load_schedule(file)
    if control:
        schedule = without(schedule, DECISIVE[file])
    schedule = with_losses(schedule)
    servers = directory / "servers"
    servers.mkdir()
    return reproduce(schedule, servers, release, compile_shim(directory), lambda _: None)


def test_an_acknowledged_write_is_lost_as_the_model_predicts(tmp_path: Path) -> None:
    result = execute(TRUNCATION, tmp_path, DEBIAN)
    assert result.outcome is Outcome.CONFIRMED, result.reason
    assert len(result.steps) == 12
    assert result.acknowledged == {"/write-1": 3}
    assert result.present == {"/write-1": ()}
    assert result.fate("/write-1") is WriteFate.LOST


@pytest.mark.parametrize("name", ["pending-view-activated", "last-seen-forgotten"])
def test_a_run_with_a_reconfiguration_is_executed_step_by_step(name: str, tmp_path: Path) -> None:
    """Both end with servers 1 and 2 in the old view, and others in the new one."""
    result = execute(SCENARIOS / "reconfiguration" / f"{name}.yaml", tmp_path, "3.9.5")
    assert result.outcome is Outcome.CONFIRMED, result.reason


def test_without_the_disconnection_the_write_stays(tmp_path: Path) -> None:
    result = execute(TRUNCATION, tmp_path, DEBIAN, control=True)
    assert result.outcome is Outcome.CONFIRMED, result.reason
    assert result.acknowledged == {"/write-1": 3}
    assert result.present == {"/write-1": (1, 2, 3)}


@pytest.mark.slow
@pytest.mark.parametrize("release", [DEBIAN, "3.9.5"])
@pytest.mark.parametrize("file", [TRUNCATION, APPLIED], ids=lambda file: file.stem)
def test_a_committed_write_is_at_no_server_in_both_lines(file: Path, release: str, tmp_path: Path) -> None:
    result = execute(file, tmp_path, release)
    assert result.outcome is Outcome.CONFIRMED, result.reason
    assert result.fate("/write-1") in (WriteFate.LOST, WriteFate.REVERSED)


@pytest.mark.slow
@pytest.mark.parametrize("release", [DEBIAN, "3.9.5"])
@pytest.mark.parametrize("file", [TRUNCATION, APPLIED], ids=lambda file: file.stem)
def test_the_controls_lose_nothing_in_both_lines(file: Path, release: str, tmp_path: Path) -> None:
    result = execute(file, tmp_path, release, control=True)
    assert result.present == {"/write-1": (1, 2, 3)}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "release"), OTHERS)
def test_a_defect_without_a_lost_write_is_reached_step_by_step(name: str, release: str, tmp_path: Path) -> None:
    result = execute(DEFECTS / f"{name}.yaml", tmp_path, release)
    assert result.outcome is Outcome.CONFIRMED, result.reason


@pytest.mark.slow
@pytest.mark.parametrize(("file", "acknowledged"), [(EPOCH_FIRST, {"/write-1": 3}), (ACK_FIRST, {})])
def test_a_crash_before_the_write_to_the_log_loses_a_write(
    file: Path, acknowledged: dict[str, int], tmp_path: Path
) -> None:
    result = execute(file, tmp_path, DEBIAN)
    assert result.outcome is Outcome.CONFIRMED, result.reason
    assert result.acknowledged == acknowledged
    assert result.fate("/write-1") is (WriteFate.LOST if acknowledged else WriteFate.REVERSED)


@pytest.mark.slow
@pytest.mark.parametrize("file", [EPOCH_FIRST, ACK_FIRST], ids=lambda file: file.stem)
def test_without_the_crash_before_the_write_to_the_log_nothing_is_lost(file: Path, tmp_path: Path) -> None:
    result = execute(file, tmp_path, DEBIAN, control=True)
    assert result.outcome is Outcome.CONFIRMED, result.reason
    assert result.present == {"/write-1": (1, 2, 3)}


CANNOT_TRUNCATE = (
    "server.1 and server.4 elect server.3", "server.4 receives SNAP 1:3", "server.3 crashes",
    "server.4 receives NEWLEADER", "server.4 has a snapshot", "server.4 has currentEpoch 2", "server.4 has lost",
    "server.1 has lost", "server.1 elects server.2", "server.4 joins server.2", "server.4 receives TRUNC 1:2",
    "server.1 receives DIFF", "server.1 receives NEWLEADER", "server.2 receives ACK", "server.1 receives UPTODATE",
    "server.4 joins server.2",
)  # fmt: skip
"""The observer has the record 1:1 and the snapshot 1:3, so the TRUNC 1:2 finds no record to cut at."""


@pytest.mark.slow
@pytest.mark.parametrize("release", [DEBIAN, "3.9.5"])
def test_a_server_that_cannot_truncate_its_log_ends(release: str, tmp_path: Path) -> None:
    text = (DEFECTS / "zookeeper-4837.yaml").read_text("utf-8").replace("4837]", "4837, trunc-after-snap]")
    job = from_text(text, lambda name: (DEFECTS / name).read_text("utf-8"))
    path = [Step(None, job.model.initial())]
    for caption in CANNOT_TRUNCATE:
        moves = successors(job.model, path[-1].row)
        path.append(next(Step(m, row) for m, row in moves if job.presenter.caption(m).startswith(caption)))
    schedule = with_losses(schedule_of(job, path))
    assert [schedule.cannot_truncate(step) for step in schedule.steps if schedule.cannot_truncate(step)] == [4]
    servers = tmp_path / "servers"
    servers.mkdir()
    result = reproduce(schedule, servers, release, compile_shim(tmp_path), lambda _: None)
    assert result.outcome is Outcome.CONFIRMED, result.reason


@pytest.mark.slow
@pytest.mark.parametrize("release", [DEBIAN, "3.9.5"])
@pytest.mark.parametrize(
    ("file", "present"),
    [
        (LEADER_LAST, {"/write-1": ()}),
        (HEALING, {"/write-1": (1, 3), "/write-2": (2, 4, 5)}),
        (PROMOTED, {"/write-1": (2,)}),
    ],
    ids=["leader-last", "healing", "promoted"],
)
def test_a_roll_out_goes_wrong_as_the_model_predicts(
    file: Path, present: dict[str, tuple[int, ...]], release: str, tmp_path: Path
) -> None:
    result = execute(file, tmp_path, release)
    assert result.outcome is Outcome.CONFIRMED, result.reason
    assert set(result.acknowledged) == set(present)
    assert result.present == present
