"""The error for an unknown name of a property, in any of the registries."""

from __future__ import annotations

from collections.abc import Collection

from checker.printable import nearest


class UnknownPropertyError(Exception):
    """The name is not a known property; `right` contains the nearest known name."""

    def __init__(self, name: object, known: Collection[str]) -> None:
        self.right = nearest(name, known)
        self.what = f"there is no property {str(name)[:80]!r}"
        super().__init__(f"{self.what}; {self.right}")
