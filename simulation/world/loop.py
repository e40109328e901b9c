"""An event loop on a simulated clock, shared by several simulated processes.

Rules this module keeps:

- The clock jumps to the next event when no process can run. Waiting costs nothing.
- Each process has a queue of callbacks, in the order in which they became ready, as asyncio guarantees. A turn runs the
  callbacks that are ready when it begins. The seed decides whose turn is next.
- A process that is busy (a system call in its event loop takes time) or paused has no turn until that time is over.
- A callback belongs to the process of its context. The callbacks of a dead process are dropped.
- An exception that leaves a callback or a task is recorded in `defects`: a server must handle its errors.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class PowerOff(BaseException):
    """The process is dead: none of its code may run any further."""


class DeadlockError(Exception):
    """No event can ever occur again, and the run is not over."""


class Connector(Protocol):
    """The network, as the event loop sees it."""

    async def connect(self, process: Process, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> Any:
        """Connects a process to an address. Raises OSError."""


class ProcessThread(Protocol):
    """A thread of a process, as the event loop and the machine see it."""

    @property
    def is_waiting(self) -> bool:
        """Whether it has begun some work and waits for a sync."""

    def wait(self, seconds: float) -> None:
        """Gives way for some seconds. Raises PowerOff."""

    def end(self) -> None:
        """The process has ended."""


class Process:
    """A simulated process: its queue of callbacks, and the time at which it can run again.

    `lag` is the time in seconds that its system calls have taken in the present turn. `threads` are its threads, and
    `thread` the one that runs now, in place of the event loop.
    """

    def __init__(self, loop: SimulatedLoop, name: str) -> None:
        self.loop, self.name = loop, name
        self.alive = True
        self.ready: deque[Handle] = deque()
        self.blocked_until = 0.0
        self.lag = 0.0
        self.queued = False
        self.dying: str | None = None
        self.threads: list[ProcessThread] = []
        self.thread: ProcessThread | None = None
        self.tasks: dict[asyncio.Task[Any], Context] = {}
        self.context = copy_context()
        self.context.run(OWNER.set, self)
        loop.processes.append(self)

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Runs a coroutine in this process."""
        return self.loop.create_task(coroutine, context=self.context.copy())

    def block(self, seconds: float) -> None:
        """Gives the process no turn for some time from now on."""
        self.blocked_until = max(self.blocked_until, self.loop.now + seconds)

    def end(self) -> None:
        """Ends the process. Its tasks are closed; the code in them that runs then finds a dead system."""
        self.alive = False
        self.ready.clear()
        for thread in self.threads:
            thread.end()
        for task, context in tuple(self.tasks.items()):
            _close(task, context)
        self.tasks.clear()
        self.ready.clear()


def _close(task: asyncio.Task[Any], context: Context) -> None:
    if task.done():
        if not task.cancelled():
            task.exception()  # otherwise asyncio reports it
        return
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    coroutine = task.get_coro()
    for _ in range(8):  # a `finally` that awaits something stops the closing once
        try:
            context.run(coroutine.close)
        except (RuntimeError, PowerOff, Exception):
            continue
        return


STALL = 0.05
"""Seconds after which the calls of a turn count as a pause of the process."""
OWNER: ContextVar[Process] = ContextVar("OWNER")


class Handle(asyncio.Handle):
    """A callback, and the process that it belongs to; None: the simulation itself."""

    __slots__ = ("process",)
    process: Process | None


class Timer(asyncio.TimerHandle):
    """A callback at a time, and the process that it belongs to."""

    __slots__ = ("process",)
    process: Process | None


