"""The results of a schedule on real servers: each step as executed, and the writes at the end."""

from dataclasses import dataclass, field
from enum import Enum

from spec.quorum import Sid


class Outcome(Enum):
    """The result of a schedule on real servers."""

    CONFIRMED = "confirmed"
    NOT_CONFIRMED = "not confirmed"
    HARNESS_FAILED = "harness failed"


class WriteFate(Enum):
    """The state of a write after all servers have recovered. Only an acknowledged write can be lost."""

    PRESENT = "at {}"
    LOST = "LOST: acknowledged, and at no server"
    REVERSED = "at no server; it was committed, and never acknowledged"
    ABSENT = "at no server; it was never acknowledged"


@dataclass(frozen=True)
class StepReport:
    """A step as executed: the events on the wire and on the disks, the time it took, and the lasting differences."""

    number: int
    caption: str
    seen: tuple[str, ...]
    seconds: float
    differences: tuple[str, ...] = ()


@dataclass
class Reproduction:
    """The result: the reports of all steps, and the state of each write after all servers have recovered."""

    outcome: Outcome
    reason: str = ""
    steps: list[StepReport] = field(default_factory=list)
    acknowledged: dict[str, int] = field(default_factory=dict)  # path of a write with a reply, and its server
    committed: tuple[str, ...] = ()  # paths of writes that the model has committed
    present: dict[str, tuple[Sid, ...]] = field(default_factory=dict)  # path, and the servers that have it at the end
    servers: int = 0

    def fate(self, path: str) -> WriteFate:
        """The state of a write that was looked up."""
        if self.present[path]:
            return WriteFate.PRESENT
        if path in self.acknowledged:
            return WriteFate.LOST
        return WriteFate.REVERSED if path in self.committed else WriteFate.ABSENT

    def having(self, *fates: WriteFate) -> tuple[str, ...]:
        """The paths of the writes with one of these fates."""
        return tuple(path for path in self.present if self.fate(path) in fates)

    @property
    def diverged(self) -> tuple[str, ...]:
        """The writes that some servers have at the end, and others do not."""
        return tuple(path for path, sids in self.present.items() if sids and len(sids) < self.servers)
