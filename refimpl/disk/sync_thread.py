"""The thread that makes transactions durable, many at a time.

Rules this module keeps:

- Work is done in the order in which it was asked for. What has gathered while the disk was busy is written with one
  write and one fsync (group commit), and then reported all at once.
- It reports on the event loop. A report of work that was asked for before a `flush` never comes: the flush was it.
- A disk that fails once is not trusted again: the failure is reported, and nothing is reported as done after it. What
  the log refuses, such as a zxid that does not rise, is a failure too.

Source: `SyncRequestProcessor`.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

Job = Callable[[], None]
"""Anything else that must be done in its place among the transactions, such as writing a snapshot."""


class Aside(NamedTuple):
    """A job that nobody waits for: it is done in its place, and is not among the work that is reported."""

    job: Job


Work: TypeAlias = tuple[int, bytes] | Job | Aside


class Log(Protocol):
    """What this thread needs of a transaction log (`refimpl.disk.txnlog.TxnLog`)."""

    def append(self, zxid: int, payload: bytes) -> None:
        """Adds a record to what the next commit writes. Raises ValueError if its zxid is not above the last one."""

    def commit(self) -> None:
        """Makes everything appended durable. Raises OSError."""


class SyncThread:
    """Owns the log from `start` to `stop`; `done(n)` and `failed(error)` are called on the event loop."""

    def __init__(
        self,
        log: Log,
        loop: asyncio.AbstractEventLoop,
        done: Callable[[int], None],
        failed: Callable[[OSError], None],
    ) -> None:
        self._log, self._loop, self._done, self._failed = log, loop, done, failed
        self._asked: deque[Work] = deque()
        self._changed = threading.Condition()
        self._busy = self._stopping = False
        self._error: OSError | None = None
        self._flushes = 0
        self._thread = threading.Thread(target=self._run, name="sync", daemon=True)

    def start(self) -> None:
        """Begins to work."""
        self._thread.start()

    def append(self, *records: tuple[int, bytes]) -> None:
        """Asks for transactions to be logged: their zxids and their bytes."""
        self._ask(*records)

    def call(self, job: Job) -> None:
        """Asks for something else to be done in its turn, with everything before it durable."""
        self._ask(job)

    def aside(self, job: Job) -> None:
        """Asks for something to be done in its turn that is no work of the server's own, and is not reported."""
        self._ask(Aside(job))

    def flush(self) -> None:
        """Waits until all that was asked for is done, and takes this for its report. Raises OSError if it failed."""
        with self._changed:
            self._changed.wait_for(lambda: self._error is not None or not (self._asked or self._busy))
            if self._error is not None:
                raise self._error
            # Not before: what was asked for and not begun when this was called bears the old number too.
            self._flushes += 1

    def stop(self) -> None:
        """Does what was asked for, then ends."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def _ask(self, *work: Work) -> None:
        with self._changed:
            self._asked.extend(work)
            if not self._busy:
                self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._asked or self._stopping)
                if not self._asked:
                    return
                self._busy = True
                batch, self._asked, flushes = self._asked, deque(), self._flushes
            try:
                count = self._carry_out(batch)
            except Exception as error:  # who waits for a thread that has ended waits for ever
                self._give_up(error if isinstance(error, OSError) else OSError(str(error)))
                return
            if count:
                self._loop.call_soon_threadsafe(self._report, count, flushes)

    def _carry_out(self, batch: deque[Work]) -> int:
        """Does what was asked for; how much of it is to be reported."""
        count = 0
        for work in batch:
            if isinstance(work, Aside):
                work.job()
                continue
            count += 1
            if isinstance(work, tuple):
                self._log.append(*work)
            else:
                self._log.commit()
                work()
        self._log.commit()
        return count

    def _report(self, count: int, flushes: int) -> None:
        if flushes == self._flushes and self._error is None:
            self._done(count)

    def _give_up(self, error: OSError) -> None:
        with self._changed:
            self._error, self._busy = error, False
            self._changed.notify_all()
        self._loop.call_soon_threadsafe(self._failed, error)
