"""Tests on a machine with Python and nothing else, and their folders.

The expected skips and failures follow from the rules in `tests/support/programs.py` and `tests/support/isolation.py`.
"""

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness import real
from harness.ensemble import Ensemble
from harness.reproduce.gates import compile_shim
from tests.support import isolation, programs

TESTS = Path(__file__).parents[1]
DECIDES = TESTS / "support" / "programs.py"
BARE = TESTS.parent / ".ci" / "bare"
CHECKED = [path for path in sorted(TESTS.rglob("*.py")) if path not in (DECIDES, Path(__file__))]
USERS = Path("/home/of-a-user")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any program, jar or release."""
    monkeypatch.setattr(programs, "PATH", "/nowhere")
    monkeypatch.setattr(real, "JARS", Path("/nowhere"))
    monkeypatch.setattr(programs, "RELEASES", Path("/nowhere"))
    monkeypatch.setenv("QUORATE_ZOOKEEPER", "/nowhere")


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
@pytest.mark.parametrize("release", ["3.8.0", "3.9.5"])
def test_no_real_server_starts_on_a_bare_machine(
    ci: str, outcome: type[BaseException], release: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="no java on the PATH; apt-get install"):
        Ensemble(["real"], tmp_path, release=release)


@pytest.mark.usefixtures("bare")
def test_no_shim_is_compiled_on_a_bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no gcc on the PATH"):
        compile_shim(tmp_path)


def test_the_harness_fetches_before_any_package_is_installed() -> None:
    """The gate fetches a release with the Python of the machine."""
    command = [sys.executable, "-S", "-m", "harness", "fetch", "--help"]
    run = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    assert "download" in run.stdout or "one of 3" in run.stdout


def own_decisions(path: Path) -> set[str]:
    """The skips of a file, and the programs that it starts without a search for them."""
    text = path.read_text()
    if not any(word in text for word in ("skip(", *map(json.dumps, programs.PACKAGES))):
        return set()
    nodes = list(ast.walk(ast.parse(text)))
    calls = {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}
    first_words = {ast.unparse(node.elts[0]) for node in nodes if isinstance(node, ast.List) and node.elts}
    return calls & {"pytest.skip", "pytest.importorskip"} | first_words & set(map(repr, programs.PACKAGES))


def test_one_module_decides_what_a_machine_lacks() -> None:
    """No test skips for itself, and none starts a program of the table that `shutil.which` has not found."""
    assert {path.name: found for path in CHECKED if (found := own_decisions(path))} == {}


def test_the_gate_hides_every_program_of_the_table() -> None:
    hidden = re.search(r"^hidden=\((.*)\)$", BARE.read_text(), re.MULTILINE)
    assert hidden is not None
    assert set(programs.PACKAGES) <= set(hidden[1].split())


def test_no_variable_of_a_test_names_a_folder_of_the_user() -> None:
    allowed = (str(isolation.ROOT), os.environ[isolation.OWN])
    for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "HYPOTHESIS_STORAGE_DIRECTORY"):
        assert os.environ[name].startswith(allowed), name
    others = {name for name in os.environ if name.startswith(("XDG_", "QUORATE_"))}
    assert others <= {"XDG_CACHE_HOME", "QUORATE_ZOOKEEPER", "QUORATE_ANSWERS", "QUORATE_DEBUG", isolation.OWN}


def test_the_planner_has_no_answers_of_the_user() -> None:
    """A child inherits this, and so does a child of a child."""
    code = "from checker.rollout.output.cache import AnswerCache; print(AnswerCache.of_user()._folder)"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "None\n"


def test_memory_is_taken_only_where_the_files_of_a_run_fit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not isolation.takes_all(Path("/nowhere"))
    monkeypatch.setattr(isolation, "ROOM", 1)
    assert isolation.takes_all(tmp_path)
    assert not isolation.takes_all(Path("/proc")), "nothing fits"
    monkeypatch.setattr(isolation, "ROOM", 1 << 60)
    assert not isolation.takes_all(tmp_path)


@pytest.fixture
def elsewhere() -> isolation.Watch:
    return isolation.Watch(USERS)


@pytest.mark.parametrize(
    ("path", "changes", "foreign"),
    [
        (USERS / ".cache/quorate/answers/a.json", False, True),
        (USERS / ".cache/quorate/answers/a.json", True, True),
        (isolation.ROOT / "README.md", False, False),
        (isolation.ROOT / "README.md", True, not isolation.rewrites()),
        (Path("/usr/bin/env"), False, False),
        (Path("/var/tmp/x"), True, True),
        (Path(os.environ["PYTEST_DEBUG_TEMPROOT"]) / "x", True, True),
        (Path(os.environ["TMPDIR"]) / "x", True, False),
        (Path(os.environ["HOME"]) / ".cache" / "x", True, False),
    ],
    ids=str,
)
def test_a_file_of_others_is_foreign(path: Path, changes: bool, foreign: bool, elsewhere: isolation.Watch) -> None:
    assert elsewhere.is_foreign(str(path), changes=changes) is foreign


def test_a_test_that_changes_a_file_elsewhere_is_found(watch: isolation.Watch) -> None:
    foreign = Path(os.environ["PYTEST_DEBUG_TEMPROOT"]) / f"quorate-{os.getpid()}"
    foreign.write_text("")
    foreign.unlink()
    assert watch.taken() == [f"open {foreign}", f"os.remove {foreign}"]


def test_a_test_that_leaves_this_process_changed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = isolation.ProcessState.current()
    monkeypatch.chdir(tmp_path)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.setrecursionlimit(before.recursion_limit + 1)
    after = isolation.ProcessState.current()
    assert [one == other for one, other in zip(after, before, strict=True)] == [False, False, False]
    before.restore()
    assert isolation.ProcessState.current() == before


def test_a_home_that_cannot_be_read_is_never_asked(tmp_path: Path) -> None:
    """A run with a poisoned home: an answer in it would be found, a kernel would not load, and a file would stay."""
    home = tmp_path / "home"
    (home / ".cache").mkdir(parents=True)
    (home / ".cache" / "quorate").write_text("a file, where a folder is needed")
    test = f"{__file__}::{test_no_variable_of_a_test_names_a_folder_of_the_user.__name__}"
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", test]
    environment = {name: value for name, value in os.environ.items() if name != isolation.OWN} | {"HOME": str(home)}
    ended = subprocess.run(command, env=environment, cwd=isolation.ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
    assert [each.name for each in home.rglob("*")] == [".cache", "quorate"]


def test_a_program_that_the_test_hides_is_not_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The tests of messages about missing programs still run on a complete machine."""
    (tmp_path / "gcc").write_text("#!/bin/sh\n")
    (tmp_path / "gcc").chmod(0o755)
    monkeypatch.setattr(programs, "PATH", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    assert shutil.which("gcc") is None
