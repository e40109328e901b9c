"""What is wrong with a configuration, where, and what would be right.

Rules this module keeps:

- A file is read to its end: everything that is wrong with it is reported at once, in the order of the lines.
- A `Problem` is a value. Whether it stops the server (an error) or is only said (a warning) follows what
  ZooKeeper does with such a file, and is decided by whoever collects it.
"""

import re

import msgspec

_INTEGER = re.compile(r"[+-]?\d+")
_HEXADECIMAL = re.compile(r"[+-]?[0-9a-fA-F]+")

WHITE = "".join(map(chr, range(33)))
"""What `String.trim()` removes: every character up to and including the space."""


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong: file, line (0 when something is missing), what, and what would be right."""

    file: str
    line: int
    what: str
    right: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.what}; {self.right}"


class ConfigError(Exception):
    """A configuration ZooKeeper would not start with.

    `problems` holds every error found, at least one; `warnings` what else was noticed on the way.
    """

    def __init__(self, problems: tuple[Problem, ...], warnings: tuple[Problem, ...] = ()) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems
        self.warnings = warnings


class Findings:
    """Collects the errors and warnings of one configuration while it is read."""

    def __init__(self) -> None:
        self._errors: list[Problem] = []
        self._warnings: list[Problem] = []

    def error(self, file: str, line: int, what: str, right: str) -> None:
        """Notes something that keeps ZooKeeper from starting."""
        self._errors.append(Problem(file, line, what, right))

    def warn(self, file: str, line: int, what: str, right: str) -> None:
        """Notes something that ZooKeeper starts with, and that is rarely meant."""
        self._warnings.append(Problem(file, line, what, right))

    @property
    def broken(self) -> bool:
        """Whether an error was noted, so that what was read so far must not be used."""
        return bool(self._errors)

    def warnings(self) -> tuple[Problem, ...]:
        """The warnings, in the order of the lines; raises ConfigError instead if there are errors."""
        warnings = tuple(sorted(self._warnings, key=_place))
        if self._errors:
            raise ConfigError(tuple(sorted(self._errors, key=_place)), warnings)
        return warnings


def _place(problem: Problem) -> tuple[str, int]:
    return (problem.file, problem.line)


def java_integer(text: str, bits: int = 32, base: int = 10) -> int | None:
    """The number Java's `Integer.parseInt` (32 bits) or `Long.parseLong` (64) reads, or None.

    As strict as Java: no blanks, no underscores, nothing out of range.
    """
    pattern = _INTEGER if base == 10 else _HEXADECIMAL
    # A longer text is out of range anyway, unless it is mostly zeros; Python refuses 4,300 digits and more.
    if len(text) > 1000 or not pattern.fullmatch(text):
        return None
    value = int(text, base)
    return value if -(1 << bits - 1) <= value < 1 << bits - 1 else None


def java_split(text: str, separator: str) -> list[str]:
    """What `String.split` gives: trailing empty parts dropped, a text without separator left whole."""
    parts = text.split(separator)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    # Java drops every part of a text that is nothing but separators.
    return [] if parts == [""] and text else parts
