"""Validation of real servers: their packets, disks and clients against the specification.

- `events`, `reader`: the lines of a recording, and the reader of its files.
- `worlds`: the possible states of a server at rest, and of its disk.
- `followers`, `leaders`, `leading`, `streams`: the possible states of a learner, those of a leader, and one connection
  of a leader.
- `judge`, `tracks`: all servers, line by line.
- `summary`: the report.

This module judges one recording. If a line does not fit, it looks for known defects of ZooKeeper that explain it.

Rules of this module:

- The verdict is about the specification without variants. An explanation never changes it.
- A defect explains a line if the line fits with it and nothing before is lost. The fewest defects come first: one, then
  two together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from checker.command import ExitCode
from checker.job import Verdict
from checker.validate.journals import JournalError
from checker.validate.recording.events import Header, RecordedEvent
from checker.validate.recording.judge import Counts, Judge, RecordedMisfit
from checker.validate.recording.reader import read_recording
from spec.quorum import Sid
from spec.releases import ReleaseError, defects_of, release_named
from spec.variants import Variant

Progress = Callable[[str, int, int], None]
OFTEN = 500  # lines between calls
MOST_EXPLAINED = 20
"""The number of lines that are explained, at most."""
VISIBLE = frozenset(
    {
        Variant.NEWLEADER_FORGETS_PROPOSALS,
        Variant.EPOCH_BEFORE_LOG,
        Variant.NEWLEADER_ACK_BEFORE_SYNC,
        Variant.PROPOSAL_ACK_BEFORE_NEWLEADER_ACK,
        Variant.QUEUE_SURVIVES_SHUTDOWN,
        Variant.COMMITTED_LOG_WITH_GAP,
        Variant.ACKS_SURVIVE_TRUNCATION,
        Variant.SYNC_FROM_APPLIED,
        Variant.TRUNC_AFTER_SNAP,
    }
)
"""The known defects that change packets or log files; the others change only memory or snapshots."""


@dataclass(frozen=True)
class Explanation:
    """A line that does not fit, and the known defects with which it fits; empty without such defects."""

    finding: RecordedMisfit
    defects: tuple[Variant, ...]


@dataclass
class RecordingValidation:
    """The judgement of a recording.

    `explained` begins with `finding`; each later line fits only with all the defects. `losses` are the consequences
    of these defects: leaders without committed transactions, servers without acknowledged writes.
    """

    path: Path
    header: Header
    counts: Counts
    sids: tuple[Sid, ...]
    committed: int
    finding: RecordedMisfit | None = None
    explained: list[Explanation] = field(default_factory=list)
    losses: list[RecordedMisfit] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """The first verdict of the lattice that applies; a recording without a COMMIT says nothing."""
        if self.finding is not None:
            return Verdict.VIOLATED
        return Verdict.PASSED if self.committed else Verdict.VACUOUS

    @property
    def exit_code(self) -> ExitCode:
        """12 if a line does not fit, 21 if nothing was committed."""
        codes = {Verdict.VIOLATED: ExitCode.SAFETY, Verdict.VACUOUS: ExitCode.VACUOUS}
        return codes.get(self.verdict, ExitCode.PASSED)


def validate_recording(path: Path, progress: Progress = lambda *_: None) -> RecordingValidation:
    """Judge a recording. Raises JournalError for a file that is damaged, truncated or foreign."""
    began = time.monotonic()
    header, lines = read_recording(path)
    events = tuple(lines)
    judge = Judge()
    finding = _judged(path, judge, events, progress)
    committed = len(judge.committed)
    validation = RecordingValidation(path, header, judge.counts, tuple(judge.lives()), committed, finding)
    if finding is not None:
        validation.explained, validation.losses = _explained(path, header, events, finding, progress)
    validation.seconds = time.monotonic() - began
    return validation


def _judged(path: Path, judge: Judge, events: Iterable[RecordedEvent], progress: Progress) -> RecordedMisfit | None:
    for number, event in enumerate(events, start=1):
        try:
            finding = judge.take(event)
        except ValueError as error:
            raise JournalError(path, event.line, str(error)) from None
        if finding is not None:
            return finding
        if number % OFTEN == 0:
            progress("the recording", number, 0)
    return None


def _explained(
    path: Path, header: Header, events: tuple[RecordedEvent, ...], finding: RecordedMisfit, progress: Progress
) -> tuple[list[Explanation], list[RecordedMisfit]]:
    """The lines that do not fit, one after the other, each with the known defects of the release that explain it."""
    try:
        known = [defect for defect in defects_of(release_named(header.release)) if defect in VISIBLE]
    except ReleaseError:
        return [], []
    assumed: frozenset[Variant] = frozenset()
    found: list[Explanation] = []
    losses: list[RecordedMisfit] = []
    at: RecordedMisfit | None = finding
    while at is not None and len(found) < MOST_EXPLAINED:
        until = [event for event in events if event.line <= at.line]
        left = [each for each in known if each not in assumed]
        why = _fewest(path, until, assumed, left, progress)
        found.append(Explanation(at, why))
        if not why:
            break
        assumed |= set(why)
        judge = Judge(assumed)
        at = _judged(path, judge, events, progress)
        losses = judge.losses
    return found, losses


def _fewest(
    path: Path, events: list[RecordedEvent], assumed: frozenset[Variant], left: list[Variant], progress: Progress
) -> tuple[Variant, ...]:
    """The fewest further defects with which all these lines fit; empty if they do not fit with all of them."""
    everything = tuple(left)
    if not left or not _fits(path, events, assumed | set(left), progress):
        return ()
    few = (*combinations(left, 1), *combinations(left, 2))
    return next((each for each in few if _fits(path, events, assumed | set(each), progress)), everything)


def _fits(path: Path, events: list[RecordedEvent], variants: frozenset[Variant], progress: Progress) -> bool:
    return _judged(path, Judge(variants), events, progress) is None
