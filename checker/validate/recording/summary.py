"""The report about a recording, as text and as data. It opens with the verdict."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from checker.job import Verdict
from checker.traces.values import show
from checker.validate.recording import RecordingValidation
from checker.validate.recording.judge import RecordedMisfit
from spec.variants import DESCRIBED


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
    for place, each in enumerate(found.explained):
        if place:
            report += [f"also: {_headline(found, each.finding)}", *_finding_lines(found, each.finding)]
        if each.defects:
            report += [f"  explained by {defect.value}: {DESCRIBED[defect].wrong}" for defect in each.defects]
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
            {**_finding_data(found, each.finding), "explained_by": [defect.value for defect in each.defects]}
            for each in found.explained
        ]
        or [{**_finding_data(found, each), "explained_by": []} for each in (found.finding,) if each is not None],
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
