"""The answer of the planner as HTML: its Markdown, with the runs as pictures instead of Mermaid.

Rules of this module: raw HTML in the Markdown is shown as text, except the lines by which the planner folds a section.
No text of the operator's files turns into markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping, Sequence
from html import escape, unescape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

FENCE = re.compile(r"(`{3,})")
SUMMARY = re.compile(r"<summary>(.*)</summary>")
FOLDS = ("<details>", "</details>")
PICTURES = "pictures"  # those that are left, in the environment of the renderer


def to_html(markdown: str, pictures: Sequence[str]) -> str:
    """The HTML of an answer. `pictures` are SVG elements, one for each Mermaid block, in the order of these."""
    renderer = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    renderer.add_render_rule("fence", _fence)
    left = {PICTURES: iter(pictures)}
    return "".join(part if is_html else _rendered(renderer, part, left) for is_html, part in _split_at_folds(markdown))


def _rendered(renderer: MarkdownIt, markdown: str, env: dict[str, Iterator[str]]) -> str:
    """The HTML of Markdown without folds. Cells are aligned by classes, since the page allows no inline style."""
    tokens = renderer.parse(markdown, env)
    for token in tokens:
        if token.attrs.pop("style", None) == "text-align:right":
            token.attrs["class"] = "number"
    return str(renderer.renderer.render(tokens, renderer.options, env))


def _split_at_folds(markdown: str) -> Iterator[tuple[bool, str]]:
    """The text between folds as Markdown, and the lines of folds as HTML."""
    lines: list[str] = []
    fence = ""
    for line in markdown.splitlines():
        opened = FENCE.match(line)
        if fence:
            fence = "" if line == fence else fence
        elif opened:
            fence = opened[1]
        elif line in FOLDS or SUMMARY.fullmatch(line):
            yield False, "\n".join(lines) + "\n"
            lines = []
            yield True, line if line in FOLDS else f"<summary>{escape(unescape(line[9:-10]))}</summary>"
            continue
        lines.append(line)
    yield False, "\n".join(lines) + "\n"


def _fence(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[Any, Any]
) -> str:
    token = tokens[index]
    drawn = next(env[PICTURES], None) if token.info == "mermaid" else None
    if drawn is not None:
        return f'<figure class="picture" tabindex="0" aria-label="The run as a picture">{drawn}</figure>\n'
    return renderer.fence(tokens, index, options, env)
