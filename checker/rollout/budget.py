"""The budget of a roll-out: work that its runs share, in seconds of a reference machine.

Rules of this module: only the runs themselves are counted, by the transitions and calls that they made. So a busy or
slow machine comes to the same verdict, since elapsed time and processor time vary and the work does not. One limit
depends on the machine: a run that fills its share of the free memory ends, and says so.
"""

from __future__ import annotations

from checker.budget import TimeLeft
from checker.rollout.runs import Runner, RunResult
from checker.rollout.scenarios import RunSpec


class Meter:
    """A runner that adds up the work of its runs."""

    def __init__(self, run: Runner) -> None:
        self._run = run
        self._used = 0.0

    def clock(self) -> float:
        """The work of all runs so far, in seconds."""
        return self._used

    def run(self, spec: RunSpec, seconds: float) -> RunResult:
        """Explore a question with at most this work. Raises what the runner raises."""
        result = self._run(spec, seconds)
        self._used += result.seconds
        return result


class WorkBudget(TimeLeft):
    """The work for all runs of a roll-out, in seconds; its clock is `Meter.clock`."""

    def share(self, runs: int) -> float:
        """The work of one of this number of runs: twice its part, since most runs need less than their part."""
        return min(self.left, 2 * self.left / max(runs, 1))
