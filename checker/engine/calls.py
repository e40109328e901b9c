"""Calls of the functions of a model; an exception in one becomes a ModelError that names the function and its values.

Without this, the exception of a model function passes through the frames of the engine, and the traceback has neither
the actor nor the values.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from checker.engine.model import Actor, ModelError, Outcome

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
        columns = ", ".join(f"{name} = {_short(value)}" for name, value in zip(actor.columns, values, strict=True))
        why = f"the step of {actor.name!r} {_raised(error)}"
        raise ModelError(f"{why}; the operation is {_short(operation)}, the values are {columns}") from error


def _raised(error: Exception) -> str:
    """The exception, and the innermost line of its traceback."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = f": {error}" if str(error) else ""
    return f"raises {type(error).__name__}{text} (line {frame.lineno} of {frame.filename})"


def _shown(values: tuple[Any, ...]) -> str:
    return ", ".join(map(_short, values)) or "no values"


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # an invalid value may be the cause of the error
        text = object.__repr__(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text):,} characters)"
