"""A double barrier: clients start together when enough of them have registered, and all leave together.

    barrier = DoubleBarrier(client, "/computation", size=3)
    barrier.enter()
    compute()
    barrier.leave()

Rules of this module:

- A barrier is used once: each path serves one computation, and each object one participant.
- The death of a client inside does not stop the others: its znode goes with its session.
- If a client dies before enough have registered, the others wait until another one takes its place.

Source: ZooKeeper's recipes, "Double Barriers"; kazoo's `DoubleBarrier` and Curator's `DistributedDoubleBarrier` for the
interface. The decisions are in `spec.recipes.barrier`.
"""

import threading
from functools import partial
from typing import Any

from refimpl.recipes.driver import Deadline, Driver, wait_for
from refimpl.recipes.errors import Refused, SessionLost
from refimpl.recipes.kazoo_adapter import valid
from spec.effects import Fact
from spec.recipes import barrier
from spec.recipes.barrier import BarrierMember, BarrierPhase, BarrierRules
from spec.recipes.events import Failed, Join, Leave, Withdrawn
from spec.tree.replies import Code


class DoubleBarrier:
    """A participant of the barrier at `path` for `size` clients; `client` is a started `kazoo.client.KazooClient`.

    `enter` and `leave` raise `SessionLost` if the session expires, `Refused` if the servers refuse, and `ClientClosed`
    if the client is stopped.
    """

    def __init__(self, client: Any, path: str, size: int) -> None:
        self.path = valid(path)
        self._client = client
        self._condition = threading.Condition()
        self._state = BarrierMember()
        self._begun = self._over = False
        self._failure: Code | None = None
        step = partial(barrier.step, BarrierRules(path, size))
        self._driver: Driver[BarrierMember] = Driver(client, step, self._state, self._update, name=f"{path} barrier")

    @property
    def inside(self) -> bool:
        """Whether this client is inside, as far as it knows: False while it has no connection."""
        return self._state.inside

    def enter(self, timeout: float | None = None) -> bool:
        """Register, and wait until `size` clients have registered; return False after `timeout` seconds.

        After a timeout the client stays registered, and another call waits further. RuntimeError after `leave`.
        """
        with self._condition:
            begins, self._begun = not self._begun, True
        if begins:
            self._driver.open()
            self._driver.tell(Join(self._driver.fresh()))
        with self._condition:
            if self._state.leaves or self._state.phase is BarrierPhase.LEFT:
                raise RuntimeError(f"{self.path}: this participant leaves already; a barrier is used once")
            return self._wait(BarrierPhase.INSIDE, timeout)

    def leave(self, timeout: float | None = None) -> bool:
        """Leave, and wait until all have left; return False after `timeout` seconds.

        After a timeout another call waits further. RuntimeError if the client is not inside.
        """
        with self._condition:
            leaves = self._state.leaves or self._state.phase is BarrierPhase.LEFT
            if not (leaves or self._over or self._state.phase is BarrierPhase.INSIDE):
                raise RuntimeError(f"{self.path}: this participant is not inside")
        self._driver.tell(Leave())  # a second one has no effect
        with self._condition:
            return self._wait(BarrierPhase.LEFT, timeout)

    def _wait(self, phase: BarrierPhase, timeout: float | None) -> bool:
        in_time = wait_for(
            self._condition,
            lambda: self._over or self._state.phase is phase,
            Deadline(timeout),
            self._client,
            self.path,
        )
        if self._state.phase is phase or not in_time:
            return in_time
        if self._failure is not None:
            raise Refused(self.path, self._failure)
        raise SessionLost(f"{self.path}: the session has expired")

    def _update(self, state: BarrierMember, facts: tuple[Fact, ...]) -> bool:
        with self._condition:
            self._state = state
            for fact in facts:
                if isinstance(fact, Failed):
                    self._failure = fact.code
                self._over = self._over or isinstance(fact, Withdrawn)
            self._condition.notify_all()
            return self._over
