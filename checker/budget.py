"""A time budget for several runs, and the time that remains. The caller decides how the runs share it."""

from __future__ import annotations

import time
from collections.abc import Callable


class TimeLeft:
    """A budget of some seconds that starts now."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self.clock = seconds, clock
        self._end = clock() + seconds

    @property
    def left(self) -> float:
        """The remaining time in seconds; never below zero."""
        return max(0.0, self._end - self.clock())

    @property
    def used(self) -> float:
        """The time used so far, in seconds."""
        return self.seconds - (self._end - self.clock())
