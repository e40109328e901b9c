"""A thread of a simulated process. While it waits for a sync of the disk, the event loop and other processes run.

Rules this module keeps:

- It is a real thread, and it runs only while the event loop waits for it: never both. So the seed decides the order.
- It gives way at a sync, for the time that the sync takes, and nowhere else.
- When the process ends, the thread gets `PowerOff` where it waits.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from simulation.world.loop import PowerOff, Process


class SimulatedThread(Executor):
    """A thread; `delay` draws the seconds until it begins with work."""

    def __init__(self, process: Process, delay: Callable[[], float]) -> None:
        self._process, self._delay = process, delay
        self._jobs: deque[SimulatedJob] = deque()
        self._job: SimulatedJob | None = None
        self._continues_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._power_off: PowerOff | None = None
        self._ended = False
        self._may_run, self._gives_way = threading.Lock(), threading.Lock()
        for lock in (self._may_run, self._gives_way):
            lock.acquire()
        self._thread: threading.Thread | None = None
        process.threads.append(self)

    # The side of the event loop.

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Accepts work."""
        job = SimulatedJob(self, lambda: fn(*args, **kwargs))
        self._jobs.append(job)
        if self._timer is None:
            self._continue_after(self._delay())
        return job

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002
        """Completes all work."""
        self.complete()

    def complete(self) -> None:
        """Does all work, while the event loop waits for it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        process = self._process
        while self._jobs or self._job is not None:
            process.lag = self._run(max(process.lag, self._continues_at - process.loop.now))

    @property
    def is_waiting(self) -> bool:
        """Whether it has begun some work and waits for a sync."""
        return self._job is not None

    def end(self) -> None:
        """The process has ended: the thread ends where it waits."""
        if self._thread is not None and self._process.thread is not self:
            self._ended = True
            self._may_run.release()
            self._thread.join()
            self._thread = None

    def _continue_after(self, seconds: float) -> None:
        self._continues_at = self._process.loop.time() + seconds
        self._timer = self._process.loop.call_later(seconds, self._continue)

    def _continue(self) -> None:
        self._timer = None
        process = self._process
        before = process.lag
        self._run(0.0)
        process.lag = before  # the thread was busy, not the event loop
        if self._job is not None:
            self._continue_after(self._continues_at - process.loop.time())
        elif self._jobs:
            self._continue_after(self._delay())

    def _run(self, lag: float) -> float:
        """Lets the thread run until it gives way, or its work is done; returns the lag of the process then.

        The thread begins `lag` seconds after the present turn of the process. Raises PowerOff.
        """
        process = self._process
        if not process.alive:
            raise PowerOff
        if self._thread is None:
            context = process.context.copy()
            self._thread = threading.Thread(target=context.run, args=(self._work,), daemon=True)
            self._thread.start()
        process.lag, process.thread = lag, self
        self._may_run.release()
        self._gives_way.acquire()
        process.thread = None
        if self._power_off is not None:
            raise self._power_off
        return process.lag

    # The side of the thread.

    def wait(self, seconds: float) -> None:
        """Waits until a sync ends: `seconds` after the present time of the thread, with its earlier calls."""
        process = self._process
        self._continues_at = process.loop.time() + seconds
        self._gives_way.release()
        self._may_run.acquire()
        if not process.alive:
            raise PowerOff

    def _work(self) -> None:
        self._may_run.acquire()
        while not self._ended:
            self._job = self._jobs.popleft()
            try:
                self._job.run()
            except PowerOff as end:
                self._power_off = end
            self._job = None
            if not self._ended:
                self._gives_way.release()
                self._may_run.acquire()


class SimulatedJob(Future[Any]):
    """Work of a simulated thread. A request for its result lets the thread do all of its work first."""

    def __init__(self, thread: SimulatedThread, work: Callable[[], Any]) -> None:
        super().__init__()
        self._thread, self._work = thread, work

    def run(self) -> None:
        """Does the work."""
        try:
            self.set_result(self._work())
        except Exception as error:
            self.set_exception(error)

    def result(self, timeout: float | None = None) -> Any:
        """The result."""
        if not self.done():
            self._thread.complete()
        return super().result(timeout)