class SimulatedLoop(asyncio.AbstractEventLoop):
    """The event loop of all simulated processes. `now` is the simulated time in seconds, from 0."""

    def __init__(self, seed: str) -> None:
        self.now = 0.0
        self.defects: list[str] = []
        self.processes: list[Process] = []
        self.network: Connector
        self.died: Callable[[Process, str], None] = lambda _process, _why: None
        self.stalled: Callable[[Process, float, float], None] = lambda _process, _since, _until: None
        self._random = random.Random(f"{seed}/schedule")
        self._timers: list[tuple[float, int, Handle | Timer]] = []
        self._count = 0
        self._runnable: list[Process] = []
        self._current: Process | None = None

    # Time and callbacks.

    def time(self) -> float:
        """The time in seconds, as the running process sees it."""
        return self.now if self._current is None else self.now + self._current.lag

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> Handle:  # type: ignore[override]
        """Runs a callback in the next turn of its process."""
        if context is None:
            context = copy_context()
        process = context.get(OWNER)
        handle = Handle(callback, args, self, context)
        handle.process = process
        self.push(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Timer:
        """Runs a callback after some seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Timer:
        """Runs a callback at a time."""
        if context is None:
            context = copy_context()
        process = context.get(OWNER)
        timer = Timer(when, callback, args, self, context)
        timer.process = process
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, timer))
        return timer

    def outside(self, delay: float, callback: Callable[..., Any], *args: Any) -> Timer:
        """Runs a callback of the simulation itself: a packet arrives, a disk is done, a fault begins."""
        timer = Timer(self.now + delay, callback, args, self, _OUTSIDE)
        timer.process = None
        self._count += 1
        heapq.heappush(self._timers, (timer.when(), self._count, timer))
        return timer

    def inside(self, process: Process, callback: Callable[..., Any], *args: Any) -> None:
        """Adds a callback to the queue of a process."""
        handle = Handle(callback, args, self, process.context.copy())
        handle.process = process
        self.push(handle)

    def push(self, handle: Handle | Timer) -> None:
        """Adds a callback to the queue of its process."""
        process = handle.process
        assert process is not None
        if process.alive:
            process.ready.append(handle)  # type: ignore[arg-type]
            if not process.queued:
                process.queued = True
                self._runnable.append(process)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled timer is dropped when its time comes."""

    # Running.

    def run(self, process: Process, main: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine to its end, with everything else that occurs meanwhile. Raises DeadlockError."""
        asyncio._set_running_loop(self)
        try:
            task = process.spawn(main)
            while not task.done():
                self._step()
        finally:
            for owner in self.processes:
                if owner.alive:
                    owner.end()
            asyncio._set_running_loop(None)
        return task.result()

    def _step(self) -> None:
        runnable = self._runnable
        if not runnable:
            self._jump()
            return
        place = int(self._random.random() * len(runnable)) if len(runnable) > 1 else 0
        process = runnable[place]
        runnable[place] = runnable[-1]
        runnable.pop()
        if not process.alive or not process.ready:
            process.queued = False
            return
        if process.blocked_until > self.now:
            self.outside(process.blocked_until - self.now, self._unblock, process)
            return
        self._turn(process)
        if process.alive and process.ready:
            runnable.append(process)
        else:
            process.queued = False

    def _unblock(self, process: Process) -> None:
        self._runnable.append(process)

    def _turn(self, process: Process) -> None:
        self._current = process
        process.lag = 0.0
        ready = process.ready
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            try:
                handle._context.run(handle._callback, *handle._args)  # type: ignore[attr-defined]
            except PowerOff as end:
                process.dying = process.dying or str(end)
            except Exception as error:
                self.defect(process, error)
            if process.dying is not None:
                self._current = None
                self.died(process, process.dying)
                return
        self._current = None
        if process.lag:
            process.block(process.lag)
            if process.lag > STALL:
                self.stalled(process, self.now, self.now + process.lag)
            process.lag = 0.0

    def _jump(self) -> None:
        """Moves the clock to the next event."""
        timers = self._timers
        while timers:
            when, _, timer = heapq.heappop(timers)
            if timer._cancelled:
                continue
            self.now = max(self.now, when)
            process = timer.process
            if process is None:
                timer._callback(*timer._args)  # type: ignore[union-attr]
            else:
                self.push(timer)
            if self._runnable:
                return
        raise DeadlockError(f"nothing can happen any more at {self.now:.6f} s")

    def defect(self, process: Process, error: BaseException) -> None:
        """Records an unhandled exception."""
        trace, last = error.__traceback__, ""
        while trace is not None:
            last = f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
            trace = trace.tb_next
        self.defects.append(f"{self.now:.6f} s, {process.name}: {type(error).__name__}: {error} ({last})")

    # The rest of asyncio that servers use.

    def get_debug(self) -> bool:
        """Never: debugging would slow every callback."""
        return False

    def is_running(self) -> bool:
        """Always, for the code that asks."""
        return True

    def is_closed(self) -> bool:
        """Never."""
        return False

    def create_future(self) -> asyncio.Future[Any]:
        """Makes a future."""
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> asyncio.Task[Any]:
        """Makes a task of the running process."""
        context = copy_context() if context is None else context
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name or "", context=context)
        process = context.get(OWNER)
        if process is not None:
            process.tasks[task] = context
            task.add_done_callback(self._task_done, context=process.context)
        return task

    def _task_done(self, task: asyncio.Task[Any]) -> None:
        process = OWNER.get()
        process.tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, PowerOff):
            self.defect(process, error)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Records what asyncio reports."""
        if "exception" in context and self._current is not None:
            self.defect(self._current, context["exception"])

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]  # noqa: ARG002
        """Runs a function in a simulated thread: at a later time, in one piece."""
        process, future = self._current, self.create_future()
        assert process is not None

        def work() -> None:
            if future.cancelled():
                return
            before, process.lag = process.lag, 0.0
            try:
                result = func(*args)
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(result)
            process.lag = before

        self.call_later(self._random.random() * 0.02, work)
        return future

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        """Connects to an address of the simulated network."""
        assert self._current is not None
        return await self.network.connect(self._current, protocol_factory, host, port)

    async def connect_accepted_socket(self, protocol_factory: Any, sock: Any, **_: Any) -> Any:
        """Makes a transport of an accepted simulated socket."""
        return await sock.attach(protocol_factory)

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        """Calls back while a listening simulated socket has connections."""
        fd.watch(callback, args)

    def remove_reader(self, fd: Any) -> bool:
        """Ends `add_reader`."""
        return bool(fd.unwatch())


_OUTSIDE = Context()
