"""The error for an unknown word: the name of a property in any of the registries, or a word inside a parameter."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches


class UnknownPropertyError(Exception):
    """The name is not a known property; `right` contains the nearest known name."""

    def __init__(self, name: object, known: Collection[str]) -> None:
        self.right = nearest(name, known)
        self.what = f"there is no property {str(name)[:80]!r}"
        super().__init__(f"{self.what}; {self.right}")


def nearest(word: object, known: Collection[str]) -> str:
    """A suggestion in place of an unknown word: the nearest of the known ones, or all of them."""
    close = get_close_matches(str(word)[:80], known, n=1, cutoff=0.5)
    return f"did you mean {close[0]}?" if close else "write one of " + ", ".join(known)
