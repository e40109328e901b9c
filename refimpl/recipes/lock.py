"""A lock on a queue of znodes: exclusive, fair, re-entrant for the thread that holds it.

Rules of this module:

- Threads of one object take turns in order of arrival. Only the thread whose turn it is enters the queue of znodes,
  so each object has at most one znode.
- A hold belongs to a thread from `acquire` to `release`. If the lock is lost meanwhile, the object is immediately free
  for a hold of any thread; the `release` of the thread that lost it raises.
- An event for a hold is processed only while that hold is current, so a late release cannot free another thread's.

Source: Curator's `InterProcessMutex`, `LockInternals`; `threading.RLock` for the interface.
"""

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self

from refimpl.recipes.driver import Deadline, Driver, ListenerExecutor, protection, wait_for
from refimpl.recipes.errors import LockLost, Refused
from refimpl.recipes.kazoo_adapter import valid
from spec.effects import Fact
from spec.recipes import lock as spec_lock
from spec.recipes.events import Event, Failed, HoldsNoMore, Join, Leave, Withdrawn
from spec.recipes.member import MemberPhase
from spec.recipes.recipes import lock_rules
from spec.tree.replies import Code

logger = logging.getLogger("quorate.recipes")

Doubt = Literal["suspended", "lost"]
LostListener = Callable[[Doubt], object]


def end_of_block(path: str, release: Callable[[], None], error: BaseException | None) -> None:
    """Release at the end of a `with` block; if the block itself has raised, `LockLost` is only logged."""
    try:
        release()
    except LockLost:
        if error is None:
            raise
        logger.warning("%s: the lock was lost, and its holder has failed with %r", path, error)


class _Hold:
    """The hold of a thread, from its turn on. `token` is set once the thread has the lock; `owed` is the number of
    releases that are still due after a loss.
    """

    def __init__(self, owner: object) -> None:
        self.owner = owner
        self.token: int | None = None
        self.owed = 0


