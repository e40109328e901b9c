"""The command `quorate`: its help fits a screen, it knows every command of the packages, and each has a help.

The commands are those of `python -m checker`, `refimpl`, `harness` and `benchmarks`; what they print is tested there.
"""

import ast
import contextlib
import io
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from checker.cli.quorate import help_text, main, run_program
from checker.command_table import ENTRIES, GROUPS, called, commands_of
from checker.printable import capital
from tests.support.command_line import Ended

PACKAGES = ("checker", "harness", "refimpl", "simulation")
ROOT = Path(__file__).parents[4]
HELP_ALONE = """
import sys
from checker.cli.quorate import main
main(sys.argv[1:])
others = {"refimpl", "harness", "numpy", "msgspec", "yaml", "rich"}
print(sorted({name.partition(".")[0] for name in sys.modules} & others))
"""


def quorate(*words: str) -> Ended:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as end:
            code = int(end.code or 0)
    return Ended(code, out.getvalue(), err.getvalue())


def test_the_script_is_this_function() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["scripts"] == {"quorate": f"{run_program.__module__}:{run_program.__name__}"}


def test_the_help_fits_a_screen_and_has_every_command_in_five_groups() -> None:
    lines = help_text().splitlines()
    assert 24 <= len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert len(GROUPS) == 5
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert listed == list(ENTRIES)


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
def test_the_help_is_shown_on_request_and_without_a_command(words: tuple[str, ...]) -> None:
    assert quorate(*words) == Ended(0, help_text() + "\n", "")


def test_a_reader_may_stop_before_the_end_of_the_help() -> None:
    line = f"{sys.executable} -c 'from checker.cli.quorate import main; import sys; sys.exit(main())' --help"
    done = subprocess.run(f"{line} | head -1", shell=True, cwd=ROOT, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("usage: quorate COMMAND ...\n", "")


def test_no_name_stands_twice() -> None:
    assert len(ENTRIES) == sum(map(len, GROUPS.values()))


def test_every_line_is_a_sentence() -> None:
    assert [
        entry.line for entry in ENTRIES.values() if entry.line != capital(entry.line) or entry.line[-1] != "."
    ] == []


@pytest.mark.parametrize("name", ENTRIES)
def test_each_command_has_a_help_that_names_it_as_it_was_called(name: str) -> None:
    ended = quorate(name, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"usage: quorate {name} ")


def test_an_unknown_name_is_one_line_with_the_nearest() -> None:
    assert quorate("rolout") == Ended(2, "", "error: unknown command 'rolout'; did you mean rollout?\n")
    assert quorate("--nosuch").code == 2


def test_an_error_names_the_help_of_this_program() -> None:
    ended = quorate("rollout", "--form", "x")
    assert ended.code == 2
    assert ended.err.endswith("; for the options: quorate rollout --help\n")


@pytest.mark.parametrize("name", [*commands_of("checker"), *commands_of("harness"), "nodes"])
def test_an_unknown_option_is_one_line_with_the_help_of_the_command(name: str) -> None:
    ended = quorate(name, "--no-such-option")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: ") and ended.err.count("\n") == 1
    assert ended.err.endswith(f"; for the options: quorate {name} --help\n")


def test_the_version_is_that_of_the_distribution() -> None:
    ended = quorate("--version")
    assert (ended.code, ended.out.split()[0]) == (0, "quorate")


def test_the_commands_of_the_packages_are_all_in_the_table() -> None:
    assert {"run", "rollout", "list"} <= commands_of("checker").keys()
    assert {"fetch", "conform"} <= commands_of("harness").keys()
    assert "nodes" not in commands_of("checker")


def test_a_command_answers_as_in_its_package() -> None:
    answer = quorate("quorums", str(ROOT / "spec/scenarios/rollouts/three/zoo-1.cfg"))
    by_package = subprocess.run(
        [sys.executable, "-m", "checker", "quorums", "spec/scenarios/rollouts/three/zoo-1.cfg"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (answer.code, answer.out.replace(f"{ROOT}/", "")) == (by_package.returncode, by_package.stdout)


@pytest.mark.parametrize("name", [name for name, entry in ENTRIES.items() if entry.is_function])
def test_a_function_has_the_name_that_its_package_gives_it(name: str) -> None:
    """A command of a package has its own name there; the five functions have others."""
    words = [sys.executable, *called(name).split()[1:], "--help"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"usage: {called(name)} ")


@pytest.mark.parametrize("words", [("--help",), ("demo", "--help")])
def test_the_help_loads_nothing_of_the_other_commands(words: tuple[str, ...]) -> None:
    script = HELP_ALONE if words == ("--help",) else HELP_ALONE.replace("main(sys.argv[1:])", "main([])")
    done = subprocess.run([sys.executable, "-c", script, *words], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def texts(path: Path) -> Iterator[str]:
    """The strings of a module without its docstrings, and the constant parts of f-strings."""
    tree = ast.parse(path.read_text("utf-8"))
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements:
            yield node.value


def test_no_message_writes_down_how_a_command_is_called() -> None:
    """`called` decides it. The strings that are left name a package in its own help, or a module without a command."""
    names = "|".join(ENTRIES)
    fixed = re.compile(rf"\b(?:checker|harness) (?:{names})\b|python -m (?:{'|'.join(PACKAGES)})\b")
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    of_packages = {"python -m harness", *(f"python -m refimpl{name}" for name in ("", " demo", " simulate"))}
    found = {text for path in paths for text in texts(path) if fixed.search(text)}
    assert found == of_packages
