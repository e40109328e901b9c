"""The commands of the manual print what the manual shows.

A fenced block `console` is a talk with a shell in a checkout: a line that begins with `$ ` is a command, what stands
behind it is what it prints. The commands of a page are run in its order, in one folder of its own which shows the
folders of the checkout too, so that a file that one of them writes is there for the next.

- `$ python -m checker ...` is run; it ends with exit code 0, unless `$ echo $?` behind it shows another. What it says
  is wrong, on standard error, belongs to what it prints, its progress does not.
- `$ cat FILE` shows a file: one of the checkout or of the commands before, as it is; any other is one that the reader
  has written so, and is there from then on.
- A line `...` stands for lines that are left out, and `...` in a line for whatever is another each time: a duration, a
  rate, a size. Where nothing at all is shown, the command is run, and must not be refused.
- `<!-- slow -->` before a block leaves it to the slow tests.

`REWRITE_GOLDEN=1` writes what is printed into the page instead; read the diff. Commands of other programs, and of what
only the reader has, stand in other blocks; there too the checker's options must exist. The pages of the gallery are
written by a command, and have a test of their own.
"""

import argparse
import contextlib
import io
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from checker.cli.commands import COMMANDS
from checker.cli.main import main
from checker.cli.options import command_parser, parser
from checker.report.verdict import ExitCode

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
REWRITE = bool(os.environ.get("REWRITE_GOLDEN"))
BLOCK = re.compile(r"^(?P<slow><!-- slow -->\n)?```console\n(?P<talk>.*?)^```\n", re.MULTILINE | re.DOTALL)
CHECKER = "python -m checker"
LAST_CODE = "echo $?"
LEFT_OUT = "..."
REFUSED = {ExitCode.COMMAND_LINE, ExitCode.SCENARIO, ExitCode.CONFIGURATION}
FOLDERS = ("spec", "docs", "tests")  # of the checkout, as the pages name them
VOLATILE = (
    re.compile(r"(?<=^  time )( +)\S.*"),
    re.compile(r"(?<=^  memory )( +)\S.*"),
    re.compile(r"(?<=^  limits )( +)\S.* of memory$"),
    re.compile(r"(?<=^  Python steps )( +)\S.*"),
)
"""What is another each time in a report."""
WRITTEN = re.compile(rf"(?:^|`| ){CHECKER}((?: [^`\n#]*)?)")


class Said(NamedTuple):
    """A command, and the lines that the page shows behind it."""

    command: str
    shown: tuple[str, ...]


def talk(block: str) -> Iterator[Said]:
    """The commands of a block, each with what is shown behind it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        yield Said(command, tuple(shown))


def pages(slow: bool) -> list[Path]:
    """The pages with commands that are run by the quick tests, or by the slow ones."""
    return [
        page
        for page in PAGES
        if any(bool(found["slow"]) == slow for found in BLOCK.finditer(page.read_text(encoding="utf-8")))
    ]


class Shell:
    """Runs commands in a folder that shows what is in the checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.code = folder, 0
        for name in FOLDERS:
            (folder / name).symlink_to(ROOT / name)

    def run(self, said: Said) -> list[str]:
        """The lines that a command prints."""
        if said.command == LAST_CODE:
            code, self.code = self.code, 0
            return [str(code)]
        assert self.code == 0, f"the command before `{said.command}` ends with exit code {self.code}"
        program, _, rest = said.command.partition(" ")
        if program == "cat":
            return self.cat(self.folder / rest, said.shown)
        assert said.command.startswith(f"{CHECKER} "), f"`{said.command}`: only the checker, cat and `echo $?` are run"
        with (
            contextlib.redirect_stdout(io.StringIO()) as printed,
            contextlib.redirect_stderr(io.StringIO()) as wrong,
        ):
            self.code = main(shlex.split(said.command.removeprefix(CHECKER)))
        told = [line for line in wrong.getvalue().splitlines() if "error: " in line]
        return [line.rstrip() for line in [*printed.getvalue().splitlines(), *told]]

    def cat(self, file: Path, shown: tuple[str, ...]) -> list[str]:
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f"{line}\n" for line in shown), encoding="utf-8")
        return file.read_text(encoding="utf-8").splitlines()


def fits(shown: tuple[str, ...], printed: list[str]) -> bool:
    """Whether lines were printed as they are shown, with what is left out."""
    patterns = [
        r"(?:.*\n)*?" if line == LEFT_OUT else re.escape(line).replace(r"\.\.\.", ".*") + r"\n" for line in shown
    ]
    return re.fullmatch("".join(patterns), "".join(f"{line}\n" for line in printed)) is not None


