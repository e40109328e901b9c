"""The driver that runs a recipe's step function over a kazoo client: callbacks become events, effects become calls.

It makes no decisions. Rules of this module:

- Each recipe object has one queue of events and one thread that processes it. Kazoo's threads only append to the
  queue. The driver's thread never calls application code, so it always notices a lost connection immediately.
- Each `Ask` is settled exactly once: by its answer or by the loss of the connection, whichever leaves the queue first.
  A later result carries an old number and is dropped.
- A lost connection is reported as `Suspended`, followed by `Unanswered` if a request was outstanding; a lost session
  as the same and then `Expired`. Kazoo may report a result of the old connection after the new one; it is then late.
- No request of an old session is sent in a new one. Nothing is sent while a connection change waits in the queue.
  Kazoo's thread, which delivers such changes, waits until a call in progress is in kazoo's queue; that involves no
  I/O. Requests that remain in kazoo's queue during a suspension are sent before any later request.
- A missing parent of a queue is created, and the request repeated (Curator: `creatingParentContainersIfNeeded`,
  CURATOR-724). A container that Curator created is deleted when it is empty.

The recipe objects share a way to wait: one thread, the driver's, updates a belief and others wait for it.

- A waiting thread reads the belief under one condition, and each change of the belief wakes it.
- Time is monotonic. A wait without a timeout ends too when the client is closed, which kazoo need not report: its
  listeners receive LOST once, and a client that is stopped after that stays LOST.

The application's listeners are called one after the other, in a separate thread.

- A listener may block, raise, or call back into the object that it listens to. An exception that it raises is logged.
- Listeners are called in the order of the events. The thread exists only while calls are pending.

Source: `kazoo.client.KazooClient._session_callback` (lost connection: pending requests fail, then listeners receive
SUSPENDED; lost session: listeners receive LOST, then pending requests fail), `kazoo.handlers.threading` (results and
watches are delivered by one thread each; after the handler has stopped, the connection's thread delivers results).
"""

import logging
import queue
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from kazoo.protocol.states import KazooState, KeeperState

from refimpl.recipes import kazoo_adapter
from refimpl.recipes.errors import ClientClosed
from spec.effects import Fact
from spec.recipes.events import (
    Answered,
    Ask,
    Connected,
    Event,
    Expired,
    Notified,
    RecipeStep,
    Suspended,
    Unanswered,
    facts,
)
from spec.tree.data import Record
from spec.tree.replies import Code

PULSE = 1.0
"""Seconds between two checks for a closed client."""


class Deadline:
    """A moment `timeout` seconds from now, or never (None)."""

    def __init__(self, timeout: float | None) -> None:
        self._at = None if timeout is None else time.monotonic() + timeout

    def left(self) -> float | None:
        """Return the seconds left, at least 0; None for never."""
        return None if self._at is None else max(0.0, self._at - time.monotonic())


def closed(client: Any) -> bool:
    """Whether the application has stopped the client or not started it: only the application can end this state."""
    return client.client_state in (KeeperState.CLOSED, KeeperState.AUTH_FAILED)


def wait_for(
    condition: threading.Condition, holds: Callable[[], bool], deadline: Deadline, client: Any, path: str
) -> bool:
    """Wait, with the condition held, until `holds()`; return False at the deadline, raise ClientClosed if closed."""
    while not holds():
        if closed(client):
            raise ClientClosed(path)
        rest = deadline.left()
        if rest == 0.0:
            return False
        condition.wait(PULSE if rest is None else min(rest, PULSE))
    return True


S = TypeVar("S")

logger = logging.getLogger("quorate.recipes")

PATIENCE = 1.0
"""Maximum time, in seconds, that kazoo's thread waits for a call in progress."""


class _Told(NamedTuple):
    """An event from the application. `done` resolves to whether it was processed; `stands` decides that just before."""

    event: Event
    stands: Callable[[], bool]
    done: "Future[bool]"


class _Change(NamedTuple):
    """The connection's new state, with the session id if it is connected."""

    state: str
    session: int | None


class _Result(NamedTuple):
    """Kazoo's result for the request with this number."""

    number: int
    result: Any


class _Made(NamedTuple):
    """Kazoo's result for the creation of the parent that the request with this number needs."""

    number: int
    result: Any


class _Review(NamedTuple):
    """A request to check whether the recipe is over, without an event."""


_Item: TypeAlias = _Told | _Change | _Result | _Made | _Review | Notified


def protection() -> str:
    """Return an id that no other client has, in the format of Curator's (`ProtectedUtils`)."""
    return str(uuid.uuid4())


