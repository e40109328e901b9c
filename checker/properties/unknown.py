"""What is said of a word that there is not: of a property in any of the registries, and inside a parameter."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches


class UnknownPropertyError(Exception):
    """There is no property of that name among the known ones; `right` says which is nearest."""

    def __init__(self, name: object, known: Collection[str]) -> None:
        self.right = nearest(name, known)
        self.what = f"there is no property {str(name)[:80]!r}"
        super().__init__(f"{self.what}; {self.right}")


def nearest(word: object, known: Collection[str]) -> str:
    """What would be right for a word that is not among the known ones: the nearest of them, or all."""
    close = get_close_matches(str(word)[:80], known, n=1, cutoff=0.5)
    return f"did you mean {close[0]}?" if close else "write one of " + ", ".join(known)
