"""What is wrong with a scenario: where, what, and what would be right.

Rules of this module:

- Whatever text a scenario has, loading it raises `ScenarioError` or `spec.config.ConfigError`, and nothing
  else.
- An error names the place that a reader has to change, and the nearest valid word for one that is misspelt.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

EXIT_CODE = 150
"""The exit code of a run whose scenario cannot be read."""


class ScenarioError(Exception):
    """A scenario that cannot be run. `line` is 0 where there is none to name, `key` the path to the place."""

    exit_code = EXIT_CODE

    def __init__(self, file: str, line: int, key: str, what: str, right: str) -> None:
        where = f"{file}:{line}" if line else file
        super().__init__(f"{where}: {f'{key}: ' if key else ''}{what}; {right}")
        self.file, self.line, self.key, self.what, self.right = file, line, key, what, right


def one_of(words: Iterable[str]) -> str:
    """What would be right where one of these words is wanted."""
    return "write one of " + ", ".join(words)


def nearest(word: object, words: Iterable[str]) -> str:
    """What would be right for a word that is not among the valid ones: the nearest of them, or all."""
    valid = list(words)
    folded = {each.casefold(): each for each in valid}
    close = get_close_matches(str(word)[:80].casefold(), folded, n=1)
    return f"did you mean {folded[close[0]]}?" if close else one_of(valid)
