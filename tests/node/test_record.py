"""Real servers, recorded and compared with the specification: `python -m harness record` and `reproduce --record`.

A healthy 3.9.5 ensemble fits under kills. Each provoked defect is found at the step that loses the data.
"""

from pathlib import Path

import pytest

from checker.job import Verdict
from checker.validate.recording import RecordingValidation, validate_recording
from harness.__main__ import main
from harness.record.ensemble import Plan, record
from harness.releases import DEBIAN
from harness.reproduce.driver import reproduce
from harness.reproduce.ends import Outcome
from harness.reproduce.gates import compile_shim
from harness.reproduce.recorder import Recorder
from harness.reproduce.schedule import load_schedule
from spec.variants import Variant

RELEASE = "3.9.5"
DEFECTS = Path(__file__).parents[2] / "spec" / "scenarios" / "known-defects"


def recorded(plan: Plan, directory: Path) -> tuple[RecordingValidation, int]:
    recorder = Recorder(RELEASE)
    writes = record(plan, directory, RELEASE, recorder, lambda _: None)
    recorder.save(directory / "recording.jsonl")
    return validate_recording(directory / "recording.jsonl"), writes


def test_a_short_run_of_real_servers_fits(tmp_path: Path) -> None:
    found, writes = recorded(Plan(kills=1, seconds=2.0, pause=0.05, clients=2), tmp_path)
    assert found.verdict is Verdict.PASSED, found.finding
    assert 0 < writes <= found.counts.replies
    assert found.committed >= writes
    assert found.counts.lives >= 3


def test_an_observer_fits(tmp_path: Path) -> None:
    found, _ = recorded(Plan(observers=1, kills=0, seconds=1.0, pause=0.05, clients=1), tmp_path)
    assert found.verdict is Verdict.PASSED, found.finding
    assert found.counts.kinds["INFORM"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_healthy_servers_fit_under_load_and_kills(seed: int, tmp_path: Path) -> None:
    found, _ = recorded(Plan(kills=8, seconds=16.0, seed=seed, clients=5), tmp_path)
    assert found.verdict is Verdict.PASSED, found.finding


@pytest.mark.slow
@pytest.mark.parametrize("release", [DEBIAN, RELEASE])
@pytest.mark.parametrize("defect", ["acks-survive-truncation", "sync-from-applied", "trunc-after-snap"])
def test_a_provoked_defect_is_found(defect: str, release: str, tmp_path: Path) -> None:
    recorder = Recorder(release)
    schedule = load_schedule(DEFECTS / f"{defect}.yaml")
    result = reproduce(schedule, tmp_path, release, compile_shim(tmp_path), lambda _: None, recorder)
    recorder.save(tmp_path / "recording.jsonl")
    assert result.outcome is Outcome.CONFIRMED, result.reason
    found = validate_recording(tmp_path / "recording.jsonl")
    assert Variant(defect) in {each for one in found.explained for each in one.defects}


def test_a_wrong_command_line_has_one_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = tmp_path / "there"
    there.touch()
    assert main(["record", str(there), "--release", RELEASE]) == 2
    assert "the file exists; name a new one" in capsys.readouterr().err
    assert main(["record", str(tmp_path / "no" / "where"), "--release", RELEASE]) == 2
    assert "its folder does not exist" in capsys.readouterr().err
    assert main(["record", str(tmp_path / "new"), "--release", RELEASE, "--servers", "12"]) == 2
    assert "9 are the most" in capsys.readouterr().err
