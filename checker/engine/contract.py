"""The requirements on the values and functions of a model, and the errors for those that do not comply.

Values are interned: equal ones replace one another everywhere. They must therefore be hashable, and values with
different meanings must not be equal, which Python's `1 == True` and its named tuples make easy to get wrong.

Every call of a function of a model passes through this module, which decides what its failure means:

- An exception in the function, such as a failed `assert`, is a RaisedError. It is a finding of the states that make
  this call (`model.NO_EXCEPTION`).
- A result of a wrong form, and a call that the function's parameters do not allow, is an AnswerError: an error of the
  model. It names the function, its file, the values or the result, and what would be right. A search adds the state.
- Any other ModelError belongs to no state: the initial values, or a symmetry that cannot be.
"""

import re
import traceback
from collections.abc import Callable, Iterable
from enum import Enum
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

from checker.engine.model import (
    TRIVIAL,
    Actor,
    AnswerError,
    Finding,
    Model,
    ModelError,
    Move,
    Outcome,
    Property,
    RaisedError,
    Row,
    Rule,
    Send,
    Trivial,
)
from spec.text import on_a_line

_EXACT = frozenset({int, str, bytes, bool, type(None)})  # equal values of one of these types are the same
_PLAIN = _EXACT | {float}
_SIZED = frozenset({tuple, frozenset})
_HASHABLE: dict[type, str] = {list: "a tuple", dict: "a sorted tuple of pairs", set: "a frozenset"}


def unhashable(what: str, value: Any) -> AnswerError:
    """The error for a value that cannot be interned; it names the innermost part at fault."""
    part, path = value, ""
    while isinstance(part, tuple):
        for place, item in enumerate(part):
            try:
                hash(item)
            except Exception:
                part, path = item, f"{path}[{place}]"
                break
        else:
            break
    advice = next((right for kind, right in _HASHABLE.items() if isinstance(part, kind)), "a frozen value")
    return AnswerError(
        f"{what} a value that cannot be hashed: {short(value)}, because of {short(part)}"
        f"{' at ' + path if path else ''}, a {type(part).__name__}; use {advice} there"
    )


def same_types(one: Any, other: Any, source: str) -> None:
    """Check that equal values have the same types and parts at all levels. Raises AnswerError with the parts."""
    if one is other:
        return
    kind = type(one)
    measure: Callable[[Any], Any] | None = repr if kind in _PLAIN else len if kind in _SIZED else None
    if kind is not type(other) or (measure is not None and measure(one) != measure(other)):
        equals = "which equals" if one == other else "in a value that equals one with"
        raise AnswerError(
            f"{source} gives {other!r} ({type(other).__name__}), {equals} {one!r} ({type(one).__name__}): "
            "equal values must mean the same. Named tuples are equal to plain ones, 1 to True, -0.0 to 0.0, and some "
            "records where a field is not compared; use frozen dataclasses or structs, and numbers of one kind"
        )
    if kind in _PLAIN:
        return
    parts = _components(one.__class__)
    for a, b in zip(parts(one), parts(other), strict=True):
        if a is not b and (type(a) is not type(b) or type(a) not in _EXACT or a != b):
            same_types(a, b, source)


@cache
def _components(kind: type) -> Callable[[Any], Iterable[Any]]:
    """The function that takes a value of this type apart, in an order that is the same for equal values."""
    if issubclass(kind, tuple):
        return iter
    if issubclass(kind, frozenset):
        return lambda value: sorted(value, key=lambda part: (hash(part), repr(part)))
    names = tuple(getattr(kind, "__struct_fields__", ()) or getattr(kind, "__dataclass_fields__", ()))
    return attrgetter(*names) if len(names) > 1 else lambda value: [getattr(value, name) for name in names]


def described(value: Any) -> str:
    """A text that equal values of equal types share, in every process: for hashes and an order, never for identity.

    The text of other values than data has only their type, so that different ones share it (`tells_apart`).
    """
    return _text_of(value.__class__)(value)


_OTHER = "\0"  # before the type of a value that is not data; nothing else in a text has this character


def tells_apart(text: str) -> bool:
    """Whether a text is that of data: plain values, enumerations, tuples, frozensets, and records of these."""
    return _OTHER not in text


@cache
def _text_of(kind: Any) -> Callable[[Any], str]:
    name, parts = kind.__qualname__, _components(kind)
    if kind in _PLAIN:
        return (lambda value: repr(value or 0.0)) if kind is float else repr  # -0.0 equals 0.0
    if issubclass(kind, Enum):
        return lambda value: f"{name}.{value.name}"
    if issubclass(kind, frozenset):
        return lambda value: f"{name}({', '.join(sorted(map(described, value)))})"
    if not issubclass(kind, tuple) and not _is_record(kind):
        return lambda _: f"{_OTHER}{name}"
    return lambda value: f"{name}({', '.join([_text_of(part.__class__)(part) for part in parts(value)])})"


