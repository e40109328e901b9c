"""The events of a log, and the steps of a model that may be behind each.

A real system writes a log of its steps. `Events` has the meaning of a line for a model: an `Event` is the pattern of a
move, of the state after it, or of both.

    def event(line):
        if line["type"] == "heartbeat":
            return None  # a heartbeat is no step of the model
        return Event("deliver", (line["from"], line["to"], {"class": "Vote"}), {line["to"]: {"term": line["term"]}})

    events = Events(event, hidden=("lose",), process="to")

Without a function, a line has the names of the model: `action`, `arguments`, and the names of columns.

    {"action": "deliver", "arguments": ["s1", "s2", {"class": "Vote"}], "s2": {"term": 3}}

Patterns of a value:

- A mapping has some fields of a record, or some entries of a mapping; "class" is the name of the class of a record.
- A list or a tuple has a pattern for each item.
- A class fits its members; `...` fits every value. In a list of `arguments` of a line, null is `...`.
- Anything else fits an equal value: as JSON, so that an enumeration is its text and True is not 1.

`checker.validate.log` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from checker.engine import ModelError
from checker.engine.values import show, to_json


def as_tuple(value: object, whose: str) -> tuple[Any, ...]:
    """A tuple or a list as a tuple. Raises ModelError."""
    if not isinstance(value, tuple | list):
        raise ModelError(f"{whose} are {show(to_json(value))}; write a list, as in [{show(to_json(value))}]")
    return tuple(value)


@dataclass(frozen=True)
class Event:
    """The meaning of a line: a move with one of these actions and such arguments, which leads to such values.

    - `action`: its name, or several, and one of them happens. None: no move; the values hold without one.
    - `arguments`: patterns of the first arguments of the move.
    - `after`: patterns of values after the move, by the names of their columns.

    Raises ModelError for arguments or values of another form.

        Event("deliver", ("s1", "s2", {"class": "Vote"}), {"s2": {"term": 3}})
    """

    action: str | tuple[str, ...] | None = None
    arguments: Sequence[Any] = ()
    after: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", as_tuple(self.arguments, "the arguments of an event"))
        if not isinstance(self.after, Mapping):
            raise ModelError("the values after an event are a mapping, from the names of columns to patterns")
        if self.arguments and not self.action:
            raise ModelError("an event has arguments and no action; only a move has arguments")


@dataclass(frozen=True)
class Events:
    """The meaning of the lines of a log.

    - `event`: the function from a line, a dict of JSON values, to its `Event`; None if the line says nothing about the
      model. Without a function, the fields of a line have the names of the model (see above).
    - `hidden`: the moves that no line reports, by action or by pattern. They may happen at any time. By default they
      are those with an action that no line of the log names.
    - `process`: the field with the process that wrote a line, if only the lines of one process are in their order.
    - `time`: the field with a time to compare by. It orders no lines: of all that do not fit, it tells the first.
    - `ignored`: further fields of a line without a meaning, for a log without a function.
    """

    event: Callable[[dict[str, Any]], Event | None] | None = None
    hidden: Sequence[str | Event] | None = None
    process: str | None = None
    time: str | None = None
    ignored: Iterable[str] = ()
