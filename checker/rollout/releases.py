"""The releases of a roll-out: one for all servers, or the one before and the one after an upgrade."""

from __future__ import annotations

from dataclasses import dataclass

from spec.releases import Release, defects_of
from spec.variants import Variant


@dataclass(frozen=True)
class ReleaseChange:
    """The release that every server runs before the roll-out, and the one that it runs after its step."""

    old: Release
    new: Release

    @property
    def is_upgrade(self) -> bool:
        """Whether the release changes, to a newer or an older one."""
        return self.old != self.new

    @property
    def defects(self) -> tuple[Variant, ...]:
        """The known defects of either release, those of the old one first."""
        return tuple(dict.fromkeys((*defects_of(self.old), *defects_of(self.new))))

    def __str__(self) -> str:
        """Return `3.8.4`, or `3.8.4 to 3.9.5`."""
        return f"{self.old} to {self.new}" if self.is_upgrade else str(self.old)
