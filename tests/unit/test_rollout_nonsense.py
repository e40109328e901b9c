"""No verdict, exit code or machine-readable field of the planner depends on the wording of a sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from checker.scenario import bundled
from tests.support.mutants import REPOSITORY

FOLDERS = bundled()[0].parent.parent / "rollouts"
SENTENCES = ("sentences", "markdown", "sections")
"""The modules of `checker.rollout.output` that make sentences."""
FOR_PEOPLE = frozenset({"because", "sentence", "headline", "notes", "title"})
"""The fields with sentences; all other fields are for machines."""


def answer(*arguments: str, nonsense: bool) -> tuple[int, Any, str]:
    """The exit code, the fields for machines, and the whole output of `rollout --json`."""
    modules = ",".join(f"checker.rollout.output.{name}" for name in SENTENCES) if nonsense else "none"
    ran = subprocess.run(
        [sys.executable, "-m", "tests.support.nonsense", modules, "--", "rollout", "--json", *arguments],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return ran.returncode, for_machines(json.loads(ran.stdout)), ran.stdout


def for_machines(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: for_machines(each) for key, each in value.items() if key not in FOR_PEOPLE}
    return [for_machines(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("old", "new", "more", "code"),
    [
        ("three", "five", ("--order", "2,1,3", "--leader", "2", "--faults", "0"), 12),
        ("three", "five", ("--budget", "2s"), 20),
        ("three", "four", ("--budget", "4s"), 0),
        ("reconfig-three", "reconfig-five", ("--budget", "2s"), 20),
    ],
    ids=["unsafe", "undecided", "safe", "versions"],
)
def test_nonsense_in_place_of_sentences_changes_no_field_for_machines(
    old: str, new: str, more: tuple[str, ...], code: int
) -> None:
    arguments = ("--from", str(FOLDERS / old), "--to", str(FOLDERS / new), *more)
    plain, nonsense = (answer(*arguments, nonsense=each) for each in (False, True))
    assert plain[:2] == nonsense[:2] and plain[0] == code
    assert "zq1" not in plain[2] and "zq" in nonsense[2]
