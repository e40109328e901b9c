"""Run the checker's command line in a test, in this process or as a user does; write scenarios beside zoo.cfg files."""

import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from checker.cli.main import main
from checker.report.text import Progress

Write = Callable[..., Path]
"""A function that writes the text of a scenario, under an optional name, and returns its path."""


class Ended(NamedTuple):
    """The result of a command line."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Standard output as lines, with each run of spaces collapsed to one."""
        return [" ".join(line.split()) for line in self.out.splitlines()]

    @property
    def data(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


def cli(*words: object) -> Ended:
    """Run a command line in this process, without lines of progress: whether there are any depends on the time."""
    out, err = io.StringIO(), io.StringIO()
    silent = patch.object(Progress, "_show", lambda *_: None)
    with silent, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    return Ended(code, out.getvalue(), err.getvalue())


def python_m_checker(*words: object, **how: Any) -> Ended:
    """Run a command line as a user does."""
    command = [sys.executable, "-m", "checker", *map(str, words)]
    ended = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=120, **how)
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def zoo_cfg(*voters: int) -> str:
    return "initLimit=5\nsyncLimit=2\n" + "".join(f"server.{sid}=zoo{sid}:2888:3888\n" for sid in voters)


def scenarios_in(folder: Path) -> Write:
    """Return a function that writes scenarios into a folder, beside zoo-2.cfg to zoo-5.cfg."""
    for servers in (2, 3, 4, 5):
        (folder / f"zoo-{servers}.cfg").write_text(zoo_cfg(*range(1, servers + 1)))

    def write(text: str, name: str = "s.yaml") -> Path:
        (folder / name).write_text(text, encoding="utf-8")
        return folder / name

    return write


def saved_trace(folder: Path) -> Any:
    """A saved trace as JSON: one of two servers leads."""
    assert cli("--nodes", 2, "--grain", "oracle", "--traces", folder, "--format", "none").code == 0
    (file,) = folder.glob("*.itf.json")
    return json.loads(file.read_text())


def changed(value: Any, path: tuple[str | int, ...], new: object) -> Any:
    """A copy of a JSON value with another value at that path."""
    copy = json.loads(json.dumps(value))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = new
    return copy
