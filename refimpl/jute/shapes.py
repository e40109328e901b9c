"""The shape of a record on the wire, read from the annotations of its class.

Rules this module keeps:

- The fields of a record are encoded in the order in which its class declares them, those of its base class first.
- An annotation that is not one of `spec.tree.data` is an error in the class, and a TypeError at first use.

Source: `zookeeper.jute`; the annotations are those of `spec.tree.data`.
"""

from functools import cache
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

import msgspec

from spec.tree.data import Record

FIXED = {"int": ("i", 4), "long": ("q", 8), "boolean": ("?", 1)}
"""The kinds of fixed size: the letter in the module struct, and the number of bytes."""

COUNTED = ("ustring", "buffer")
"""The kinds that begin with their length in bytes."""


class Scalar(msgspec.Struct, frozen=True):
    """A value without parts; `kind` is the jute name of its type."""

    kind: str


class Vector(msgspec.Struct, frozen=True):
    """A count, followed by that number of items."""

    item: "Shape"


class Structure(msgspec.Struct, frozen=True):
    """A record: its class, and its fields by name."""

    cls: type[Record]
    fields: tuple[tuple[str, "Shape"], ...]


Shape: TypeAlias = Scalar | Vector | Structure


@cache
def shape_of(cls: type[Record]) -> Structure:
    """Return the shape of a record class; raises TypeError for a field without one."""
    hints = get_type_hints(cls, include_extras=True)
    return Structure(cls, tuple((name, _shape(hints[name], cls, name)) for name in cls.__struct_fields__))


def least_size(shape: Shape) -> int:
    """Return the minimum number of bytes of a value of this shape."""
    match shape:
        case Scalar(kind=kind):
            return FIXED[kind][1] if kind in FIXED else 4
        case Vector():
            return 4
        case Structure(fields=fields):
            return sum(least_size(part) for _, part in fields)


def _shape(hint: Any, cls: type[Record], name: str) -> Shape:
    if get_origin(hint) is Annotated:
        return Scalar(get_args(hint)[1])
    if get_origin(hint) is tuple:
        return Vector(_shape(get_args(hint)[0], cls, name))
    if isinstance(hint, type) and issubclass(hint, Record) and hint is not Record:
        return shape_of(hint)
    raise TypeError(f"{cls.__name__}.{name}: {hint} has no form on the wire; use a type of spec.tree.data")
