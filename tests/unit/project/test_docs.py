"""The documentation is correct: its code prints the output on the page, its links have targets, its lists are complete.

A fenced block `python` is run; all blocks of a page share one namespace, in the order of the page. A block `text`
directly after one is its output; a block without one prints nothing. `REWRITE_GOLDEN=1` writes the actual output into
the page instead, and the lists of properties; read the diff.
"""

import contextlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from checker.properties import ENSEMBLE_PROPERTIES
from checker.properties.recipes import RECIPE_PROPERTIES
from checker.properties.service import SERVICE_PROPERTIES
from tests.support import property_pages

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
GALLERY = DOCS / "gallery"
PAGES = sorted(DOCS.rglob("*.md"))
EACH_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
REWRITE = bool(os.environ.get("REWRITE_GOLDEN"))
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]+\]\((?P<target>[^)\s]+)\)")
SOURCE_PATH = re.compile(r"`((?:checker|spec|refimpl|tests|docs|harness|benchmarks)/[\w./-]*)`")


class Example(NamedTuple):
    """A block of code, its first line, and the output that the page shows."""

    code: str
    line: int
    output: str


def examples(text: str) -> Iterator[Example]:
    for found in BLOCK.finditer(text):
        yield Example(found["code"], text[: found.start("code")].count("\n"), found["output"] or "")


def run(page: Path, example: Example, namespace: dict[str, Any]) -> str:
    """Return the output of the example; errors name the page and its line."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile("\n" * example.line + example.code, str(page), "exec"), namespace)
    # No trailing blanks: neither editors nor readers see them.
    return "".join(line.rstrip() + "\n" for line in printed.getvalue().splitlines())


@EACH_PAGE
def test_examples_print_what_the_page_shows(page: Path) -> None:
    text, namespace = page.read_text(encoding="utf-8"), {"__name__": page.stem}
    printed = [run(page, example, namespace) for example in examples(text)]
    if REWRITE:
        given = iter(printed)
        page.write_text(BLOCK.sub(lambda found: with_output(found["code"], next(given)), text), encoding="utf-8")
        return
    for example, output in zip(examples(text), printed, strict=True):
        assert output == example.output, f"{page.name}, line {example.line}: it prints something else"


def with_output(code: str, output: str) -> str:
    return f"```python\n{code}```\n" + (f"\n```text\n{output}```\n" if output else "")


@EACH_PAGE
def test_links_lead_to_files_and_headings_that_are_there(page: Path) -> None:
    for found in LINK.finditer(without_code(page)):
        target, _, anchor = found["target"].partition("#")
        if target.startswith(("http:", "https:")):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{page.name} links to {target}, which is not there"
        assert not anchor or anchor in anchors(path), f"{page.name} links to {found['target']}: no such heading"


@EACH_PAGE
def test_source_paths_that_a_page_names_exist(page: Path) -> None:
    for path in SOURCE_PATH.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / path).exists(), f"{page.name} names {path}, which is not there"


def without_code(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", without_code(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_index_names_every_page_and_that_of_a_folder_those_in_it() -> None:
    for index in (page for page in PAGES if page.name == "README.md"):
        linked = {
            (index.parent / found["target"].partition("#")[0]).resolve()
            for found in LINK.finditer(index.read_text(encoding="utf-8"))
        }
        below = {page for page in PAGES if page != index and index_over(page) == index}
        assert {page.resolve() for page in below} - linked == set(), f"{index} does not name them"


def test_the_gallery_has_the_pages_that_other_documents_cite_and_no_others() -> None:
    documents = [page for page in (*ROOT.glob("*.md"), *PAGES) if GALLERY not in page.parents]
    links = {
        (document.parent / found["target"]).resolve()
        for document in documents
        for found in LINK.finditer(document.read_text(encoding="utf-8"))
    }
    cited = {gallery_page(path) for path in links if path.parent.parent == GALLERY}
    assert {gallery_page(path) for path in GALLERY.glob("*/*")} == cited


def gallery_page(path: Path) -> str:
    """The page of the gallery that a file there belongs to: the page itself, or one of its pictures."""
    return f"{path.parent.name}/{path.name.partition('.')[0]}"


def index_over(page: Path) -> Path:
    """Return the nearest page named README above a page; the README of a folder is below that of the parent folder."""
    folders = page.parents[1:] if page.name == "README.md" else page.parents
    return next(folder / "README.md" for folder in folders if (folder / "README.md").exists())


@pytest.mark.parametrize("name", property_pages.PAGES)
def test_the_lists_of_properties_are_those_of_the_declarations(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    page = property_pages.page(text)
    if REWRITE:
        (DOCS / name).write_text(page, encoding="utf-8")
        return
    assert text == page, f"{name} is out of date; REWRITE_GOLDEN=1 writes it"


def test_every_property_is_on_a_page() -> None:
    text = "".join((DOCS / name).read_text(encoding="utf-8") for name in property_pages.PAGES)
    for name in (*ENSEMBLE_PROPERTIES, *RECIPE_PROPERTIES, *SERVICE_PROPERTIES):
        assert f"### {name}\n" in text or f"`{name}" in text
