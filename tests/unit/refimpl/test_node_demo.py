"""The local demo ensemble: its ports, its reports of roles, and the effect of Ctrl-C during the start."""

import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from refimpl import demo


def test_its_ports_are_different_and_none_that_linux_takes_for_outgoing_connections() -> None:
    ports = demo.free_ports(3 * demo.MOST_SERVERS)
    assert len(set(ports)) == 3 * demo.MOST_SERVERS
    assert max(ports) < 32768


def test_a_port_that_somebody_listens_at_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((demo.LOOPBACK, 0)) as listening:
        taken = listening.getsockname()[1]
        monkeypatch.setattr(demo, "PORTS", range(taken, taken + 1))
        with pytest.raises(OSError, match=f"1 free ports are needed, and 127.0.0.1 has only 0 from {taken} to {taken}"):
            demo.free_ports(1)


def test_a_leader_that_did_not_answer_when_roles_were_told_is_told_later(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A program that waits for that line, as the quickstart does, would wait for ever."""
    answers: Iterator[str | None] = iter([None])
    monkeypatch.setattr(demo, "mode_of", lambda port: next(answers, "leader"))
    naps = iter([None, None])
    monkeypatch.setattr(demo, "time", SimpleNamespace(sleep=lambda seconds: next(naps)))
    told = demo._tell_roles([1])
    running: Any = SimpleNamespace(poll=lambda: None)
    with pytest.raises(StopIteration):
        demo._watch([1], [running], tmp_path, told)
    said = capsys.readouterr().out.splitlines()
    assert said == ["server 1 at 127.0.0.1:1: does not serve", "server 1 at 127.0.0.1:1: leader"]


def test_a_server_that_runs_when_ctrl_c_comes_before_the_next_one_is_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, stopped = object(), list[object]()

    def start(config: Path, journal: bool) -> object:
        if config.parent.name == "server-1":
            return first
        raise KeyboardInterrupt

    # The demo's handler of SIGTERM would otherwise stay installed in the test process.
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(demo, "_start", start)
    monkeypatch.setattr(demo, "_stop", stopped.extend)
    assert demo.main(["--directory", str(tmp_path)]) == 0
    assert stopped == [first]
