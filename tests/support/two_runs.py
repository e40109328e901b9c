"""One run of the tests in two halves: on a bare machine, and then what could not pass there.

The gate runs all tests on a bare machine, where those without their programs are skipped (`--write-passed FILE`). With
everything installed it runs the tests that have not passed yet (`--except-passed FILE`).
"""

import re
from pathlib import Path

import pytest

GROUP = re.compile(r"@[^\]]*$")
"""What pytest-xdist adds to the id of a test that has a group."""


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("two runs")
    group.addoption("--write-passed", type=Path, help="write the ids of the tests that passed to this file")
    group.addoption("--except-passed", type=Path, help="leave out the tests whose ids are in this file")


def leave_out_passed(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that passed in the other run."""
    if config.option.except_passed is None:
        return
    passed = set(config.option.except_passed.read_text(encoding="utf-8").splitlines())
    left_out = [item for item in items if item.nodeid in passed]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item.nodeid not in passed]


def write_passed(config: pytest.Config, reports: list[pytest.TestReport]) -> None:
    """Write the ids of the tests that passed, one on a line."""
    if config.option.write_passed is not None:
        ids = sorted({GROUP.sub("", report.nodeid) for report in reports})
        config.option.write_passed.write_text("".join(f"{test}\n" for test in ids), encoding="utf-8")
