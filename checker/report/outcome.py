"""The outcome of each requested run; every report of a command is a view of the outcomes.

Rules of this module:

- Every requested run has an outcome, including those that could not be read and those that never began. No report omits
  one.
- The exit code of several runs is the gravest one: an earlier incomplete run does not hide a violation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from checker.engine.model import Kind
from checker.engine.result import Exploration
from checker.job import Job
from checker.report.verdict import Judgement
from checker.traces.trace import Trace

GRAVITY = (0, 1, 2, 21, 20, 152, 151, 150, 11, 13, 12)  # exit codes, by the lattice of verdicts


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of one run. `path` is the path of its scenario as given on the command line; None without a scenario.

    Without a `job` the scenario could not be read, and `line` is the line of the error (0: unknown). Without an
    `exploration` it was not explored. `traces` are the requested traces, and `began` is the start time in seconds since
    1970. `interrupted`: an interrupt ended the run; `dropped`: it ended the command before the run began.
    """

    name: str
    judgement: Judgement
    job: Job | None = None
    exploration: Exploration | None = None
    traces: tuple[Trace, ...] = ()
    path: Path | None = None
    line: int = 0
    interrupted: bool = False
    dropped: bool = False
    began: float | None = None

    @property
    def findings(self) -> list[Trace]:
        """The traces that end in a violation or a deadlock."""
        return [trace for trace in self.traces if trace.kind is not Kind.SOMETIMES]

    @property
    def witnesses(self) -> list[Trace]:
        """The traces that show that a `sometimes` is possible."""
        return [trace for trace in self.traces if trace.kind is Kind.SOMETIMES]

    @property
    def is_good(self) -> bool:
        """Whether the result is neither unexpected nor left open by a budget."""
        return self.judgement.exit_code == 0 and not self.judgement.undecided


def gravest(outcomes: Iterable[RunOutcome]) -> int:
    """The gravest exit code of the outcomes; 0 if there are none."""
    return max((each.judgement.exit_code for each in outcomes), key=GRAVITY.index, default=0)
