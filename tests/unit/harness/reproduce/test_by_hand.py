"""Schedules made by hand, without a server: their choice for a file, their steps, and the judgement of a run.

The expected outcomes are those of docs/how-to-reproduce.md. The servers of the judged runs are a stand-in, and a run
says what they do.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from checker.cli.sources import RunRequest, load_request
from checker.explorer.stories import load_any
from checker.scenario import bundled, load, shipped
from harness.__main__ import main
from harness.processes import ServerError
from harness.reproduce.by_hand.catalogue import RUNS, hand_made_of
from harness.reproduce.by_hand.hand_made import HandMade, HandMadeRun, HandStep, carry_out
from harness.reproduce.by_hand.servers import Bench
from harness.reproduce.ends import Effect, Outcome, Reproduction, StepReport
from harness.reproduce.schedule import FIRST_WITH_RECONFIG, ScheduleError, check_release, load_schedule
from harness.servers import Servers

SCENARIOS = {path.stem: path for path in bundled()}
CONTROLS = {
    "pending-view-activated": 3,
    "last-seen-forgotten": 6,
    "epoch-of-active-view": None,
    "observer-promoted-stops-service": 3,
    "restore-undone": 6,
}
"""The step of each schedule that its control leaves out; the page of finding G has no control."""


@cache
def schedule_of(name: str) -> HandMade:
    schedule = hand_made_of(SCENARIOS[name])
    assert schedule is not None
    return schedule


class TestChoice:
    def test_every_run_belongs_to_a_shipped_scenario_with_its_servers(self) -> None:
        assert {run.scenario for run in RUNS} == set(CONTROLS)
        for run in RUNS:
            schedule = schedule_of(run.scenario)
            assert (schedule.run, schedule.name) == (run, load(SCENARIOS[run.scenario]).name)
            assert schedule.setup.sids == run.sids

    def test_a_shipped_scenario_has_a_name(self) -> None:
        assert shipped(Path("restore-undone")) == SCENARIOS["restore-undone"]

    def test_a_file_comes_before_the_shipped_scenario_of_its_name(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("restore-undone").touch()
        assert shipped(Path("restore-undone")) == Path("restore-undone")

    def test_other_names_and_paths_stay(self) -> None:
        for name in ("restore", "restore-undone.yaml", "restore/restore-undone"):
            assert shipped(Path(name)) == Path(name)

    def test_a_scenario_with_another_line_has_no_schedule_by_hand(self, tmp_path: Path) -> None:
        folder = SCENARIOS["restore-undone"].parent
        for file in folder.iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        copy = tmp_path / "restore-undone.yaml"
        assert hand_made_of(copy) is not None, "a copy is the same scenario"
        copy.write_text(copy.read_text(encoding="utf-8").replace("crashes: 1", "crashes: 2"), encoding="utf-8")
        assert hand_made_of(copy) is None

    def test_a_file_that_is_no_scenario_is_left_to_the_driver(self, tmp_path: Path) -> None:
        (tmp_path / "bad.yaml").write_text("[")
        assert hand_made_of(tmp_path / "bad.yaml") is None
        assert hand_made_of(tmp_path / "missing.yaml") is None

    def test_the_name_of_a_shipped_scenario_is_enough_for_other_commands(self) -> None:
        request = load_request(Path("restore-kept"))
        assert isinstance(request, RunRequest)
        assert request.path == SCENARIOS["restore-kept"]
        assert load_any(Path("restore-kept"))[1] == SCENARIOS["restore-kept"]

    def test_an_unknown_name_is_one_line_of_error(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["reproduce", "restore-undo"]) == 2
        assert capsys.readouterr().err == (
            "error: restore-undo: no file and no shipped scenario has this name; python -m checker list prints them\n"
        )

    def test_a_trace_that_is_no_file_is_one_line_of_error(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["reproduce", str(tmp_path / "missing.itf.json")]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "missing.itf.json: it cannot be read" in line


class TestControls:
    @pytest.mark.parametrize(("name", "number"), CONTROLS.items())
    def test_only_the_decisive_step_can_be_left_out(self, name: str, number: int | None) -> None:
        schedule = schedule_of(name)
        numbers = [left_out for left_out in range(1, 10) if _can_leave_out(schedule, left_out)]
        assert numbers == ([] if number is None else [number])

    def test_the_error_names_the_step_that_can_be_left_out(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["reproduce", "restore-undone", "--release", "3.9.5", "--without", "2"]) == 2
        assert capsys.readouterr().err.endswith(
            "step 2 of the schedule made by hand cannot be left out; write --without 6\n"
        )

    def test_a_release_without_the_requests_is_refused(self, capsys: pytest.CaptureFixture[str]) -> None:
        """`restore` came with 3.9.0, and `reconfig` with 3.5.0 (ZooKeeper's release notes)."""
        for name, release, since in (("restore-undone", "3.8.6", "3.9.0"), ("last-seen-forgotten", "3.4.14", "3.5.0")):
            assert main(["reproduce", name, "--release", release]) == 2
            reason = f"ZooKeeper {release} lacks the requests of this schedule; write a release from {since} on"
            assert capsys.readouterr().err.endswith(f": {reason}\n")

    def test_a_release_outside_of_the_models_is_compared_too(self) -> None:
        """3.6.2 has `reconfig` and 3.4.13 has not; no model is like either of them."""
        check_release("a run", "3.6.2", FIRST_WITH_RECONFIG, "has no reconfigurations")
        with pytest.raises(
            ScheduleError, match=r"^a run: ZooKeeper 3\.4\.13 has no reconfigurations; write a release "
        ):
            check_release("a run", "3.4.13", FIRST_WITH_RECONFIG, "has no reconfigurations")

    def test_a_schedule_by_hand_has_no_recording(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["reproduce", "restore-undone", "--release", "3.9.5", "--record", str(tmp_path / "recording")]) == 2
        assert capsys.readouterr().err.endswith("has a schedule made by hand, of which there is no recording\n")


def _can_leave_out(schedule: HandMade, number: int) -> bool:
    try:
        schedule.without(number)
    except ScheduleError:
        return False
    return True


class NoServers(Servers):
    """Two servers that are said to serve."""

    def client_port(self, sid: int) -> int:
        raise NotImplementedError

    def role(self, sid: int) -> str | None:  # noqa: ARG002 (all servers are alike)
        return "follower"


class StandIn(HandMadeRun):
    """A run of two steps: a write at 1, and a fault that loses the write of `lost`."""

    scenario, effects, sids = "none", frozenset({Effect.LOST}), (1, 2)
    lost = ("/one",)
    broken: Callable[[], None] | None = None

    def make(self) -> None:
        self.servers = NoServers(self.sids, self.bench.directory)
        self.holds: tuple[str, ...] = ("/one",)

    def begin(self) -> None:
        pass

    def steps(self) -> tuple[HandStep, ...]:
        return (HandStep("a write", self._write), HandStep("a fault", self._fail, decisive=True))

    def recover(self) -> None:
        self.look_up(lambda _, path: path in self.holds)

    def _write(self) -> list[str]:
        if self.broken is not None:
            type(self).broken()  # type: ignore[misc]
        self.acknowledge("/one", 1)
        return ["it is acknowledged"]

    def _fail(self) -> None:
        self.holds = tuple(path for path in self.holds if path not in self.lost)


def _late() -> None:
    raise ServerError("server 1 serves: not within 5 s\nthe end of the log")


class Harmless(StandIn):
    lost = ()


class Broken(StandIn):
    broken = staticmethod(_late)


def result_of(run: type[HandMadeRun], path: Path, **options: bool) -> tuple[Reproduction, list[StepReport]]:
    reports: list[StepReport] = []
    return carry_out(run(Bench(path, "3.9.5")), reports.append, **options), reports


class TestJudgement:
    def test_a_run_with_the_effect_is_confirmed(self, tmp_path: Path) -> None:
        result, reports = result_of(StandIn, tmp_path)
        assert (result.outcome, result.effects) == (Outcome.CONFIRMED, {Effect.LOST})
        assert [(report.number, report.caption, report.seen) for report in reports] == [
            (1, "a write", ("it is acknowledged",)), (2, "a fault", ())
        ]  # fmt: skip

    def test_a_run_without_the_effect_is_not_confirmed(self, tmp_path: Path) -> None:
        result, _ = result_of(Harmless, tmp_path)
        assert (result.outcome, result.reason) == (Outcome.NOT_CONFIRMED, "not seen: an acknowledged write lost")

    def test_a_control_leaves_out_the_decisive_step(self, tmp_path: Path) -> None:
        result, reports = result_of(StandIn, tmp_path, control=True)
        assert (result.outcome, result.effects) == (Outcome.CONFIRMED, frozenset())
        assert [report.number for report in reports] == [1]

    def test_a_corrected_run_with_the_effect_is_not_confirmed(self, tmp_path: Path) -> None:
        result, _ = result_of(StandIn, tmp_path, corrected=True)
        assert (result.outcome, result.reason) == (Outcome.NOT_CONFIRMED, "seen: an acknowledged write lost")
        assert result_of(Harmless, tmp_path, corrected=True)[0].outcome is Outcome.CONFIRMED

    def test_a_step_that_does_not_happen_ends_the_run(self, tmp_path: Path) -> None:
        result, reports = result_of(Broken, tmp_path)
        assert result.outcome is Outcome.NOT_CONFIRMED
        assert result.reason == "step 1 did not happen: server 1 serves: not within 5 s"
        assert len(reports) == 1

    def test_a_corrected_run_without_a_write_says_nothing(self, tmp_path: Path) -> None:
        result, reports = result_of(Broken, tmp_path, corrected=True)
        assert (result.outcome, len(reports)) == (Outcome.HARNESS_FAILED, 2)


def test_a_restore_that_has_no_schedule_by_hand_is_refused(tmp_path: Path) -> None:
    folder = SCENARIOS["restore-undone"].parent
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    copy = tmp_path / "restore-undone.yaml"
    copy.write_text(copy.read_text(encoding="utf-8").replace("name: a", "name: another"), encoding="utf-8")
    with pytest.raises(ScheduleError, match=r"the driver has no event for step 1, .*; name a shipped scenario"):
        load_schedule(copy)
