"""Time that is given for several runs, and what is left of it; how it is shared is for whoever has the runs."""

from __future__ import annotations

import time
from collections.abc import Callable


class TimeLeft:
    """So many seconds from now on."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self.clock = seconds, clock
        self._end = clock() + seconds

    @property
    def left(self) -> float:
        """What is left, in seconds; never below zero."""
        return max(0.0, self._end - self.clock())

    @property
    def used(self) -> float:
        """What is used up, in seconds."""
        return self.seconds - (self._end - self.clock())
