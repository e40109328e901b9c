"""Runs of the simulation: they follow from the seed, a failing one gets smaller, and a report hides no failure."""

import hashlib
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from checker.command import ExitCode
from checker.kit import FaultAction
from checker.models.ensemble.actions import ServerAction
from simulation import command, swarm
from simulation.command import minimised
from simulation.faults import Fault, NodeFault
from simulation.report import RunSummary, swarm_report
from simulation.run import Plan, plan_of
from simulation.swarm import run_plan
from simulation.workload import KINDS as WORK

SUMMARY = RunSummary("1", (), 100.0, 0.5, {"kill": 1}, {"set: ok": 3}, {"looking": 2}, 4, 3, "00")


def digest(hash_seed: str) -> str:
    """The digest of all packets and all operations of the disks of one run, in a process of its own."""
    code = "from simulation.run import *; print(simulate(plan_of(5, 3, 1, 20.0)).digest)"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return ran.stdout.strip()


def test_a_seed_decides_every_byte() -> None:
    one, other = digest("1"), digest("2")
    assert one == other
    assert len(one) == 8 * 5  # the network and the disks of four servers


def test_another_seed_is_another_run() -> None:
    assert run_plan(plan_of(1, 3, 0, 10.0)).digest != run_plan(plan_of(2, 3, 0, 10.0)).digest


def test_the_faults_of_many_seeds_are_of_every_kind() -> None:
    kinds = {fault.kind for seed in range(40) for fault in plan_of(seed, 5, 1, 60.0).faults}
    assert kinds == set(NodeFault)


def test_a_fault_that_models_have_too_bears_the_name_of_its_action() -> None:
    actions = {action.value for action in (*FaultAction, *ServerAction) if action.traits.fault}
    assert actions & {kind.value for kind in NodeFault} == {"crash", "cut", "partition", "fill disk", "disconnect"}


@pytest.mark.parametrize("kind", NodeFault)
def test_the_caption_of_a_fault_names_what_it_strikes(kind: NodeFault) -> None:
    words = str(Fault(2.0, kind, victim=3, other=4, number=5))
    assert words.startswith(f"2.000 s, for 0.00 s: {kind.value}: ")
    assert ("server 3" in words) or kind in (
        NodeFault.CRASH_ALL, NodeFault.POWER_ALL, NodeFault.PARTITION, NodeFault.INTERRUPT
    )  # fmt: skip
    assert (" 5" in words) == bool(kind.traits.numbers)


def test_a_seed_means_the_same_faults_as_before_the_table() -> None:
    """The digests of plans as version 163741e9 drew them, without the names of kinds; a new kind makes others."""
    drawn = hashlib.sha256()
    for servers, observers in ((3, 0), (5, 1)):
        for seed in range(200):
            for fault in plan_of(seed, servers, observers, 60.0).faults:
                values = (fault.at, fault.victim, fault.other, fault.seconds, fault.number)
                drawn.update(repr(values).encode())
    assert drawn.hexdigest()[:24] == "e35eae770bf978876ee23041"


def test_no_fault_begins_after_the_time_of_faults() -> None:
    """Behind it everything is healed. A fault may draw a second one, for later."""
    assert all(fault.at < 20.0 for seed in range(100) for fault in plan_of(seed, 3, 0, 20.0).faults)


def test_a_leader_that_was_stranded_may_lead_again_since_the_next_one_is_isolated() -> None:
    found = [
        (one, other)
        for seed in range(40)
        for one, other in itertools.pairwise(plan_of(seed, 3, 0, 60.0).faults)
        if (one.kind, other.kind, other.victim) == ("strand", "isolate", 0) and other.at > one.at + one.seconds
    ]
    assert found


def fails_with(*needed: str) -> object:
    """A run that fails if its plan has faults of these kinds."""
    return lambda plan: set(needed) <= {fault.kind for fault in plan.faults}


