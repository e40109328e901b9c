"""Runs a recipe's step function over a kazoo client: callbacks become events, effects become calls.

It decides nothing. Rules of this module:

- One queue of events for each recipe object, and one thread that works it off. Kazoo's threads only put something
  into it. Nothing of the application is called by that thread, so that it always hears of a lost connection at once.
- Each `Ask` is settled once: by its answer, or by the news that the connection is gone, whichever comes first out of
  the queue. A result that comes later carries an old number and is dropped.
- A lost connection is told as `Suspended`, `Unanswered` if something was asked; a lost session as the same and then
  `Expired`. Kazoo may report the result of the old connection after the new one: it is late then.
- No request of an old session is sent in a new one: while news of the connection waits in the queue nothing is sent,
  and Kazoo's thread, which brings such news, waits until a call that is being made is in Kazoo's own queue; that has
  no I/O in it. What stays in Kazoo's queue over a suspension is sent before anything that is asked afterwards.
- A queue's parent that is missing is made, and the request made again (Curator: `creatingParentContainersIfNeeded`,
  CURATOR-724). A container of Curator's goes when it is empty.

Source: `kazoo.client.KazooClient._session_callback` (a lost connection: pending requests fail, then listeners hear
SUSPENDED; a lost session: listeners hear LOST, then pending requests fail), `kazoo.handlers.threading` (results and
watches come by a thread each; once the handler has stopped, results come by the connection's thread).
"""

import logging
import queue
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from kazoo.protocol.states import KazooState

from refimpl.recipes import calls
from spec.effects import Fact
from spec.recipes.events import (
    Answered,
    Ask,
    Connected,
    Event,
    Expired,
    Notified,
    Step,
    Suspended,
    Unanswered,
    facts,
)
from spec.tree.fields import Record
from spec.tree.replies import Code

S = TypeVar("S")

logger = logging.getLogger("quorate.recipes")

PATIENCE = 1.0
"""Seconds that Kazoo's thread waits at most for a call that is being made."""


class _Told(NamedTuple):
    """The application's event; `done` becomes whether it was worked off, which `stands` decides just before."""

    event: Event
    stands: Callable[[], bool]
    done: "Future[bool]"


class _Change(NamedTuple):
    """The connection's new state, with the session's id if there is a connection."""

    state: str
    session: int | None


class _Result(NamedTuple):
    """Kazoo's result for the request of this number."""

    number: int
    result: Any


class _Made(NamedTuple):
    """Kazoo's result for the parent that the request of this number needs."""

    number: int
    result: Any


class _Review(NamedTuple):
    """Nothing has happened, but the recipe may be over."""


_Item: TypeAlias = _Told | _Change | _Result | _Made | _Review | Notified


def protection() -> str:
    """An id that no other client has; in the form that Curator's are (`ProtectedUtils`)."""
    return str(uuid.uuid4())


class Driver(Generic[S]):
    """A recipe's state, its thread, and its connection.

    `told(state, facts)` is called after each step, by the driver's thread, before any request of that step is sent;
    it must not block, and says whether the recipe is over. `fresh` makes ids.
    """

    def __init__(
        self,
        client: Any,
        step: Callable[[S, Event], Step[S]],
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
        self._gate = threading.Lock()  # held while a request is handed to kazoo, and while its news are heard
        self._heard = 0  # changes of the connection that kazoo has reported
        self._heeded = 0  # those that were worked off
        self._last: str | None = None  # the state reported last
        self._connected = True  # as the step function knows it
        self._session: int | None = None
        self._number = 0  # of the request that was asked for last
        self._asked: Record | None = None  # it, while it is not settled
        self._ending = threading.Lock()  # held while it is decided that nothing more is worked off
        self._over = False

    # -- called by the application's threads

    def open(self) -> None:
        """Begin to listen; the recipe knows by its first event whether there is a connection."""
        with self._gate:
            self._client.add_listener(self._hear)
            state, identity = self._client.state, self._client.client_id
            if state == KazooState.CONNECTED and identity is not None:
                self._last, self._session = state, identity[0]
            else:
                # Connected, and not live any more: the news is on its way, and is the same.
                self._news(KazooState.SUSPENDED if state == KazooState.CONNECTED else state, None)
        self._thread.start()

    def tell(self, event: Event, stands: Callable[[], bool] = lambda: True) -> bool:
        """Have an event worked off, and return when it was; whether it was: not if it did not stand any more.

        `stands` is called by the driver's thread just before.
        """
        told = _Told(event, stands, Future())
        with self._ending:
            if self._over:
                return False
            self._queue.put(told)
        return told.done.result()

    def review(self) -> None:
        """Have the recipe asked once more whether it is over."""
        self._queue.put(_Review())

    # -- called by kazoo's threads

    def _hear(self, state: str) -> None:
        """Kazoo's connection has changed."""
        held = self._gate.acquire(timeout=PATIENCE)
        try:
            identity = self._client.client_id if state == KazooState.CONNECTED else None
            self._news(state, identity and identity[0])
        finally:
            if held:
                self._gate.release()

    def _news(self, state: str, session: int | None) -> None:
        if state != self._last:
            self._last = state
            self._heard += 1
            self._queue.put(_Change(state, session))

    def _notice(self, event: Any) -> None:
        """A watch has fired. One method for all, so that kazoo keeps it once for a path."""
        if (notified := calls.notice(event)) is not None:
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
                self._answered(self._asked, calls.answer(self._asked, result))
            case _Made(number, result) if number == self._number and self._asked is not None:
                refusal = None if result.successful() else calls.refusal(result.exception)
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
        missing = calls.needs(record) if answered is not None and answered.code is Code.NO_NODE else None
        if missing is None:
            self._settle(answered)
        else:
            self._call(partial(self._client.ensure_path_async, missing), _Made)

    def _settle(self, answered: Answered | None) -> None:
        """The one answer to what was asked; if the connection is gone, the news of it, still to come, settles it."""
        if answered is None and not self._client.connected:
            return
        self._asked = None
        self._step(answered or Unanswered())

    def _step(self, event: Event) -> None:
        """One event: the new state, then the belief, then the request, in this order."""
        done = self._step_function(self._state, event)
        self._state = done.state
        over = self._report(done.state, facts(done.effects))
        for effect in done.effects:
            if isinstance(effect, Ask):
                self._asked = effect.record
                self._send(effect.record)
        if over:
            self._end()

    def _send(self, record: Record) -> None:
        self._call(partial(calls.send, self._client, record, self._notice), _Result)

    def _call(self, call: Callable[[], Any], outcome: Callable[[int, Any], _Item]) -> None:
        """Call kazoo for the request that is asked for, under a number of its own."""
        self._number += 1
        number = self._number
        with self._gate:
            if self._heard != self._heeded or not self._client.connected:
                return  # the connection that this was meant for is gone; the news of it settles the request
            try:
                result = call()
            except (TypeError, ValueError) as error:
                logger.exception("%s: kazoo finds a request impossible", self._thread.name)
                result = self._client.handler.async_result()
                result.set_exception(error)
        result.rawlink(lambda finished: self._queue.put(outcome(number, finished)))

    def _end(self) -> None:
        """Listen no more; what the application has told meanwhile was too late."""
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
