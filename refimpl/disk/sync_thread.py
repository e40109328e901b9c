"""The thread that makes transactions durable, many at a time.

Rules this module keeps:

- Work is done in the order of the requests. Requests that collect while the disk is busy are written with one write and
  one fsync (group commit), and then reported together.
- Reports arrive on the event loop. Work that was requested before a `flush` is never reported: the flush reports it.
- After one failure the disk is not trusted again: the failure is reported, and nothing is reported as done after it. An
  error of the log, such as a zxid that does not rise, is a failure too.

Source: `SyncRequestProcessor`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import NamedTuple, Protocol, TypeAlias

Job = Callable[[], None]
"""Other work that must be done in order with the transactions, such as writing a snapshot."""


class UnreportedJob(NamedTuple):
    """A job whose completion is not reported; it is done in order with the other work."""

    job: Job


class Barrier(NamedTuple):
    """A point in the order of the work; `reached` is set when everything before it is durable, or has failed."""

    reached: threading.Event


class Stop(NamedTuple):
    """The end of the work."""


Work: TypeAlias = tuple[int, bytes] | Job | UnreportedJob | Barrier | Stop


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
        self._asked: SimpleQueue[tuple[Work, ...]] = SimpleQueue()
        self._error: OSError | None = None
        self._flushes = 0
        self._thread = threading.Thread(target=self._run, name="sync", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def append(self, *records: tuple[int, bytes]) -> None:
        """Log transactions, given as their zxids and their bytes."""
        self._asked.put(records)

    def call(self, job: Job) -> None:
        """Run a job in its turn, with everything before it durable."""
        self._asked.put((job,))

    def aside(self, job: Job) -> None:
        """Run a job in its turn that is not part of the server's own work, and is not reported."""
        self._asked.put((UnreportedJob(job),))

    def flush(self) -> None:
        """Wait until all requested work is done, which is then not reported. Raises OSError if it failed."""
        if self._thread.is_alive():
            barrier = Barrier(threading.Event())
            self._asked.put((barrier,))
            barrier.reached.wait()
        if self._error is not None:
            raise self._error
        # Not before: work that was requested but not started when this was called has the old number too.
        self._flushes += 1

    def stop(self) -> None:
        """Finish the requested work, then end the thread."""
        self._asked.put((Stop(),))
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        stops = False
        while not stops:
            batch = list(self._asked.get())
            while not self._asked.empty():  # this thread alone takes work
                batch += self._asked.get()
            flushes = self._flushes
            stops = any(type(work) is Stop for work in batch)
            try:
                count = self._carry_out(batch) if self._error is None else 0
            except Exception as error:  # a thread that ends silently would leave its callers waiting for ever
                self._error = error if isinstance(error, OSError) else OSError(str(error))
                count = 0
                self._loop.call_soon_threadsafe(self._failed, self._error)
            for work in batch:
                if type(work) is Barrier:
                    work.reached.set()
            if count:
                self._loop.call_soon_threadsafe(self._report, count, flushes)

    def _carry_out(self, batch: list[Work]) -> int:
        """Do the requested work; return the number of items to report."""
        count = 0
        for work in batch:
            if isinstance(work, UnreportedJob):
                work.job()
            elif isinstance(work, Barrier | Stop):
                continue
            elif isinstance(work, tuple):
                count += 1
                self._log.append(*work)
            else:
                count += 1
                self._log.commit()
                work()
        self._log.commit()
        return count

    def _report(self, count: int, flushes: int) -> None:
        if flushes == self._flushes and self._error is None:
            self._done(count)
