"""A worker process: several clients, each a thread with a separate kazoo client, that repeatedly want to hold.

    python -m tests.node.recipes_chaos.worker NAME RECIPE PATH CLIENTS HOSTS HUB_PORT TIME_OUT SEED

Lines on standard input: `drop N now`, `drop N create`, `drop N delete` (client N loses its connection, immediately or
as soon as its next request of that kind is sent, so that the answer is lost), `last` (all clients have one more turn,
and rest), `quit`.

Rules of this module:

- The application here is naive: it sends its writes with its token, and never checks again whether it still holds. Only
  the fence prevents harm.
- An exception of a recipe that does not mean a loss is a failure, and is reported.
"""

import contextlib
import json
import logging
import random
import socket
import sys
import threading
import time
import traceback
from typing import Any

from kazoo.client import KazooClient
from kazoo.protocol.serialization import Create, Create2, Delete
from kazoo.protocol.states import KazooState, KeeperState

from refimpl.recipes import keep_counting
from tests.node.recipes_chaos.turns import RECIPES, Turns

LOOPBACK = "127.0.0.1"
GIVE_UP_SHARE = 0.1
GIVE_UP_AFTER = (0.05, 2.0)
WRITES = (1, 3)
PAUSE = (0.005, 0.08)
"""Seconds before each write."""
REST = (0.0, 0.1)
"""Seconds between two turns: in the unfair election the previous leader would otherwise always be the first to ask."""
KINDS = {"create": (Create, Create2), "delete": (Delete,)}


class Line:
    """The connection to the hub."""

    def __init__(self, port: int, client: str, resource: str) -> None:
        self._client, self._resource = client, resource
        self._socket = socket.create_connection((LOOPBACK, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = self._socket.makefile("rb")
        self._sending = threading.Lock()

    def say(self, what: str, **values: Any) -> None:
        """Send a line; returns when it is on its way."""
        line = json.dumps({"what": what, "client": self._client, "resource": self._resource, **values})
        with self._sending:
            self._socket.sendall(line.encode() + b"\n")

    def write(self, token: int) -> bool:
        """Send a write to the guarded resource; return whether it was accepted."""
        self.say("write", token=token)
        return self._answers.readline() == b"taken\n"


class Dropper:
    """Closes the socket of a kazoo client."""

    def __init__(self, client: Any) -> None:
        self._connection = client._connection
        self._armed: tuple[type, ...] = ()
        self._submit = self._connection._submit
        self._connection._submit = self._submitted

    def drop(self, when: str) -> None:
        """Immediately, or after the next request of a kind was sent."""
        if when == "now":
            self._cut()
        else:
            self._armed = KINDS[when]

    def _submitted(self, request: Any, timeout: Any, xid: Any = None) -> None:
        self._submit(request, timeout, xid)
        if self._armed and isinstance(request, self._armed):
            self._armed = ()
            self._cut()

    def _cut(self) -> None:
        held = self._connection._socket
        if held is not None:
            # Sent bytes still arrive; no answer comes back.
            with contextlib.suppress(OSError):
                held.shutdown(socket.SHUT_RDWR)


class Client(threading.Thread):
    """One client, from the start to the end of its session."""

    def __init__(
        self, worker: str, number: int, recipe: str, path: str, hosts: str, port: int, time_out: float, seed: str
    ) -> None:
        super().__init__(name=f"{worker}/{number}", daemon=True)
        self.last, self.quit = threading.Event(), threading.Event()
        self._random = random.Random(f"{seed}/{number}")
        self._line = Line(port, self.name, path)
        self._kazoo = KazooClient(
            hosts, timeout=time_out, connection_retry={"max_tries": -1, "delay": 0.05, "backoff": 2, "max_delay": 0.5}
        )
        keep_counting(self._kazoo)
        self._dropper = Dropper(self._kazoo)
        self._session = 0
        self._recipe, self._path = recipe, path

    def drop(self, when: str) -> None:
        self._dropper.drop(when)

    def run(self) -> None:
        try:
            self._kazoo.add_listener(self._heard)
            self._kazoo.start(timeout=60)
            turns = RECIPES[self._recipe](self._kazoo, self._path, self.name, self._random)
            while not self.last.is_set():
                self._turn(turns)
                self.last.wait(self._random.uniform(*REST))
            self._turn(turns)
            self._line.say("rests")
            self.quit.wait()
            self._kazoo.stop()
        except Exception:
            self._line.say("failed", error=traceback.format_exc())

    def _turn(self, turns: Turns) -> None:
        last = self.last.is_set()
        gives_up = not last and self._random.random() < GIVE_UP_SHARE
        self._line.say("waits", last=last)
        if not turns.turn(self._random.uniform(*GIVE_UP_AFTER) if gives_up else None, self._work):
            self._line.say("gave up")

    def _work(self, token: int) -> None:
        self._line.say("holds", token=token)
        for _ in range(self._random.randint(*WRITES)):
            time.sleep(self._random.uniform(*PAUSE))
            self._line.write(token)
        self._line.say("released")

    def _heard(self, state: str) -> None:
        """Reports a state change of kazoo, before any other listener."""
        if state == KazooState.CONNECTED:
            self._session = self._kazoo.client_id[0]
            self._line.say("opened", session=self._session)
        elif state == KazooState.LOST and self._kazoo.client_state == KeeperState.EXPIRED_SESSION:
            self._line.say("ended", session=self._session)


def main() -> None:
    """Run until `quit`, or until standard input ends."""
    name, recipe, path, clients, hosts, port, time_out, seed = sys.argv[1:]
    logging.basicConfig(format="%(asctime)s %(threadName)s %(name)s %(levelname)s %(message)s", level=logging.WARNING)
    threads = [
        Client(name, number, recipe, path, hosts, int(port), float(time_out), seed) for number in range(int(clients))
    ]
    for thread in threads:
        thread.start()
    for line in sys.stdin:
        match line.split():
            case ["drop", number, when]:
                threads[int(number)].drop(when)
            case ["last"]:
                for thread in threads:
                    thread.last.set()
            case ["quit"]:
                break
    for thread in threads:
        thread.quit.set()
    for thread in threads:
        thread.join(5.0)


if __name__ == "__main__":
    main()
