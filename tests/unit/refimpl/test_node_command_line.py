"""`python -m refimpl` with errors: one clear line, the right exit code, and never a stack trace."""

import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.processes import free_ports

ROOT = Path(__file__).parents[3]
MEMBERS = {"initLimit": "5", "syncLimit": "5"} | {f"server.{n}": f"127.0.0.1:{n}1:{n}2" for n in (1, 2, 3)}


def command(*arguments: object, directory: Path) -> tuple[int, str]:
    """Return the exit code and standard error; standard output is empty if nothing was started."""
    line = [sys.executable, "-m", "refimpl", *map(str, arguments)]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(line, cwd=directory, env=environment, capture_output=True, text=True, timeout=90, check=False)
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return done.returncode, done.stderr


def zoo_cfg(directory: Path, keys: Mapping[str, object] | None = None) -> Path:
    """Write a file with which a server could start, except for these keys."""
    written: dict[str, object] = {"dataDir": directory / "data", "clientPort": free_ports(1)[0]}
    file = directory / "zoo.cfg"
    file.write_text("".join(f"{key}={value}\n" for key, value in (written | dict(keys or {})).items()))
    return file


def failure(directory: Path, keys: Mapping[str, object], *more: object) -> str:
    """Return the one line that explains why a server with this file cannot start."""
    code, said = command(zoo_cfg(directory, keys), *more, directory=directory)
    assert code == 1, said
    *_, line = said.splitlines()
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


def test_the_first_line_has_version_file_id_and_addresses(tmp_path: Path) -> None:
    """The line is there although the server then cannot open a port."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "myid").write_text("1\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        file = zoo_cfg(tmp_path, MEMBERS | {"server.1": f"127.0.0.1:1:{port}"})
        _, said = command(file, directory=tmp_path)
    first = next(line for line in said.splitlines() if " starts: " in line)
    for part in ("server 1 of [1, ", "-quorate-", f"file {file}", "learners 127.0.0.1:1", f"election 127.0.0.1:{port}"):
        assert part in first


def test_a_client_port_that_is_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = failure(tmp_path, {"clientPort": port})
    assert said.startswith(f"cannot listen for clients at 127.0.0.1:{port}: ")
    assert "in use" in said


def test_an_election_port_that_is_in_use(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "myid").write_text("1\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = f"127.0.0.1:{free_ports(1)[0]}:{port}"
        said = failure(tmp_path, MEMBERS | {"server.1": line})
    assert said == f"cannot listen for the election at 127.0.0.1:{port}: Address already in use"


def test_a_quorum_port_that_is_in_use(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "myid").write_text("1\n")
    keys = {"initLimit": 5, "syncLimit": 5, "standaloneEnabled": "false"}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = failure(tmp_path, keys | {"server.1": f"127.0.0.1:{port}:{free_ports(1)[0]}"})
    assert f"cannot listen for learners at 127.0.0.1:{port}: " in said


@pytest.mark.parametrize("host", ["a..b", "no-such-host.invalid", "192.0.2.1"])
def test_an_address_that_is_not_of_this_machine(tmp_path: Path, host: str) -> None:
    assert "cannot" in failure(tmp_path, {"clientPortAddress": host})


def test_a_data_directory_that_cannot_be_made(tmp_path: Path) -> None:
    assert "dataDir and dataLogDir must name directories that this server may write" in failure(
        tmp_path, {"dataDir": "/proc/no/data"}
    )


def test_logs_and_snapshots_exchanged(tmp_path: Path) -> None:
    (tmp_path / "logs" / "version-2").mkdir(parents=True)
    (tmp_path / "logs" / "version-2" / "snapshot.0").write_bytes(b"")
    assert "snapshots belong to dataDir" in failure(tmp_path, {"dataLogDir": tmp_path / "logs"})


@pytest.mark.parametrize("name", ["log.1", "snapshot.0"])
def test_a_data_directory_with_files_of_something_else(tmp_path: Path, name: str) -> None:
    (tmp_path / "data" / "version-2").mkdir(parents=True)
    (tmp_path / "data" / "version-2" / name).write_bytes(b"something else")
    assert str(tmp_path / "data" / "version-2") in failure(tmp_path, {})


@pytest.mark.parametrize(("name", "text"), [("currentEpoch", "soon"), ("acceptedEpoch", "-3")])
def test_an_epoch_of_a_member_that_is_no_number(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "data" / "version-2").mkdir(parents=True)
    file = tmp_path / "data" / "version-2" / name
    file.write_text(text)
    (tmp_path / "data" / "myid").write_text("1\n")
    assert failure(tmp_path, MEMBERS).startswith(f"{file}: found b'{text}', expected an epoch")


def test_an_event_log_that_cannot_be_written(tmp_path: Path) -> None:
    said = failure(tmp_path, {}, "--journal", "/proc/no/journal")
    assert said.startswith("/proc/no/journal: the event log cannot be written")


def test_a_demo_in_a_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, said = command("demo", "--directory", tmp_path / "file", directory=tmp_path)
    assert code == 1
    assert said.startswith("error: ")
