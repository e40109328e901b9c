"""The result of a validation: the verdict, its exit code, and the report for a reader and for a program.

Rules this module keeps:

- The verdict is one of the lattice (`checker.job.Verdict`), and opens the report. A step that does not fit, a message
  that was never sent, and an invariant that does not hold are all violations: the running system differs from the
  specification.
- Facts that were taken as given or tolerated are always reported, whatever the verdict is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from checker.job import Verdict
from checker.report.verdict import ExitCode
from checker.traces.values import show
from checker.validate.invariants import Count
from checker.validate.replay import Mismatch
from spec.quorum import Sid, View


@dataclass
class Validation:
    """The input and the findings. `steps` counts all records, `merged` those that were reached in the common order."""

    paths: tuple[Path, ...]
    sids: tuple[Sid, ...]
    mismatches: list[Mismatch] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    views: dict[Sid, View] = field(default_factory=dict)
    counts: Mapping[str, Count] = field(default_factory=dict)
    steps: int = 0
    lives: int = 0
    merged: int = 0
    facts: int = 0
    transactions: int = 0
    seconds: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """The first verdict of the lattice that applies."""
        if self.mismatches:
            return Verdict.VIOLATED
        return Verdict.PASSED if any(count.premise for count in self.counts.values()) else Verdict.VACUOUS

    @property
    def exit_code(self) -> ExitCode:
        """12 for anything that does not fit, 21 if the premise of every invariant was false everywhere."""
        codes = {Verdict.VIOLATED: ExitCode.SAFETY, Verdict.VACUOUS: ExitCode.VACUOUS}
        return codes.get(self.verdict, ExitCode.PASSED)

    @property
    def without_journal(self) -> tuple[Sid, ...]:
        """The servers that a view names and that have no journal here."""
        return tuple(sorted({sid for view in self.views.values() for sid in view.members} - set(self.sids)))

    @property
    def sentence(self) -> str:
        """The verdict in one line."""
        if self.mismatches:
            return f"{self.verdict.value}: {_headline(self.mismatches[0])}"
        if self.verdict is Verdict.VACUOUS:
            return f"{self.verdict.value}: no invariant had anything to say of {self.steps:,} records"
        return f"{self.verdict.value}: {self.steps:,} records fit the specification, and every invariant holds"


def _headline(mismatch: Mismatch) -> str:
    name = f"{mismatch.invariant}: " if mismatch.invariant else ""
    return f"{mismatch.path}:{mismatch.line}: server {mismatch.sid}: {name}{mismatch.clause}"


def lines(found: Validation) -> list[str]:
    """The report as lines of text."""
    report = [found.sentence]
    for mismatch in found.mismatches:
        if mismatch is not found.mismatches[0]:
            report.append(f"also: {_headline(mismatch)}")
        report += [f"  at     {_time(mismatch.time)}", f"  event  {mismatch.event or 'none'}"]
        report += [f"  {name}: {show(value)}" for name, value in mismatch.values]
    report += ["", *(f"  {name:<18} {value}" for name, value in _figures(found))]
    if found.counts:
        width = max(len(name) for name in found.counts)
        report += ["", "invariants: evaluated, and put to the test"]
        for name, count in found.counts.items():
            report.append(f"  {name:<{width}}  {count.evaluated:>12,}  {count.premise:>12,}")
    if found.notes or found.without_journal:
        report += ["", "taken as given, or tolerated"]
        report += [f"  server {sid} has no journal: what it sent is taken as given" for sid in found.without_journal]
        report += [f"  {note}" for note in found.notes]
    return report


def _figures(found: Validation) -> list[tuple[str, str]]:
    rate = f", {found.steps / found.seconds:,.0f} records/s" if found.seconds > 0 else ""
    return [
        ("journals", f"{len(found.paths)} (servers {', '.join(map(str, found.sids))}; {found.lives} lives)"),
        ("records", f"{found.steps:,}, each replayed by itself"),
        ("in one order", f"{found.merged:,} of them"),
        ("facts", f"{found.facts:,}"),
        ("committed", f"{found.transactions:,} transactions"),
        ("time", f"{found.seconds:.1f} s{rate}"),
    ]


def _time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="microseconds")
    except (OverflowError, OSError, ValueError):
        return f"{seconds} s"


def data(found: Validation) -> dict[str, Any]:
    """The report as data for a program."""
    return {
        "schema": "quorate-validation/1",
        "verdict": found.verdict.value,
        "exit_code": int(found.exit_code),
        "sentence": found.sentence,
        "misfits": [
            {
                "file": str(each.path),
                "line": each.line,
                "time": each.time,
                "server": each.sid,
                "event": each.event,
                "invariant": each.invariant or None,
                "clause": each.clause,
                "values": {name: show(value) for name, value in each.values},
            }
            for each in found.mismatches
        ],
        "files": [str(path) for path in found.paths],
        "servers": list(found.sids),
        "without_journal": list(found.without_journal),
        "lives": found.lives,
        "records": found.steps,
        "merged": found.merged,
        "facts": found.facts,
        "transactions": found.transactions,
        "invariants": {
            name: {"evaluated": count.evaluated, "premise": count.premise} for name, count in found.counts.items()
        },
        "notes": found.notes,
        "seconds": round(found.seconds, 3),
    }