def _is_record(kind: type) -> bool:
    return hasattr(kind, "__struct_fields__") or hasattr(kind, "__dataclass_fields__")


LONGEST, BRIEF = 400, 100  # characters of a value in a message, and in a finding
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_CHECKER = str(Path(__file__).resolve().parent.parent)


def call(source: str, function: Callable[..., Any], *values: Any, of: object = None) -> Any:
    """Call a function of a model. Raises AnswerError for any exception, with it as the cause.

    `source` names the function in the message, such as `the property 'OneLeader'`. `of` is the function of the author
    if it is not the one that is called.
    """
    try:
        return function(*values)
    except (AnswerError, MemoryError):
        raise
    except Exception as error:
        raise _failed(error, source, of or function, f"it was called with {_shown(values)}") from error


def listed(source: str, function: Callable[..., Any], *values: Any, right: str) -> tuple[Any, ...]:
    """The items that a function of a model lists; None lists none. Raises ModelError, for one item alone too."""

    def items(*arguments: Any) -> tuple[Any, ...]:
        result = function(*arguments)
        if isinstance(result, str | Move):
            raise wrong(source, result, right, function)
        return tuple(result or ())  # a generator raises its exceptions here

    return cast("tuple[Any, ...]", call(source, items, *values, of=function))


def first_rows(model: Model) -> tuple[Row, ...]:
    """The first rows. Raises ModelError for a value that cannot be hashed."""
    for row in model.first_rows:
        for column, value in zip(model.columns, row, strict=True):
            _check_hashable("the initial state puts into the column {!r}", value, None, column.name)
    return model.first_rows


def first_of_equal(known: dict[Any, Any], value: Any, source: str) -> Any:
    """The first value of some that equals this one. Raises ModelError if the two differ."""
    first = known.setdefault(value, value)
    if first is not value:
        same_types(first, value, source)
    return first


def project(column: str, projection: Callable[[Any], Any], value: Any) -> Any:
    """The part of a value that a projection shows. Raises ModelError."""
    try:
        part = projection(value)
        hash(part)
    except Exception:  # a second call tells why; the texts for it take longer than most projections
        source = f"the projection of {column!r}"
        part = call(source, projection, value)
        _check_hashable("{} shows", part, projection, source)
    return part


def step(model: Model, actor: Actor, values: tuple[Any, ...], operation: Any) -> Outcome | None:
    """Carry out an operation of an actor. Raises ModelError for an exception, or for no Outcome and no None."""
    source = f"the step of {actor.name!r}"
    try:
        outcome = actor.step(values, operation)
    except (AnswerError, MemoryError):
        raise
    except Exception as error:
        columns = ", ".join(f"{name} = {short(value)}" for name, value in zip(actor.columns, values, strict=True))
        call = f"the operation is {short(operation)}, the values are {columns}"
        raise _failed(error, source, actor.step, call, ("operation", short(operation, BRIEF))) from error
    if outcome is None:
        return None
    count = len(actor.columns)
    is_outcome = isinstance(outcome, Outcome) and isinstance(outcome.values, tuple)
    if not is_outcome or len(outcome.values) != count:
        right = f"return Outcome(values, sends) with a tuple of {count} value{'s' * (count != 1)}, or None"
        if not is_outcome:
            raise wrong(source, outcome, right, actor.step)
        raise wrong(source, outcome.values, f"{right}: {', '.join(actor.columns)}", actor.step)
    _check_sends(model, source, outcome.sends, actor.step)
    for column, value in zip(actor.columns, outcome.values, strict=True):
        _check_hashable("{} puts into the column {!r}", value, actor.step, source, column)
    return outcome


def moves(model: Model, rule: Rule, *arguments: Any) -> tuple[Move, ...]:
    """The moves that a rule lists, each with the operations that begin and end every move of the model.

    Raises ModelError for an exception, or for anything but moves.
    """
    source = f"the rule {rule.name!r}"
    right = "return a list of moves, each Move(action, arguments, sends)"
    items = listed(source, rule.moves, *arguments, right=f"{right}; one move is [Move(...)]")
    for move in items:
        if not isinstance(move, Move):
            raise wrong(source, move, right, rule.moves, "lists")
        if not isinstance(move.action, str) or not isinstance(move.arguments, tuple):
            shape = "an action is a string, and its arguments are a tuple, as in Move('add', (1,), sends)"
            raise wrong(source, move, shape, rule.moves, "lists")
        rule.check(move)
        _check_sends(model, source, move.sends, rule.moves)
    before, after = model.opening, model.closing
    if not before and not after:
        return items
    return tuple(move._replace(sends=(*before, *move.sends, *after)) for move in items)


