"""The error of a scenario: the place, the mistake, and the correction.

- Loading raises `ScenarioError` or `spec.config.ConfigError`, and no other exception, for any text.
- An error names the place to change, and the nearest valid word for a misspelt one.
"""

from __future__ import annotations

from checker.printable import nearest, on_a_line, one_of

__all__ = ["EXIT_CODE", "ScenarioError", "nearest", "one_of"]

EXIT_CODE = 150
"""The exit code of a run with an invalid scenario."""


class ScenarioError(Exception):
    """A scenario that cannot be run. `line` is 0 if it is unknown; `key` is the path to the place."""

    exit_code = EXIT_CODE

    def __init__(self, file: str, line: int, key: str, what: str, right: str) -> None:
        where = f"{file}:{line}" if line else file
        super().__init__(on_a_line(f"{where}: {f'{key}: ' if key else ''}{what}; {right}"))
        self.file, self.line, self.key, self.what, self.right = file, line, key, what, right
