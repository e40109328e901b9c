"""The releases of ZooKeeper, and for each known defect the releases that have it.

The table has the lines 3.8 and 3.9, and the last release of each line from 3.4 on. Its data are commits: for each
defect the commits that fixed it, each with the first release that contains the commit, and the commits that brought it
in, at least if they are in the table. The affected releases are derived from them. To add a defect, add one entry to
`HISTORIES`. The protocol of the specification is that of 3.8 and 3.9: of an older release it has these defects, and no
others.

Source: the tags `release-*` of ZooKeeper's git repository; `git tag --contains COMMIT` shows the same. A release of the
3.8 line is a tag on branch-3.8, which master's commits reach only as cherry-picks. 3.8.0 is the tag `release-3.8.0-1`.
`Learner.syncWithLeader` and `Learner.shutdown` of 3.5.10, 3.6.4 and 3.7.2 do what those of 3.8.0 do. The conditions of
an upgrade are those of the announcements of ZooKeeper's releases, and were met on real servers.
"""

import re
from collections.abc import Iterable, Mapping

import msgspec

from spec.text import required_integer
from spec.variants import Variant


class Release(msgspec.Struct, frozen=True, order=True):
    """A release of ZooKeeper; releases are ordered by their numbers."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        """The number as ZooKeeper writes it, such as 3.8.4."""
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def line(self) -> tuple[int, int]:
        """The branch: 3.8.4 is of the line (3, 8)."""
        return self.major, self.minor


class ReleaseError(ValueError):
    """A release that is not in the table; `right` names the nearest ones."""

    def __init__(self, what: str, right: str) -> None:
        super().__init__(f"{what}; {right}")
        self.what, self.right = what, right


class SourceChange(msgspec.Struct, frozen=True):
    """A commit, and the first release of its line that contains it; None on master, where no release contains it."""

    commit: str
    release: Release | None


class DefectHistory(msgspec.Struct, frozen=True):
    """The life of a known defect.

    - `fixed`: the commits that fixed it, one for each line.
    - `introduced`: the commits that brought it in; it may be empty if they are older than the table.
    - `fixed_by`: the issue under which it was fixed, if that is another one.
    - `found_here`: whether the checker of this project found it.
    - `reproduced`: the releases of which unmodified servers have shown it in our runs.
    - `corrected`: the releases on whose servers a correction of ours was tried (`harness/corrections`).
    """

    fixed: tuple[SourceChange, ...] = ()
    introduced: tuple[SourceChange, ...] = ()
    fixed_by: str = ""
    found_here: bool = False
    reproduced: tuple[Release, ...] = ()
    corrected: tuple[Release, ...] = ()


_LAST = {(3, 4): 14, (3, 5): 10, (3, 6): 4, (3, 7): 2, (3, 8): 6, (3, 9): 5}
TAGGED = tuple(Release(*line, patch) for line, last in _LAST.items() for patch in range(last + 1))
"""Every release from 3.4.0 on with a tag, oldest line first: the census answers for each (`spec.census`)."""

OLDER = Release(3, 4, 14), Release(3, 5, 10), Release(3, 6, 4), Release(3, 7, 2)
RELEASES = (
    *OLDER,
    *(Release(3, 8, patch) for patch in range(7)),
    *(Release(3, 9, patch) for patch in range(6)),
)
"""The releases that a model can be like, oldest line first."""


MASTER = "master"


def changes(*each: str) -> tuple[SourceChange, ...]:
    """The commits, written like "3.8.5 34f292924"."""
    pairs = (text.split() for text in each)
    return tuple(
        SourceChange(commit, None if release == MASTER else Release(*map(required_integer, release.split("."))))
        for release, commit in pairs
    )


TREE_KEPT = changes("3.4.10 2de93fe45", "3.5.3 c164ee454", "3.6.0 bbfd01694")
"""ZOOKEEPER-2678: a server keeps its tree across elections, and a DIFF ends without a snapshot."""
# The branch 3.5 took this fix of ZOOKEEPER-3911 back before 3.5.9 was tagged, and has it again since 3.5.10.
_LOGGED_WITH_NEWLEADER = changes("3.5.10 24e1d2beb", "3.6.3 9b2b72abc", "3.7.0 b978dfb94")
_EPOCH_BEFORE_LOG = DefectHistory(
    changes("3.8.5 34f292924", "3.9.2 4a49d4587", "master 315abde35"),
    TREE_KEPT,
    fixed_by="ZOOKEEPER-4785",
    reproduced=(Release(3, 8, 0),),
)
_SYNCHRONISED_TXNS_ON_DISK = msgspec.structs.replace(_EPOCH_BEFORE_LOG, introduced=_LOGGED_WITH_NEWLEADER)
_CHECKED_ORDER = changes("3.9.4 685048a7b", "master e5dd60bf0")
_COMMITTED_TXNS_ONLY = changes("3.9.3 5a2b99b5b", "master 9fcb805fa")
_TREE_AS_THE_LOG = changes("3.4.12 e0af6ed75", "3.5.4 ffb81b9a6", "3.6.0 722ba9409")  # the shutdown applies the log
SINCE_RECONFIG = changes("3.5.0 5428cd4bc")  # ZOOKEEPER-107, the first commit of dynamic reconfiguration

HISTORIES: Mapping[Variant, DefectHistory] = {
    Variant.VOTE_ORDER_CYCLES: DefectHistory(changes("3.4.4 6125ab947", "3.5.0 e5a51ead5")),
    Variant.LEADER_OF_AN_OLD_ROUND: DefectHistory(changes("3.4.4 e57238c73", "3.5.0 6b7971022")),
    Variant.SNAPSHOT_OF_UNCOMMITTED: DefectHistory(changes("3.4.6 d91f65c07"), fixed_by="ZOOKEEPER-1558"),
    Variant.TREE_BEHIND_LOG: DefectHistory(_TREE_AS_THE_LOG, TREE_KEPT),
    Variant.COMMITS_AFTER_UPTODATE: DefectHistory(
        _COMMITTED_TXNS_ONLY, TREE_KEPT, fixed_by="ZOOKEEPER-4394", reproduced=(Release(3, 8, 0),)
    ),
    Variant.PROMISES_OF_OBSERVERS: DefectHistory(changes("3.4.13 a09a67971", "3.5.4 c86349060", "3.6.0 088dfdf18")),
    Variant.PARTIAL_SNAPSHOT_KEPT: DefectHistory(
        changes("3.5.10 161e50574", "3.6.3 a53cfeb26", "3.7.0 efbd660e1"), TREE_KEPT, reproduced=(Release(3, 6, 2),)
    ),
    Variant.LOGGED_AFTER_UPTODATE: DefectHistory(_LOGGED_WITH_NEWLEADER, TREE_KEPT),
    Variant.NEWLEADER_FORGETS_PROPOSALS: DefectHistory(
        _COMMITTED_TXNS_ONLY, _LOGGED_WITH_NEWLEADER, reproduced=(Release(3, 8, 0), Release(3, 8, 6))
    ),
    Variant.EPOCH_BEFORE_LOG: _EPOCH_BEFORE_LOG,
    Variant.NEWLEADER_ACK_BEFORE_SYNC: _SYNCHRONISED_TXNS_ON_DISK,
    Variant.PROPOSAL_ACK_BEFORE_NEWLEADER_ACK: _SYNCHRONISED_TXNS_ON_DISK,
    # 3.4.14 reads its last zxid too early as well, but waits for the thread before the next election.
    Variant.QUEUE_SURVIVES_SHUTDOWN: DefectHistory(
        changes("3.9.3 4d3723581", "master bc9afbf8e"),
        changes("3.5.10 161e50574", "3.6.3 a53cfeb26", "3.7.0 efbd660e1"),  # ZOOKEEPER-3642
        reproduced=(Release(3, 8, 0),),
    ),
    Variant.SNAPSHOT_SURVIVES_TRUNC: DefectHistory(),
    Variant.DISK_ERROR_KEEPS_TREE: DefectHistory(introduced=TREE_KEPT),
    # In a DIFF since 3.9.3 (the fix of ZOOKEEPER-4394), after a TRUNC always.
    Variant.COMMITTED_LOG_WITH_GAP: DefectHistory(_CHECKED_ORDER, TREE_KEPT),
    Variant.TREE_AHEAD_OF_LOG: DefectHistory(introduced=TREE_KEPT),
    Variant.ACKS_SURVIVE_TRUNCATION: DefectHistory(
        found_here=True,
        reproduced=(Release(3, 8, 0), Release(3, 9, 4), Release(3, 9, 5)),
        corrected=(Release(3, 9, 5),),
    ),
    Variant.SYNC_FROM_APPLIED: DefectHistory(
        found_here=True,
        reproduced=(Release(3, 8, 0), Release(3, 9, 4), Release(3, 9, 5)),
        corrected=(Release(3, 9, 5),),
    ),
    Variant.TRUNC_AFTER_SNAP: DefectHistory(
        reproduced=(Release(3, 8, 0), Release(3, 9, 5)), corrected=(Release(3, 9, 5),)
    ),
    Variant.FUZZY_SNAPSHOT: DefectHistory(introduced=_TREE_AS_THE_LOG),
    Variant.RESTORE_UNDONE: DefectHistory(
        introduced=changes("3.9.0 d35bdfb9d"),  # ZOOKEEPER-4571, the first commit with `restore`
        reproduced=(Release(3, 9, 0), Release(3, 9, 4), Release(3, 9, 5)),
        corrected=(Release(3, 9, 5),),
    ),
    Variant.PENDING_VIEW_ACTIVATED: DefectHistory(
        introduced=SINCE_RECONFIG,
        reproduced=(Release(3, 8, 6), Release(3, 9, 5)),
        corrected=(Release(3, 9, 5),),
    ),
    Variant.EPOCH_OF_ACTIVE_VIEW: DefectHistory(
        introduced=SINCE_RECONFIG,
        reproduced=(Release(3, 8, 6), Release(3, 9, 5)),
        corrected=(Release(3, 9, 5),),
    ),
    Variant.LAST_SEEN_FORGOTTEN: DefectHistory(
        introduced=SINCE_RECONFIG,
        reproduced=(Release(3, 8, 6), Release(3, 9, 5)),
        corrected=(Release(3, 9, 5),),
    ),
    # The fix of ZOOKEEPER-4925 checks the order, and leaves INFORMANDACTIVATE out.
    Variant.ACTIVATION_NOT_COUNTED: DefectHistory(introduced=_CHECKED_ORDER, reproduced=(Release(3, 9, 5),)),
}
"""The history of each known defect of ZooKeeper. A variant without an entry is a mutant of this project."""


class UpgradeCondition(msgspec.Struct, frozen=True):
    """A condition of an upgrade from a release before `until` to that or a later one."""

    until: Release
    text: str


UPGRADE_CONDITIONS = (
    UpgradeCondition(
        Release(3, 5, 0),
        "Each server needs a file `version-2/snapshot.*` in its dataDir before its step, or it does not start "
        "(ZOOKEEPER-3056). Without one, write `snapshot.trust.empty=true` into its new file, and remove the key by a "
        "roll-out of its own afterwards.",
    ),
    UpgradeCondition(
        Release(3, 5, 0),
        "Of the four-letter words only `srvr` is answered by default: a probe with another one, like `ruok`, needs "
        "`4lw.commands.whitelist`. The AdminServer takes port 8080, unless `admin.enableServer=false`.",
    ),
    UpgradeCondition(Release(3, 7, 0), "Clients of 3.4 are supported up to 3.6: upgrade them first."),
)
"""The conditions of upgrades, oldest first."""


_UPGRADED_FROM = {(3, 5): (3, 4), (3, 6): (3, 5), (3, 7): (3, 6), (3, 8): (3, 6), (3, 9): (3, 7)}
"""For each line the oldest one from which its announcement describes the upgrade."""


def upgrade_conditions(old: Release, new: Release) -> tuple[str, ...]:
    """What an operator checks before an upgrade, a sentence or more for each."""
    conditions = [condition.text for condition in UPGRADE_CONDITIONS if old < condition.until <= new]
    lines = [new.line]
    while lines[0] in _UPGRADED_FROM and _UPGRADED_FROM[lines[0]] > old.line:
        lines.insert(0, _UPGRADED_FROM[lines[0]])
    if len(lines) > 1:
        by_way_of = " and ".join(f"{major}.{minor}" for major, minor in lines[:-1])
        conditions.append(f"The announcements of ZooKeeper's releases describe this upgrade by way of {by_way_of}.")
    return tuple(conditions)


def is_defect(variant: Variant) -> bool:
    """Whether a variant is a known defect of ZooKeeper, and not a mutant of this project."""
    return variant in HISTORIES


def release_named(text: str, table: tuple[Release, ...] = RELEASES) -> Release:
    """The release of the table with that number. Raises ReleaseError with the nearest ones."""
    releases = {str(release): release for release in table}
    if text not in releases:
        raise ReleaseError(f"the release {text[:40]!r} is not in the table", _nearest(text, table))
    return releases[text]


def _nearest(text: str, table: tuple[Release, ...]) -> str:
    number = re.fullmatch(r"([0-9]{1,6})\.([0-9]{1,6})(?:\.([0-9]{1,6}))?(?:[^0-9].*)?", text)
    if number is None:
        return f"write one from {table[0]} to {table[-1]}, like {table[-1]}"
    target = Release(*(required_integer(part or "0") for part in number.groups()))
    before = [release for release in table if release <= target][-1:]
    after = [release for release in table if release > target][:1]
    return f"the nearest known: {' and '.join(map(str, before + after))}"


def is_affected(history: DefectHistory, release: Release) -> bool:
    """Whether a release has a defect."""
    began = not history.introduced or _contains(release, history.introduced)
    return began and not _contains(release, history.fixed)


def _contains(release: Release, changes: Iterable[SourceChange]) -> bool:
    """Whether a release contains one of these commits.

    The commit of the release's own line decides. A line without one has the commit if an earlier line has it since its
    first release: that commit was on master when the later line began.
    """
    released = [change.release for change in changes if change.release is not None]
    of_line = [start for start in released if start.line == release.line]
    return any(start <= release for start in of_line or [s for s in released if s.patch == 0 and s < release])


def defects_of(release: Release) -> tuple[Variant, ...]:
    """The known defects of a release, in the order of `Variant`."""
    return tuple(variant for variant in Variant if variant in HISTORIES and is_affected(HISTORIES[variant], release))


def affected(history: DefectHistory) -> tuple[Release, ...]:
    """The releases of the table that have a defect, in order."""
    return tuple(release for release in RELEASES if is_affected(history, release))


def fixed_text(variant: Variant) -> str:
    """The first releases without a known defect, and the lines of the table that still have it, in words."""
    history = HISTORIES[variant]
    newest = {release.line: release for release in RELEASES}.values()
    affected_lines = [candidate for candidate in newest if is_affected(history, candidate)]
    unfixed = [line for line in affected_lines if line not in OLDER]
    fixed = _listed(fix.release for fix in history.fixed)
    if fixed:
        parts = [fixed, *(f"not in the {end.major}.{end.minor} line up to {end}" for end in unfixed)]
        parts += [f"not in {_listed(old)}"] if (old := [line for line in affected_lines if line in OLDER]) else []
    else:
        parts = [f"in no release up to {' and '.join(map(str, unfixed))}"]
    if history.introduced:
        parts.append(f"introduced in {_listed(origin.release for origin in history.introduced)}")
    if history.fixed_by:
        parts.append(f"by {history.fixed_by}")
    if history.found_here:
        parts.append("found by the checker of this project")
    if history.reproduced:
        parts.append(f"reproduced on real servers of {_listed(history.reproduced)}")
    return "; ".join(parts)


def _listed(releases: Iterable[Release | None]) -> str:
    return ", ".join(str(release) for release in releases if release is not None)
