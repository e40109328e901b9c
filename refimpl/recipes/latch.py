"""LeaderLatch: a client competes for leadership from `start` to `close`, and leads whenever it is first in the queue.

Rules of this module:

- A lost connection (kazoo: SUSPENDED) ends leadership immediately. After the reconnect the latch queues anew, behind
  the clients that have waited.
- A separate thread calls the listeners, in order; `has_leadership` says whether the client leads now.

Source: Curator's `LeaderLatch`; `CloseMode` for `notify`.
"""

import enum
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple, Self

from refimpl.recipes.driver import Deadline, ListenerExecutor
from refimpl.recipes.errors import LatchClosed
from refimpl.recipes.participation import Participant, Participation, participants_of
from spec.effects import Fact
from spec.recipes.events import Holds, HoldsNoMore
from spec.recipes.recipes import latch_rules

Listener = Callable[[], object]


class LatchState(enum.Enum):
    """The lifecycle of a latch (`LeaderLatch.State`)."""

    LATENT = "latent"
    STARTED = "started"
    CLOSED = "closed"


class _Listeners(NamedTuple):
    is_leader: Listener | None
    not_leader: Listener | None


class LeaderLatch:
    """A latch at `path`, of a `kazoo.client.KazooClient`; other clients see this participant as `id`.

        with LeaderLatch(client, "/leaders/printer", "host-1") as latch:
            if latch.wait(timeout=60):
                work_while(latch.has_leadership, latch.token)

    Curator's `LeaderLatch` at the same path queues with this one. No method may be called from kazoo's watch or
    completion callbacks, except `close`.
    """

    def __init__(self, client: Any, path: str, id: str = "") -> None:
        self.path = path
        self.id = id
        self._client = client
        self._state = LatchState.LATENT
        self._listeners: list[_Listeners] = []
        self._executor = ListenerExecutor(f"{path} listeners")
        self._rules = latch_rules(path, data=id.encode())
        self._participation = Participation(client, path, "leader-latch", self._rules, self._heard)
        self._condition = self._participation.condition

    @property
    def state(self) -> LatchState:
        """LATENT before `start`, CLOSED after `close`."""
        return self._state

    @property
    def has_leadership(self) -> bool:
        """Whether this client leads, as far as it knows.

        This is a belief: the session may have expired without the client's knowledge, and another client may lead.
        Use `token` to guard actions that only one client may take.
        """
        return self._state is LatchState.STARTED and self._participation.holds

    @property
    def token(self) -> int | None:
        """The czxid of the znode with which this client leads, greater than that of every earlier leader; else None.

        Read it once when leadership begins, and pass it to each resource that the leader writes to. The resource must
        refuse smaller tokens.
        """
        return self._participation.token if self._state is LatchState.STARTED else None

    def start(self) -> None:
        """Compete for leadership, without waiting for it. RuntimeError if it was started before."""
        with self._condition:
            if self._state is not LatchState.LATENT:
                raise RuntimeError(f"{self.path}: a latch is started once, and this one is {self._state.value}")
            self._state = LatchState.STARTED
        self._participation.begin()

    def close(self, notify: bool = False) -> None:
        """Give up leadership, if this client has it, and the place in the queue; a second call does nothing.

        With `notify` a leader's `not_leader` listeners are called (Curator: `CloseMode.NOTIFY_LEADER`); otherwise none.
        It does not wait for the servers: the znode is deleted as soon as there is a connection.
        """
        with self._condition:
            before, self._state = self._state, LatchState.CLOSED
            if not notify:
                self._listeners.clear()
            self._condition.notify_all()
        if before is LatchState.STARTED:
            self._participation.end()
        with self._condition:
            self._listeners.clear()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until this client leads, at most `timeout` seconds (None: no limit); return whether it does.

        Raises `LatchClosed` if the latch is closed, `Refused` if the servers refuse, `ClientClosed` if the client is
        stopped, RuntimeError before `start`.
        """
        with self._condition:
            if self._state is LatchState.LATENT:
                raise RuntimeError(f"{self.path}: the latch is not started")
            in_time = self._participation.wait(lambda: self._state is LatchState.CLOSED, Deadline(timeout))
            if self._state is LatchState.CLOSED:
                raise LatchClosed(f"{self.path}: the latch is closed")
            return in_time

    def add_listener(self, is_leader: Listener | None = None, not_leader: Listener | None = None) -> None:
        """Call `is_leader()` each time leadership begins from now on, and `not_leader()` each time it ends."""
        with self._condition:
            self._listeners.append(_Listeners(is_leader, not_leader))

    def remove_listener(self, is_leader: Listener | None = None, not_leader: Listener | None = None) -> None:
        """Remove a pair of listeners; ValueError if they were not added together."""
        with self._condition:
            self._listeners.remove(_Listeners(is_leader, not_leader))

    def participants(self) -> list[Participant]:
        """Return the participants, the leader first, as the client's server knows them; raises kazoo's exceptions."""
        return list(participants_of(self._client, self._rules))

    def leader(self) -> Participant | None:
        """Return the leader, as the client's server knows it; raises kazoo's exceptions."""
        return next(participants_of(self._client, self._rules), None)

    def _heard(self, fact: Fact) -> None:
        match fact:
            case Holds():
                self._call(lambda added: added.is_leader)
            case HoldsNoMore():
                self._call(lambda added: added.not_leader)
            case _:
                pass

    def _call(self, which: Callable[[_Listeners], Listener | None]) -> None:
        self._executor.call(*(listener for added in self._listeners if (listener := which(added)) is not None))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
