"""The requirements and the page for contributors name files, tests and commands that exist.

Each requirement has one row with a number, a name, a text, and links to its evidence. A link whose text is the name of
a test function leads to the file that defines it. Expected numbers: R1 to R27, and R10'.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from checker.command_table import ENTRIES

ROOT = Path(__file__).parents[3]
REQUIREMENTS = ROOT / "docs" / "requirements.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PAGES = (REQUIREMENTS, CONTRIBUTING)
EACH_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
NUMBERS = sorted([*(f"R{number}" for number in range(1, 28)), "R10'"])
ROW = re.compile(r"^\| (?P<number>R\d+'?) \| (?P<name>[^|]*) \| (?P<text>[^|]*) \| (?P<shown>[^|]*) \|$", re.MULTILINE)
LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)")
SOURCE_PATH = re.compile(r"`((?:checker|spec|refimpl|tests|docs|harness|benchmarks)/[\w./-]*|\.ci/\w+|[A-Z]+\.md)`")
TEST_NAME = re.compile(r"`(test_\w+)`")
COMMAND = re.compile(r"`quorate (\w+)")
SET_UP = re.compile(r"^```sh\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


class Requirement(NamedTuple):
    """A row of the page."""

    number: str
    name: str
    text: str
    shown: str


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def requirements() -> list[Requirement]:
    return [Requirement(*found.groups()) for found in ROW.finditer(text_of(REQUIREMENTS))]


def links(page: Path) -> Iterator[tuple[str, Path]]:
    """The text and the file of each link."""
    for found in LINK.finditer(text_of(page)):
        if not found["target"].startswith(("http", "#")):
            yield found["text"], (page.parent / found["target"].partition("#")[0]).resolve()


@cache
def defined_in(path: Path) -> frozenset[str]:
    """The test functions and methods that a file defines."""
    tree = ast.parse(text_of(path), str(path))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_each_requirement_has_one_row() -> None:
    assert sorted(each.number for each in requirements()) == NUMBERS


def test_no_two_requirements_have_one_name() -> None:
    names = [each.name.strip() for each in requirements()]
    assert all(names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("requirement", requirements(), ids=lambda requirement: requirement.number)
def test_a_requirement_has_a_text_and_a_link_to_what_shows_it(requirement: Requirement) -> None:
    assert requirement.text.strip()
    assert LINK.search(requirement.shown), f"{requirement.number} names nothing that shows it"


def test_each_difference_from_a_source_has_a_link_to_what_shows_it() -> None:
    section = text_of(REQUIREMENTS).split("\n## E. ")[1]
    rows = [line for line in section.splitlines() if line.startswith("| ")][2:]
    assert rows
    assert [row for row in rows if not LINK.search(row.rsplit(" | ", 1)[1])] == []


@EACH_PAGE
def test_each_link_leads_to_a_file(page: Path) -> None:
    assert [str(target) for _, target in links(page) if not target.exists()] == []


@EACH_PAGE
def test_each_path_exists(page: Path) -> None:
    paths = SOURCE_PATH.findall(text_of(page))
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_each_named_test_is_in_the_file_of_its_link() -> None:
    named = [(found[1], path) for text, path in links(REQUIREMENTS) if (found := TEST_NAME.fullmatch(text))]
    assert len(named) > len(NUMBERS)
    assert [name for name, path in named if name not in defined_in(path)] == []


def test_each_test_name_is_a_link() -> None:
    """A test without a file cannot be found by a reader."""
    text = text_of(REQUIREMENTS)
    linked = {found[1] for words, _ in links(REQUIREMENTS) if (found := TEST_NAME.fullmatch(words))}
    assert set(TEST_NAME.findall(text)) == linked


@EACH_PAGE
def test_each_command_of_the_checker_exists(page: Path) -> None:
    words = set(COMMAND.findall(text_of(page)))
    assert words
    assert words <= ENTRIES.keys()


def test_the_set_up_is_that_of_the_readme() -> None:
    (shown,) = SET_UP.findall(text_of(CONTRIBUTING))
    assert shown in SET_UP.findall(text_of(ROOT / "README.md"))
