"""Errors and warnings of a configuration, with their places and corrections.

A file is read to its end: all its errors are reported together, in the order of the lines. A problem is an error if
ZooKeeper refuses the file, and a warning if ZooKeeper starts with it. Two errors go beyond ZooKeeper: a file above the
size limit, and a template that nothing has filled in.
"""

import re
from collections.abc import Mapping

import msgspec

WHITE = "".join(map(chr, range(33)))
"""The characters that `String.trim()` removes: all up to and including the space."""

_TEMPLATE = re.compile(r"\$\{[^}]{0,200}\}|\$\([^)]{0,200}\)|\{\{.{0,200}?\}\}|<[^<>]{1,200}>|\$[A-Za-z_]\w*")
"""The lengths have a limit, so that a long text of brackets takes no quadratic time."""


def template_in(value: str) -> str | None:
    """Return the first template in a value (`${NAME}`, `$(NAME)`, `{{ name }}`, `<name>` or `$NAME`), or None."""
    match = _TEMPLATE.search(value)
    return match[0] if match else None


class Problem(msgspec.Struct, frozen=True):
    """A mistake: file, line (0 for a missing line), description and correction."""

    file: str
    line: int
    what: str
    right: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.what}; {self.right}"


class ConfigError(Exception):
    """An invalid configuration.

    `problems` holds all errors, at least one; `warnings` the warnings for the same files.
    """

    def __init__(self, problems: tuple[Problem, ...], warnings: tuple[Problem, ...] = ()) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems
        self.warnings = warnings


class Findings:
    """Collects the errors and warnings of one configuration."""

    def __init__(self) -> None:
        self._errors: list[Problem] = []
        self._warnings: list[Problem] = []

    def error(self, file: str, line: int, what: str, right: str) -> None:
        """Add an error: ZooKeeper does not start with this."""
        self._errors.append(Problem(file, line, what, right))

    def warn(self, file: str, line: int, what: str, right: str) -> None:
        """Add a warning: ZooKeeper starts with this, but it is probably a mistake."""
        self._warnings.append(Problem(file, line, what, right))

    @property
    def broken(self) -> bool:
        """Whether there is an error, so that the values read so far are unusable."""
        return bool(self._errors)

    def warnings(self) -> tuple[Problem, ...]:
        """Return the warnings in the order of the lines. Raises ConfigError if there are errors."""
        warnings = tuple(sorted(self._warnings, key=_place))
        if self._errors:
            raise ConfigError(tuple(sorted(self._errors, key=_place)), warnings)
        return warnings


def _place(problem: Problem) -> tuple[str, int]:
    return (problem.file, problem.line)


def is_true(properties: Mapping[str, str], key: str, *, otherwise: str = "false") -> bool:
    """Whether a key is true, as `Boolean.parseBoolean` reads it; `otherwise` is the value of a missing key."""
    return properties.get(key, otherwise).lower() == "true"


def java_split(text: str, separator: str) -> list[str]:
    """Split as `String.split` does: without trailing empty parts, and without a change if there is no separator."""
    parts = text.split(separator)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    # Java returns no parts for a text of separators only.
    return [] if parts == [""] and text else parts
