"""The requirements on the values and functions of a model, and the errors for those that do not comply.

Values are interned: equal ones replace one another everywhere. They must therefore be hashable, and values with
different meanings must not be equal, which Python's `1 == True` and its named tuples make easy to get wrong.

An exception in a function of a model becomes a ModelError that names the function and its values. Without this, the
exception passes through the frames of the engine, and the traceback has neither the actor nor the values.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from enum import Enum
from operator import attrgetter
from typing import Any

from checker.engine.model import Actor, ModelError, Outcome

_PARTS: dict[type, Callable[[Any], Iterable[Any]]] = {}
_PLAIN = frozenset({int, str, bytes, bool, float, type(None)})
_HASHABLE: dict[type, str] = {list: "a tuple", dict: "a sorted tuple of pairs", set: "a frozenset"}


def unhashable(what: str, value: Any) -> ModelError:
    """The error for a value that cannot be interned; it names the innermost part at fault."""
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
    """Check that two equal values have the same types at all levels. Raises ModelError, which names the parts."""
    if one is other:
        return
    kind = type(one)
    if kind is not type(other):
        raise ModelError(
            f"{source} gives {other!r} ({type(other).__name__}), which equals {one!r} ({type(one).__name__}): "
            "equal values must mean the same. Named tuples are equal to plain ones, and 1 to True; "
            "use frozen dataclasses or structs"
        )
    if kind in _PLAIN:
        return
    parts = _PARTS.get(kind) or _PARTS.setdefault(kind, _components(kind))
    for a, b in zip(parts(one), parts(other), strict=True):
        if a is not b and (type(a) is not type(b) or type(a) not in _PLAIN):
            same_types(a, b, source)


def _components(kind: type) -> Callable[[Any], Iterable[Any]]:
    """The function that takes a value of this type apart, in an order that is the same for equal values."""
    if issubclass(kind, tuple):
        return iter
    if issubclass(kind, frozenset):
        return lambda value: sorted(value, key=lambda part: (hash(part), repr(part)))
    names = tuple(getattr(kind, "__struct_fields__", ()) or getattr(kind, "__dataclass_fields__", ()))
    return attrgetter(*names) if len(names) > 1 else lambda value: [getattr(value, name) for name in names]


def is_data(value: Any) -> bool:
    """Whether a value is made of plain values, enumerations, tuples, frozensets, and records of these."""
    kind = type(value)
    if kind in _PLAIN or isinstance(value, Enum):
        return True
    is_record = hasattr(kind, "__struct_fields__") or hasattr(kind, "__dataclass_fields__")
    if not is_record and not issubclass(kind, tuple | frozenset):
        return False
    return all(map(is_data, (_PARTS.get(kind) or _PARTS.setdefault(kind, _components(kind)))(value)))


def described(value: Any) -> str:
    """A text that equal values of equal types share, in every process: for hashes and an order, never for identity.

    Values that are no data (`is_data`) have only their type in it, so that different ones share it.
    """
    kind = type(value)
    if kind in _PLAIN:
        return repr(value or 0.0) if kind is float else repr(value)  # -0.0 equals 0.0
    if isinstance(value, Enum):
        return f"{kind.__qualname__}.{value.name}"
    if isinstance(value, frozenset):
        parts = sorted(map(described, value))
    else:
        parts = [described(part) for part in (_PARTS.get(kind) or _PARTS.setdefault(kind, _components(kind)))(value)]
    return f"{kind.__qualname__}({', '.join(parts)})"


LONGEST = 400  # characters of a value in a message


def call(source: str, function: Callable[..., Any], *values: Any) -> Any:
    """Call a projection, a property, a rule or a fairness. Raises ModelError for any exception, with it as the cause.

    `source` names the function in the message, such as `the property 'OneLeader'`.
    """
    try:
        return function(*values)
    except (ModelError, MemoryError):
        raise
    except Exception as error:
        raise ModelError(f"{source} {_raised(error)}; it was called with {_shown(values)}") from error


def step(actor: Actor, values: tuple[Any, ...], operation: Any) -> Outcome | None:
    """Carry out an operation of an actor. Raises ModelError for any exception, with it as the cause."""
    try:
        return actor.step(values, operation)
    except (ModelError, MemoryError):
        raise
    except Exception as error:
        columns = ", ".join(f"{name} = {short(value)}" for name, value in zip(actor.columns, values, strict=True))
        why = f"the step of {actor.name!r} {_raised(error)}"
        raise ModelError(f"{why}; the operation is {short(operation)}, the values are {columns}") from error


def _raised(error: Exception) -> str:
    """The exception, and the innermost line of its traceback."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = f": {error}" if str(error) else ""
    return f"raises {type(error).__name__}{text} (line {frame.lineno} of {frame.filename})"


def _shown(values: tuple[Any, ...]) -> str:
    return ", ".join(map(short, values)) or "no values"


def short(value: Any, longest: int = LONGEST) -> str:
    """The text of a value in a message, with at most `longest` characters of it."""
    try:
        text = repr(value)
    except Exception:  # an invalid value may be the cause of the error
        text = object.__repr__(value)
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text):,} characters)"
