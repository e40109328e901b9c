"""The roll-outs in the documentation run without options: each ends with a documented exit code, and no stack trace."""

import re
from itertools import permutations
from pathlib import Path

import pytest

from tests.support.command_line import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
COMMAND = re.compile(r"rollout\s+--from\s+(\S+)\s+--to\s+([^\s`]+)")
CODES = {0, 12, 20, 22}  # safe, unsafe, undecided, safe only in stages
NAMED = re.compile(r"spec/scenarios/rollouts/([a-z-]+)|`([a-z-]+)`")


def pairs_in_the_docs() -> list[tuple[str, str]]:
    """The folders of every command that names two folders of this repository."""
    found = [match.groups() for page in PAGES for match in COMMAND.finditer(page.read_text(encoding="utf-8"))]
    return sorted({(old, new) for old, new in found if (ROOT / old).is_dir() and (ROOT / new).is_dir()})


def folders_in_the_docs() -> list[str]:
    """Every shipped folder that the how-to names, in a command or in a sentence."""
    text = (ROOT / "docs" / "how-to-check-a-roll-out.md").read_text(encoding="utf-8")
    names = {name for match in NAMED.finditer(text) for name in match.groups() if name}
    paths = sorted(f"spec/scenarios/rollouts/{name}" for name in names)
    return [path for path in paths if (ROOT / path).is_dir()]


PAIRS = pairs_in_the_docs()
ROLLOUTS = "spec/scenarios/rollouts/"
ODD = [("reconfig-three", "reconfig-five"), ("reconfig-five", "reconfig-three"), ("observer", "reconfig-five")]


def test_the_documentation_has_such_commands_and_names_every_shipped_folder() -> None:
    assert PAIRS
    shipped = {f"spec/scenarios/rollouts/{path.name}" for path in (ROOT / "spec/scenarios/rollouts").iterdir()}
    assert set(folders_in_the_docs()) == shipped


@pytest.mark.parametrize(("old", "new"), [*PAIRS, *((ROLLOUTS + old, ROLLOUTS + new) for old, new in ODD)])
def test_a_roll_out_of_the_docs_ends_with_a_documented_code(old: str, new: str) -> None:
    _check(old, new)


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new"), list(permutations(folders_in_the_docs(), 2)))
def test_a_roll_out_between_any_two_folders_of_the_docs_ends_with_a_documented_code(old: str, new: str) -> None:
    _check(old, new)


def _check(old: str, new: str) -> None:
    ended = cli("rollout", "--from", ROOT / old, "--to", ROOT / new, "--budget", "4s")
    assert ended.code in CODES, ended.err
    assert ended.out.startswith("# ") and "Traceback" not in ended.out + ended.err
