"""The thread that makes transactions durable, many at a time.

Rules this module keeps:

- Work is done in the order of the requests. Requests that collect while the disk is busy are written with one write and
  one fsync (group commit), and then reported together.
- Transactions are logged in the event loop, without the thread, as long as the disk is so fast that two thread switches
  take longer (`FAST`). The slowest of the recent commits decides, so one slow commit ends it. Either the thread writes
  or the event loop, never both at once (`_busy`).
- Reports arrive on the event loop. Work that was requested before a `flush` is never reported: the flush reports it.
- After one failure the disk is not trusted again: the failure is reported, and nothing is reported as done after it. An
  error of the log, such as a zxid that does not rise, is a failure too.

Source: `SyncRequestProcessor`.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import NamedTuple, Protocol, TypeAlias

from refimpl.system import system

FAST = 0.0001
"""Seconds of a commit up to which it is made in the event loop."""
FORGOTTEN = 0.02
"""Each commit lowers the remembered maximum by this fraction: after 10 ms, 230 fast ones are needed."""
FIRST = 0.01
"""The time of the slowest commit before the first one: a disk must prove that it is fast."""
Job = Callable[[], None]
"""Other work that must be done in order with the transactions, such as writing a snapshot."""


class UnreportedJob(NamedTuple):
    """A job whose completion is not reported; it is done in order with the other work."""

    job: Job


Work: TypeAlias = tuple[int, bytes] | Job | UnreportedJob


class Log(Protocol):
    """The interface that this thread needs of a transaction log (`refimpl.disk.txnlog.TxnLog`)."""

    def append(self, zxid: int, payload: bytes) -> None:
        """Add a record to the next commit. Raises ValueError if its zxid is not above the last one."""

    def commit(self) -> None:
        """Make all appended records durable. Raises OSError."""


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
        self._changing = threading.Lock()
        self._busy = False
        self._error: OSError | None = None
        self._flushes = 0
        self._clock = system().monotonic
        self._slowest = FIRST
        self._thread: Executor | None = None
        self._working: Future[None] | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = system().thread("sync")

    def append(self, *records: tuple[int, bytes]) -> None:
        """Log transactions, given as their zxids and their bytes."""
        self._ask(*records)

    def call(self, job: Job) -> None:
        """Run a job in its turn, with everything before it durable."""
        self._ask(job)

    def aside(self, job: Job) -> None:
        """Run a job in its turn that is not part of the server's own work, and is not reported."""
        self._ask(UnreportedJob(job))

    def expect_slow_commits(self) -> None:
        """Use the thread until the disk has proved to be fast again."""
        self._slowest = FIRST

    def flush(self) -> None:
        """Wait until all requested work is done, which is then not reported. Raises OSError if it failed."""
        if self._working is not None:
            self._working.result()
        if self._error is not None:
            raise self._error
        # Not before: work that was requested but not started when this was called has the old number too.
        self._flushes += 1

    def stop(self) -> None:
        """Finish the requested work, then end the thread."""
        if self._thread is not None:
            self._thread.shutdown(wait=True)

    def _ask(self, *work: Work) -> None:
        assert self._thread is not None  # started with the node
        with self._changing:
            self._asked.extend(work)
            if self._busy or self._error is not None:
                return
            self._busy = True
        if self._slowest <= FAST and all(type(item) is tuple for item in work):
            self._work(self._loop.call_soon)
        else:
            self._working = self._thread.submit(self._work, self._loop.call_soon_threadsafe)

    def _work(self, later: Callable[..., object]) -> None:
        """Do all requested work, and the work that is requested meanwhile; runs in the thread, or in the event loop.

        `later` calls a function in a later turn of the event loop. A report is the last thing before the thread waits
        or writes again: the event loop that it wakes would else wait for the interpreter.
        """
        count = reported = 0
        while True:
            with self._changing:
                batch, self._asked, flushes = self._asked, deque(), self._flushes
                self._busy = bool(batch)
            if count:
                later(self._report, count, reported)
            if not batch:
                return
            try:
                count, reported = self._carry_out(batch), flushes
            except Exception as error:  # a thread that ends silently would leave its callers waiting for ever
                self._error = error if isinstance(error, OSError) else OSError(str(error))
                later(self._failed, self._error)
                return

    def _carry_out(self, batch: deque[Work]) -> int:
        count = appended = 0
        for work in batch:
            if isinstance(work, UnreportedJob):
                work.job()
                continue
            count += 1
            if isinstance(work, tuple):
                self._log.append(*work)
                appended += 1
            else:
                self._commit(appended)
                appended = 0
                work()
        self._commit(appended)
        return count

    def _commit(self, appended: int) -> None:
        began = self._clock()
        self._log.commit()
        if appended:
            self._slowest = max(self._clock() - began, self._slowest * (1 - FORGOTTEN))

    def _report(self, count: int, flushes: int) -> None:
        if flushes == self._flushes and self._error is None:
            self._done(count)
