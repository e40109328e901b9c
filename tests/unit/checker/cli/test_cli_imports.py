"""Commands that end in an error, or that need no search, import neither numba nor z3.

Both libraries load slowly: numba took more than half of the processor time of an error message.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import json, sys
from checker.cli.main import main
code = main(json.loads(sys.argv[1]))
print(json.dumps([code, [name for name in ("numba", "llvmlite", "z3", "rich") if name in sys.modules]]))
"""

TYPO = "protocl: zab\n"
TYPO_INSIDE = "servers: {1: {file: zoo.cfg, stat: off}}\nprotocol: zab\n"
ZOO_CFG = "server.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888\n"


def outcome(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    """Run a command line in a fresh interpreter; return its exit code, and the slow modules that it imported."""
    command = [sys.executable, "-c", SCRIPT, json.dumps(arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=True)
    code, modules = json.loads(done.stdout.splitlines()[-1])
    return code, modules


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--help",), 0),
        (("run", "--help"), 0),
        (("nosuch",), 2),
        (("run", "--depht", "3"), 2),
        (("run", "absent.yaml"), 150),
        (("run", "typo.yaml"), 150),
        (("run", "inside.yaml"), 150),
        (("quorums", "broken.cfg"), 151),
        (("history", "absent.jsonl"), 150),
        (("validate", "absent.jsonl"), 150),
        (("replay", "absent.itf.json"), 150),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_an_error_or_a_help_imports_no_engine_and_no_solver(
    tmp_path: Path, arguments: tuple[str, ...], code: int
) -> None:
    (tmp_path / "typo.yaml").write_text(TYPO)
    (tmp_path / "inside.yaml").write_text(TYPO_INSIDE)
    (tmp_path / "zoo.cfg").write_text(ZOO_CFG)
    (tmp_path / "broken.cfg").write_text("server.1=a\n")
    ended, modules = outcome(tmp_path, *arguments)
    assert ended == code
    assert not set(modules) & {"numba", "llvmlite", "z3"}


def test_quorums_imports_no_solver_and_no_engine(tmp_path: Path) -> None:
    (tmp_path / "zoo.cfg").write_text(ZOO_CFG)
    assert outcome(tmp_path, "quorums", "zoo.cfg") == (0, [])
