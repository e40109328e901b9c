"""Commands in a bare place: closed streams, no home, no temporary folder, little memory, and inputs that never end."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from checker.engine.kernels import jit
from checker.engine.process import check_address_space
from checker.user_files import TooLargeError, opened, read_bytes
from refimpl.process import read_settings
from spec.config import ConfigError
from tests.support.command_line import cli

ROOT = Path(__file__).parents[3]
SCENARIO = ROOT / "spec" / "scenarios" / "r10-three-to-five" / "r10-wrong-order.yaml"
ENOUGH = 120  # seconds


def shell(command: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell, in which $PYTHON is this interpreter."""
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT), **more}
    return subprocess.run(
        ["sh", "-c", command], env=environment, capture_output=True, text=True, timeout=ENOUGH, check=False
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_a_closed_stream_changes_no_exit_code(closed: str) -> None:
    ended = shell(f'"$PYTHON" -m checker list releases {closed}')
    assert (ended.returncode, ended.stderr) == (0, "")


def test_no_temporary_folder_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("tempfile._candidate_tempdir_list", lambda: ["/dev/null"])
    ended = cli("run", SCENARIO)
    assert (ended.code, len(ended.err.splitlines())) == (2, 1) and "TMPDIR" in ended.err


def test_little_memory_is_one_error() -> None:
    ended = shell(f'ulimit -v 300000 && "$PYTHON" -m checker run {SCENARIO}')
    assert (ended.returncode, len(ended.stderr.splitlines())) == (152, 1) and "ulimit -v" in ended.stderr


def test_without_a_limit_there_is_enough_memory() -> None:
    check_address_space(1)
    with pytest.raises(MemoryError, match="needs"):
        check_address_space(1 << 63)


@pytest.mark.parametrize("home", ["/dev/null", ""])
def test_without_a_home_all_runs_share_one_private_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: Path("/dev/null") if home else _no_home())
    assert jit.cache_folder() == jit.cache_folder()
    (folder,) = tmp_path.iterdir()
    assert jit.cache_folder().parent == folder and folder.stat().st_mode & 0o777 == 0o700


def _no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_a_folder_that_others_can_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(Path, "home", _no_home)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    shared = tmp_path / f"quorate-{os.getuid()}"
    shared.mkdir()
    shared.chmod(0o777)
    assert jit.cache_folder().parent == tmp_path and not list(shared.iterdir())


@pytest.mark.parametrize(
    "command",
    [
        "run {}",
        "replay {}",
        "quorums {}",
        "validate {}",
        "history {}",
        "rollout --from {} --to {}",
        "explore {} --port 0",
    ],
)
def test_a_pipe_that_nobody_writes_is_an_error_at_once(tmp_path: Path, command: str) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    ended = cli(*command.format(*[pipe] * 2).split())
    assert ended.code not in (0, 1, 12) and str(pipe) in ended.err


def test_a_node_and_the_harness_bear_closed_streams() -> None:
    assert shell('"$PYTHON" -m refimpl simulate --replay /nothing 2>&-').returncode == 2
    assert shell('"$PYTHON" -m refimpl /nothing >&- 2>&-').returncode == 151
    assert shell('"$PYTHON" -m harness releases >&-').returncode == 0


def test_a_node_reads_no_pipe_as_its_configuration(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "zoo.cfg")
    with pytest.raises(ConfigError, match="no regular file"):
        read_settings(tmp_path / "zoo.cfg")


def test_a_pipe_as_a_file_of_a_scenario_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "zoo.cfg")
    (tmp_path / "s.yaml").write_text("servers: {1: zoo.cfg}\n")
    assert cli("run", tmp_path / "s.yaml").code in (150, 151)


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null"])
def test_a_device_is_no_input(name: str) -> None:
    with pytest.raises(OSError, match="no regular file"):
        read_bytes(Path(name), 1)
    with pytest.raises(OSError, match="no regular file"), opened(Path(name), 1, streams=True):
        pass


def test_a_file_above_its_limit_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12")
    with pytest.raises(TooLargeError):
        read_bytes(tmp_path / "a", 1)


OWN_FILES = {
    "cache.py", "jit.py", "process.py", "search_checkpoint.py",
    "source.py", "local_page", "html.py", "picture.py", "rebuild.py", "messages.py", "nodes.py",
    "page.py", "reference_commands.py", "__main__.py",
}  # fmt: skip
"""Modules that open files of the program itself: its sources, its cache, its saved searches, its new data
directories, and files that it ships: `nodes.py`, `page.py`, `reference_commands.py`. `messages.py` reads the log of a
server, of any size, from its end. `certificates/__main__.py` imports nothing that it need not trust."""


def test_one_module_opens_the_files_of_a_user() -> None:
    reading = re.compile(r'\.read_(?:text|bytes)\(|\.open\("r')
    files = [file for file in (ROOT / "checker").rglob("*.py") if reading.search(file.read_text())]
    assert {file.parent.name if file.stem == "__init__" else file.name for file in files} == OWN_FILES
