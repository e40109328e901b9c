"""Readers of the trace formats, based on the definitions of the formats and independent of the writers."""

import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt

PLAIN = ("text", "text_special", "strong_open", "strong_close", "link_open", "link_close")


@cache
def itf_validator() -> Draft202012Validator:
    """Return a validator for the schema of the Informal Trace Format, as in ADR-015."""
    schema = json.loads((Path(__file__).parent / "itf.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


class Event(NamedTuple):
    """An event of a ShiViz log."""

    text: str
    host: str
    clock: dict[str, int]


def shiviz_events(log: str) -> list[Event]:
    """Return the events of a log, parsed by the regular expression in its first line. Every line must belong to an
    event.
    """
    head, delimiter, body = log.split("\n", 2)
    assert delimiter == ""
    regex = re.compile(re.sub(r"\(\?<(\w+)>", r"(?P<\1>", head), re.MULTILINE)
    events, end = [], 0
    for found in regex.finditer(body):
        assert body[end : found.start()].strip() == ""
        end = found.end()
        events.append(Event(found["event"], found["host"], json.loads(found["clock"])))
    assert body[end:] == "\n"
    return events


class Markdown(NamedTuple):
    """The content of a text as GitHub shows it. Tables are rows of cells; fences are pairs of a language and the
    content.
    """

    headings: list[str]
    tables: list[list[list[str]]]
    paragraphs: list[str]
    fences: list[tuple[str, str]]
    html: list[str]


def read_markdown(text: str) -> Markdown:
    """Parse a text as CommonMark with tables; the lines of a cell are separated by <br>."""
    read = Markdown([], [], [], [], [])
    where = ""
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        if token.type == "table_open":
            read.tables.append([])
        elif token.type == "tr_open":
            read.tables[-1].append([])
        elif token.type.endswith("_open"):
            where = token.type
        elif token.type == "inline":
            shown = _inline(token.children or [])
            if where in ("th_open", "td_open"):
                read.tables[-1][-1].append(shown)
            else:
                (read.headings if where == "heading_open" else read.paragraphs).append(shown)
        elif token.type == "fence":
            read.fences.append((token.info, token.content))
        elif token.type == "html_block":
            read.html.append(token.content.strip())
        else:
            assert token.type.endswith("_close"), token.type
    return read


def _inline(children: list[Any]) -> str:
    shown = ""
    for child in children:
        if child.type == "html_inline":
            assert re.fullmatch(r'<br>|<a id="step-\d+">|</a>', child.content), child.content
            shown += "\n" if child.content == "<br>" else ""
        elif child.type in ("softbreak", "hardbreak"):
            shown += "\n"
        else:
            assert child.type in PLAIN, child
            assert child.type != "link_open" or re.fullmatch(r"#step-\d+", str(child.attrGet("href"))), child
            shown += child.content
    return shown


class Page(HTMLParser):
    """The content of an HTML page: its elements as (tag, attributes), the text that is shown, and its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.shown: list[str] = []
        self.scripts: list[str] = []
        self._within = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._within = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, _tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within == "script":
            self.scripts[-1] += data
        elif self._within != "style":
            self.shown.append(data)
