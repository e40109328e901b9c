"""Patterns of moves and of values: whether an event of a log fits a step of a model, and what differs if not.

`checker.kit.events` has the rules of patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any, NamedTuple

from checker.engine.contract import call, wrong
from checker.engine.model import Model, ModelError, Move, Row
from checker.engine.values import CLASS, canonical, field_names, key_of, show, to_json
from checker.kit.events import Event, Events, as_tuple
from checker.printable import nearest

ACTION, ARGUMENTS = "action", "arguments"
"""The fields of a line without a function; the others are names of columns."""


def event_of(events: Events, line: dict[str, Any], model: Model) -> Event | None:
    """The meaning of a line; None if it says nothing about the model. Raises ModelError."""
    if events.event is None:
        unread = {events.process, events.time, *events.ignored}
        event: Event | None = _by_names({name: value for name, value in line.items() if name not in unread}, model)
    else:
        source = "the function from a line to its event"
        event = call(source, events.event, line)
        if event is not None and not isinstance(event, Event):
            raise wrong(source, event, "an Event or None would be right", events.event)
    if event is not None:
        _check(event, model)
    return event


def _by_names(line: dict[str, Any], model: Model) -> Event:
    """The event of a line with the names of a model. Raises ModelError."""
    arguments = as_tuple(line.pop(ARGUMENTS, ()), "the arguments of an event")
    action = line.pop(ACTION, None)
    if action is not None and not isinstance(action, str):
        raise ModelError(f"the action is {show(to_json(action))}; write a text")
    for name in line:
        if name not in model.index:
            known = (ACTION, ARGUMENTS, *model.index)
            raise ModelError(
                f"no column is called {name!r}; {nearest(name, known)}, or ignore the field: Events.ignored"
            )
    return Event(action, tuple(... if argument is None else argument for argument in arguments), line)


def _check(event: Event, model: Model) -> None:
    """Raises ModelError for a name that the model does not have."""
    for name in event.after:
        if name not in model.index:
            raise ModelError(f"no column is called {str(name)!r}; {nearest(name, model.index)}")
    for name in actions_of(event) if all(rule.actions for rule in model.rules) else ():
        if name not in model.actions:
            raise ModelError(f"no action is called {str(name)!r}; {nearest(name, sorted(model.actions))}")


def hidden_moves(events: Events, model: Model, named: Set[str]) -> Callable[[Move], bool]:
    """Whether a move is hidden, for a log that names these actions. Raises ModelError."""
    if events.hidden is None:
        return lambda move: move.action not in named
    patterns = [Event(item) if isinstance(item, str) else item for item in as_tuple(events.hidden, "hidden moves")]
    for pattern in patterns:
        _check(pattern, model)
    return lambda move: any(fits(pattern, move) for pattern in patterns)


def actions_of(event: Event) -> tuple[str, ...]:
    """The actions of an event, and one of them happens; empty for a look at the state."""
    return () if event.action is None else (event.action,) if isinstance(event.action, str) else event.action


def says_something(event: Event) -> bool:
    """Whether an event excludes anything."""
    return bool(event.action or event.after)


def fits(event: Event, move: Move) -> bool:
    """Whether a move has one of the actions, and such arguments."""
    return move.action in actions_of(event) and not any(True for _ in differing_arguments(event, move))


def holds(event: Event, model: Model, row: Row) -> bool:
    """Whether the values of a state fit."""
    return not any(True for _ in differing_values(event, model, row))


def differing_arguments(event: Event, move: Move) -> Iterator[Discrepancy]:
    """The arguments of a move that do not fit."""
    if len(event.arguments) > len(move.arguments):
        yield Discrepancy("the number of arguments", len(event.arguments), len(move.arguments))
    for number, (pattern, value) in enumerate(zip(event.arguments, move.arguments, strict=False), start=1):
        if (differing := difference(pattern, value, f"argument {number}")) is not None:
            yield differing


def differing_values(event: Event, model: Model, row: Row) -> Iterator[Discrepancy]:
    """The values of a state that do not fit."""
    for name, pattern in event.after.items():
        if (differing := difference(pattern, row[model.index[name]], name)) is not None:
            yield differing


PLAIN = (bool, int, str, type(None))
"""The types whose values are their own JSON."""


class Discrepancy(NamedTuple):
    """A part of a value that does not fit its pattern; its text is for a reader.

    `is_absent`: the pattern is the name of a field, and the value has the fields that exist.
    """

    name: str
    pattern: Any
    value: Any
    is_absent: bool = False

    def __str__(self) -> str:
        if self.is_absent:
            return f"{self.name} has no {str(self.pattern)!r}; {nearest(self.pattern, self.value)}"
        return f"{self.name} is {worded(self.value)}, and not {worded(self.pattern)}"


def difference(pattern: Any, value: Any, name: str) -> Discrepancy | None:
    """The first part of a value that does not fit a pattern, by its name; None if all of it fits."""
    if pattern is ... or (type(pattern) is type(value) and type(value) in PLAIN and pattern == value):
        return None
    if isinstance(pattern, type):
        return None if isinstance(value, pattern) else Discrepancy(name, pattern, type(value))
    if isinstance(pattern, Mapping):
        return _field_difference(pattern, value, name)
    if isinstance(pattern, list | tuple) and isinstance(value, list | tuple) and field_names(pattern) is None:
        if len(pattern) != len(value):
            return Discrepancy(name, pattern, value)
        pairs = enumerate(zip(pattern, value, strict=True))
        parts = (difference(item, part, f"{name}[{place}]") for place, (item, part) in pairs)
        return next((part for part in parts if part is not None), None)
    expected, actual = to_json(pattern), to_json(value)
    if isinstance(value, Set) and isinstance(expected, list):
        expected = sorted(expected, key=canonical)
    return None if canonical(expected) == canonical(actual) else Discrepancy(name, pattern, value)


def _field_difference(pattern: Mapping[str, Any], value: Any, name: str) -> Discrepancy | None:
    """The first field of a record, or entry of a mapping, that does not fit."""
    names = field_names(value)
    if names is None and not isinstance(value, Mapping):
        return Discrepancy(name, pattern, value)
    entries = {} if names is not None else {key_of(to_json(key)): item for key, item in value.items()}
    for part, expected in pattern.items():
        if names is not None and part == CLASS:
            actual: Any = type(value).__name__
        elif part in (entries if names is None else names):
            actual = entries[part] if names is None else getattr(value, part)
        else:
            return Discrepancy(name, part, tuple(entries if names is None else names), is_absent=True)
        differing = difference(expected, actual, f"{name}.{part}")
        if differing is not None:
            return differing
    return None


def worded(pattern: Any) -> str:
    """A pattern, or a value, for a reader."""
    if pattern is ...:
        return "any"
    if isinstance(pattern, type):
        return pattern.__name__
    if isinstance(pattern, Mapping):
        return "{" + ", ".join(f"{key_of(to_json(key))}: {worded(item)}" for key, item in pattern.items()) + "}"
    if isinstance(pattern, list | tuple) and field_names(pattern) is None:
        return "[" + ", ".join(map(worded, pattern)) + "]"
    return show(to_json(pattern))
