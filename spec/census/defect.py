"""The record of one known defect in the census: its effect, condition, remedy and evidence.

Rules of this module:

- A release that was not read, and a report without a known cause, are unknown. Unknown is never the same as absent.
- The effect is the worst one that is known. It orders the answers.
"""

import enum

import msgspec

from spec.releases import DefectHistory, Release, is_affected
from spec.variants import Variant


class Effect(enum.Enum):
    """The worst known effect of a defect, most dangerous first."""

    LOST = "an acknowledged write can be lost"
    SPLIT = "two leaders can be established at once"
    DIVERGED = "servers can have different data, without an error"
    STALE = "one server can answer reads with old data"
    STOPPED = "servers can stop to serve, and no write is lost"


class Basis(enum.Enum):
    """The kind of an evidence."""

    COMPUTED = "computed"  # the checker finds the run in the model
    SOURCE = "source"  # read in the Java source of the releases
    SEEN = "seen"  # real servers have shown it
    REPORTED = "reported"  # a public report, whose cause was not confirmed here


class Presence(enum.Enum):
    """Whether a release has a defect."""

    PRESENT = "yes"
    ABSENT = "no"
    UNKNOWN = "unknown"


class Evidence(msgspec.Struct, frozen=True):
    """The evidence of a defect, and the command that shows it again; empty if the source was read."""

    basis: Basis
    command: str = ""


class KnownDefect(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the census.

    - `wrong`: the wrong behaviour, a clause without a full stop.
    - `cause`: its class and method in ZooKeeper.
    - `condition`: the events that lead to it; `remedy`: the advice to an operator who does not upgrade.
    - `history`: the commits; None if the affected releases are not known.
    - `read_from`: the oldest release whose code was read, for a defect that is older than all commits of its history.
    - `unmodelled`: why the model cannot have it; empty if the model has it.
    """

    name: str
    effect: Effect
    wrong: str
    cause: str
    condition: str
    remedy: str
    history: DefectHistory | None
    evidence: tuple[Evidence, ...]
    variant: Variant | None = None
    read_from: Release = Release(3, 4, 0)
    unmodelled: str = ""

    def presence(self, release: Release) -> Presence:
        """Whether a release has this defect."""
        if self.history is None:
            return Presence.UNKNOWN
        if not is_affected(self.history, release):
            return Presence.ABSENT
        if not self.history.introduced and release < self.read_from:
            return Presence.UNKNOWN
        return Presence.PRESENT
