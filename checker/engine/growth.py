"""The content that grows with the depth, measured in the values of a search that a bound or the memory ended.

A model with a content without a bound has infinitely many states, and every search of it ends so. Rules of this module:

- The size of a tuple, a set or a bag is its number of items, and that of a whole number is its absolute value. Records
  and items are searched for such parts.
- A part is named if it was larger at the last depth than at three quarters of it, and larger there than at half of it.
  This shows growth, and not that it has no end. A part of less than `LEAST` items is not named.
- At most `MOST` values of each depth are measured, at equal distances in the order of their discovery.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from checker.engine.model import Model
from checker.engine.result import Stop
from checker.engine.values import field_names

BOUNDED = (Stop.DEPTH, Stop.STATES, Stop.MEMORY)
"""The ends of a search that call for this measurement."""
MOST, DEEPEST, LEAST = 1_000, 4, 4
"""The values of a depth, the records within one another, and the least depths and the least size of a part."""


class ContentPart(NamedTuple):
    """A part of the values of a column: the way to it, and whether it is a number."""

    column: str
    path: str
    is_number: bool


class Growth:
    """The largest size of each part so far, after each depth."""

    def __init__(self, model: Model) -> None:
        self._columns = {column.name: column for column in model.columns}
        self._after: list[dict[ContentPart, int]] = []

    def add_depth(self, values: Sequence[tuple[str, Any]]) -> None:
        """Add the new values of the next depth, each with the name of its column."""
        largest = dict(self._after[-1]) if self._after else {}
        for column, value in values[:: 1 + len(values) // MOST]:
            for part, size in _sizes(column, value, "", DEEPEST):
                largest[part] = max(size, largest.get(part, 0))
        self._after.append(largest)

    def in_words(self, deepest: int) -> str:
        """The largest part that grows, with its sizes at three depths; empty if none does. `deepest` is the last."""
        last = len(self._after) - 1
        if last < LEAST:
            return ""
        chosen = (last // 2, 3 * last // 4, last)
        curves = {
            part: [self._after[place].get(part, 0) for place in chosen] for part, size in self._after[last].items()
        }
        growing = [part for part, (half, later, end) in curves.items() if half < later < end >= LEAST]
        if not growing:
            return ""
        part = max(growing, key=lambda part: (not part.is_number, curves[part][2]))
        depths = [deepest - last + place for place in chosen]
        half, later, end = (f"{size:,} at depth {depth}" for size, depth in zip(curves[part], depths, strict=True))
        half = half.replace(" ", self._unit(part, curves[part][0]), 1)
        name = f"{part.column}{part.path}"
        return f"{name} grows with the depth, from {half} and {later} to {end}; without a bound the model is infinite"

    def _unit(self, part: ContentPart, size: int) -> str:
        """The word between a size and the depth."""
        if part.is_number:
            return " "
        is_channel = self._columns[part.column].channel is not None and not part.path
        return f" {'message' if is_channel else 'item'}{'s' * (size != 1)} "


def _sizes(column: str, value: Any, path: str, depth: int) -> Iterator[tuple[ContentPart, int]]:
    """The sizes of the parts of a value."""
    if type(value) is int:
        yield ContentPart(column, path, is_number=True), abs(value)
    names = field_names(value)
    if names is not None:
        if hasattr(value, "__len__") and not isinstance(value, tuple):
            with suppress(Exception):  # it is a function of the author, and another part may grow
                yield ContentPart(column, path, is_number=False), len(value)
        for name in names if depth else ():
            yield from _sizes(column, getattr(value, name), f"{path}.{name}", depth - 1)
    elif isinstance(value, tuple | frozenset):
        yield ContentPart(column, path, is_number=False), len(value)
        for item in value if depth else ():
            yield from _sizes(column, item, f"{path}[]", depth - 1)