class Lock:
    """A lock at `path`, of a started `kazoo.client.KazooClient`; `id` is written into the znode, for people.

        lock = Lock(client, "/locks/printer")
        with lock:
            printer.write(document, lock.token)

    The path's znode is created if it is missing. Curator's `InterProcessMutex` at the same path queues with this one.
    Only a release may be called from kazoo's watch or completion callbacks.
    """

    def __init__(self, client: Any, path: str, id: str = "") -> None:
        self.path = valid(path)
        self.id = id
        self._client = client
        self._step = partial(spec_lock.step, lock_rules(path, data=id.encode()))
        self._condition = threading.Condition()
        self._turns: deque[object] = deque()  # the acquisitions that wait for their turn
        self._hold: _Hold | None = None
        self._lost: list[_Hold] = []  # lost holds with releases still due
        self._driver: Driver[spec_lock.Lock] | None = None
        self._state = spec_lock.Lock()
        self._failure: Code | None = None
        self._listeners: list[LostListener] = []
        self._executor = ListenerExecutor(f"{path} listeners")

    # -- the interface of the application

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock, as far as it knows.

        This is a belief: the session may have expired without the client's knowledge. False while suspended.
        """
        with self._condition:
            return self._hold is not None and self._hold.token is not None and self._state.place.holds

    @property
    def token(self) -> int | None:
        """The czxid of the znode with which the calling thread holds the lock, greater than that of earlier holders.

        Pass it to the resource that the lock guards, and let the resource refuse a token smaller than one it has seen:
        a holder that has lost the lock without knowing it then does no harm. The token stays until the thread's
        release, even if the lock is lost. None for a thread that has nothing to release.
        """
        return self.token_of(threading.get_ident())

    def add_lost_listener(self, listener: LostListener) -> None:
        """Call `listener("suspended")` when the holder must not rely on the lock, `listener("lost")` when it is lost
        for good. After the first the lock may be held again, see `is_held`. A release does not call the listener.
        """
        with self._condition:
            self._listeners.append(listener)

    def remove_lost_listener(self, listener: LostListener) -> None:
        """Remove a listener; ValueError if it was not added."""
        with self._condition:
            self._listeners.remove(listener)

    def acquire(self, timeout: float | None = None) -> bool:
        """Wait for the lock, at most `timeout` seconds (None: no limit); return whether this thread holds it.

        A thread that already holds the lock takes it again immediately, and owes one more release. Raises `Refused` if
        the servers refuse, `ClientClosed` if the client is stopped.
        """
        return self.acquire_as(threading.get_ident(), timeout)

    def release(self) -> None:
        """Release the lock once; it is free for others after as many releases as acquisitions.

        It does not wait for the servers: the znode is deleted as soon as there is a connection. Raises RuntimeError if
        this thread does not hold the lock, and `LockLost` if it was lost before, which counts as this release.
        """
        self.release_as(threading.get_ident())

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end_of_block(self.path, self.release, error)

    # -- for owners that are not threads

    def token_of(self, owner: object) -> int | None:
        """See `token`; for any owner."""
        with self._condition:
            hold = self._hold_of(owner) or self._lost_by(owner)
            return None if hold is None else hold.token

    def acquire_as(
        self, owner: object, timeout: float | None = None, given_up: Callable[[], bool] = lambda: False
    ) -> bool:
        """See `acquire`; for any owner. `given_up()` ends the wait as a timeout does, after a `wake`."""
        with self._condition:
            old_hold = self._hold_of(owner)
        if old_hold is not None and self._tell(Join(""), old_hold):
            return True
        deadline = Deadline(timeout)
        hold = self._turn(owner, deadline, given_up)
        if hold is None:
            self._review()
            return False
        try:
            return self._stand(hold, deadline, given_up)
        finally:
            if hold.token is None:
                self._tell(Leave(), hold)
                with self._condition:
                    if self._hold is hold:
                        self._hold = None
                        self._condition.notify_all()
                self._review()

    def release_as(self, owner: object) -> None:
        """See `release`; for any owner."""
        with self._condition:
            hold, lost = self._hold_of(owner), self._lost_by(owner)
        if hold is not None and self._tell(Leave(), hold):
            return
        lost = lost if hold is None else hold
        if lost is None:
            raise RuntimeError(f"{self.path}: cannot release a lock that is not held by {owner!r}")
        with self._condition:
            lost.owed -= 1
            if not lost.owed:
                self._lost.remove(lost)
        raise LockLost(f"{self.path}: the lock was lost before it was released")

    def wake(self) -> None:
        """Make the waiting acquisitions evaluate `given_up` again."""
        with self._condition:
            self._condition.notify_all()

    def _hold_of(self, owner: object) -> _Hold | None:
        hold = self._hold
        return hold if hold is not None and hold.owner == owner and hold.token is not None else None

    def _lost_by(self, owner: object) -> _Hold | None:
        """The owner's last lost hold, which is released first."""
        return next((hold for hold in reversed(self._lost) if hold.owner == owner), None)

    # -- turns, and the queue of znodes

    def _turn(self, owner: object, deadline: Deadline, given_up: Callable[[], bool]) -> _Hold | None:
        """Wait until the object is free and no earlier acquisition waits; None after a timeout or `given_up()`."""
        turn = object()
        with self._condition:
            self._turns.append(turn)
            try:

                def comes() -> bool:
                    return given_up() or (self._hold is None and self._turns[0] is turn)

                if not wait_for(self._condition, comes, deadline, self._client, self.path) or given_up():
                    return None
                self._hold = _Hold(owner)
                return self._hold
            finally:
                self._turns.remove(turn)
                self._condition.notify_all()

    def _review(self) -> None:
        """End the driver if this was the last acquisition that needed it."""
        with self._condition:
            driver = self._driver
        if driver is not None:
            driver.review()

    def _stand(self, hold: _Hold, deadline: Deadline, given_up: Callable[[], bool]) -> bool:
        """Wait in the queue of znodes until the hold has the lock; enter again if the lock was lost meanwhile."""
        while True:
            self._tell(Join(protection()), hold)
            with self._condition:

                def decided() -> bool:
                    return given_up() or self._state.place.holds or not self._state.taken

                decision = wait_for(self._condition, decided, deadline, self._client, self.path)
                if not decision or given_up():
                    return False
                if self._state.place.holds:
                    hold.token = self._state.place.token
                    return True
                if self._failure is not None:
                    raise Refused(self.path, self._failure)

    # -- the driver

    def _tell(self, event: Event, hold: _Hold) -> bool:
        """Process an event if its hold is still current by then."""
        with self._condition:
            if self._hold is not hold:
                return False
            if self._driver is None:
                self._state = spec_lock.Lock()
                self._driver = Driver(self._client, self._step, self._state, self._update, name=self.path)
                self._driver.open()
            driver = self._driver
        return driver.tell(event, lambda: self._stands(hold))

    def _stands(self, hold: _Hold) -> bool:
        with self._condition:
            if not self._state.taken:
                self._failure = None  # a failure of an earlier hold
            return self._hold is hold

    def _update(self, state: spec_lock.Lock, facts: tuple[Fact, ...]) -> bool:
        with self._condition:
            owed, self._state = self._state.taken, state
            hold = self._hold if self._hold is not None and self._hold.token is not None else None
            for fact in facts:
                match fact:
                    case Failed(code):
                        self._failure = code
                        logger.error("%s: the servers refuse the requests of the lock: %s", self.path, code.name)
                    case HoldsNoMore("suspended") if hold is not None:
                        self._doubt("suspended")
                    case Withdrawn() if hold is not None and owed:
                        hold.owed = owed
                        self._lost.append(hold)
                        self._doubt("lost")
                    case _:
                        pass
            if hold is not None and not state.taken:
                self._hold = None  # lost, or released
            self._condition.notify_all()
            over = self._hold is None and not self._turns and state.place.phase is MemberPhase.OUT
            if over:
                self._driver = None
            return over

    def _doubt(self, doubt: Doubt) -> None:
        self._executor.call(*(partial(listener, doubt) for listener in self._listeners))


