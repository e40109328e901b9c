"""The operating system as one server sees it: the calls that it makes in addition to those of its event loop.

A server finds its system in the context of the code that runs (`contextvars`), as it finds its event loop. The default
is the real one. A simulation gives each server another, so that one process holds several servers with separate clocks,
disks and addresses (`simulation`).

`Thread` does work in order: the executor of `concurrent.futures`, without what a single thread needs not.

Rules this module keeps:

- A method is one call of Python's `os`, `time`, `socket` or `concurrent.futures`, with the same arguments and errors.
- Paths come from `path`, and file objects from the methods of a path; their descriptors work here.
- Work is handed over by a queue without a lock in Python. With one request outstanding, a `ThreadPoolExecutor` of one
  thread costs a third of the time that a write takes.
- Nothing is left behind: `shutdown` lets the thread finish the work it was given.
"""

import fcntl
import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextvars import ContextVar
from pathlib import Path
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

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


class System:
    """The real operating system."""

    # Clocks.

    def monotonic_ms(self) -> int:
        """A time in milliseconds that never goes back."""
        return time.monotonic_ns() // 1_000_000

    def monotonic(self) -> float:
        """Return a time in seconds that never goes back, for durations below a millisecond."""
        return time.perf_counter()

    def wall_ms(self) -> int:
        """The time since 1970 in milliseconds."""
        return time.time_ns() // 1_000_000

    # Files.

    def path(self, name: str) -> Path:
        """The path with this name."""
        return Path(name)

    def open(self, path: Path, flags: int, mode: int = 0o644) -> int:
        """Open a file or a directory, and return its descriptor. Raises OSError, as all methods below do."""
        return os.open(path, flags | os.O_CLOEXEC, mode)

    def close(self, descriptor: int) -> None:
        """Close a descriptor."""
        os.close(descriptor)

    def pwrite(self, descriptor: int, data: bytes | memoryview, offset: int) -> int:
        """Write at an offset; return the number of bytes written, which may be smaller than that of `data`."""
        return os.pwrite(descriptor, data, offset)

    def ftruncate(self, descriptor: int, size: int) -> None:
        """Change the size of a file."""
        os.ftruncate(descriptor, size)

    def fsync(self, descriptor: int) -> None:
        """Make a file durable, or the names in a directory."""
        os.fsync(descriptor)

    def fdatasync(self, descriptor: int) -> None:
        """Make the contents of a file durable."""
        os.fdatasync(descriptor)

    def size(self, descriptor: int) -> int:
        """The size of a file in bytes."""
        return os.fstat(descriptor).st_size

    def fchmod(self, descriptor: int, mode: int) -> None:
        """Change the permissions of a file."""
        os.fchmod(descriptor, mode)

    def is_writable(self, directory: Path) -> bool:
        """Whether files may be created in a directory."""
        return os.access(directory, os.W_OK | os.X_OK)

    def lock(self, descriptor: int) -> None:
        """Lock a directory for this process. Raises BlockingIOError if another one has locked it."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    # Sockets.

    def getaddrinfo(self, host: str | None, port: int, **more: int) -> list[Any]:
        """The addresses of a host, as `socket.getaddrinfo` returns them."""
        return socket.getaddrinfo(host, port, **more)

    def socket(self, family: int, kind: int, protocol: int) -> socket.socket:
        """Make a socket."""
        return socket.socket(family, kind, protocol)

    # Threads.

    def thread(self, name: str) -> Executor:
        """Make a thread that does the work it is given, in order."""
        return Thread(name)


SYSTEM: ContextVar[System] = ContextVar("SYSTEM", default=System())  # noqa: B039 - it has no state


def system() -> System:
    """The system of the server whose code runs."""
    return SYSTEM.get()
