"""Letters and shapes of an SVG picture: escaping, measuring, shortening, elements and signs.

Rules of this module:

- A picture is XML 1.0 for all words of a model: `on_a_line` writes what XML cannot contain as its code.
- No font is measured, because the fonts of a reader are unknown. Text is counted in columns: a wide East Asian
  character has two columns, and a column has the width of a rather wide font.
- Numbers have one decimal at most, so that equal traces give equal pictures on every machine.
- The sign of each truth value has a different shape.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from math import hypot

from rich.cells import cell_len

from checker.traces.summary import MEANING
from checker.traces.trace import Truth
from spec.text import on_a_line

MONO, SANS, BOLD = 0.61, 0.56, 0.65  # width of a column in ems


def escaped(text: str) -> str:
    """Text on one line, escaped for the content of an element or for an attribute in quotes."""
    return html.escape(on_a_line(text))


def columns_in(width: float, size: float, ratio: float) -> int:
    """The number of columns of a font of that size in a width; at least four."""
    return max(4, int(width / (size * ratio)))


def shortened(text: str, columns: int) -> str:
    """Text within a number of columns; a cut text ends in an ellipsis."""
    text = " ".join(on_a_line(text).split())
    if cell_len(text) <= columns:
        return text
    start = text[: max(0, columns - 1)]
    while start and cell_len(start) > columns - 1:
        start = start[:-1]
    return start.rstrip() + "…"


def wrapped(text: str, columns: int, lines: int) -> list[str]:
    """Text within a number of lines and columns; a longer text is cut as in `shortened`."""
    words = [piece for word in on_a_line(text).split() for piece in _pieces(word, columns)]
    filled: list[str] = [""]
    for place, word in enumerate(words):
        longer = f"{filled[-1]} {word}".strip()
        if cell_len(longer) <= columns:
            filled[-1] = longer
        elif len(filled) < lines:
            filled.append(word)
        else:
            filled[-1] = shortened(" ".join([filled[-1], *words[place:]]), columns)
            break
    return filled


def _pieces(word: str, columns: int) -> list[str]:
    """A word that is wider than a line, in pieces."""
    step = columns if cell_len(word) == len(word) else max(1, columns // 2)
    return [word[start : start + step] for start in range(0, len(word), step)] if cell_len(word) > columns else [word]


def number(value: float) -> str:
    """A coordinate: `12`, `12.5`."""
    return f"{round(value, 1):g}" if abs(value) < 100000 else str(round(value))


def tag(name: str, inside: str | None = None, **attributes: str | float | None) -> str:
    """An element. `inside` is markup already; attributes that are None are left out; `class_` is written `class`."""
    content = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(value) if isinstance(value, str) else number(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{content}/>" if inside is None else f"<{name}{content}>{inside}</{name}>"


def text(x: float, y: float, words: str, class_: str, **attributes: str | float | None) -> str:
    """A line of text whose baseline is at y."""
    return tag("text", escaped(words), x=x, y=y, class_=class_, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """A straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def polyline(corners: Sequence[tuple[float, float]], class_: str) -> str:
    """A line with corners."""
    return tag("polyline", points=" ".join(f"{number(x)},{number(y)}" for x, y in corners), class_=class_)


def box(x: float, y: float, width: float, height: float, class_: str, radius: float = 3) -> str:
    """A rectangle with round corners."""
    return tag("rect", x=x, y=y, width=width, height=height, rx=radius, class_=class_)


def title(words: str) -> str:
    """The title of an element, which a browser shows at the pointer."""
    return tag("title", "\n".join(escaped(each) for each in words.split("\n")))


SIGNS = {
    Truth.HOLDS: tag("path", d="M-4 0.5L-1 3.5L4.5 -3.5"),
    Truth.FAILS: tag("circle", r=6.5) + tag("path", d="M-3 -3L3 3M-3 3L3 -3"),
    Truth.TRIVIAL: tag("circle", r=1.8),
    Truth.WITNESSED: tag("path", d="M0 -6.5L1.9 -2L6.4 -2L2.8 1L4.1 5.6L0 2.9L-4.1 5.6L-2.8 1L-6.4 -2L-1.9 -2Z"),
    Truth.UNSEEN: tag("path", d="M-3.5 0H3.5"),
    Truth.REACHED: tag("circle", r=4.5),
    Truth.OPEN: tag("circle", r=4.5),
}


def truth_sign(x: float, y: float, truth: Truth, prop: str = "") -> str:
    """The sign of a truth value around a point."""
    content = title(f"{prop}: {MEANING[truth]}") if prop else ""
    kind = truth.value.replace(" ", "-")
    return tag("g", content + SIGNS[truth], class_=f"truth {kind}", transform=f"translate({x:.1f} {y:.1f})")


def legend(x: float, y: float, truths: Sequence[Truth]) -> str:
    """The meaning of the signs, in a line whose text is based at y."""
    parts = []
    for truth in truths:
        parts += [truth_sign(x + 7, y - 4, truth), text(x + 18, y, MEANING[truth], "foot")]
        x += 36 + len(MEANING[truth]) * 12 * SANS
    return tag("g", "".join(parts), class_="legend")


def arrow_head(x: float, y: float, dx: float, dy: float) -> str:
    """A head whose point is at (x, y), of an arrow that goes in the direction (dx, dy)."""
    length = hypot(dx, dy) or 1.0
    ux, uy = dx / length, dy / length
    back_x, back_y = x - 9 * ux, y - 9 * uy
    corners = [(x, y), (back_x - 4 * uy, back_y + 4 * ux), (back_x + 4 * uy, back_y - 4 * ux)]
    return tag("path", d="M" + "L".join(f"{cx:.1f} {cy:.1f}" for cx, cy in corners) + "Z", class_="head")


def cross(x: float, y: float) -> str:
    """A cross where a message is lost."""
    return tag("path", d=f"M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10", class_="cross")
