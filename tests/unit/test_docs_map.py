"""The glossary and the map of the code agree with the code.

A page names code as a link to a file, followed by names in that file: [`spec/txn.py`](../spec/txn.py), `Txn`. Each file
must exist, and each name must be defined in its file: a function, a class, a constant, or `Class.method`. Nothing is
imported; files are parsed.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ARCHITECTURE, GLOSSARY = DOCS / "architecture.md", DOCS / "glossary.md"
EACH_PAGE = pytest.mark.parametrize("page", [ARCHITECTURE, GLOSSARY], ids=lambda page: page.stem)
TOPS = "spec|checker|refimpl|harness|benchmarks|research|tests|docs"
PATH = re.compile(rf"(?<![\w./-])(?:\.\./)?((?:{TOPS})/[\w./-]*)")
LINK = re.compile(rf"\[`(?P<label>(?:{TOPS})/[^`]*)`\]\(\.\./(?P<file>[^)#]+)\)")
NAMES = re.compile(LINK.pattern + r"(?P<names>(?:,\s+`[\w.]+`)+)")
BLOCK = re.compile(r"^```.*?^```\n", re.MULTILINE | re.DOTALL)
TERM = re.compile(r"^## (?P<term>.*)\n\n(?P<definition>(?:.+\n)+)", re.MULTILINE)
QUESTIONS = (
    "Where is a TRUNC chosen?",
    "Where is the fsync?",
    "Who decides that a plan is SAFE?",
    "Where is a vote compared?",
    "Where does a leader count acknowledgements?",
    "Where is an invariant defined and registered?",
    "Where is a counterexample shortened?",
    "Where is a packet decoded?",
    "Where is a watch fired?",
    "Where does a search stop at a limit?",
)


@EACH_PAGE
def test_every_path_on_the_page_exists(page: Path) -> None:
    paths = PATH.findall(page.read_text(encoding="utf-8"))
    assert paths
    assert [path for path in paths if not (ROOT / path.rstrip(".")).exists()] == []


@EACH_PAGE
def test_every_link_to_code_says_where_it_leads(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert links
    assert [(label, file) for label, file in links if label != file] == []


@EACH_PAGE
def test_every_name_beside_a_file_is_defined_in_it(page: Path) -> None:
    named = list(names_beside_files(page))
    assert named
    assert [f"{name} in {file}" for file, name in named if name not in defined(ROOT / file)] == []


def test_the_map_names_no_code_without_its_file() -> None:
    text = NAMES.sub("", BLOCK.sub("", ARCHITECTURE.read_text(encoding="utf-8")))
    assert re.findall(r"`[^`]*`", LINK.sub("", text)) == []


def test_the_map_has_every_package() -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    folders = {path.parent.relative_to(ROOT).as_posix() for path in packaged()}
    assert sorted(folder for folder in folders if f"- [`{folder}/`](../{folder}/): " not in text) == []


def test_the_map_answers_the_ten_questions_with_names() -> None:
    _, *answers = re.split(r"^### \d+\. ", ARCHITECTURE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert tuple(answer.partition("\n")[0] for answer in answers) == QUESTIONS
    assert [answer for answer in answers if not NAMES.search(answer)] == []


def test_every_term_is_defined_once_and_in_alphabetical_order() -> None:
    terms = [found["term"] for found in TERM.finditer(GLOSSARY.read_text(encoding="utf-8"))]
    headings = re.findall(r"^#{2,} (.*)$", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)
    assert terms == headings, "a heading has no definition right below it"
    assert [(one, other) for one, other in pairwise(terms) if one.casefold() >= other.casefold()] == []


def test_every_definition_ends_with_the_place_of_its_term() -> None:
    for found in TERM.finditer(GLOSSARY.read_text(encoding="utf-8")):
        definition, see, places = found["definition"].partition("\nSee ")
        assert definition, found["term"]
        assert see, f"{found['term']} has no place"
        assert "](" in places, f"{found['term']} has no place"


def names_beside_files(page: Path) -> Iterator[tuple[str, str]]:
    for found in NAMES.finditer(page.read_text(encoding="utf-8")):
        for name in re.findall(r"`([^`]+)`", found["names"]):
            yield found["file"], name


@cache
def defined(file: Path) -> frozenset[str]:
    """The names that a module defines at its top level, and the methods of its classes as `Class.method`."""
    return frozenset(_defined(ast.parse(file.read_text(encoding="utf-8")).body))


def _defined(body: list[ast.stmt]) -> Iterator[str]:
    for each in body:
        match each:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield each.name
            case ast.ClassDef():
                yield each.name
                yield from (f"{each.name}.{name}" for name in _defined(each.body))
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def packaged() -> Iterator[Path]:
    """The modules of the project, and the page of the explorer; without the packages installed below a test."""
    for top in ("spec", "checker", "refimpl", "harness", "benchmarks", "research", "tests"):
        for path in (ROOT / top).rglob("*"):
            if path.suffix in {".py", ".js", ".pml"} and "node_modules" not in path.parts:
                yield path
