"""The error for a model that is not as symmetric as it declares, in one line of at most `LONGEST` characters.

It names the other names, the move or the property, the first column that differs, and the likely cause. Of two values
only the first parts that differ are shown, and as much of them as there is room for.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from checker.engine.contract import short
from checker.engine.model import Finding, Model, ModelError, Move, Property, Renaming, Row, Trivial
from checker.engine.values import field_names
from spec.text import excerpt

LONGEST = 300
_SIZES = (60, 40, 25, 15, 8)  # characters of a value, the most that there is room for
_CAUSE = "the likely cause is a comparison or an order of names, a number for a name, or a script for one of them"

Following = tuple[Move, Row | None]
"""A possible move, and the state after it; no state for a violation, at which a search ends."""


def of_moves(model: Model, to: Renaming, expected: Sequence[Following], found: Sequence[Following]) -> ModelError:
    """The error for a renamed state with other moves; `expected` has those of the state, with renamed states after."""
    lacks, more = _without(expected, found), _without(found, expected)
    if not lacks:
        return _fitting(model, to, more[0][0], lambda _: "is possible in addition")
    move, after = lacks[0]
    alike = [row for other, row in found if other.action == move.action and row is not None]
    if after is None or not alike:
        what = "leads to a violation for some names alone" if after is None else "is not possible"
        return _fitting(model, to, move, lambda _: what)
    place, row = min(((_first_difference(after, row), row) for row in alike), key=lambda pair: -pair[0])
    if place == len(after):
        return _fitting(model, to, move, lambda _: "is listed another number of times")
    path, right, wrong = difference(after[place], row[place])
    column = f"{model.columns[place].name}{path}"

    def text(size: int) -> str:
        return f"gives {_brief(column, size)} the value {_brief(wrong, size)}, and not {_brief(right, size)}"

    return _fitting(model, to, move, text)


def of_property(
    model: Model, to: Renaming, prop: Property, rows: tuple[Row, Row], answers: tuple[Any, Any]
) -> ModelError:
    """The error for a property with another answer about a renamed state."""
    places = [model.index[read.column] for read in prop.reads]
    place = next((place for place in places if rows[0][place] != rows[1][place]), places[0])
    path, one, other = difference(rows[0][place], rows[1][place])
    verbs = [_verb(answer) for answer in answers]

    def text(size: int) -> str:
        column = short(f"{model.columns[place].name}{path}", size)
        where = f"{verbs[0]} where {column} is {_brief(one, size)}, and {verbs[1]} where it is {_brief(other, size)}"
        return f"the property {_brief(prop.name, size)} is not symmetric: with {_names(to)} it {where}; {_CAUSE}"

    return _shortest(text)


def of_wider_rules(row: Row, move: Move) -> ModelError:
    """The error for an over-approximation that lacks a move of the model."""
    return _shortest(lambda size: f"the over-approximation lacks the move {_text(move, size)} of {_brief(row, size)}")


def difference(one: Any, other: Any, path: str = "") -> tuple[str, Any, Any]:
    """The first parts in which two different values differ, and the way to them: `.log[2]`, 'a', 'b'.

    Of sets, the parts are the members that the other one lacks.
    """
    if type(one) is type(other):
        if isinstance(one, frozenset):
            return path, one - other, other - one
        names = field_names(one)
        if names is not None:
            parts = ((f".{name}", getattr(one, name), getattr(other, name)) for name in names)
        elif isinstance(one, tuple) and len(one) == len(other):
            parts = ((f"[{n}]", *pair) for n, pair in enumerate(zip(one, other, strict=True)))
        else:
            return path, one, other
        for step, mine, theirs in parts:
            if mine != theirs:
                return difference(mine, theirs, path + step)
    return path, one, other


def _without(some: Iterable[Following], others: Iterable[Following]) -> list[Following]:
    """Those of some moves that the others lack, by their actions and the states after them."""
    left = Counter((move.action, row) for move, row in others)
    lacking = []
    for move, row in some:
        left[move.action, row] -= 1
        if left[move.action, row] < 0:
            lacking.append((move, row))
    return lacking


def _first_difference(one: Row, other: Row) -> int:
    return next((n for n, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]), len(one))


def _fitting(model: Model, to: Renaming, move: Move, what: Callable[[int], str]) -> ModelError:
    cause = _kept_name(model, to) or _CAUSE

    def text(size: int) -> str:
        return f"the model is not symmetric: with {_names(to)} the move {_text(move, size)} {what(size)}; {cause}"

    return _shortest(text)


def _shortest(text: Callable[[int], str]) -> ModelError:
    """The error with the longest values that leave at most `LONGEST` characters."""
    texts = [text(size) for size in _SIZES]
    return ModelError(next((line for line in texts if len(line) <= LONGEST), excerpt(texts[-1], LONGEST - 3)))


def _text(move: Move, size: int) -> str:
    return excerpt(" ".join([move.action, *map(short, move.arguments)]), size)


def _brief(value: Any, size: int) -> str:
    return excerpt(short(value), size)


def _verb(answer: Any) -> str:
    found = "finds something" if isinstance(answer, Finding) else "finds nothing"
    return "says nothing" if isinstance(answer, Trivial) else found


def _names(to: Renaming) -> str:
    """The first of the other names of a renaming, in words."""
    changed = sorted((len(old), old, new) for old, new in to.columns.items() if old != new)
    return f"{_brief(changed[0][2], 20)} for {_brief(changed[0][1], 20)}" if changed else "other names"


def _kept_name(model: Model, to: Renaming) -> str:
    """The likely cause, if a column keeps its name and has one in it that changes; else empty."""
    moved = sorted({old for old, new in to.columns.items() if old != new}, key=lambda name: (-len(name), name))
    if not moved:
        return ""
    word = re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, moved))})(?![^\W_])")
    for column in model.columns:
        mentioned = word.findall(column.name)
        if column.name not in moved and mentioned:
            kept, changed = _brief(column.name, 40), _brief(mentioned[0], 20)
            return f"the column {kept} keeps its name, and {changed} does not: rename both"
    return ""
