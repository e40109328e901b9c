"""A limit on the rate of a logger, for lines that a peer can cause as often as it likes.

The filter drops what exceeds the limit, and counts it. The first line of the next period says how many were dropped.
"""

import logging
import time
from collections.abc import Callable

LINES, PERIOD = 100, 10.0
"""Lines that pass in one period, and its length in seconds."""


class RateLimit(logging.Filter):
    """A filter of one logger (`logging.Logger.addFilter`); `clock` returns seconds and never goes back."""

    def __init__(self, lines: int = LINES, period: float = PERIOD, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._lines, self._period, self._clock = lines, period, clock
        self._began, self._passed, self._dropped = clock(), 0, 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is logged; lines below WARNING always are."""
        if record.levelno < logging.WARNING:
            return True
        now = self._clock()
        if now - self._began >= self._period:
            if self._dropped:
                record.msg = f"{record.getMessage()} ({self._dropped} lines before this one exceeded the rate limit)"
                record.args = ()
            self._began, self._passed, self._dropped = now, 0, 0
        if self._passed >= self._lines:
            self._dropped += 1
            return False
        self._passed += 1
        return True
