"""The map of the code and the glossary agree with the tree, and name files in place of functions.

A page names code as a link to a file or a folder: [`spec/txn.py`](../spec/txn.py). Functions are named nowhere, so a
renamed function changes no page. Nothing is imported; files are only listed.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
ARCHITECTURE, GLOSSARY = DOCS / "architecture.md", DOCS / "glossary.md"
EACH_PAGE = pytest.mark.parametrize("page", [ARCHITECTURE, GLOSSARY], ids=lambda page: page.stem)
TOPS = "spec|checker|refimpl|simulation|harness|benchmarks|research|tests|docs"
PATH = re.compile(rf"(?<![\w./-])(?:\.\./)?((?:{TOPS})/[\w./-]*)")
LINK = re.compile(rf"\[`(?P<label>(?:{TOPS})/[^`]*)`\]\(\.\./(?P<file>[^)#]+)\)")
NAME_BESIDE_A_LINK = re.compile(LINK.pattern + r",?\s+`")
BLOCK = re.compile(r"^```.*?^```\n", re.MULTILINE | re.DOTALL)
TERM = re.compile(r"^## (?P<term>.*)\n\n(?P<definition>(?:.+\n)+)", re.MULTILINE)
SEVERAL_SENSES = re.compile(r"\(\d\)|\balso (?:means|called)\b|\b(?:two|three|four|several) (?:senses|uses|meanings)\b")
MOST_TERMS = 99
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


def test_the_map_names_no_code_but_files() -> None:
    text = BLOCK.sub("", ARCHITECTURE.read_text(encoding="utf-8"))
    assert re.findall(r"`[^`]*`", LINK.sub("", text)) == []


def test_the_map_has_every_package() -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    folders = {path.parent.relative_to(ROOT).as_posix() for path in packaged()}
    packages = {f"tests/unit/{folder}" for folder in folders}
    folders -= packages  # those of the unit tests have the names of packages
    assert sorted(folder for folder in folders if f"- [`{folder}/`](../{folder}/): " not in text) == []


def test_the_map_answers_the_ten_questions_with_files() -> None:
    _, *answers = re.split(r"^### \d+\. ", ARCHITECTURE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert tuple(answer.partition("\n")[0] for answer in answers) == QUESTIONS
    assert [answer for answer in answers if not any((ROOT / file).is_file() for _, file in LINK.findall(answer))] == []


def test_every_term_is_defined_once_and_in_alphabetical_order() -> None:
    terms = list(definitions())
    headings = re.findall(r"^#{2,} (.*)$", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)
    assert terms == headings, "a heading has no definition right below it"
    assert [(one, other) for one, other in pairwise(terms) if one.casefold() >= other.casefold()] == []
    assert len(terms) <= MOST_TERMS


def test_no_term_has_two_senses() -> None:
    """As far as a test sees it: no numbered senses, and no entry for the plural of another."""
    terms = definitions()
    assert [term for term, definition in terms.items() if SEVERAL_SENSES.search(definition)] == []
    assert [term for term in terms if f"{term}s" in terms] == []


def test_every_definition_ends_with_the_place_of_its_term() -> None:
    for term, definition in definitions().items():
        sense, see, places = definition.partition("\nSee ")
        assert sense, term
        assert see, f"{term} has no place"
        assert LINK.search(places), f"{term} has no place in the code"
        assert not NAME_BESIDE_A_LINK.search(places), f"{term} names code inside a file"


def definitions() -> dict[str, str]:
    """The definition of each term of the glossary."""
    return {entry["term"]: entry["definition"] for entry in TERM.finditer(GLOSSARY.read_text(encoding="utf-8"))}


def packaged() -> Iterator[Path]:
    """The modules of the project, and the page of the explorer; without the packages installed below a test."""
    for top in ("spec", "checker", "refimpl", "simulation", "harness", "benchmarks", "research", "tests"):
        for path in (ROOT / top).rglob("*"):
            if path.suffix in {".py", ".js", ".pml"} and "node_modules" not in path.parts:
                yield path
