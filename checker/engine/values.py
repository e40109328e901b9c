"""Values of a model as JSON, and JSON as short text.

Models hold named tuples, structs, dataclasses, enumerations and sets. A trace holds only JSON, so that it can be saved,
read again and compared with another run. Rules of the translation (`to_json`; `show` makes short text of JSON):

- Equal values give equal JSON. Sets are sorted, and the keys of a mapping become text.
- The class of a record is kept, under the key "class", where equality depends on it: for structs and dataclasses, not
  for named tuples. The key cannot be the name of a field, since it is a keyword.
- An enumeration member is its value if that is text, else its name. Numbers with a fraction become text, since the
  Informal Trace Format lacks them.
"""

import dataclasses
import json
from collections.abc import Mapping, Set
from enum import Enum
from typing import Any

import msgspec

from checker.engine.contract import call

Json = Any
"""JSON data: None, booleans, numbers, strings, lists, and maps with string keys."""

CLASS = "class"


def to_json(value: Any) -> Json:
    """A value of a model as None, booleans, integers, strings, lists and maps with string keys."""
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, str) else value.name
    if value is None or isinstance(value, bool | int | str):
        return value
    fields = fields_of(value)
    if fields is not None:
        class_field = {} if isinstance(value, tuple | Mapping) else {CLASS: type(value).__name__}
        return class_field | fields
    if isinstance(value, Set | list | tuple):
        items = [to_json(item) for item in value]
        return sorted(items, key=canonical) if isinstance(value, Set) else items
    return value.hex() if isinstance(value, bytes) else call(f"the text of a {type(value).__name__}", str, value)


def fields_of(value: Any) -> dict[str, Json] | None:
    """The fields of a record or the entries of a mapping, as JSON; None if the value is neither."""
    if isinstance(value, Mapping):
        return {key_of(to_json(key)): to_json(item) for key, item in value.items()}
    names = field_names(value)
    return None if names is None else {name: to_json(getattr(value, name)) for name in names}


def field_names(value: Any) -> tuple[str, ...] | None:
    """The names of the fields of a record: a named tuple, a struct or a dataclass; None for any other value."""
    if isinstance(value, tuple):
        return getattr(value, "_fields", None)
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return tuple(field.name for field in dataclasses.fields(value))
    return None


def key_of(value: Json) -> str:
    """A JSON value as the key of a map."""
    return value if isinstance(value, str) else show(value)


def canonical(value: Json) -> str:
    """A unique text for each JSON value, to compare and to sort by; True and 1 have different texts."""
    return json.dumps(value, sort_keys=True)


def show(value: Json) -> str:
    """A JSON value for a reader, with the names of its fields."""
    return _shown(value, named=True)


def brief(value: Json) -> str:
    """A JSON value for a reader, as short as possible: the fields of a record without their names."""
    return _shown(value, named=False)


def _shown(value: Json, *, named: bool) -> str:
    if isinstance(value, str):
        return value or "''"
    if isinstance(value, list):
        return "[" + ", ".join(_shown(item, named=named) for item in value) + "]"
    if isinstance(value, dict):
        name = value.get(CLASS, "")
        items = ", ".join(
            f"{key}: {_shown(item, named=True)}" if named else _shown(item, named=False)
            for key, item in value.items()
            if key != CLASS
        )
        if name and not items:
            return str(name)
        return f"{name}({items})" if name or not named else "{" + items + "}"
    return "none" if value is None else str(value).lower()
