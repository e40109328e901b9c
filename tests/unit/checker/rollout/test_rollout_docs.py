"""Roll-outs between the shipped folders end with a documented exit code, and no stack trace.

The manual names each of them. Those that it runs are in `test_docs_console.py`, with their answers.
"""

import re
from itertools import permutations
from pathlib import Path

import pytest

from tests.support.command_line import cli
from tests.support.rollout_runs import FOLDERS

PAGE = Path(__file__).parents[4] / "docs" / "how-to-check-a-roll-out.md"
NAMED = re.compile(r"spec/scenarios/rollouts/([a-z-]+)|`([a-z-]+)`")
SHIPPED = sorted(path.name for path in FOLDERS.iterdir())
CODES = {0, 12, 20, 22}  # safe, unsafe, undecided, safe only in stages
ODD = [("reconfig-three", "reconfig-five"), ("reconfig-five", "reconfig-three"), ("observer", "reconfig-five")]


def test_the_manual_names_every_shipped_folder() -> None:
    named = {name for match in NAMED.finditer(PAGE.read_text(encoding="utf-8")) for name in match.groups()}
    assert set(SHIPPED) <= named


@pytest.mark.parametrize(
    ("old", "new"), [*ODD, *(pytest.param(*pair, marks=pytest.mark.slow) for pair in permutations(SHIPPED, 2))]
)
def test_a_roll_out_between_two_folders_ends_with_a_documented_code(old: str, new: str) -> None:
    ended = cli("rollout", "--from", FOLDERS / old, "--to", FOLDERS / new, "--budget", "4s")
    assert ended.code in CODES, ended.err
    assert ended.out.startswith("# ") and "Traceback" not in ended.out + ended.err
