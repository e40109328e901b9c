"""The report on a recorded history: text, plain data and an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from checker.histories.findings import check
from checker.histories.record import load
from checker.job import Verdict
from checker.report.verdict import ExitCode

EXIT_CODES = {
    Verdict.PASSED: ExitCode.PASSED,
    Verdict.VACUOUS: ExitCode.VACUOUS,
    Verdict.INCOMPLETE: ExitCode.INCOMPLETE,
    Verdict.VIOLATED: ExitCode.SAFETY,
}


class HistoryReport(msgspec.Struct, frozen=True):
    """The findings as text and as plain data, and the exit code of the process."""

    text: str
    data: object
    exit_code: ExitCode


def report_of(files: Sequence[Path]) -> HistoryReport:
    """Judge one history; several files are parts of one history. Raises HistoryError."""
    findings = check(load(*files))
    plain = msgspec.to_builtins(findings) | {"passed": findings.passed, "verdict": findings.verdict.value}
    return HistoryReport(str(findings), plain, EXIT_CODES[findings.verdict])
