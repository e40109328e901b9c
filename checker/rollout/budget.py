"""The time that is left for a roll-out, shared out among the runs that are still to come."""

from __future__ import annotations

import time
from collections.abc import Callable


class Budget:
    """So many seconds from now on."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._clock, self._end = clock, clock() + seconds

    @property
    def left(self) -> float:
        """What is left, in seconds; never below zero."""
        return max(0.0, self._end - self._clock())

    @property
    def used(self) -> float:
        """What is used up, in seconds."""
        return self.seconds - (self._end - self._clock())

    def share(self, runs: int) -> float:
        """What one of so many runs may take: twice its part, since most runs take less than theirs."""
        return min(self.left, 2 * self.left / max(runs, 1))
