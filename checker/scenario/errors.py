"""The errors of scenarios and of variants: the place, the mistake, and the correction.

- Loading raises `ScenarioError` or `spec.config.ConfigError`, and no other exception, for any text.
- An error names the place to change, and the nearest valid word for a misspelt one.
- A variant that cannot change anything is rejected, since a run with it would suggest that the defect is harmless.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from checker.printable import nearest, on_a_line, one_of
from spec.variants import Variant

__all__ = [
    "EXIT_CODE",
    "NoEffect",
    "ScenarioError",
    "VariantError",
    "nearest",
    "one_of",
    "variant_named",
    "variant_names",
]

EXIT_CODE = 150
"""The exit code of a run with an invalid scenario."""


class ScenarioError(Exception):
    """A scenario that cannot be run. `line` is 0 if it is unknown; `key` is the path to the place."""

    exit_code = EXIT_CODE

    def __init__(self, file: str, line: int, key: str, what: str, right: str) -> None:
        where = f"{file}:{line}" if line else file
        super().__init__(on_a_line(f"{where}: {f'{key}: ' if key else ''}{what}; {right}"))
        self.file, self.line, self.key, self.what, self.right = file, line, key, what, right


class NoEffect(NamedTuple):
    """The reason why a variant changes nothing, and the correction."""

    what: str
    right: str


class VariantError(Exception):
    """A variant that does not exist, or that changes nothing in its run."""

    def __init__(self, name: str, reason: NoEffect) -> None:
        super().__init__(f"the variant {name}: {reason.what}; {reason.right}")
        self.name, self.reason = name, reason


def variant_named(name: str) -> Variant:
    """The variant of that name. Raises VariantError."""
    try:
        return Variant(name)
    except ValueError:
        right = nearest(name, [each.value for each in Variant])
        raise VariantError(name[:60], NoEffect("there is none of that name", right)) from None


def variant_names(variants: Iterable[Variant]) -> str:
    """The names of variants, sorted, as text."""
    return ", ".join(sorted(variant.value for variant in variants))
