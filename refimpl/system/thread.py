"""One thread that does work in order: the executor of `concurrent.futures`, without what a single thread needs not.

Rules this module keeps:

- Work is handed over by a queue without a lock in Python. With one request outstanding, a `ThreadPoolExecutor` of one
  thread costs a third of the time that a write takes.
- Nothing is left behind: `shutdown` lets the thread finish the work it was given.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Thread(Executor):
    """A thread that does the work it is given, in order; it begins with the first one."""

    def __init__(self, name: str) -> None:
        self._asked: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._ended = False

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Do this after the work given before. Raises RuntimeError after `shutdown`."""
        if self._ended:
            raise RuntimeError("the thread has been shut down")
        future: Future[R] = Future()

        def work() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        if not self._thread.is_alive():
            self._thread.start()
        self._asked.put(work)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the thread after the work it was given; `cancel_futures` is not supported, and raises ValueError."""
        if cancel_futures:
            raise ValueError("the work of this thread cannot be cancelled: finish it")
        if self._ended:
            return
        self._ended = True
        self._asked.put(None)
        if wait and self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while (work := self._asked.get()) is not None:
            work()
