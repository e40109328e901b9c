"""The commands in the manual print the output that the manual shows.

A fenced `console` block is a shell session in a checkout: a line that begins with `$ ` is a command, and the lines
after it are its output. The commands of a page run in order, in one folder per page that also shows the folders of the
checkout. A file written by one command is therefore there for the next.

- `$ python -m checker ...`, or `$ quorate ...`, is run. It must end with exit code 0, unless `$ echo $?` after it shows
  another code. Its errors on standard error are part of the output; its progress is not.
- `$ tar -xf FILE` unpacks an archive of the checkout.
- `$ cat FILE` shows a file. A file of the checkout, or of an earlier command, must have these contents. Any other file
  is one that the reader writes: it is created, and stays there.
- A line `...` replaces omitted lines, and `...` in a line replaces text that differs between runs: a duration, a rate,
  a size. A command without shown output is run, and must not be refused.
- `<!-- slow -->` before a block moves it to the slow tests.

`--rewrite-transcripts` writes the actual output into the page instead; read the diff. Commands of other programs, and
commands on files that only the reader has, are in other blocks; the options of the checker must exist there too. The
pages of the gallery are written by a command, and have a separate test.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from checker.cli.main import COMMANDS
from checker.cli.options import parser
from checker.command import ExitCode, command_parser
from checker.command_table import ENTRIES
from tests.support.isolation import rewrites
from tests.support.transcripts import CHECKER, COLUMNS, LEFT_OUT, PROGRAMS, execute, show_checkout, steady

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/answers").rglob("*.md"))]
BLOCK = re.compile(r"^(?P<slow><!-- slow -->\n)?```console\n(?P<talk>.*?)^```\n", re.MULTILINE | re.DOTALL)
LAST_CODE = "echo $?"
RUN = (*(f"{program} " for program in PROGRAMS), "tar -xf ")
REFUSED = {ExitCode.COMMAND_LINE, ExitCode.SCENARIO, ExitCode.CONFIGURATION}
WRITTEN = re.compile(rf"(?:^|`| )(?P<program>{CHECKER}|quorate)(?P<words>(?: [^`\n#]*)?)")


class Said(NamedTuple):
    """A command, and the output that the page shows after it."""

    command: str
    shown: tuple[str, ...]


def talk(block: str) -> Iterator[Said]:
    """The commands of a block, each with the output shown after it."""
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
    """Runs commands in a folder that also shows the contents of the checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.code = folder, 0
        show_checkout(folder)

    def run(self, said: Said) -> list[str]:
        if said.command == LAST_CODE:
            code, self.code = self.code, 0
            return [str(code)]
        assert self.code == 0, f"the command before `{said.command}` ends with exit code {self.code}"
        program, _, rest = said.command.partition(" ")
        if program == "cat":
            return self.cat(self.folder / rest, said.shown)
        assert said.command.startswith(RUN), f"`{said.command}`: only the checker, cat, tar and `echo $?` are run"
        printed = execute(said.command)
        self.code = printed.code
        errors = [line for line in printed.err.splitlines() if "error: " in line]
        return [line.rstrip() for line in [*printed.out.splitlines(), *errors]]

    def cat(self, file: Path, shown: tuple[str, ...]) -> list[str]:
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f"{line}\n" for line in shown), encoding="utf-8")
        return file.read_text(encoding="utf-8").splitlines()


def fits(shown: tuple[str, ...], printed: list[str]) -> bool:
    """Whether the printed lines match the shown ones, with omissions."""
    patterns = [
        r"(?:.*\n)*?" if line == LEFT_OUT else re.escape(line).replace(r"\.\.\.", ".*") + r"\n" for line in shown
    ]
    return re.fullmatch("".join(patterns), "".join(f"{line}\n" for line in printed)) is not None


def rewritten(shown: tuple[str, ...], printed: list[str]) -> list[str]:
    """The printed lines, with the same omissions as on the page.

    The parts before the first `...` and after the last keep their number of lines. A part between two of them keeps its
    first and last line, or the lines with the same first word.
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
    """The parts between the omissions."""
    found: list[list[str]] = [[]]
    for line in shown:
        if line == LEFT_OUT:
            found.append([])
        else:
            found[-1].append(line)
    return found


def place_of(line: str, lines: list[str], begin: int) -> int:
    """The position of this line after `begin`, or of one with the same first word; otherwise `begin`."""
    word = line.split()[:1]
    alike = [place for place in range(begin, len(lines)) if lines[place].split()[:1] == word]
    same = [place for place in alike if lines[place] == line]
    return next(iter([*same, *alike]), begin)


def hold(page: Path, folder: Path, slow: bool) -> None:
    """Run the blocks of a page, and compare the output, or write it."""
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
            if not good and not rewrites():
                expected, actual = "\n".join(said.shown), "\n".join(map(steady, printed))
                pytest.fail(f"{page.name}: $ {said.command}\nshown:\n{expected}\nprinted:\n{actual}", pytrace=False)
            lines += [f"$ {said.command}", *(said.shown if good else rewritten(said.shown, printed))]
        assert shell.code == 0, f"{page.name}: the last command of a block ends with exit code {shell.code}"
        blocks.append(f"{found['slow'] or ''}```console\n" + "\n".join(lines) + "\n```\n")
    if rewrites():
        given = iter(blocks)
        page.write_text(BLOCK.sub(lambda _: next(given), text), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", COLUMNS)
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
    for line in WRITTEN.finditer(page.read_text(encoding="utf-8")):
        entries = ENTRIES if line["program"] == "quorate" else COMMANDS
        name, *_ = line["words"].split() or ["--help"]
        if name.isupper():
            continue  # any command
        if not name.startswith("-"):
            assert name in entries, f"{page.name}: unknown command {name}"
        is_main_job = name.startswith("-") or name == "nodes"
        if not is_main_job and entries[name].is_function:
            continue
        known = options_of(parser(COMMANDS) if is_main_job else command_parser(entries[name]))
        unknown = set(re.findall(r"(?<= )--[a-z-]+", line["words"])) - known
        assert not unknown, f"{page.name}: `{line[0].strip()}` has options that do not exist: {unknown}"


# Tests of the matching and the rewriting.


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
