"""Each recipe as a sequence of turns: wait to hold, work with the token, give it back.

Rules of this module:

- A recipe's exception for a loss ends the turn; the caller reports every other exception.
- The work gets a token, and no way to find out whether it still holds.
"""

import contextlib
import random
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from kazoo.client import KazooClient

from refimpl.recipes import Election, LeaderLatch, LeaderSelector, Lock, LockLost
from spec.recipes import lock as spec_lock
from spec.recipes.recipes import lock_rules
from spec.variants import Variant

TAKE_TWICE_SHARE = 0.2

Work = Callable[[int], None]


class Turns(Protocol):
    """A recipe as a sequence of turns."""

    def turn(self, timeout: float | None, work: Work) -> bool:
        """Wait until it holds, at most until the timeout, and then call `work(token)`; return whether it did."""


class LockTurns:
    """Turns with one `Lock`, sometimes taken twice."""

    def __init__(self, client: KazooClient, path: str, name: str, chance: random.Random) -> None:
        self._lock, self._random = Lock(client, path, name), chance

    def turn(self, timeout: float | None, work: Work) -> bool:
        """One acquisition."""
        if not self._lock.acquire(timeout):
            return False
        try:
            token = self._lock.token
            assert token is not None, "the lock is held by this thread"
            if self._random.random() < TAKE_TWICE_SHARE:
                self._taken_twice(token, work)
            else:
                work(token)
        finally:
            with contextlib.suppress(LockLost):
                self._lock.release()
        return True

    def _taken_twice(self, token: int, work: Work) -> None:
        """The second hold has the same token, unless the lock was lost; then it is a new hold, or fails in time."""
        again = self._lock.acquire(0.0)
        try:
            if again and self._lock.token == token:
                work(token)
        finally:
            if again:
                with contextlib.suppress(LockLost):
                    self._lock.release()


class LatchTurns:
    """Turns with a `LeaderLatch` for each turn."""

    def __init__(self, client: KazooClient, path: str, name: str, _: random.Random) -> None:
        self._client, self._path, self._name = client, path, name

    def turn(self, timeout: float | None, work: Work) -> bool:
        """From start to close."""
        with LeaderLatch(self._client, self._path, self._name) as latch:
            while latch.wait(timeout):
                token = latch.token
                if token is not None:  # it may have been lost since
                    work(token)
                    return True
        return False


class SelectorTurns:
    """Turns with one `LeaderSelector` that is queued again for each turn."""

    def __init__(self, client: KazooClient, path: str, name: str, _: random.Random) -> None:
        self._selector = LeaderSelector(client, path, self._lead, id=name)
        self._work: Work | None = None
        self._done = threading.Event()
        self._started = False

    def turn(self, _timeout: float | None, work: Work) -> bool:
        """One call of take_leadership; a selector can give up only by closing."""
        self._work = work
        self._done.clear()
        if not self._started:
            self._started = True
            self._selector.start()
        else:
            # Leadership ends a moment after take_leadership has returned.
            while not self._selector.requeue() and not self._done.is_set():
                time.sleep(0.005)
        self._done.wait()
        return True

    def _lead(self, leadership: Any) -> None:
        try:
            if self._work is not None:
                self._work(leadership.token)
        finally:
            self._done.set()


class ElectionTurns:
    """Turns with one `Election`."""

    def __init__(self, client: KazooClient, path: str, name: str, *, fair: bool) -> None:
        self._election = Election(client, path, name, fair)

    def turn(self, timeout: float | None, work: Work) -> bool:
        """One run, cancelled after the timeout."""
        timer = None if timeout is None else threading.Timer(timeout, self._election.cancel)
        if timer is not None:
            timer.daemon = True
            timer.start()
        called = threading.Event()

        def lead(leadership: Any) -> None:
            called.set()
            work(leadership.token)

        try:
            self._election.run(lead)
        finally:
            if timer is not None:
                timer.cancel()
        return called.is_set()


def unprotected(client: KazooClient, path: str, name: str, chance: random.Random) -> LockTurns:
    """A lock without a search for its znode after a lost answer (a variant of the specification): it leaves orphans."""
    turns = LockTurns(client, path, name, chance)
    rules = lock_rules(path, frozenset({Variant.NO_PROTECTION}))
    turns._lock._step = partial(spec_lock.step, rules)
    return turns


RECIPES: dict[str, Callable[[KazooClient, str, str, random.Random], Turns]] = {
    "lock": LockTurns,
    "latch": LatchTurns,
    "selector": SelectorTurns,
    "fair": lambda client, path, name, _: ElectionTurns(client, path, name, fair=True),
    "unfair": lambda client, path, name, _: ElectionTurns(client, path, name, fair=False),
    "unprotected": unprotected,
}
