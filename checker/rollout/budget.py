"""The budget of a roll-out: processor time that its runs share.

Processor time measures work. So a machine that is busy with other work does not change the verdict.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from checker.budget import TimeLeft


class Budget(TimeLeft):
    """The processor time for all runs of a roll-out, in seconds."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.process_time) -> None:
        super().__init__(seconds, clock)

    def share(self, runs: int) -> float:
        """The time of one of this number of runs: twice its part, since most runs need less than their part."""
        return min(self.left, 2 * self.left / max(runs, 1))