def rewritten(shown: tuple[str, ...], printed: list[str]) -> list[str]:
    """What is printed, with as much left out as the page leaves out.

    Before the first `...` and behind the last stand as many lines as did; between two of them what begins and ends with
    the lines that it began and ended with, or with lines of the same first words.
    """
    lines = [steady(line) for line in printed]
    if LEFT_OUT not in shown:
        return lines if shown else []
    first, *between, last = parts(shown)
    out = lines[: len(first)]
    for part in filter(None, between):
        begin = place_of(part[0], lines, 0)
        out += [LEFT_OUT, *lines[begin : place_of(part[-1], lines, begin) + 1]]
    return [*out, LEFT_OUT, *lines[len(lines) - len(last) :]]


def parts(shown: tuple[str, ...]) -> list[list[str]]:
    """What stands between the places where lines are left out."""
    found: list[list[str]] = [[]]
    for line in shown:
        if line == LEFT_OUT:
            found.append([])
        else:
            found[-1].append(line)
    return found


def place_of(line: str, lines: list[str], begin: int) -> int:
    """Where this line stands from there on, or one with the same first word; else where it begins."""
    word = line.split()[:1]
    alike = [place for place in range(begin, len(lines)) if lines[place].split()[:1] == word]
    same = [place for place in alike if lines[place] == line]
    return next(iter([*same, *alike]), begin)


def steady(line: str) -> str:
    """A line without what is another each time."""
    for volatile in VOLATILE:
        line = volatile.sub(lambda found: f"{found[1]}{LEFT_OUT}", line)
    return line


def hold(page: Path, folder: Path, slow: bool) -> None:
    """Run the blocks of a page, and compare, or write."""
    text = page.read_text(encoding="utf-8")
    shell, blocks = Shell(folder), []
    for found in BLOCK.finditer(text):
        if found["slow"] and not slow:
            blocks.append(found[0])
            continue
        lines: list[str] = []
        commands = list(talk(found["talk"]))
        for said, after in zip(commands, [*(each.command for each in commands[1:]), ""], strict=True):
            printed = shell.run(said)
            if not said.shown and after != LAST_CODE and shell.code not in REFUSED:
                shell.code = 0
            good = not said.shown or fits(said.shown, printed)
            if not good and not REWRITE:
                expected, actual = "\n".join(said.shown), "\n".join(map(steady, printed))
                pytest.fail(f"{page.name}: $ {said.command}\nshown:\n{expected}\nprinted:\n{actual}", pytrace=False)
            lines += [f"$ {said.command}", *(said.shown if good else rewritten(said.shown, printed))]
        assert shell.code == 0, f"{page.name}: the last command of a block ends with exit code {shell.code}"
        blocks.append(f"{found['slow'] or ''}```console\n" + "\n".join(lines) + "\n```\n")
    if REWRITE:
        given = iter(blocks)
        page.write_text(BLOCK.sub(lambda _: next(given), text), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", pages(slow=False), ids=named)
def test_the_commands_on_a_page_print_what_it_shows(page: Path, folder: Path) -> None:
    hold(page, folder, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", pages(slow=True), ids=named)
def test_the_long_commands_on_a_page_print_what_it_shows(page: Path, folder: Path) -> None:
    hold(page, folder, slow=True)


def options_of(made: argparse.ArgumentParser) -> set[str]:
    return {option for action in made._actions for option in action.option_strings}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_command_line_anywhere_on_a_page_has_options_that_exist(page: Path) -> None:
    for found in WRITTEN.finditer(page.read_text(encoding="utf-8")):
        name, *_ = found[1].split() or ["--help"]
        if not name.startswith("-"):
            assert name in COMMANDS, f"{page.name}: there is no command {name}"
        known = options_of(parser(COMMANDS) if name.startswith("-") else command_parser(COMMANDS[name]))
        unknown = set(re.findall(r"(?<= )--[a-z-]+", found[1])) - known
        assert not unknown, f"{page.name}: `{found[0].strip()}` has options that do not exist: {unknown}"


# The test of the test: what fits, and what is written.


@pytest.mark.parametrize(
    ("shown", "printed", "good"),
    [
        (["a", "b"], ["a", "b"], True),
        (["a", "b"], ["a", "c"], False),
        (["a"], ["a", "b"], False),
        (["a", "...", "d"], ["a", "b", "c", "d"], True),
        (["a", "...", "d"], ["a", "d"], True),
        (["a", "...", "d"], ["b", "c", "d"], False),
        (["took ... s"], ["took 1.5 s"], True),
        (["took ... s"], ["took 1.5 ms"], False),
        (["a.b"], ["axb"], False),
    ],
)
def test_what_is_left_out_fits_anything_and_nothing_else_does(shown: list[str], printed: list[str], good: bool) -> None:
    assert fits(tuple(shown), printed) == good


def test_what_is_written_leaves_out_as_much_and_is_not_another_each_time() -> None:
    printed = ["passed", "", "search", "  time          1.5 s", "  states        7", "end"]
    assert rewritten(("passed", "...", "end"), printed) == ["passed", "...", "end"]
    middle = ("failed", "...", "  states        8", "...")
    assert rewritten(middle, printed) == ["passed", "...", "  states        7", "..."]
    assert rewritten(("x",), printed) == ["passed", "", "search", "  time          ...", "  states        7", "end"]