class Driver(Generic[S]):
    """The state, the thread and the connection of a recipe.

    The driver's thread calls `told(state, facts)` after each step, before it sends any request of that step. `told`
    must not block, and returns whether the recipe is over. `fresh` generates ids.
    """

    def __init__(
        self,
        client: Any,
        step: Callable[[S, Event], RecipeStep[S]],
        state: S,
        told: Callable[[S, tuple[Fact, ...]], bool],
        fresh: Callable[[], str] = protection,
        name: str = "recipe",
    ) -> None:
        self.fresh = fresh
        self._client = client
        self._step_function = step
        self._state = state
        self._report = told
        self._queue: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f"{name} driver", daemon=True)
        self._gate = threading.Lock()  # held while a request is passed to kazoo, and while a change is received
        self._heard = 0  # connection changes that kazoo has reported
        self._heeded = 0  # connection changes that were processed
        self._last: str | None = None  # the state reported last
        self._connected = True  # as the step function knows it
        self._session: int | None = None
        self._number = 0  # of the last request
        self._asked: Record | None = None  # the last request, until it is settled
        self._ending = threading.Lock()  # held while the driver decides to process nothing further
        self._over = False

    # -- called by the application's threads

    def open(self) -> None:
        """Start to listen. If there is no connection, the recipe's first event says so."""
        with self._gate:
            self._client.add_listener(self._hear)
            state, identity = self._client.state, self._client.client_id
            if state == KazooState.CONNECTED and identity is not None:
                self._last, self._session = state, identity[0]
            else:
                # Connected but not live: the notification is on its way, with the same content.
                self._news(KazooState.SUSPENDED if state == KazooState.CONNECTED else state, None)
        self._thread.start()

    def tell(self, event: Event, stands: Callable[[], bool] = lambda: True) -> bool:
        """Process an event and wait until that is done. Return False if the event was no longer valid.

        The driver's thread calls `stands` just before, to find out whether the event is valid.
        """
        message = _Told(event, stands, Future())
        with self._ending:
            if self._over:
                return False
            self._queue.put(message)
        return message.done.result()

    def review(self) -> None:
        """Check again whether the recipe is over."""
        self._queue.put(_Review())

    # -- called by kazoo's threads

    def _hear(self, state: str) -> None:
        locked = self._gate.acquire(timeout=PATIENCE)
        try:
            identity = self._client.client_id if state == KazooState.CONNECTED else None
            self._news(state, identity and identity[0])
        finally:
            if locked:
                self._gate.release()

    def _news(self, state: str, session: int | None) -> None:
        if state != self._last:
            self._last = state
            self._heard += 1
            self._queue.put(_Change(state, session))

    def _notice(self, event: Any) -> None:
        """Handle a watch that has fired. All watches share this method, so that kazoo stores it once per path."""
        if (notified := kazoo_adapter.notice(event)) is not None:
            self._queue.put(notified)

    # -- called by the driver's thread

    def _work(self) -> None:
        while not self._over:
            item = self._queue.get()
            try:
                self._handle(item)
            except Exception:
                logger.exception("%s: %r could not be worked off", self._thread.name, item)
                if isinstance(item, _Told) and not item.done.done():
                    item.done.set_result(False)

    def _handle(self, item: _Item) -> None:
        match item:
            case _Told(event, stands, done):
                standing = stands()
                if standing:
                    self._step(event)
                done.set_result(standing)
            case _Change(state, session):
                self._heeded += 1
                self._changed(state, session)
            case _Result(number, result) if number == self._number and self._asked is not None:
                self._answered(self._asked, kazoo_adapter.answer(self._asked, result))
            case _Made(number, result) if number == self._number and self._asked is not None:
                refusal = None if result.successful() else kazoo_adapter.refusal(result.exception)
                if result.successful():
                    self._send(self._asked)
                else:
                    self._settle(refusal)
            case Notified():
                self._step(item)
            case _Review():
                if self._report(self._state, ()):
                    self._end()
            case _:
                pass  # late

    def _changed(self, state: str, session: int | None) -> None:
        if state == KazooState.CONNECTED:
            resumed = session == self._session
            self._connected, self._session = True, session
            self._step(Connected(resumed, self.fresh()))
            return
        if self._connected:
            self._connected = False
            self._step(Suspended())
            if self._asked is not None:
                self._asked = None
                self._step(Unanswered())
        if state == KazooState.LOST:
            self._session = None
            self._step(Expired())

    def _answered(self, record: Record, answered: Answered | None) -> None:
        missing = kazoo_adapter.needs(record) if answered is not None and answered.code is Code.NO_NODE else None
        if missing is None:
            self._settle(answered)
        else:
            self._call(partial(self._client.ensure_path_async, missing), _Made)

    def _settle(self, answered: Answered | None) -> None:
        """Settle the outstanding request by its answer; a lost connection settles it later, by the pending change."""
        if answered is None and not self._client.connected:
            return
        self._asked = None
        self._step(answered or Unanswered())

    def _step(self, event: Event) -> None:
        """Process one event: first the new state, then the belief, then the request."""
        outcome = self._step_function(self._state, event)
        self._state = outcome.state
        over = self._report(outcome.state, facts(outcome.effects))
        for effect in outcome.effects:
            if isinstance(effect, Ask):
                self._asked = effect.record
                self._send(effect.record)
        if over:
            self._end()

    def _send(self, record: Record) -> None:
        self._call(partial(kazoo_adapter.send, self._client, record, self._notice), _Result)

    def _call(self, call: Callable[[], Any], outcome: Callable[[int, Any], _Item]) -> None:
        self._number += 1
        number = self._number
        with self._gate:
            if self._heard != self._heeded or not self._client.connected:
                return  # the connection for this call is gone; the pending change settles the request
            try:
                result = call()
            except (TypeError, ValueError) as error:
                logger.exception("%s: kazoo finds a request impossible", self._thread.name)
                result = self._client.handler.async_result()
                result.set_exception(error)
        result.rawlink(lambda finished: self._queue.put(outcome(number, finished)))

    def _end(self) -> None:
        self._client.remove_listener(self._hear)
        with self._ending:
            self._over = True
        while True:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return
            if isinstance(item, _Told):
                item.done.set_result(False)


class ListenerExecutor:
    """Calls functions in order; `name` is the name of its thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._calls: deque[Callable[[], object]] = deque()
        self._works = False

    def call(self, *calls: Callable[[], object]) -> None:
        """Schedule these calls, after all earlier ones; does not block."""
        with self._lock:
            self._calls.extend(calls)
            if self._works or not self._calls:
                return
            self._works = True
        threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._calls:
                    self._works = False
                    return
                call = self._calls.popleft()
            try:
                call()
            except Exception:
                logger.exception("%s: a listener has failed", self._name)
