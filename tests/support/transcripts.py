"""Transcripts: shell sessions with their whole output, run in this process and compared.

`tests/transcripts/SUBJECT/NAME.txt` has the form of this docstring. A line without an indent is a comment: the subject
of the test, and the reason why the answer is right. Two spaces and a dollar sign begin a command; its output follows:

  $ python -m checker run s.yaml
  2> error: s.yaml: it cannot be read (No such file or directory); name a file
  exit 150

- `  > ` continues a command, such as the lines of a file: `cat > zoo.cfg <<END`.
- `python -m checker ...` and `quorate ...` are run in this process, and so is a `python -m refimpl ...` that must not
  start. `| FILTER` and `> FILE` after it are left to bash. Any other command is one of bash. `| json PATH...` shows
  values of JSON, a line for each; `a.b[].c` is the list of all c.
- Lines on standard error follow the output, each with `2> `. An exit code other than 0 is the last line.
- `NAME=VALUE python -m checker ...` sets a variable of the environment. Three names mean something to the transcript.
  With `ENGINE=finds-nothing` or `ENGINE=finishes-nothing` the planner explores nothing, and every run ends so (with
  `ENGINE=finishes-commands` those about `reconfig` find nothing, and no other is finished): the sentences of an answer
  rest on its verdicts, not on the runs. `STDOUT=terminal` makes standard output a terminal.
- Text that differs between runs (times, limits) is printed as `...`; the row about memory is left out.

The session runs in a new folder, which also shows the folders of the checkout. `pytest --rewrite-transcripts`
writes the actual output into the files. A transcript proves nothing: read the diff as a reviewer. A verdict or an exit
code in it needs a reason in the comment.
"""

import contextlib
import io
import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from checker.cli import quorate
from checker.cli.main import main
from checker.report.text import Progress
from checker.rollout.reconfig.answers import ReconfigSpec
from checker.rollout.runs import Engine, RunResult
from checker.rollout.scenarios import RunSpec
from refimpl.__main__ import main as node_main
from tests.support.rollout_runs import fine, unfinished

ROOT = Path(__file__).parents[2]
FOLDERS = ("spec", "docs", "tests")
CHECKER = "python -m checker"
NODE = "python -m refimpl"
PROGRAMS: dict[str, Callable[[list[str]], int]] = {CHECKER: main, NODE: node_main, "quorate": quorate.main}
COLUMNS = "100"


def commands_alone(spec: RunSpec, seconds: float) -> RunResult:
    """A run about a command finds nothing; any other one is not finished."""
    return (fine if isinstance(spec, ReconfigSpec) else unfinished)(spec, seconds)


ENGINES = {"finds-nothing": fine, "finishes-nothing": unfinished, "finishes-commands": commands_alone}
VOLATILE = (
    re.compile(r"(?<=^  time )( +)\S.*"),
    re.compile(r"(?<=^  memory )( +)\S.*"),
    re.compile(r"(?<=^  limits )( +)\S.* of memory$"),
    re.compile(r"(?<=^  Python steps )( +)\S.*"),
    re.compile(r"(?<= states in )()[\d.]+ m?s(?=: every figure agrees$)"),
    re.compile(r"(?<=^::stop-commands::)()[0-9a-f]{32}$"),
    re.compile(r"(?<=^::)()[0-9a-f]{32}(?=::$)"),
    re.compile(r"(?<= \| )()[\d.]+ m?s(?= \|$)"),
)
"""The parts of a report that differ between runs."""
ABSENT = re.compile(r"  memory  +\d")
"""A row of a report that is there only if the process grew."""
LEFT_OUT = "..."
INDENT = "  "
COMMAND = re.compile(r"((?:[A-Z_]+=\S+ )*)(python -m (?:checker|refimpl)|quorate)\b(.*?)((?: \|| >).*)?", re.DOTALL)


class Printed(NamedTuple):
    """The output of a command, and its exit code."""

    out: str
    err: str
    code: int

    @property
    def lines(self) -> list[str]:
        """The lines of a transcript."""
        here = f"{Path.cwd()}/"
        shown = [steady(line.replace(here, "").rstrip()) for line in self.out.splitlines() if not ABSENT.match(line)]
        shown += [f"2> {line.replace(here, '')}".rstrip() for line in self.err.splitlines()]
        return [*shown, f"exit {self.code}"] if self.code else shown


class Entry(NamedTuple):
    """A command of a transcript with its output, after some lines of comment."""

    comment: tuple[str, ...]
    command: str
    shown: tuple[str, ...]


class Output(io.StringIO):
    """Standard output, on a terminal or not."""

    terminal = False

    def isatty(self) -> bool:
        return self.terminal


