"""A client's part in an election, shared by latch, selector and election: a driver, the belief, and one leadership.

Rules of this module:

- The driver's thread calls `heard(fact)` with the condition held; it must not block.
- The driver ends when the part was ended and, as far as is known, the servers hold nothing of it.
- A procedure that runs as the leader is asked to end, since Python cannot interrupt threads.
- A read of participants returns the state of the client's server, which may lag behind (`client.sync(path)` before it
  avoids that). Kazoo's exceptions propagate unchanged: the application asks for these reads.

Source: Curator's `LeaderSelectorListener.takeLeadership`, whose thread is interrupted;
`LockInternals.getParticipantNodes`, `LeaderSelector.getParticipants`, `Participant`.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec
from kazoo.exceptions import NoNodeError

from refimpl.recipes.driver import Deadline, Driver, protection, wait_for
from refimpl.recipes.errors import LeadershipLost, Refused
from refimpl.recipes.kazoo_adapter import valid
from spec.effects import Fact
from spec.recipes import names
from spec.recipes.events import Event, Failed, Join, Leave
from spec.recipes.member import QueueRules
from spec.recipes.recipes import RECIPES, ExclusiveRecipe
from spec.tree.paths import below, name_of
from spec.tree.replies import Code

logger = logging.getLogger("quorate.recipes")


class Participant(msgspec.Struct, frozen=True):
    """A member of a queue: its `id`, the path and czxid of its znode, and whether it leads."""

    id: str
    path: str
    token: int
    is_leader: bool


def participant(client: Any, path: str, *, leads: bool) -> Participant | None:
    """Return the owner of this znode; None if the znode does not exist."""
    try:
        data, stat = client.get(path)
    except NoNodeError:
        return None
    return Participant(data.decode(errors="replace"), path, stat.czxid, leads)


def participants_of(client: Any, rules: QueueRules) -> Iterator[Participant]:
    """Yield the members of the queue in order; the first of them leads."""
    try:
        children = client.get_children(rules.root)
    except NoNodeError:
        return
    leads = True
    for path in names.paths(rules.root, children, rules.word):
        member = participant(client, path, leads=leads)
        if member is not None:
            leads = False
            yield member


def announced_participant(client: Any, root: str, announcement: str) -> Participant | None:
    """Return the announced leader. The announcement is a path below its creator's chroot; only the last name counts."""
    try:
        data, _ = client.get(announcement)
    except NoNodeError:
        return None
    return participant(client, below(root, name_of(data.decode(errors="replace"))), leads=True)


class Leadership:
    """One period of leadership. `token` is the czxid of the leader's znode, greater than that of every earlier leader.

    `interrupted` is a `threading.Event`, set as soon as the client must no longer rely on its leadership. It is never
    cleared: if the client leads again, that is another `Leadership`.
    """

    def __init__(self, path: str, token: int) -> None:
        self.path = path
        self.token = token
        self.interrupted = threading.Event()

    def check(self) -> None:
        """Raise `LeadershipLost` if the leadership has ended."""
        if self.interrupted.is_set():
            raise LeadershipLost(f"{self.path}: the leadership of token {self.token:#x} has ended")

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the leadership has ended, at most `seconds` (None: no limit); return whether it has."""
        return self.interrupted.wait(seconds)


class Participation:
    """A part in the election `recipe` (a name in `spec.recipes.recipes.RECIPES`) by `rules`, starting in `state`."""

    def __init__(
        self,
        client: Any,
        path: str,
        recipe: str,
        rules: Any,
        heard: Callable[[Fact], None],
        *,
        state: Any = None,
        fresh: Callable[[], str] = protection,
    ) -> None:
        self.path = valid(path)
        self.condition = threading.Condition()
        self._client = client
        exclusive = RECIPES[recipe]
        assert isinstance(exclusive, ExclusiveRecipe), "an election has one leader"
        self._recipe = exclusive
        self._heard = heard
        self._state = self._recipe.initial if state is None else state
        self._ending = False
        self._failure: Code | None = None
        step = partial(self._recipe.step, rules)
        self._driver: Driver[Any] = Driver(client, step, self._state, self._update, fresh, f"{path} {recipe}")

    # -- belief

    @property
    def holds(self) -> bool:
        """Whether this client leads, as far as it knows."""
        return self._recipe.holds(self._state)

    @property
    def token(self) -> int | None:
        """The czxid of this client's znode while it leads."""
        with self.condition:
            return self._recipe.token(self._state) if self.holds else None

    @property
    def state(self) -> Any:
        """The recipe's state after the last event."""
        return self._state

    # -- actions

    def begin(self) -> None:
        """Listen to the connection, and take part."""
        self._driver.open()
        self.want()

    def want(self, stands: Callable[[], bool] = lambda: True) -> bool:
        """Take part if `stands()` still holds; return whether it did."""

        def wanted() -> bool:
            with self.condition:
                self._failure = None
            return stands()

        return self._driver.tell(Join(self._driver.fresh()), wanted)

    def tell(self, event: Event) -> bool:
        """Process an event; return False if it was too late."""
        return self._driver.tell(event)

    def end(self) -> None:
        """Withdraw. The belief ends immediately; the znode is deleted as soon as there is a connection."""
        with self.condition:
            self._ending = True
        self._driver.tell(Leave())

    def wait(self, decided: Callable[[], bool], deadline: Deadline) -> bool:
        """Wait, with the condition held, until this client leads or `decided()`; return False at the deadline.

        Raises Refused if the servers refuse, ClientClosed for a closed client.
        """

        def done() -> bool:
            return decided() or self.holds or self._failure is not None

        in_time = wait_for(self.condition, done, deadline, self._client, self.path)
        if in_time and not decided() and not self.holds and self._failure is not None:
            raise Refused(self.path, self._failure)
        return in_time

    def _update(self, state: Any, facts: tuple[Fact, ...]) -> bool:
        with self.condition:
            self._state = state
            for fact in facts:
                if isinstance(fact, Failed):
                    self._failure = fact.code
                    logger.error("%s: the servers refuse the requests of the recipe: %s", self.path, fact.code.name)
                self._heard(fact)
            self.condition.notify_all()
            return self._ending and self._recipe.out(state)
