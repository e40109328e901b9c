"""Several clients of live servers in one loop, and the deaths of their leaders.

Rules of this module:

- A leader dies by the end of its session: servers end an expired session by the same transaction. The wait for the
  timeout, which is the same for every way to wait, is left out.
- A death is counted from the moment before the leader's last request until nothing changes: every client leads or
  waits, every server has applied the same transactions, and every client has received all messages of its server
  (`Candidate.barrier`) without a further request or notification.
- After a death a new client joins, so that the number of clients stays the same; the cost of joining is not counted.
- All clients are in this loop: if many are notified together, the last one handles its notification after the others.
"""

import selectors
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from types import TracebackType
from typing import Self

from harness.ensemble import Ensemble
from harness.processes import ServerError, srvr
from harness.session import Session
from research.herd.client import Candidate
from research.herd.model import Strategy
from spec.text import required_integer

SECONDS = 10.0
GOODBYE = 3.0
PAUSE = 0.01
STEADY = 3
"""The number of equal consecutive changes of the counters that show that only asking for them changes them."""
TIME_OUT = 40_000
"""Milliseconds; so long that no pings are due, since the servers would count them."""
OPEN = ((31, "world", "anyone"),)
CREATE, PERSISTENT = 1, 0


@dataclass(frozen=True)
class Death:
    """The cost of one death: at the clients; as packets that the servers count; seconds until a new leader knew."""

    notifications: int
    requests: int
    server_notifications: int
    server_requests: int
    seconds: float


class StalledError(ServerError):
    """A wait exceeded its limit: 3.8.0 may hold an answer until another request comes (ZOOKEEPER-4537)."""


@dataclass(frozen=True)
class Packets:
    """The packets that servers have counted: from clients, and to them."""

    received: int
    sent: int

    def __sub__(self, earlier: "Packets") -> "Packets":
        return Packets(self.received - earlier.received, self.sent - earlier.sent)


