"""A cause that a diagnosis names: its kind, its evidence, the next steps, and what not to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum

from spec.quorum import Sid


class CauseKind(StrEnum):
    """The causes, in the order of their places in a diagnosis."""

    PENDING_VIEW = "pending-view"
    TWO_LEADERS = "two-leaders"
    WRONG_MYID = "wrong-myid"
    IDS_RENAMED = "ids-renamed"
    RESTORE_UNDONE = "restore-undone"
    RECORD_STAYS = "trunc-after-snap"
    HISTORIES_DIFFER = "histories-differ"
    FOREIGN_DISK = "foreign-disk"
    DAMAGED_LOG = "damaged-log"
    LOG_GAP = "log-gap"
    LOG_MISSING = "log-missing"
    SNAPSHOT_MISSING = "snapshot-missing"
    EPOCH_MISSING = "epoch-missing"
    EPOCHS_CONTRADICT = "epochs-contradict"
    FULL_DISK = "full-disk"
    OBSERVER_LEADS = "observer-becomes-voter"
    PROMOTION_STALLED = "promotion-stalled"
    STALE_NEXT = "stale-next"
    BAD_FILE = "bad-file"
    RECONFIG_MIXED = "reconfig-mixed"
    OLD_FILE = "old-file"
    SWAPPED_PORTS = "swapped-ports"
    TLS_MIXED = "tls-mixed"
    UNRESOLVABLE_HOST = "unresolvable-host"
    MAJORITY_LOST = "majority-lost"
    NO_QUORUM = "no-quorum"
    TRUNCATED = "truncated"


class StepKind(Enum):
    """The kinds of steps that a diagnosis can name; the value is that in JSON."""

    EDIT = "edit"
    START = "start"
    RESTART = "restart"
    STOP = "stop"
    WAIT = "wait"
    ERASE = "erase"
    RECOVER = "recover"
    LOOK = "look"


@dataclass(frozen=True)
class NextStep:
    """One step for the operator: its kind, its servers in their order, and the sentence."""

    kind: StepKind
    servers: tuple[Sid, ...]
    sentence: str


@dataclass(frozen=True)
class Cause:
    """A cause: its servers, one sentence, the evidence, the steps in their order, and what not to do."""

    kind: CauseKind
    servers: tuple[Sid, ...]
    sentence: str
    evidence: tuple[str, ...]
    steps: tuple[NextStep, ...] = ()
    never: tuple[str, ...] = ()


def compare_sides(servers: tuple[Sid, ...]) -> tuple[NextStep, ...]:
    """The steps where two sides have served: nothing more is acknowledged, and the operator compares them."""
    return (
        NextStep(StepKind.STOP, (), "Stop all clients, so that neither side acknowledges more."),
        NextStep(
            StepKind.RECOVER,
            servers,
            "Copy the data directories of all servers, and compare the two sides: `python -m checker recover` with the"
            " copies lists what each side alone has, by path. Decide which side stays.",
        ),
    )
