"""A cause that a diagnosis names: its kind, its evidence, the next steps, and what not to do."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, StrEnum

from checker.command_table import called
from checker.diagnose.edits import Edit
from checker.diagnose.situation import Situation, servers_text
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
    WRITE_AT_RISK = "write-at-risk"
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
    """One step for the operator: kind, servers in their order, sentence, the words of its command, and its edits.

    `servers` have the ids that the evidence shows, also in steps after one that changes an id.
    """

    kind: StepKind
    servers: tuple[Sid, ...]
    sentence: str
    command: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True)
class Cause:
    """A cause: its servers, one sentence, the evidence, the steps in their order, and what not to do."""

    kind: CauseKind
    servers: tuple[Sid, ...]
    sentence: str
    evidence: tuple[str, ...]
    steps: tuple[NextStep, ...] = ()
    never: tuple[str, ...] = ()


def check(servers: tuple[Sid, ...], what: str = "") -> NextStep:
    """The last step: these servers serve."""
    serve = f"{servers_text(servers)} {'serves' if len(servers) == 1 else 'serve'}"
    sentence = f"Check that {what or serve}: `srvr` has a `Mode:` there, and one server of all has `Mode: leader`."
    return NextStep(StepKind.WAIT, servers, f"{sentence} Then run the diagnosis again, with all addresses.")


def serve_without(others: tuple[Sid, ...], stopped: tuple[Sid, ...]) -> NextStep:
    """The step that starts servers in an order, while those stay stopped whose disk has no part in the quorum."""
    order = ", then ".join(map(str, others))
    sentence = (
        f"Leave {servers_text(stopped)} stopped. Start {order} where they do not run, and wait until they serve without"
        f" {'it' if len(stopped) == 1 else 'them'}: one answers `srvr` with `Mode: leader`, and a quorum follows it."
    )
    return NextStep(StepKind.START, others, sentence)


def recovery(
    situation: Situation, servers: Iterable[Sid], before: str, after: str, keep: Sid | None = None
) -> NextStep:
    """The step that runs `recover` on the disks of servers; its command is between two parts of the sentence.

    `keep` is the server whose history is kept.
    """
    sids, view = tuple(sorted(servers)), situation.common_view
    command = [*called("recover").split(), *(situation.by_sid[sid].place for sid in sids)]
    agreed = (files.origin for files in situation.files.values() if files.view == view)
    if (config := next((origin for origin in agreed if origin.endswith(".cfg")), None)) is not None:
        command += ["--config", config]
    if keep is not None:
        command += ["--keep", situation.by_sid[keep].place]
    return NextStep(StepKind.RECOVER, sids, f"{before} `{shlex.join(command)}` {after}", tuple(command))


def compare_sides(situation: Situation) -> tuple[NextStep, ...]:
    """The steps where two sides have served: nothing more is acknowledged, and the operator compares them."""
    stop = NextStep(StepKind.STOP, (), "Stop all clients, so that neither side acknowledges more.")
    if not situation.with_data:
        look = "Copy the data directories of all servers, and run the diagnosis again with the copies."
        return stop, NextStep(StepKind.LOOK, (), look)
    return stop, recovery(
        situation,
        situation.with_data,
        "Compare the two sides, with new copies of the data directories:",
        "lists what each side alone has, by path. Decide which side stays.",
    )
