"""The lines of the log: what a record becomes, and a limit on their rate.

Rules of this module:

- A record is one line of bounded length without control characters, whoever wrote the text in it. Its exception follows
  in indented lines, so that no text of others looks like a line of its own. `log_to` alone sets up the log.
- `Repeats` is for facts that stay as they are, such as a peer that is down: a fact is logged when it is new, and then
  once in five minutes.
- `RateLimit` is for the loggers of lines that a peer can cause as often as it likes. The filter drops what exceeds the
  limit, and counts it. The first line of the next period says how many were dropped.
"""

import logging
import os
import socket
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO, TypeAlias

from spec.text import excerpt

LONGEST_LINE = 1000
"""Characters of a message, and of a line of an exception."""
MOST_LINES = 100
"""Lines of an exception; the last ones say what happened."""

ExceptionInfo: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
REPEATED, MOST_SUBJECTS = 300.0, 1000
"""Seconds after which an old fact is logged again, and the number of subjects that are remembered."""
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
        seconds = self._clock()
        if seconds - self._began >= self._period:
            if self._dropped:
                record.msg = f"{record.getMessage()} ({self._dropped} lines before this one exceeded the rate limit)"
                record.args = ()
            self._began, self._passed, self._dropped = seconds, 0, 0
        if self._passed >= self._lines:
            self._dropped += 1
            return False
        self._passed += 1
        return True


class Repeats:
    """The facts that were logged last, by subject. The oldest of too many subjects is forgotten."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._logged: dict[object, tuple[str, float]] = {}

    def is_due(self, subject: object, fact: str) -> bool:
        """Whether to log a fact: it is another one than last time, or that was long ago."""
        seconds = self._clock()
        before, since = self._logged.get(subject, ("", seconds))
        if before == fact and seconds - since < REPEATED:
            return False
        self._logged.pop(subject, None)
        self._logged[subject] = fact, seconds
        if len(self._logged) > MOST_SUBJECTS:
            del self._logged[next(iter(self._logged))]
        return True

    def forget(self, subject: object) -> bool:
        """Forget a subject whose fact no longer holds; return whether there was one."""
        return self._logged.pop(subject, None) is not None


def reason_of(error: BaseException) -> str:
    """Say why a connection could not be made."""
    if isinstance(error, socket.gaierror):
        return f"the name cannot be resolved ({error.strerror})"
    if isinstance(error, TimeoutError) and not error.args:
        return "no answer in time"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)  # the text of asyncio repeats the address
    return str(error) or type(error).__name__


class LineFormatter(logging.Formatter):
    """The form of a record: time, level, logger and message, and then its exception."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name of the base class
        """Return the line of a record, whose message may have text of others."""
        record.message = excerpt(record.message, LONGEST_LINE)
        return super().formatMessage(record)

    def formatException(self, ei: ExceptionInfo) -> str:  # noqa: N802 - the name of the base class
        """Return the lines of an exception, whose texts may be those of others."""
        lines = super().formatException(ei).splitlines()
        return "\n".join(f"    {excerpt(line, LONGEST_LINE)}" for line in lines[-MOST_LINES:])


def log_to(stream: TextIO, level: int) -> None:
    """Write the records of all loggers from this level on to a stream."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=level, handlers=[handler])