class AsyncLock:
    """`Lock` for asyncio; the client is a started `kazoo.client.KazooClient`, with its own threads.

        async with AsyncLock(client, "/locks/printer") as lock:
            await printer.write(document, lock.token)

    Re-entrant for the task that holds it. Each `acquire` runs in a separate thread, so nothing blocks the event loop. A
    task that is cancelled while it waits gives up its place; if it has just acquired the lock, it releases it.
    """

    def __init__(self, client: Any, path: str, id: str = "") -> None:
        self.lock = Lock(client, path, id)

    @property
    def is_held(self) -> bool:
        """See `Lock.is_held`."""
        return self.lock.is_held

    @property
    def token(self) -> int | None:
        """See `Lock.token`; the owner is the current task."""
        return self.lock.token_of(asyncio.current_task())

    async def acquire(self, timeout: float | None = None) -> bool:
        """See `Lock.acquire`; the owner is the current task."""
        loop, owner = asyncio.get_running_loop(), asyncio.current_task()
        future: asyncio.Future[bool] = loop.create_future()
        given_up = threading.Event()

        def finish(taken: bool, error: BaseException | None) -> None:
            if future.cancelled():
                if taken:
                    self._give_back(owner)
            elif error is not None:
                future.set_exception(error)
            else:
                future.set_result(taken)

        def work() -> None:
            success, error = False, None
            try:
                success = self.lock.acquire_as(owner, timeout, given_up.is_set)
            except Exception as raised:
                error = raised
            try:
                loop.call_soon_threadsafe(finish, success, error)
            except RuntimeError:  # the loop is closed
                if success:
                    self._give_back(owner)

        threading.Thread(target=work, name=f"{self.lock.path} acquire", daemon=True).start()
        try:
            return await future
        except asyncio.CancelledError:
            given_up.set()
            self.lock.wake()
            if future.done() and not future.cancelled() and future.exception() is None and future.result():
                self._give_back(owner)
            raise

    def _give_back(self, owner: object) -> None:
        with contextlib.suppress(LockLost):
            self.lock.release_as(owner)

    def release(self) -> None:
        """See `Lock.release`; the owner is the current task."""
        self.lock.release_as(asyncio.current_task())

    async def __aenter__(self) -> Self:
        await self.acquire()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end_of_block(self.lock.path, self.release, error)
