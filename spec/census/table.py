"""The census: all known defects of ZooKeeper that lose or change data, split the leadership or stop the service.

It is the one table of defects. `quorate defects`, `quorate list releases` and the pages of the manual are made from it;
the histories of defects that are variants are those of `spec.releases`.
"""

from collections.abc import Mapping

from spec.census.defect import Effect, KnownDefect, Presence
from spec.census.modelled import MODELLED
from spec.census.reported import REPORTED
from spec.releases import TAGGED, DefectHistory, Release

_ORDER = {effect: place for place, effect in enumerate(Effect)}

CENSUS: Mapping[str, KnownDefect] = {
    defect.name: defect for defect in sorted((*MODELLED, *REPORTED), key=lambda row: _ORDER[row.effect])
}
"""Every known defect by its name, most dangerous first; within one effect in the order of the two tables."""


def defects_in(release: Release, presence: Presence = Presence.PRESENT) -> tuple[KnownDefect, ...]:
    """The defects that a release has, or those with another presence in it, most dangerous first."""
    return tuple(defect for defect in CENSUS.values() if defect.presence(release) is presence)


def corrected_in(history: DefectHistory, release: Release) -> tuple[Release, ...]:
    """The releases that remove a defect of `release`: in its own line, then the lowest later one."""
    fixed = sorted(change.release for change in history.fixed if change.release is not None)
    own = [fix for fix in fixed if fix.line == release.line and fix > release]
    later = [fix for fix in fixed if fix.line > release.line]
    return (*own[:1], *later[:1])


def newest_releases(release: Release) -> tuple[Release, ...]:
    """The newest release of a release's own line, and of each later line."""
    newest = {tagged.line: tagged for tagged in TAGGED}
    return tuple(last for line, last in newest.items() if line >= release.line and last > release)
