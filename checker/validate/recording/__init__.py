"""Validation of real servers: their packets, disks and clients against the specification.

- `reader`: the lines of a recording, and the reader of its files.
- `worlds`: the possible states of a server at rest and of its disk, and those of a learner; and one connection of a
  leader.
- `leaders`: the possible states of a leader.
- `judge`: all servers, line by line.

This module judges one recording, and reports on it, the verdict first. If a line does not fit, it looks for known
defects of ZooKeeper that explain it.

Rules of this module:

- The verdict is about the specification without variants. An explanation never changes it.
- A defect explains a line if the line fits with it and nothing before is lost. The fewest defects come first: one, then
  two together.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import combinations
from pathlib import Path
from typing import Any

from checker.command import ExitCode
from checker.engine.values import show
from checker.job import Verdict
from checker.validate.journals import JournalError
from checker.validate.recording.judge import Counts, Judge, RecordedMisfit
from checker.validate.recording.reader import Header, RecordedEvent, read_recording
from spec.quorum import Sid
from spec.releases import ReleaseError, defects_of, release_named
from spec.variants import DESCRIBED, Variant

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
        candidates = [defect for defect in defects_of(release_named(header.release)) if defect in VISIBLE]
    except ReleaseError:
        return [], []
    assumed: frozenset[Variant] = frozenset()
    explanations: list[Explanation] = []
    losses: list[RecordedMisfit] = []
    misfit: RecordedMisfit | None = finding
    while misfit is not None and len(explanations) < MOST_EXPLAINED:
        until = [event for event in events if event.line <= misfit.line]
        rest = [defect for defect in candidates if defect not in assumed]
        why = _fewest(path, until, assumed, rest, progress)
        explanations.append(Explanation(misfit, why))
        if not why:
            break
        assumed |= set(why)
        judge = Judge(assumed)
        misfit = _judged(path, judge, events, progress)
        losses = judge.losses
    return explanations, losses


def _fewest(
    path: Path, events: list[RecordedEvent], assumed: frozenset[Variant], left: list[Variant], progress: Progress
) -> tuple[Variant, ...]:
    """The fewest further defects with which all these lines fit; empty if they do not fit with all of them."""
    everything = tuple(left)
    if not left or not _fits(path, events, assumed | set(left), progress):
        return ()
    few = (*combinations(left, 1), *combinations(left, 2))
    return next((choice for choice in few if _fits(path, events, assumed | set(choice), progress)), everything)


def _fits(path: Path, events: list[RecordedEvent], variants: frozenset[Variant], progress: Progress) -> bool:
    return _judged(path, Judge(variants), events, progress) is None


def sentence(found: RecordingValidation) -> str:
    """The verdict in one line."""
    name = found.verdict.value
    if found.finding is not None:
        return f"{name}: {_headline(found, found.finding)}"
    if found.verdict is Verdict.VACUOUS:
        return f"{name}: nothing was committed in {found.counts.lines:,} lines"
    return f"{name}: {found.counts.packets:,} packets and {found.counts.disks} disks fit the specification"


def _headline(found: RecordingValidation, finding: RecordedMisfit) -> str:
    return f"{found.path}:{finding.line}: server {finding.sid}: {finding.clause}"


def recording_lines(found: RecordingValidation) -> list[str]:
    """The report as lines of text."""
    report = [sentence(found)]
    if found.finding is not None:
        report += _finding_lines(found, found.finding)
    for place, explanation in enumerate(found.explained):
        if place:
            report += [f"also: {_headline(found, explanation.finding)}", *_finding_lines(found, explanation.finding)]
        if explanation.defects:
            report += [f"  explained by {defect.value}: {DESCRIBED[defect].wrong}" for defect in explanation.defects]
        else:
            report.append(f"  explained by no known defect of {found.header.release} that packets and logs show")
    if found.explained and found.explained[-1].defects:
        report.append("With these defects every other line fits. Their consequences:" if found.losses
                      else "With these defects every other line fits.")  # fmt: skip
    report += [f"  line {loss.line}: server {loss.sid}: {loss.clause}" for loss in found.losses]
    return [*report, "", *(f"  {name:<18} {value}" for name, value in _figures(found))]


def _finding_lines(found: RecordingValidation, finding: RecordedMisfit) -> list[str]:
    moment = moment_of(found.header.began + finding.time)
    lines = [f"  at     {moment}, {finding.time:.6f} s after the beginning", f"  event  {finding.event}"]
    return lines + [f"  {name}: {show(value)}" for name, value in finding.values]


def moment_of(seconds: float) -> str:
    """The date and time of a moment in a file, in seconds since 1970; the number alone if no calendar has it."""
    try:
        return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="microseconds")
    except (OverflowError, OSError, ValueError):
        return f"{seconds} s"


def _figures(found: RecordingValidation) -> list[tuple[str, str]]:
    counts = found.counts
    kinds = ", ".join(
        f"{count:,} {kind}" for kind, count in sorted(counts.kinds.items(), key=lambda each: -each[1])[:4]
    )
    return [
        ("servers", f"{', '.join(map(str, found.sids))} of ZooKeeper {found.header.release or 'unknown'}"),
        ("lives", f"{counts.lives} processes, {counts.disks} disks compared"),
        ("packets", f"{counts.packets:,} on {counts.connections} connections" + (f": {kinds}, ..." if kinds else "")),
        ("epochs", f"{counts.epochs} with a leader"),
        ("committed", f"{found.committed:,} transactions"),
        ("replies", f"{counts.replies:,} acknowledged writes"),
        ("time", f"{found.seconds:.1f} s"),
    ]


def recording_data(found: RecordingValidation) -> dict[str, Any]:
    """The report as data for a program."""
    counts = found.counts
    return {
        "schema": "quorate-recording-validation/1",
        "verdict": found.verdict.value,
        "exit_code": int(found.exit_code),
        "sentence": sentence(found),
        "file": str(found.path),
        "release": found.header.release,
        "servers": list(found.sids),
        "misfits": [
            {**_finding_data(found, entry.finding), "explained_by": [defect.value for defect in entry.defects]}
            for entry in found.explained
        ]
        or [{**_finding_data(found, misfit), "explained_by": []} for misfit in (found.finding,) if misfit is not None],
        "consequences": [_finding_data(found, loss) for loss in found.losses],
        "lines": counts.lines,
        "packets": counts.packets,
        "packets_by_type": counts.kinds,
        "connections": counts.connections,
        "lives": counts.lives,
        "disks": counts.disks,
        "epochs": counts.epochs,
        "replies": counts.replies,
        "transactions": found.committed,
        "seconds": round(found.seconds, 3),
    }


def _finding_data(found: RecordingValidation, finding: RecordedMisfit) -> dict[str, Any]:
    return {
        "line": finding.line,
        "time": found.header.began + finding.time,
        "server": finding.sid,
        "event": finding.event,
        "clause": finding.clause,
        "values": {name: show(value) for name, value in finding.values},
    }
