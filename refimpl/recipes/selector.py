"""LeaderSelector: a procedure of the application is called when the client leads; leadership lasts until it returns.

Rules of this module:

- Each call of `take_leadership` has a separate thread, and never begins while an earlier call still runs.
- Python cannot interrupt threads: an event that ends leadership sets `leadership.interrupted`, and the procedure
  should return soon. Until then it may do harm, which `leadership.token` prevents.
- An exception of the procedure is logged; leadership ends as if it had returned. `LeadershipLost` is not an error.

Source: Curator's `LeaderSelector`, `LeaderSelectorListenerAdapter`, `CancelLeadershipException`.
"""

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from refimpl.recipes.errors import LeadershipLost
from refimpl.recipes.participation import Leadership, Participant, Participation, participants_of
from spec.effects import Fact
from spec.recipes.events import Interrupt, Interrupted, Returned, TakeLeadership
from spec.recipes.recipes import selector_rules
from spec.recipes.selector import Selector

logger = logging.getLogger("quorate.recipes")


class LeaderSelector:
    """A selector at `path`, of a `kazoo.client.KazooClient`; other clients see this participant as `id`.

        def lead(leadership):
            while not leadership.wait(seconds=1):
                write(leadership.token)

        with LeaderSelector(client, "/leaders/printer", lead, auto_requeue=True):
            ...

    With `auto_requeue` it enters the queue again each time leadership has ended. Curator's `LeaderSelector` at the same
    path queues with this one. No method may be called from kazoo's watch or completion callbacks.
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
        self._participation = Participation(client, path, "leader-selector", self._rules, self._heard, state=state)
        self._condition = self._participation.condition

    @property
    def has_leadership(self) -> bool:
        """Whether this client leads and is not interrupted, as far as it knows: a belief, see `LeaderLatch`."""
        leadership = self._leadership
        return self._participation.holds and leadership is not None and not leadership.interrupted.is_set()

    @property
    def token(self) -> int | None:
        """The czxid of the znode with which this client leads; None if it does not, as far as it knows."""
        return self._participation.token

    def start(self) -> None:
        """Compete for leadership, without waiting for it. RuntimeError if it was started before."""
        with self._condition:
            if self._started or self._closed:
                raise RuntimeError(f"{self.path}: a selector is started once")
            self._started = True
        self._participation.begin()

    def requeue(self) -> bool:
        """Enter the queue again after leadership has ended; return False if this client is in the queue, or leads.

        Raises RuntimeError before `start` and after `close`.
        """
        with self._condition:
            if not self._started or self._closed:
                raise RuntimeError(f"{self.path}: the selector is {'closed' if self._closed else 'not started'}")
        return self._participation.want(
            lambda: not (self._participation.state.runs or self._participation.state.place.wanted)
        )

    def interrupt_leadership(self) -> None:
        """Ask a running procedure to return, through `leadership.interrupted`. Does nothing if none runs."""
        if self._started:
            self._participation.tell(Interrupted())

    def close(self, timeout: float | None = 10.0) -> bool:
        """Leave the queue, interrupt the procedure, and wait for its end, at most `timeout` seconds (None: no limit).

        Returns whether it has ended. A procedure that closes its selector is not waited for. A second call only waits.
        """
        with self._condition:
            ends, self._closed = self._started and not self._closed, True
        if ends:
            self._participation.end()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return thread is None
        thread.join(timeout)
        return not thread.is_alive()

    def participants(self) -> list[Participant]:
        """Return the participants, the leader first, as the client's server knows them; raises kazoo's exceptions."""
        return list(participants_of(self._client, self._rules))

    def leader(self) -> Participant | None:
        """Return the leader, as the client's server knows it; raises kazoo's exceptions."""
        return next(participants_of(self._client, self._rules), None)

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
            self._participation.tell(Returned())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
