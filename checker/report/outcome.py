"""What came of each run that was asked for: the one thing that every report of a command is a view of.

Rules of this module:

- Whatever was asked for has an outcome, also what could not be read and what was never begun; no report leaves one out.
- The exit code of several is the gravest of theirs: a violation is not hidden by what was merely incomplete before it.
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
class Outcome:
    """What came of one run. `path` is that of its scenario as the command line has it; None for a run without one.

    Without a `job` the scenario could not be read, and `line` is where (0: not known); without an `exploration` it was
    not explored. `traces` are those that are wanted of it, `began` is when it began, in seconds since 1970.
    `interrupted`: while it was under way; `dropped`: before it came to its turn.
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
        """The runs that end in a violation or a deadlock."""
        return [trace for trace in self.traces if trace.kind is not Kind.SOMETIMES]

    @property
    def witnesses(self) -> list[Trace]:
        """The runs that show that what was hoped for is possible."""
        return [trace for trace in self.traces if trace.kind is Kind.SOMETIMES]

    @property
    def is_good(self) -> bool:
        """Whether it came out as it should: neither unexpected, nor left open by a budget."""
        return self.judgement.exit_code == 0 and not self.judgement.undecided


def gravest(outcomes: Iterable[Outcome]) -> int:
    """The exit code of all of them; 0 if there are none."""
    return max((each.judgement.exit_code for each in outcomes), key=GRAVITY.index, default=0)
