"""`harness conform --kills` and `--wait` on live nodes: a sound ensemble passes, one that loses its disks is found."""

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.__main__ import main
from harness.conform.kills import run as kills_run
from harness.conform.kills.run import KillsRun
from harness.conform.servers import ORACLE_KEYS, TICK
from harness.ensemble import Ensemble
from harness.session import Session
from tests.node.chaos.test_harness import Forgetful
from tests.node.conftest import NEWEST
from tests.support.programs import need_kind

Launch = Callable[..., Ensemble]


def run_of(ensemble: Ensemble, kills: int) -> KillsRun:
    """A run below a new root."""
    session = Session(10_000)
    session.connect(ensemble.client_port(1))
    session.ask(1, "/root", b"", ((31, "world", "anyone"),), 0)
    session.close()
    places = [ensemble.client_port(sid) for sid in ensemble.sids]
    return KillsRun(places, "/root", ensemble, kills, seed=1, creates=True)


@pytest.mark.slow
def test_a_server_that_forgets_its_writes_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only server starts each time with an empty directory, so that acknowledged writes are lost."""
    monkeypatch.setattr(kills_run, "RECOVERY", 5.0)
    need_kind("node")
    with Forgetful(["node"], tmp_path, tick_time=TICK, extra=ORACLE_KEYS) as ensemble:
        ensemble.start_all()
        result = run_of(ensemble, kills=1).run(tmp_path / "history.jsonl", lambda _: None)
    assert not result.passed
    assert result.findings.violations


@pytest.mark.slow
def test_three_nodes_pass(launch: Launch, tmp_path: Path) -> None:
    ensemble = launch(["node"] * 3, tick_time=TICK, extra=ORACLE_KEYS)
    result = run_of(ensemble, kills=5).run(tmp_path / "history.jsonl", lambda _: None)
    assert (result.passed, len(result.cycles), result.findings.replicas) == (True, 5, 3)
    assert result.findings.acknowledged > 100
    assert (tmp_path / "history.jsonl").stat().st_size > 0


@pytest.mark.slow
def test_commands_of_the_user_kill_and_start_servers(launch: Launch, capsys: pytest.CaptureFixture[str]) -> None:
    """The shell kills the process of a node and starts it again, as an operator's commands would."""
    ensemble = launch(["node"], tick_time=TICK, extra=ORACLE_KEYS)
    process = ensemble.process(1)
    pid = process.directory / "pid"
    pid.write_text(str(process.pid))
    start = f"cd {process.directory} && {{ PYTHONPATH={process.environment['PYTHONPATH']} {' '.join(process.command)} "
    start += f">> log.txt 2>&1 & echo $! > {pid}; }}"
    commands = ["--kill", f"kill -9 $(cat {pid})", "--restart", start]
    try:
        assert main(["conform", ensemble.address(1), "--area", "delete", "--kills", "2", *commands]) == 0
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)
    assert re.search(r"2 kills: passed; no unexplained difference", capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize("release", [NEWEST, "3.6.4"])
def test_real_servers_delete_containers_and_ttl_znodes_as_specified(release: str) -> None:
    need_kind("real", release)
    assert main(["conform", "--start", release, "--wait", "20"]) == 0
