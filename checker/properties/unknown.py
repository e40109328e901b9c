"""The error for a property that there is not, in any of the registries."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches


class UnknownPropertyError(Exception):
    """There is no property of that name among the known ones; `right` says which is nearest."""

    def __init__(self, name: object, known: Collection[str]) -> None:
        close = get_close_matches(str(name)[:80], known, n=1, cutoff=0.5)
        self.right = f"did you mean {close[0]}?" if close else "write one of " + ", ".join(known)
        self.what = f"there is no property {str(name)[:80]!r}"
        super().__init__(f"{self.what}; {self.right}")
