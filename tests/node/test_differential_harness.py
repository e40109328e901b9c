"""Tests of the comparison of servers: an existing difference is found, and a server that fails is reported."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from harness import commands as c
from harness import interpreter
from harness.ensemble import Ensemble
from harness.interpreter import Seen
from harness.layouts import read, write
from harness.processes import Place, Process, ServerError, free_ports, srvr, wait_until, word
from harness.zoo_cfg import Member, View, write_zoo_cfg
from spec.config import parse_zoo_cfg
from tests.node.scripts import first_difference, run_script

LASTING = c.Create(0, "/lasting", flags=c.TTL, by=c.CREATE_TTL, ttl=1_000_000)


def test_a_server_with_another_setting_is_told_apart(launch: Callable[..., Ensemble]) -> None:
    script = (c.Create(0, "/plain"), LASTING)
    seen = []
    for enabled in ("true", "false"):
        with launch(["real"], tick_time=200, extra={"extendedTypesEnabled": enabled}) as ensemble:
            seen.append(run_script([ensemble.client_port(1)], "/run", 2, script))
    difference = first_difference(*seen)
    assert difference is not None
    assert difference.startswith("command 1, Create(who=0, path='/lasting'")


@pytest.fixture(scope="module")
def one(launch: Callable[..., Ensemble]) -> Ensemble:
    return launch(["node"], tick_time=200)


def test_a_server_that_applies_only_with_another_request_is_helped_and_the_record_says_so(
    one: Ensemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a follower of 3.8.0 may do (ZOOKEEPER-4537)."""
    helped: list[Place] = []

    @contextmanager
    def other_session(place: Place, _seconds: float) -> Iterator[None]:
        helped.append(place)
        yield

    monkeypatch.setattr(interpreter, "SECONDS", 0.5)
    monkeypatch.setattr(interpreter, "other_session", other_session)
    monkeypatch.setattr(interpreter, "srvr", lambda place: srvr(place) if helped else {"Zxid": "0x0"})
    port = one.client_port(1)
    seen = run_script([port], "/applies", 1, (c.Create(0, "/a"), c.Drop(0), c.Connect(0, 0), c.Get(0, "/a")))
    assert helped == [port]
    assert [each.late for each in seen] == [False, False, True, False]
    assert "(late)" in str(first_difference(seen, [each._replace(late=False) for each in seen]))


def test_an_expiry_that_comes_only_with_another_request_is_seen(one: Ensemble) -> None:
    run = interpreter.Interpreter([one.client_port(1)], "/expiry", 1)
    with patch.object(run._control, "wait_event", time.sleep):
        (seen,) = run.run((c.Expire(0),))
    run.close()
    assert seen.outcome == "expired"


def test_an_event_that_only_one_side_saw_is_a_difference() -> None:
    command = c.Delete(0, "/a")
    assert first_difference([Seen(command, "closed", ((), ()))], [Seen(command, "closed", ((), ("event",)))])
    assert first_difference([Seen(command, "closed", ())], [Seen(command, "closed", ())]) is None


def test_layouts_are_those_of_jute() -> None:
    # setData of "/a" with null data and version -1: int length and bytes, length -1, int.
    assert write("sbi", ("/a", None, -1)) == bytes.fromhex("000000022f61ffffffffffffffff")
    assert read("[s]t", bytes.fromhex("00000001000000016101")) == ((["a"], True), 10)
    with pytest.raises(ValueError, match="5 bytes announced at offset 0, and 1 are there"):
        read("s", bytes.fromhex("0000000561"))


def test_a_server_that_ends_at_once_is_reported_with_its_log(tmp_path: Path, launch: Callable[..., Ensemble]) -> None:
    with pytest.raises(ServerError, match=r"server 1 \(real\) does not run, its exit code is 2"):
        launch(["real"], extra={"tickTime": "soon"})


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="no kind of server is called 'fake'; write real or node"):
        Ensemble(["fake"], tmp_path)


def test_a_wait_is_bounded_and_shows_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("the last line\n", encoding="utf-8")
    with pytest.raises(ServerError, match=r"the port opens: not within 0 s(.|\n)*the last line"):
        wait_until(lambda: False, 0, "the port opens", log)


def test_a_process_is_stopped_by_its_own_id_and_started_again(tmp_path: Path) -> None:
    process = Process(["/bin/cat", "/dev/tty0/none"], tmp_path, tmp_path / "log.txt")
    process.start()
    wait_until(lambda: not process.alive, 60, "cat ends")
    assert process.exit_code == 1
    with pytest.raises(ServerError, match="does not run, its exit code is 1"):
        _ = process.pid
    sleeper = Process(["/bin/sleep", "1000"], tmp_path, tmp_path / "log.txt")
    sleeper.start()
    sleeper.pause()
    sleeper.stop()
    assert not sleeper.alive
    sleeper.start()
    sleeper.kill()
    assert sleeper.exit_code == -9


def test_a_process_that_ends_at_the_first_signal_has_been_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine the process has exited before the second signal is sent."""
    kill = os.kill

    def late(pid: int, number: int) -> None:
        kill(pid, number)
        time.sleep(0.1)

    monkeypatch.setattr(os, "kill", late)
    sleeper = Process(["/bin/sleep", "1000"], tmp_path, tmp_path / "log.txt")
    sleeper.start()
    sleeper.stop()
    assert sleeper.exit_code == -signal.SIGTERM


def test_a_paused_process_does_nothing_as_soon_as_that_is_said(tmp_path: Path) -> None:
    """Busy processors delay the thread that receives the signal, and the other threads used to run meanwhile."""
    nap = "lambda: [time.sleep(1e-3) for _ in iter(int, 1)]"
    threads = f"import threading, time\nfor _ in range(8): threading.Thread(target={nap}).start()"
    log = tmp_path / "log.txt"
    threaded = Process([sys.executable, "-c", threads], tmp_path, log)
    others = [Process([sys.executable, "-c", "while True: pass"], tmp_path, log) for _ in range(4)]
    for process in (threaded, *others):
        process.start()
    try:
        wait_until(lambda: len(states(threaded)) == 9, 60, "eight threads run beside the first", log)
        for _ in range(20):
            threaded.pause()
            assert set(states(threaded)) == {"T"}
            threaded.pause()  # A second pause changes nothing.
            threaded.resume()
    finally:
        for process in (threaded, *others):
            process.kill()


def states(process: Process) -> list[str]:
    """Return the kernel's state of each thread of a process (`proc_pid_stat`(5), field 3): T is stopped."""
    files = Path(f"/proc/{process.pid}/task").glob("*/stat")
    return [file.read_text("ascii").rpartition(")")[2].split()[0] for file in files]


def test_free_ports_are_given_once() -> None:
    ports = free_ports(40) + free_ports(40)
    assert len(set(ports)) == 80
    assert word(ports[0], "ruok") == ""


def test_the_file_written_says_what_was_described(tmp_path: Path) -> None:
    member, observer = Member(1, 1001, 1002, 1003), Member(2, 2001, 2002, 2003, observer=True)
    file = write_zoo_cfg(View((member, observer), tick_time=300, extra={"snapCount": "7"}), observer, tmp_path)
    text = file.read_text(encoding="utf-8")
    config = parse_zoo_cfg(text, myid="2", file=str(file))
    assert (tmp_path / "data" / "myid").read_text(encoding="ascii") == "2\n"
    assert [str(server.addresses[0]) for server in config.servers] == ["127.0.0.1:1002:1003", "127.0.0.1:2002:2003"]
    assert config.tick_time == 300
    assert dict(config.properties)["snapCount"] == "7"