def check(prop: Property, arguments: tuple[Any, ...]) -> Finding | Trivial | None:
    """The answer of a property. Raises ModelError for an exception, or for anything but an answer."""
    return judged(prop, prop.check, *arguments)


def judged(prop: Property, function: Callable[..., Any], *arguments: Any) -> Finding | Trivial | None:
    """The answer of a function of a property, which is `check` or the judge of steps. Raises ModelError."""
    source = f"the property {prop.name!r}"
    answer = call(source, function, *arguments)
    if answer is None or answer is TRIVIAL or isinstance(answer, Finding):
        return answer
    raise wrong(source, answer, "Finding, None or TRIVIAL is right", function)


def wrong(source: str, returned: Any, right: str, function: object, verb: str = "returned") -> AnswerError:
    """The error for a wrong result of a function of a model: what it is, what is right, and the function."""
    verb = f" {verb}" if verb else ""
    return AnswerError(f"{source}{verb} {short(returned)}; {right}{place_of(function)}")


def place_of(function: object) -> str:
    """The name and the place of a function of an author, in parentheses; empty for one of this package."""
    function = getattr(function, "func", function)  # of a partial
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None and callable(function):
        code = getattr(type(function).__call__, "__code__", None)
    if code is None or code.co_filename.startswith(_CHECKER):
        return ""
    return f" ({code.co_qualname}, line {code.co_firstlineno} of {code.co_filename})"


def _check_sends(model: Model, source: str, sends: Any, function: object) -> None:
    right = "operations are a tuple of Send(actor, operation)"
    if not isinstance(sends, tuple) or isinstance(sends, Send):
        raise wrong(source, sends, f"{right}; of one, (Send(...),)", function, "sends")
    for send in sends:
        if not isinstance(send, tuple) or len(send) != 2 or not isinstance(send[0], str):
            raise wrong(source, send, right, function, "sends")
        if send[0] not in model.actor_index:
            raise wrong(f"{source} sends {short(send[1])} to", send[0], "no actor has that name", function, "")
        _check_hashable("{} sends to {!r}", send[1], function, source, send[0])


def _check_hashable(what: str, value: Any, function: object, *names: str) -> None:
    try:
        hash(value)
    except Exception:
        raise AnswerError(f"{unhashable(what.format(*names), value)}{place_of(function)}") from None


def _failed(error: Exception, source: str, function: object, called: str, *values: tuple[str, Any]) -> AnswerError:
    """The error to raise for one in a function of a model; `called` has the arguments in words.

    It names the innermost line of the traceback that is not of this package. Without one, a TypeError is that of the
    call itself: the parameters of the function are others.
    """
    if isinstance(error, ModelError):  # of a part of the kit
        return AnswerError(str(error))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_CHECKER)]
    text = _text_of_error(error) or (frames[-1].line or "" if frames and isinstance(error, AssertionError) else "")
    clause = f"{source} raises {type(error).__name__}{f': {text}' if text else ''}"
    if not frames:
        message = f"{clause}{place_of(function)}; {called}"
        return AnswerError(message) if isinstance(error, TypeError) else RaisedError(message, clause, values)
    last = frames[-1]
    line = f"{last.lineno} of {Path(last.filename).name}, in {last.name}"
    message = f"{clause} (line {last.lineno} of {last.filename}); {called}"
    return RaisedError(message, clause, (*values, ("line", line)))


def _text_of_error(error: Exception) -> str:
    """The text of an exception on one line, the same in every process."""
    try:
        text = _ADDRESS.sub("0x...", on_a_line(str(error)))
    except Exception:  # the text of an exception is a function of the author, too
        return ""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def rename(renaming: Callable[[Any], Any], value: Any) -> Any:
    """A value with other names. Raises ModelError: a symmetry that cannot be belongs to no state."""
    try:
        return call("a renaming", renaming, value)
    except AnswerError as error:
        raise ModelError(str(error)) from error


def _shown(values: tuple[Any, ...]) -> str:
    return ", ".join(map(short, values)) or "no values"


def short(value: Any, longest: int = LONGEST) -> str:
    """The text of a value in a message, with at most `longest` characters of it."""
    try:
        text = repr(value)
    except Exception:  # an invalid value may be the cause of the error
        text = object.__repr__(value)
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text):,} characters)"
