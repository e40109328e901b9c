"""Text of other authors in HTML and SVG, and the parts of a document that a notebook shows.

No text of a name or a value may turn into markup, into a control character, or into mathematics, which notebooks look
for between dollar signs. A document has a foreign text as `escaped`, and in no other way.
"""

import html
from collections.abc import Iterable, Sequence

from spec.text import on_a_line


def escaped(text: str) -> str:
    """Text on one line, escaped for the content of an element or for an attribute in quotes."""
    return html.escape(on_a_line(text))


def paragraph(heading: str, text: str) -> str:
    """A paragraph with its first words in bold type."""
    return f"<p><strong>{escaped(heading)}</strong> {escaped(text)}</p>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of plain texts, aligned at the left."""
    style = ' style="text-align:left"'
    first = "".join(f"<th{style}>{escaped(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td{style}>{escaped(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{first}</tr></thead><tbody>{body}</tbody></table>"


def folded(summary: str, inside: str, *, is_open: bool = False) -> str:
    """A document that is hidden behind a summary until a reader opens it."""
    return f"<details{' open' * is_open}><summary>{escaped(summary)}</summary>{inside}</details>"


def document(*parts: str) -> str:
    """The parts as one document for the output of a notebook."""
    return f'<div class="quorate mathjax_ignore tex2jax_ignore">{"".join(parts)}</div>'
