"""Text of others, read with bounds and shown on one line.

Rules of this module:

- A number from a file, a packet, an option or an answer is read by `integer` or `decimal` and by nothing else:
  `int` accepts `1_000`, blanks and the digits of other scripts, and raises an error for more than 4,300 digits.
- A text from outside reaches a log or an error message through `excerpt`, and a report through `on_a_line`, or through
  `on_lines` if it has several. No result has control characters, and an excerpt has a bounded length.

Source: `Integer.parseInt` and `Long.parseLong` of Java, which accept an optional sign and digits.
"""

import argparse
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import PurePath
from typing import TypeVar

_Number = TypeVar("_Number", int, float)
LONGEST_EXCERPT = 200
"""How many characters of a foreign text a log or an error message repeats by default."""

UNREADABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
"""Control characters, invisible characters, those that turn the direction of a text, and unpaired surrogates.

The invisible ones are Unicode's `Default_Ignorable_Code_Point`: a text in its tags (U+E0000) is read by programs alone.
"""

INT, LONG = (-(1 << 31), (1 << 31) - 1), (-(1 << 63), (1 << 63) - 1)
"""The bounds of Java's `int` and `long`."""

_DIGITS = {10: re.compile("[+-]?[0-9]{1,1000}").fullmatch, 16: re.compile("[+-]?[0-9a-fA-F]{1,1000}").fullmatch}
_DECIMAL = re.compile(r"[+-]?[0-9]{1,300}(?:\.[0-9]{1,300})?").fullmatch


def integer(text: str, low: int, high: int, base: int = 10) -> int | None:
    """Read a whole number between two bounds, both included; None if the text is anything else.

    As strict as Java: an optional sign and at most 1,000 ASCII digits. `base` is 10 or 16; there is no prefix.
    """
    if not _DIGITS[base](text):
        return None
    value = int(text, base)  # type: ignore[foreign-number]
    return value if low <= value <= high else None


def decimal(text: str, low: float, high: float) -> float | None:
    """Read a number with an optional fraction between two bounds, both included; None if the text is anything else."""
    if not _DECIMAL(text):
        return None
    value = float(text)  # type: ignore[foreign-number]
    return value if low <= value <= high else None


def integers(texts: Iterable[str], low: int, high: int) -> tuple[int, ...] | None:
    """Read several whole numbers as `integer` does; None if one of the texts is anything else."""
    values = [integer(text, low, high) for text in texts]
    whole = tuple(value for value in values if value is not None)
    return whole if len(whole) == len(values) else None


def required_integer(text: str, low: int = LONG[0], high: int = (1 << 64) - 1, base: int = 10) -> int:
    """Read a whole number where the form of the text is known already. Raises ValueError for any other text."""
    value = integer(text, low, high, base)
    if value is None:
        raise ValueError(f"{excerpt(text)!r} is not a whole number from {low} to {high}")
    return value


def required_decimal(text: str, low: float = 0, high: float = float(1 << 64)) -> float:
    """Read a number with an optional fraction as `required_integer` does. Raises ValueError for any other text."""
    value = decimal(text, low, high)
    if value is None:
        raise ValueError(f"{excerpt(text)!r} is not a number from {low:.15g} to {high:.15g}")
    return value


def between(low: int, high: int = INT[1]) -> Callable[[str], int]:
    """Make the reader of an option, as `type` of argparse: a whole number between two bounds."""
    return partial(_option, lambda text: required_integer(text, low, high))


def decimals_between(low: float, high: float = 1e6) -> Callable[[str], float]:
    """Make the reader of an option, as `type` of argparse: a number between two bounds."""
    return partial(_option, lambda text: required_decimal(text, low, high))


def _option(read: Callable[[str], _Number], text: str) -> _Number:
    try:
        return read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def on_a_line(text: str) -> str:
    """Return a text on one line: a line break is a blank, a character that a reader cannot see appears as its code."""
    return UNREADABLE.sub(_as_code, " ".join(text.splitlines()))


def _as_code(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"


def on_lines(text: str) -> str:
    """Return a text with its line breaks, each line as `on_a_line` shows it."""
    return "\n".join(map(on_a_line, text.split("\n")))


def excerpt(text: str, longest: int = LONGEST_EXCERPT) -> str:
    """Return the beginning of a foreign text on one line, for a log or an error; three dots mean that it continues."""
    # The cut comes first, so that a text of megabytes costs no more than a short one.
    line = on_a_line(text[: longest + 1])
    return line if len(line) <= longest else line[:longest] + "..."


def place_of(error: Exception) -> str:
    """Return an unexpected exception and its place in the program on one line, for a log: no trace, no long text."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" at {PurePath(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
    return f"{type(error).__name__}{place}: {excerpt(str(error))}"
