"""A driver of the recipes between a scripted step function and a kazoo client without a network.

The test plays kazoo's threads. `tell` returns when its event, and everything queued before it, has been processed. So
`now` waits for all events that kazoo's threads have put into the queue.
"""

from collections.abc import Callable
from typing import Any

from kazoo.protocol.states import KazooState, KeeperState

from refimpl.recipes.driver import Driver
from spec.effects import Fact, Step
from spec.recipes.events import Ask, Event, Interrupted, Join, RecipeStep
from spec.tree.data import OPEN_ACL_UNSAFE
from spec.tree.requests import Create2, GetChildren, GetData

LOOK = GetChildren("/queue", False)
WATCH = GetData("/queue/first", True)
CREATE = Create2("/queue/n_", b"", OPEN_ACL_UNSAFE, 3)
FLUSH = Interrupted()
SESSION, NEXT_SESSION = 7, 8


class FakeResult:
    """The part of kazoo's `IAsyncResult` that a driver uses; the test completes it."""

    def __init__(self) -> None:
        self.value: Any = None
        self.exception: Exception | None = None
        self._ready = False
        self._callbacks: list[Callable[[Any], None]] = []

    def successful(self) -> bool:
        return self._ready and self.exception is None

    def rawlink(self, callback: Callable[[Any], None]) -> None:
        self._callbacks.append(callback)
        if self._ready:
            callback(self)

    def set(self, value: Any = None) -> None:
        self.value, self._ready = value, True
        for callback in self._callbacks:
            callback(self)

    def set_exception(self, exception: Exception) -> None:
        self.exception, self._ready = exception, True
        for callback in self._callbacks:
            callback(self)


class FakeClient:
    """A kazoo client whose connection the test opens and closes; `sent` holds each request with its result."""

    def __init__(self, state: str = KazooState.CONNECTED) -> None:
        self.state = state
        self.client_state = KeeperState.CONNECTED
        self.session = SESSION
        self.listeners: set[Callable[[str], object]] = set()
        self.sent: list[tuple[str, str, FakeResult]] = []
        self.watcher: Callable[[Any], None] | None = None
        self.refuses: Exception | None = None
        self.handler = self

    async_result = FakeResult

    @property
    def connected(self) -> bool:
        return self.state == KazooState.CONNECTED

    @property
    def client_id(self) -> tuple[int, bytes] | None:
        return (self.session, b"") if self.connected else None

    def add_listener(self, listener: Callable[[str], object]) -> None:
        self.listeners.add(listener)

    def remove_listener(self, listener: Callable[[str], object]) -> None:
        self.listeners.discard(listener)

    def becomes(self, state: str, session: int = SESSION) -> None:
        self.state, self.session = state, session
        for listener in list(self.listeners):
            listener(state)

    def _sends(self, what: str, path: str) -> FakeResult:
        if self.refuses is not None:
            raise self.refuses
        self.sent.append((what, path, FakeResult()))
        return self.sent[-1][2]

    def get_children_async(self, path: str, watch: Any) -> FakeResult:  # noqa: ARG002
        return self._sends("children", path)

    def get_async(self, path: str, watch: Any) -> FakeResult:
        self.watcher = watch
        return self._sends("data", path)

    def create_async(self, path: str, data: bytes, **options: Any) -> FakeResult:  # noqa: ARG002
        return self._sends("create", path)

    def sync_async(self, path: str) -> FakeResult:
        return self._sends("sync", path)

    def ensure_path_async(self, path: str) -> FakeResult:
        return self._sends("ensure", path)

    @property
    def last(self) -> FakeResult:
        return self.sent[-1][2]

    @property
    def asked(self) -> list[str]:
        return [what for what, _, _ in self.sent]


class Script:
    """A step function that records the events it receives, and returns the effects that the test sets for an event's
    type.
    """

    def __init__(self) -> None:
        self.heard: list[Event] = []
        self.does: dict[type, list[Any]] = {}
        self.told: Callable[[tuple[Fact, ...]], bool] = lambda facts: False

    def step(self, state: int, event: Event) -> RecipeStep[int]:
        if event != FLUSH:
            self.heard.append(event)
        waiting = self.does.get(type(event), [])
        effect = waiting.pop(0) if waiting else None
        if isinstance(effect, Exception):
            raise effect
        return Step(state + 1, () if effect is None else (effect,))


class Stage(Script):
    """A script, a client, and the driver between them. After `begin`, the driver has requested `LOOK`."""

    def __init__(self, state: str = KazooState.CONNECTED) -> None:
        super().__init__()
        self.client = FakeClient(state)
        ids = iter(f"id-{number}" for number in range(100))
        self.driver = Driver(self.client, self.step, 0, lambda _, facts: self.told(facts), lambda: next(ids))

    def begin(self, asks: Any = LOOK) -> "Stage":
        self.does[Join] = [Ask(asks)]
        self.driver.open()
        self.driver.tell(Join("first"))
        self.heard.clear()
        return self

    def now(self) -> list[Event]:
        """Return the events received, after everything in the queue is processed."""
        self.driver.tell(FLUSH)
        return self.heard