class ClientGroup:
    """A number of clients that wait in the same way, spread over the servers of an ensemble."""

    def __init__(self, ensemble: Ensemble, strategy: Strategy, clients: int, root: str) -> None:
        self._ensemble, self._strategy, self._root = ensemble, strategy, root
        self._numbers = count(1)
        self._selector = selectors.DefaultSelector()
        self._members: list[Candidate] = []
        self._asked = 0  # how often all servers were asked for their counters
        _make(ensemble.client_port(ensemble.sids[0]), root)
        try:
            for _ in range(clients):
                self._join()
            self._settle()
        except BaseException:
            self.close()
            raise

    def death(self) -> Death:
        """End the leader's session, and then add another client. Raises ServerError without exactly one new leader."""
        leader = self._leader()
        for member in self._members:
            member.forget()
        before, request = self._packets_at_rest()
        times_before = self._asked
        self._members.remove(leader)
        began = time.perf_counter()
        leader.close()
        self._settle()
        self._until(lambda: leader.ended, "the leader's connection has ended")
        new = self._leader()
        after, _ = self._packets_at_rest()
        times = self._asked - times_before
        if new.knew is None:
            raise ServerError(f"{new.name} leads, and did before the leader died")
        beside = sum(member.barriers for member in self._members) + 1  # plus one for the end of the session
        received = after.received - before.received - times * request.received - beside
        outgoing = after.sent - before.sent - times * request.sent - beside
        death = Death(
            notifications=sum(member.notifications for member in self._members),
            requests=sum(member.requests for member in self._members),
            server_notifications=outgoing - received,
            server_requests=received,
            seconds=new.knew - began,
        )
        self._join()
        self._settle()
        return death

    def close(self) -> None:
        """End all sessions; a session that its server does not answer is left to its timeout."""
        try:
            for member in self._members:
                if not member.ended:
                    member.close()
            ended = "all sessions have ended"
            self._until(lambda: all(member.ended for member in self._members), ended, GOODBYE)
        except StalledError:
            pass
        finally:
            for member in self._members:
                member.socket.close()
            self._members.clear()
            self._selector.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _join(self) -> None:
        number = next(self._numbers)
        sids = self._ensemble.sids
        port = self._ensemble.client_port(sids[number % len(sids)])
        member = Candidate(self._strategy, self._root, f"c{number}", port, TIME_OUT)
        self._members.append(member)
        self._selector.register(member.socket, selectors.EVENT_READ, member)
        member.want()
        # One after another, so that each joins a group at rest.
        self._until(lambda: member.rests, f"{member.name} leads or waits")

    def _leader(self) -> Candidate:
        leaders = [member for member in self._members if member.holds]
        if len(leaders) != 1:
            names = ", ".join(member.name for member in leaders) or "none"
            raise ServerError(
                f"{self._strategy.name}: exactly one leader was expected, and those that lead are: {names}"
            )
        return leaders[0]

    def _settle(self) -> None:
        self._until(lambda: any(member.holds for member in self._members), "a client leads")
        while True:
            self._until(lambda: all(member.rests for member in self._members), "every client rests")
            # Without requests in flight, and with the same zxid everywhere, no notification can follow.
            deadline = time.monotonic() + SECONDS
            while len(applied := {self._counters(sid)["Zxid"] for sid in self._ensemble.sids}) > 1:
                self._asked += 1
                if time.monotonic() > deadline:
                    raise ServerError(
                        f"the servers have applied {sorted(applied)}, and not the same within {SECONDS:g} s"
                    )
                time.sleep(PAUSE)
            self._asked += 1
            moved = self._moved()
            for member in self._members:
                member.barrier()
            self._until(lambda: all(member.rests for member in self._members), "every client rests after a barrier")
            if self._moved() == moved:
                return

    def _counters(self, sid: int) -> dict[str, str]:
        """The counters of a server, always by `srvr`, since some servers count the words and their replies."""
        counters = srvr(self._ensemble.client_port(sid))
        if not counters.keys() >= {"Received", "Sent", "Zxid"}:
            raise ServerError(f"server {sid} tells no counters in its answer to srvr")
        return counters

    def _moved(self) -> int:
        return sum(member.notifications + member.requests for member in self._members)

    def _until(self, holds: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
        """Read until a condition holds. Raises StalledError after `seconds`, ServerError for an unexpected close."""
        deadline = time.monotonic() + seconds
        while not holds():
            for key, _ in self._selector.select(timeout=0.5):
                self._read(key.data)
            if time.monotonic() > deadline:
                raise StalledError(
                    f"{self._strategy.name}, {len(self._members)} clients: {what}: not within {seconds:g} s"
                )

    def _read(self, member: Candidate) -> None:
        member.readable()
        if member.ended:
            self._selector.unregister(member.socket)
            member.socket.close()
            if not member.closing:
                raise ServerError(f"{member.name}: the server ended the connection")

    def _packets(self) -> Packets:
        self._asked += 1
        counters = [self._counters(sid) for sid in self._ensemble.sids]
        received, sent = (sum(required_integer(counter[name]) for counter in counters) for name in ("Received", "Sent"))
        return Packets(received, sent)

    def _packets_at_rest(self) -> tuple[Packets, Packets]:
        """The counters as soon as they are stable, and the packets that one request for them adds.

        The real server counts a packet a moment after it has sent it, and counts the words too.
        """
        deadline = time.monotonic() + SECONDS
        last, added = self._packets(), list[Packets]()
        while len(added) < STEADY or len(set(added[-STEADY:])) > 1:
            if time.monotonic() > deadline:
                raise StalledError(f"the servers' counters do not stand still within {SECONDS:g} s: {added[-STEADY:]}")
            time.sleep(PAUSE)
            present = self._packets()
            added.append(present - last)
            last = present
        return last, added[-1]


def _make(port: int, root: str) -> None:
    session = Session(TIME_OUT)
    session.connect(port)
    answer = session.ask(CREATE, root, b"", OPEN, PERSISTENT)
    if answer.err:
        raise ServerError(f"{root} could not be created: error {answer.err}")
    session.close()
