"""LeaderSelector: a procedure of the application is called while the client leads, and leads as long as it runs.

Rules of this module:

- `take_leadership` has a thread of its own for each call, and is never called while an earlier call still runs.
- Python interrupts no threads: whatever ends leadership sets `leadership.interrupted`, and the procedure is to return
  soon. Until then it may do harm, which `leadership.token` prevents.
- What the procedure raises is logged; leadership ends as if it had returned. `LeadershipLost` is no error.

Source: Curator's `LeaderSelector`, `LeaderSelectorListenerAdapter`, `CancelLeadershipException`.
"""

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from refimpl.recipes import participants
from refimpl.recipes.errors import LeadershipLost
from refimpl.recipes.leadership import Leadership
from refimpl.recipes.participants import Participant
from refimpl.recipes.standing import Standing
from spec.effects import Fact
from spec.recipes.events import Interrupt, Interrupted, Returned, TakeLeadership
from spec.recipes.recipes import selector_rules
from spec.recipes.selector import Selector

logger = logging.getLogger("quorate.recipes")


class LeaderSelector:
    """A selector at `path`, of a `kazoo.client.KazooClient`; `id` is what others see of this participant.

        def lead(leadership):
            while not leadership.wait(seconds=1):
                write(leadership.token)

        with LeaderSelector(client, "/leaders/printer", lead, auto_requeue=True):
            ...

    With `auto_requeue` it stands again whenever leadership has ended. Curator's `LeaderSelector` at the same path
    queues with this one. No method may be called from kazoo's watch or completion callbacks.
    """

    def __init__(
        self,
        client: Any,
        path: str,
        take_leadership: Callable[[Leadership], object],
        *,
        id: str = "",
        auto_requeue: bool = False,
    ) -> None:
        self.path = path
        self.id = id
        self._client = client
        self._take_leadership = take_leadership
        self._started = self._closed = False
        self._leadership: Leadership | None = None
        self._thread: threading.Thread | None = None
        self._rules, state = selector_rules(path, data=id.encode()), Selector(requeues=auto_requeue)
        self._standing = Standing(client, path, "leader-selector", self._rules, self._heard, state=state)
        self._condition = self._standing.condition

    @property
    def has_leadership(self) -> bool:
        """Whether this client leads and may go on, as far as it knows: a belief, as `LeaderLatch.has_leadership` is."""
        leadership = self._leadership
        return self._standing.holds and leadership is not None and not leadership.interrupted.is_set()

    @property
    def token(self) -> int | None:
        """The czxid of the znode by which this client leads; None if it does not, as far as it knows."""
        return self._standing.token

    def start(self) -> None:
        """Stand for leadership; returns at once. RuntimeError if it was started before."""
        with self._condition:
            if self._started or self._closed:
                raise RuntimeError(f"{self.path}: a selector is started once")
            self._started = True
        self._standing.begin()

    def requeue(self) -> bool:
        """Stand once more, after leadership has ended. False if that is not so: it stands already, or leads.

        RuntimeError before `start` and after `close`.
        """
        with self._condition:
            if not self._started or self._closed:
                raise RuntimeError(f"{self.path}: the selector is {'closed' if self._closed else 'not started'}")
        return self._standing.want(lambda: not (self._standing.state.runs or self._standing.state.place.wanted))

    def interrupt_leadership(self) -> None:
        """Have the procedure that runs return: its `leadership.interrupted` is set. Without one nothing happens."""
        if self._started:
            self._standing.tell(Interrupted())

    def close(self, timeout: float | None = 10.0) -> bool:
        """Stand no more, interrupt the procedure, and wait for its end, at most `timeout` seconds (None: without end).

        Whether it has ended; a procedure that closes its own selector is not waited for. A second call only waits.
        """
        with self._condition:
            ends, self._closed = self._started and not self._closed, True
        if ends:
            self._standing.end()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return thread is None
        thread.join(timeout)
        return not thread.is_alive()

    def participants(self) -> list[Participant]:
        """Who stands, the leader first, as the client's server knows it; kazoo's exceptions."""
        return list(participants.of_queue(self._client, self._rules))

    def leader(self) -> Participant | None:
        """Who leads, as the client's server knows it; kazoo's exceptions."""
        return next(participants.of_queue(self._client, self._rules), None)

    def _heard(self, fact: Fact) -> None:
        match fact:
            case TakeLeadership(token):
                self._leadership = Leadership(self.path, token)
                name = f"{self.path} leadership"
                self._thread = threading.Thread(target=self._lead, args=(self._leadership,), name=name, daemon=True)
                self._thread.start()
            case Interrupt() if self._leadership is not None:
                self._leadership.interrupted.set()
            case _:
                pass

    def _lead(self, leadership: Leadership) -> None:
        try:
            self._take_leadership(leadership)
        except LeadershipLost as lost:
            logger.info("%s: take_leadership has ended: %s", self.path, lost)
        except Exception:
            logger.exception("%s: take_leadership has failed", self.path)
        finally:
            leadership.interrupted.set()
            self._standing.tell(Returned())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