def steady(line: str) -> str:
    """Return a line without the text that differs between runs."""
    for volatile in VOLATILE:
        line = volatile.sub(lambda part: f"{part[1]}{LEFT_OUT}", line)
    return line


def run(program: str, words: list[str], *, terminal: bool = False) -> Printed:
    """Run a program in this process, without lines of progress: whether there are any depends on the time."""
    out, err = Output(), io.StringIO()
    out.terminal = terminal
    silent = patch.object(Progress, "_show", lambda *_: None)
    with silent, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = PROGRAMS[program](words)
        except SystemExit as end:  # of a parser
            code = int(end.code or 0)
    return Printed(out.getvalue(), err.getvalue(), code)


def show_checkout(folder: Path) -> None:
    """Show the folders of the checkout in another folder."""
    for name in FOLDERS:
        (folder / name).symlink_to(ROOT / name)


def execute(command: str) -> Printed:
    """Run a command of a transcript in the current folder."""
    match = COMMAND.fullmatch(command)
    if match is None:
        return bash(command)
    given = dict(word.split("=", 1) for word in shlex.split(match[1]))
    terminal = given.pop("STDOUT", None) == "terminal"
    engine = ENGINES.get(given.pop("ENGINE", ""))
    with contextlib.ExitStack() as stack:
        stack.enter_context(variables(given))
        if engine is not None:
            stack.enter_context(patch.object(Engine, "run", lambda _, spec, seconds: engine(spec, seconds)))
        printed = run(match[2], shlex.split(match[3]), terminal=terminal)
    if match[4] is None:
        return printed
    program, *paths = match[4].split()[1:]
    if program == "json":
        data = json.loads(printed.out)
        return printed._replace(out="".join(f"{json.dumps(value_at(data, path))}\n" for path in paths))
    rest = bash(f"cat {match[4]}", printed.out)
    return Printed(rest.out, printed.err + rest.err, printed.code)


@contextlib.contextmanager
def variables(given: dict[str, str]) -> Iterator[None]:
    """Set variables of the environment. Those that the program sets itself stay, unlike with `patch.dict`."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in given.items():
            patched.setenv(name, value)
        yield


def value_at(data: Any, path: str) -> Any:
    """The value at a path of keys; `key[]` goes on in each item of a list."""
    name, _, rest = path.partition(".")
    if not name:
        return data
    if name.endswith("[]"):
        return [value_at(item, rest) for item in data[name[:-2]]]
    return value_at(data[name], rest)


def bash(command: str, given: str = "") -> Printed:
    """Run a command of bash in the current folder."""
    words = ["bash", "--noprofile", "--norc", "-o", "pipefail", "-c", command]
    ended = subprocess.run(words, input=given, capture_output=True, encoding="utf-8", check=False, timeout=60)
    return Printed(ended.stdout, ended.stderr, ended.returncode)


def entries(text: str) -> Iterator[Entry]:
    """The commands of a transcript. Comments after the last one are an entry without a command."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        comment, command, shown = [], [], []
        while at < len(lines) and not lines[at].startswith(f"{INDENT}$ "):
            assert not lines[at].startswith(INDENT), f"line {at + 1}: output without a command"
            comment.append(lines[at])
            at += 1
        if at < len(lines):
            command.append(lines[at].removeprefix(f"{INDENT}$ "))
            at += 1
        while command and at < len(lines) and re.match(rf"{INDENT}>( |$)", lines[at]):
            command.append(lines[at].removeprefix(f"{INDENT}>").removeprefix(" "))
            at += 1
        begun = f"{INDENT}$ "
        while command and at < len(lines) and (not lines[at] or (lines[at][:2] == INDENT and lines[at][:4] != begun)):
            shown.append(lines[at].removeprefix(INDENT))
            at += 1
        blanks = len(shown) - len("\n".join(shown).rstrip("\n").split("\n")) if any(shown) else len(shown)
        yield Entry(tuple(comment), "\n".join(command), tuple(shown[: len(shown) - blanks]))
        lines[at:at] = [""] * blanks


def written(entry: Entry, shown: list[str]) -> list[str]:
    """The lines of an entry in its file."""
    if not entry.command:
        return list(entry.comment)
    first, *more = entry.command.split("\n")
    rest = [f"{INDENT}> {line}".rstrip() for line in more]
    return [*entry.comment, f"{INDENT}$ {first}", *rest, *(f"{INDENT}{line}".rstrip() for line in shown)]


def replayed(text: str) -> str:
    """The transcript as it is when its commands are run in the current folder."""
    lines: list[str] = []
    for entry in entries(text):
        shown = execute(entry.command).lines if entry.command else []
        while shown and not shown[-1]:
            shown.pop()
        lines += written(entry, shown)
    return "\n".join(lines).rstrip("\n") + "\n"
