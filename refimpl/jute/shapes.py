"""The shape of a record on the wire, read from the annotations of its class.

Rules this module keeps:

- A record's fields are written in the order in which its class names them, those of its base class first.
- An annotation that is not one of `spec.tree.fields` is a mistake in the class, and a TypeError at first use.

Source: `zookeeper.jute`; the annotations are those of `spec.tree.fields`.
"""

from functools import cache
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

import msgspec

from spec.tree.fields import Record

FIXED = {"int": ("i", 4), "long": ("q", 8), "boolean": ("?", 1)}
"""What always takes the same number of bytes: its letter in the module struct, and that number."""

COUNTED = ("ustring", "buffer")
"""What begins with its length in bytes."""


class Scalar(msgspec.Struct, frozen=True):
    """A value without parts; `kind` is jute's name of its type."""

    kind: str


class Vector(msgspec.Struct, frozen=True):
    """A count, and so many items."""

    item: "Shape"


class Structure(msgspec.Struct, frozen=True):
    """A record: its class, and its fields by name."""

    cls: type[Record]
    fields: tuple[tuple[str, "Shape"], ...]


Shape: TypeAlias = Scalar | Vector | Structure


@cache
def shape_of(cls: type[Record]) -> Structure:
    """The shape of a record class; raises TypeError for a field that has none."""
    hints = get_type_hints(cls, include_extras=True)
    return Structure(cls, tuple((name, _shape(hints[name], cls, name)) for name in cls.__struct_fields__))


def least_size(shape: Shape) -> int:
    """The least number of bytes that a value of this shape takes."""
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
    raise TypeError(f"{cls.__name__}.{name}: {hint} has no form on the wire; use a type of spec.tree.fields")
