"""Symmetry: actors that differ only in their names, declared so that states which differ only in these count once.

    model = interchangeable(two_phase_commit(5), ["rm1", "rm2", "rm3", "rm4", "rm5"])

A *renaming* is a permutation of the names of the actors, applied to the whole state: to the columns of the actors, to
those that belong to them, and to every name inside a value. A column with a `Channel` belongs to its sender and its
receiver, whatever its name is. Any other column belongs to the actors that its name has as whole words, such as
"disk of s1" or "inbox.s1"; it keeps its name if there is no such column of another actor.
`checker.engine.symmetric_search` explores one state of each class of states that a renaming leads between. Properties
have the same answers, and the shortest depths are the same.

This is exact only if the model makes no difference between the actors. Rules of this module:

- The names are refused unless each has a column, the first state is the same under every renaming, and no property is
  one of liveness: a fair run treats each actor for itself.
- A value of a type that cannot be taken apart might hide a name, and is refused.
- A search computes a fingerprint for each renaming of a state. Above six names it has those renamings that exchange
  names within parts of them. They are a group as well, so that the answers stay the same, and the states are more.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache, partial
from itertools import chain, pairwise, permutations, product
from operator import attrgetter
from typing import Any

import msgspec

from checker.engine import Column, Model, ModelError, Renaming, Row, Symmetry
from checker.engine.contract import short
from checker.kit.networks import name_of

MOST_RENAMINGS = 720
"""The number of renamings of six names, beyond which their fingerprints cost more than the states that they save."""
_PLAIN = (type(None), bool, int, float, bytes, Enum)

Names = Mapping[str, str]
"""The new name of each actor."""


def interchangeable(model: Model, names: Iterable[str]) -> Model:
    """The same model, with the declaration that `--reduce symmetric` needs.

    `names` are the interchangeable actors: the names of their columns. Raises ModelError if the model cannot be
    symmetric; see the rules of this module.
    """
    chosen = tuple(names)
    _check_names(model, chosen)
    first = set(model.first_rows)
    for one, other in pairwise(chosen):
        exchange = {one: other, other: one}
        if {_row_after(model, row, exchange) for row in first} != first:
            raise ModelError(f"{one!r} and {other!r} are not interchangeable: their first states differ")
    orders = product(*map(permutations, _groups_of(chosen)))
    exchanges = (dict(zip(chosen, chain(*order), strict=True)) for order in orders)
    renamings = (
        Renaming(_columns_after(model, names), partial(renamed, names=names))
        for names in exchanges
        if any(old != new for old, new in names.items())
    )
    return model.with_symmetry(Symmetry(tuple(renamings)))


def _groups_of(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The fewest parts of the names, of sizes as equal as possible, whose renamings are not too many."""
    for count in range(1, len(names) + 1):
        sizes = [len(names) // count + (place < len(names) % count) for place in range(count)]
        if math.prod(map(math.factorial, sizes)) <= MOST_RENAMINGS:
            ends = [sum(sizes[: place + 1]) for place in range(count)]
            return [names[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    raise AssertionError("parts of one name have one renaming")


def _check_names(model: Model, names: Sequence[str]) -> None:
    for name in names:
        if name not in model.index or model.columns[model.index[name]].channel is not None:
            raise ModelError(f"the interchangeable actor {name!r} has no column in the model {model.name!r}")
    if len(set(names)) != len(names) or len(names) < 2:
        raise ModelError(f"name two or more different interchangeable actors, not {', '.join(names) or 'none'}")
    for prop in model.liveness:
        why = "symmetry does not keep the runs of each actor apart, which liveness needs"
        raise ModelError(f"the property {prop.name!r} is one of liveness: {why}; judge it without symmetry")


def _columns_after(model: Model, names: Names) -> dict[str, str]:
    """The names of the columns after a renaming. Raises ModelError if the model lacks one."""
    longest_first = sorted(names, key=lambda name: (-len(name), name))
    words = re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, longest_first))})(?![^\W_])")
    by_words = {column.name: words.sub(lambda word: names[word[0]], column.name) for column in model.columns}
    channels: dict[tuple[str, str], list[str]] = {}
    for column in model.columns:
        if (ends := _ends(column)) is not None:
            channels.setdefault(ends, []).append(column.name)
    after: dict[str, str] = {}
    for column in model.columns:
        name = by_words[column.name]
        if (ends := _ends(column)) is None:
            after[column.name] = name if name in model.index else column.name
            continue
        others = names.get(ends[0], ends[0]), names.get(ends[1], ends[1])
        alike = channels.get(others, [])
        if others != ends and name not in alike:
            if len(alike) != 1:
                raise _lack_of(column.name, name if name != column.name else name_of(*others))
            (name,) = alike
        after[column.name] = name if others != ends else column.name
    taken = {new for old, new in after.items() if new != old}
    for old, new in after.items():
        if old == new and old in taken:
            raise _lack_of(old, by_words[old])
    return after


def _ends(column: Column) -> tuple[str, str] | None:
    """The sender and the receiver of a channel; None for any other column, and where its messages name them."""
    if column.channel is None:
        return None
    sender, receiver = column.channel.sender, column.channel.receiver
    return (sender, receiver) if isinstance(sender, str) and isinstance(receiver, str) else None


def _lack_of(column: str, name: str) -> ModelError:
    return ModelError(f"the actors are not interchangeable: there is {column!r}, and no {name!r}")


def _row_after(model: Model, row: Row, names: Names) -> Row:
    columns = _columns_after(model, names)
    values = {columns[column.name]: renamed(value, names) for column, value in zip(model.columns, row, strict=True)}
    return tuple(values[column.name] for column in model.columns)


def renamed(value: Any, names: Names) -> Any:
    """A value with other names in it; the same object if it has none. Raises ModelError for an unknown type."""
    rename = _renamer(value.__class__)
    return value if rename is None else rename(value, names)


@cache
def _renamer(kind: Any) -> Callable[[Any, Names], Any] | None:
    """The function that renames values of a type, made once for each type; None if they hold no names."""
    if issubclass(kind, _PLAIN):
        return None
    if issubclass(kind, str):
        return lambda value, names: names.get(value, value)
    if issubclass(kind, frozenset):
        return _renamer_of_parts(iter, frozenset)
    if issubclass(kind, tuple):
        return _renamer_of_parts(iter, (lambda parts: kind(*parts)) if hasattr(kind, "_fields") else tuple)
    fields = _field_names(kind)
    if fields is None:
        return _refuse
    apart = attrgetter(*fields) if len(fields) > 1 else lambda value: [getattr(value, field) for field in fields]
    return _renamer_of_parts(apart, lambda parts: kind(**dict(zip(fields, parts, strict=True))))


def _renamer_of_parts(apart: Callable[[Any], Iterable[Any]], together: Callable[[Any], Any]) -> Callable[..., Any]:
    def rename(value: Any, names: Names) -> Any:
        parts, is_changed = [], False
        for part in apart(value):
            of_part = _renamer(part.__class__)
            after = part if of_part is None else of_part(part, names)
            is_changed = is_changed or after is not part
            parts.append(after)
        return together(parts) if is_changed else value

    return rename


def _field_names(kind: type) -> tuple[str, ...] | None:
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_fields__
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


def _refuse(value: Any, _: Names) -> Any:
    right = "use strings, numbers, tuples, frozensets, enumerations, frozen dataclasses and structs"
    raise ModelError(f"symmetry cannot look for names in {short(value)}, of the type {type(value).__name__}; {right}")
