"""Small signs of a picture: arrow heads, crosses, and a sign with a different shape for each truth value."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot

from checker.traces.drawing import SANS, tag, text, title
from checker.traces.summary import MEANING
from checker.traces.trace import Truth

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
    told = title(f"{prop}: {MEANING[truth]}") if prop else ""
    kind = truth.value.replace(" ", "-")
    return tag("g", told + SIGNS[truth], class_=f"truth {kind}", transform=f"translate({x:.1f} {y:.1f})")


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