def test_a_failing_plan_keeps_only_the_faults_that_it_needs() -> None:
    plan = plan_of(3, 3, 0, 60.0)
    plan = replace(
        plan,
        faults=(
            *(each for each in plan.faults if each.kind not in (NodeFault.FILL_DISK, NodeFault.CLOCK)),
            Fault(20, NodeFault.FILL_DISK),
            Fault(30, NodeFault.CLOCK),
        ),
    )
    smaller = minimised(plan, fails_with("fill disk", "clock"))  # type: ignore[arg-type]
    assert [fault.kind for fault in smaller.faults] == ["fill disk", "clock"]
    assert smaller.clients == 1
    assert smaller.seconds < plan.seconds


def test_minimising_ends_after_its_number_of_runs() -> None:
    runs: list[Plan] = []
    minimised(plan_of(3, 3, 0, 60.0), lambda plan: bool(runs.append(plan)), most=7)
    assert len(runs) == 7


def test_a_report_with_a_failure_is_no_success() -> None:
    bad = replace(SUMMARY, seed="2", failures=("a write is lost",))
    report = swarm_report([SUMMARY, bad], 3, 0, 1, 1.0, {})
    assert report.exit_code is ExitCode.SAFETY
    assert "passed" not in str(report)
    assert "a write is lost" in str(report)


def test_a_report_of_nothing_is_no_success() -> None:
    report = swarm_report([], 3, 0, 1, 1.0, {})
    assert report.exit_code is ExitCode.VACUOUS
    assert "passed" not in str(report)


def test_an_interrupted_swarm_is_no_success() -> None:
    report = swarm_report([SUMMARY], 3, 0, 1, 1.0, {}, interrupted=True)
    assert report.exit_code is ExitCode.INCOMPLETE
    assert "passed" not in str(report)


def test_the_command_prints_a_report_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seed", "3", "--length", "10", "--workers", "1", "--json"]) == ExitCode.PASSED
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "passed"
    assert report["seeds"] == 1
    assert sum(report["operations"].values()) > 0


def test_a_failing_seed_is_written_as_a_file_that_replays_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swarm, "judged", lambda outcome: ("a write is lost",))
    options = ["--seed", "12", "--length", "12", "--workers", "1", "--folder", str(tmp_path)]
    assert command.main(options) == ExitCode.SAFETY
    file = tmp_path / "simulation-12.json"
    assert str(file) in capsys.readouterr().out
    assert command.main(["--replay", str(file)]) == ExitCode.SAFETY
    assert "the run is that of the file" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--servers", "2"], "argument --servers: '2' is not a whole number from 3 to 9"),
        (["--length", "1"], "argument --length: '1' is not a number from 10 to"),
        (["--seeds", "0"], "argument --seeds: '0' is not a whole number from 1 to"),
        (["--seed", "-1"], "argument --seed: '-1' is not a whole number from 0 to"),
    ],
)
def test_a_bad_option_is_named_with_the_right_values(
    words: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == ExitCode.COMMAND_LINE
    assert named in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, "{}", "no JSON"])
def test_a_file_that_is_no_replay_is_one_error(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "replay.json"
    if content is not None:
        file.write_text(content)
    assert command.main(["--replay", str(file)]) == ExitCode.COMMAND_LINE
    assert str(file) in capsys.readouterr().err


def test_a_replay_with_an_unknown_fault_is_one_error_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as a file of an earlier version, where a crash was a kill."""
    plan = msgspec.to_builtins(replace(plan_of(3, 3, 0, 20.0), faults=(Fault(5.0, NodeFault.CRASH),)))
    plan["faults"][0]["kind"] = "kill"
    file = tmp_path / "replay.json"
    file.write_text(json.dumps({"plan": plan, "failures": [], "digest": ""}))
    assert command.main(["--replay", str(file)]) == ExitCode.COMMAND_LINE
    (line,) = capsys.readouterr().err.splitlines()
    assert str(file) in line
    assert "'kill'" in line
    assert "$.plan.faults[0].kind" in line


def test_the_work_of_clients_has_every_kind_that_is_judged() -> None:
    operations = {name.partition(":")[0] for seed in (2, 9) for name in run_plan(plan_of(seed, 3, 0, 30.0)).operations}
    assert {"create", "set", "get", "sync+get", "multi", "ephemeral", "sequential"} <= operations
    assert {"create", "set", "get", "sync+get", "ephemeral", "sequential"} <= set(WORK)
