"""The input of the runner: jobs, and scenarios with errors. The module imports nothing of the runner, so it is fast."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from checker.job import Job
    from checker.report.verdict import ExitCode


@dataclass(frozen=True)
class RunRequest:
    """A job to run, with the path of its scenario if it has one."""

    job: Job
    path: Path | None = None


@dataclass(frozen=True)
class InvalidScenario:
    """A scenario with an error: the message, the exit code, and the line (0: unknown)."""

    path: Path
    why: str
    code: ExitCode
    line: int = 0
