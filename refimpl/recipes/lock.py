"""A lock on a queue of znodes: exclusive, fair, re-entrant for the thread that holds it.

Rules of this module:

- Threads of one object take turns in the order in which they came, and only whose turn it is stands in the queue of
  znodes: one znode for each object at most.
- A hold belongs to a thread from `acquire` to `release`. If the lock is lost meanwhile, the object is free for the next
  hold at once, by any thread; the thread that has lost it learns it from `release`, which raises.
- An event that is about a hold is worked off only while that hold stands, so that a late release frees nobody else's.

Source: Curator's `InterProcessMutex`, `LockInternals`; `threading.RLock` for manners.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self

from refimpl.recipes.calls import valid
from refimpl.recipes.driver import Driver, protection
from refimpl.recipes.errors import LockLost, Refused
from refimpl.recipes.herald import Herald
from refimpl.recipes.waiting import Deadline, wait_for
from spec.effects import Fact
from spec.recipes import lock as spec_lock
from spec.recipes.events import Event, Failed, Gone, HoldsNoMore, Unwanted, Wanted
from spec.recipes.place import Phase
from spec.recipes.recipes import lock_rules
from spec.tree.replies import Code

logger = logging.getLogger("quorate.recipes")

Doubt = Literal["suspended", "lost"]
LostListener = Callable[[Doubt], object]


def end_of_block(path: str, release: Callable[[], None], error: BaseException | None) -> None:
    """Release at the end of a `with` block; `LockLost` is logged only where the block has failed by itself."""
    try:
        release()
    except LockLost:
        if error is None:
            raise
        logger.warning("%s: the lock was lost, and its holder has failed with %r", path, error)


class _Hold:
    """What a thread has from its turn on. `token` is there once it was told that it holds; `owed` are the releases
    that are still due after a loss.
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

    The path's znode is made if it is missing. Curator's `InterProcessMutex` at the same path queues with this one.
    No method may be called from kazoo's watch or completion callbacks, except that a release may.
    """

    def __init__(self, client: Any, path: str, id: str = "") -> None:
        self.path = valid(path)
        self.id = id
        self._client = client
        self._step = partial(spec_lock.step, lock_rules(path, data=id.encode()))
        self._condition = threading.Condition()
        self._turns: deque[object] = deque()  # of those who have none yet
        self._hold: _Hold | None = None
        self._lost: list[_Hold] = []  # those whose releases are still owed
        self._driver: Driver[spec_lock.Lock] | None = None
        self._state = spec_lock.Lock()
        self._failure: Code | None = None
        self._listeners: list[LostListener] = []
        self._herald = Herald(f"{path} listeners")

    # -- what applications ask

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock, as far as it knows.

        It is a belief: a session may have expired of which the client has not heard yet. False while suspended.
        """
        with self._condition:
            return self._hold is not None and self._hold.token is not None and self._state.place.holds

    @property
    def token(self) -> int | None:
        """The czxid of the znode by which the calling thread holds: greater than that of every earlier holder.

        Give it to whatever the lock guards, and have that refuse a smaller one than it has seen: then a holder that
        does not know yet that it has lost the lock does no harm. It stays until the thread's release, even if the lock
        is lost. None for a thread that has nothing to release.
        """
        return self.token_of(threading.get_ident())

    def add_lost_listener(self, listener: LostListener) -> None:
        """Have `listener("suspended")` called when the holder must not rely on the lock, `listener("lost")` when it
        is lost for good. After the first the lock may be held again: `is_held` says so. Not called for a release.
        """
        with self._condition:
            self._listeners.append(listener)

    def remove_lost_listener(self, listener: LostListener) -> None:
        """Have it called no more; ValueError if it is no listener."""
        with self._condition:
            self._listeners.remove(listener)

    def acquire(self, timeout: float | None = None) -> bool:
        """Wait for the lock, at most `timeout` seconds (None: without end); whether this thread has it now.

        A thread that has it takes it once more, at once, and owes one more release. Raises `Refused` if the servers
        refuse, `ClientClosed` if the client is stopped.
        """
        return self.acquire_as(threading.get_ident(), timeout)

    def release(self) -> None:
        """Give it back; the last of as many releases as acquisitions frees the lock for others.

        It does not wait for the servers: the znode is deleted as soon as there is a connection. Raises RuntimeError if
        this thread does not hold the lock, and `LockLost` if it was lost before (this release is done with, then).
        """
        self.release_as(threading.get_ident())

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end_of_block(self.path, self.release, error)

    # -- for owners that are no threads

    def token_of(self, owner: object) -> int | None:
        """As `token`, of any owner."""
        with self._condition:
            hold = self._held_by(owner) or self._lost_by(owner)
            return None if hold is None else hold.token

    def acquire_as(
        self, owner: object, timeout: float | None = None, given_up: Callable[[], bool] = lambda: False
    ) -> bool:
        """As `acquire`, for any owner; `given_up()` ends the wait as a timeout does, after a `wake`."""
        with self._condition:
            held = self._held_by(owner)
        if held is not None and self._tell(Wanted(""), held):
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
                self._give_up(hold)

    def release_as(self, owner: object) -> None:
        """As `release`, of any owner."""
        with self._condition:
            held, lost = self._held_by(owner), self._lost_by(owner)
        if held is not None and self._tell(Unwanted(), held):
            return
        lost = lost if held is None else held
        if lost is None:
            raise RuntimeError(f"{self.path}: cannot release a lock that is not held by {owner!r}")
        with self._condition:
            lost.owed -= 1
            if not lost.owed:
                self._lost.remove(lost)
        raise LockLost(f"{self.path}: the lock was lost before it was released")

    def wake(self) -> None:
        """Have those who wait look again whether they are given up."""
        with self._condition:
            self._condition.notify_all()

    def _held_by(self, owner: object) -> _Hold | None:
        hold = self._hold
        return hold if hold is not None and hold.owner == owner and hold.token is not None else None

    def _lost_by(self, owner: object) -> _Hold | None:
        """What was lost last is released first."""
        return next((hold for hold in reversed(self._lost) if hold.owner == owner), None)

    # -- turns, and the queue of znodes

    def _turn(self, owner: object, deadline: Deadline, given_up: Callable[[], bool]) -> _Hold | None:
        """Wait until no other owner of this object has it, or wants it since longer."""
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

    def _give_up(self, hold: _Hold) -> None:
        """End a hold that never was told that it holds."""
        self._tell(Unwanted(), hold)
        with self._condition:
            if self._hold is hold:
                self._hold = None
                self._condition.notify_all()
        self._review()

    def _review(self) -> None:
        """Nobody else may want it any more: then the driver ends."""
        with self._condition:
            driver = self._driver
        if driver is not None:
            driver.review()

    def _stand(self, hold: _Hold, deadline: Deadline, given_up: Callable[[], bool]) -> bool:
        """Stand in the queue of znodes until it holds; what was lost before its thread knew is wanted again."""
        while True:
            self._tell(Wanted(protection()), hold)
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
        """Have an event worked off if its hold still stands then."""
        with self._condition:
            if self._hold is not hold:
                return False
            if self._driver is None:
                self._state = spec_lock.Lock()
                self._driver = Driver(self._client, self._step, self._state, self._told, name=self.path)
                self._driver.open()
            driver = self._driver
        return driver.tell(event, lambda: self._stands(hold))

    def _stands(self, hold: _Hold) -> bool:
        with self._condition:
            if not self._state.taken:
                self._failure = None  # whatever was refused was an earlier one's
            return self._hold is hold

    def _told(self, state: spec_lock.Lock, told: tuple[Fact, ...]) -> bool:
        with self._condition:
            owed, self._state = self._state.taken, state
            hold = self._hold if self._hold is not None and self._hold.token is not None else None
            for fact in told:
                match fact:
                    case Failed(code):
                        self._failure = code
                        logger.error("%s: the servers refuse what the lock asks for: %s", self.path, code.name)
                    case HoldsNoMore("suspended") if hold is not None:
                        self._doubt("suspended")
                    case Gone() if hold is not None and owed:
                        hold.owed = owed
                        self._lost.append(hold)
                        self._doubt("lost")
                    case _:
                        pass
            if hold is not None and not state.taken:
                self._hold = None  # lost, or released
            self._condition.notify_all()
            over = self._hold is None and not self._turns and state.place.phase is Phase.OUT
            if over:
                self._driver = None
            return over

    def _doubt(self, doubt: Doubt) -> None:
        self._herald.call(*(partial(listener, doubt) for listener in self._listeners))
