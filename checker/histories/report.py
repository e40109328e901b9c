"""What the command line says of recorded histories: text or data, and the exit code of the project's own runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from checker.histories.findings import Findings, check
from checker.histories.record import load
from checker.report.verdict import ExitCode


class Judged(msgspec.Struct, frozen=True):
    """The findings in words and as plain data, and what the process exits with."""

    text: str
    data: object
    exit_code: ExitCode


def judged(files: Sequence[Path]) -> Judged:
    """Judge one history, which may be spread over several files. Raises HistoryError."""
    findings = check(load(*files))
    plain = msgspec.to_builtins(findings) | {"passed": findings.passed}
    return Judged(str(findings), plain, _code(findings))


def _code(findings: Findings) -> ExitCode:
    if findings.violations:
        return ExitCode.SAFETY
    return ExitCode.INCOMPLETE if findings.undecided else ExitCode.PASSED
