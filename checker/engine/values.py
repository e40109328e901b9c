"""What is demanded of values, and the errors for those that do not comply.

Values are interned: equal ones stand for one another everywhere. So they must be hashable, and values that mean
different things must not be equal, which Python's `1 == True` and its named tuples make easy to get wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from checker.engine.model import ModelError

_HASHABLE: dict[type, str] = {list: "a tuple", dict: "a sorted tuple of pairs", set: "a frozenset"}


def unhashable(what: str, value: Any) -> ModelError:
    """The error for a value that cannot be interned; it names the innermost part that is to blame."""
    part, path = value, ""
    while isinstance(part, tuple):
        for place, item in enumerate(part):
            try:
                hash(item)
            except TypeError:
                part, path = item, f"{path}[{place}]"
                break
        else:
            break
    advice = next((right for kind, right in _HASHABLE.items() if isinstance(part, kind)), "a frozen value")
    return ModelError(
        f"{what} a value that cannot be hashed: {value!r}, because of {part!r}{' at ' + path if path else ''}, "
        f"a {type(part).__name__}; use {advice} there"
    )


def same_types(one: Any, other: Any, source: str) -> None:
    """See that two equal values are of the same types, all the way down. Raises ModelError, naming the parts."""
    if one is other:
        return
    if type(one) is not type(other):
        raise ModelError(
            f"{source} gives {other!r} ({type(other).__name__}), which equals {one!r} ({type(one).__name__}): "
            "equal values must mean the same. Named tuples are equal to plain ones, and 1 to True; "
            "use frozen dataclasses or structs"
        )
    for a, b in zip(_parts(one), _parts(other), strict=True):
        same_types(a, b, source)


def _parts(value: Any) -> tuple[Any, ...]:
    """The values that a value is made of, in an order that equal values share."""
    if isinstance(value, tuple):
        return value
    if isinstance(value, frozenset):
        return tuple(sorted(value, key=lambda part: (hash(part), repr(part))))
    names: Iterable[str] = getattr(value, "__struct_fields__", ()) or getattr(value, "__dataclass_fields__", ())
    return tuple(getattr(value, name) for name in names)
