"""Election: wait until this client is elected, do one thing as the leader, resign.

Rules of this module:

- The function runs in the thread that called `run`; kazoo's threads never wait for it.
- Fair: a queue. The death of a leader wakes one client, and the leader announces itself in a znode next to the queue.
  Unfair: a single znode. Its deletion wakes all clients, and the first to recreate it leads.

Source: ZooKeeper's recipes, "Leader Election"; kazoo's `Election` for the interface.
"""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from kazoo.exceptions import NoNodeError

from refimpl.recipes.driver import Deadline, protection
from refimpl.recipes.kazoo_adapter import valid
from refimpl.recipes.participation import Leadership, Participant, Participation, announced_participant
from spec.effects import Fact
from spec.recipes.events import HoldsNoMore
from spec.recipes.recipes import fair_rules, unfair_rules

T = TypeVar("T")


class Election:
    """An election at `path`, of a started `kazoo.client.KazooClient`; other clients see this candidate as `id`.

        Election(client, "/election", "host-1").run(lambda leadership: work(leadership.token))

    Either all candidates of a path are fair, or all are unfair.
    """

    def __init__(self, client: Any, path: str, id: str = "", fair: bool = True) -> None:
        self.path = valid(path)
        self.id = id
        self.fair = fair
        self._client = client
        self._fair, self._unfair = fair_rules(path, data=id.encode()), unfair_rules(path)
        self._participation: Participation | None = None
        self._leadership: Leadership | None = None
        self._cancelled = False
        self._beginning = threading.Lock()  # held while a run claims this object

    def run(self, function: Callable[[Leadership], T]) -> T | None:
        """Wait until this client is elected, call `function(leadership)`, resign; return or raise its outcome.

        Returns None, without a call, if the run is cancelled before. The loss of leadership sets
        `leadership.interrupted`. Raises `Refused` if the servers refuse, `ClientClosed` if the client is stopped
        before, RuntimeError for a second `run` while the first is in progress.
        """
        name, rules = ("fair-election", self._fair) if self.fair else ("unfair-election", self._unfair)
        with self._beginning:
            if self._participation is not None:
                raise RuntimeError(f"{self.path}: this candidate runs already; another one needs its own object")
            participation = Participation(self._client, self.path, name, rules, self._heard, fresh=self._fresh)
            self._cancelled, self._leadership, self._participation = False, None, participation
        try:
            participation.begin()
            with participation.condition:
                participation.wait(lambda: self._cancelled, Deadline(None))
                token = participation.token
                if self._cancelled or token is None:
                    return None
                self._leadership = leadership = Leadership(self.path, token)
            return function(leadership)
        finally:
            self._participation = None
            participation.end()

    def cancel(self) -> None:
        """Make `run` return: immediately if it waits, through `leadership.interrupted` if the function runs."""
        participation = self._participation
        if participation is not None:
            with participation.condition:
                self._cancelled = True
                if self._leadership is not None:
                    self._leadership.interrupted.set()
                participation.condition.notify_all()

    def leader(self) -> Participant | None:
        """Return the announced leader, as the client's server knows it; raises kazoo's exceptions."""
        if self._fair.announces is not None and self.fair:
            return announced_participant(self._client, self.path, self._fair.announces)
        try:
            data, stat = self._client.get(self._unfair.path)
        except NoNodeError:
            return None
        _, _, id = data.decode(errors="replace").partition(" ")
        return Participant(id, self._unfair.path, stat.czxid, is_leader=True)

    def _fresh(self) -> str:
        """Generate an id. In the unfair election it is the znode's data, which has the candidate's id for `leader`."""
        return protection() if self.fair else f"{protection()} {self.id}"

    def _heard(self, fact: Fact) -> None:
        if isinstance(fact, HoldsNoMore) and self._leadership is not None:
            self._leadership.interrupted.set()
