"""Helpers of the recipe tests: clients under a separate chroot for each test, and faults.

Each fault is a real one: another client with the session's id and password ends the session, a closed socket ends the
connection, and an answer is lost by dropping the connection when the answer arrives, so that the server has certainly
acted.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionDropped
from kazoo.protocol.states import KazooState

from harness.ensemble import Ensemble
from harness.session import DisconnectedError, Session
from tests.node.patience import SESSION

WAIT = 20.0
BRIEF = 0.3
"""Seconds for an event that must not happen."""


class World:
    """An ensemble, and the clients that a test starts."""

    def __init__(self, ensemble: Ensemble, root: str, ends: ExitStack) -> None:
        self.ensemble = ensemble
        self.root = root
        self._ends = ends

    def client(self, sid: int | None = None, below: str = "", **options: Any) -> KazooClient:
        """Return a started client, at one server or at all; `below` is a path that its chroot has in addition."""
        hosts = self.ensemble.connect_string if sid is None else self.ensemble.address(sid)
        started = KazooClient(hosts=hosts + self.root + below, **({"timeout": SESSION} | options))
        self._ends.callback(started.close)
        self._ends.callback(started.stop)
        started.start(timeout=WAIT)
        started.ensure_path("/")
        return started

    def expire(self, client: KazooClient) -> None:
        """End a client's session; return when the client has been notified.

        At its own server the client would lose its connection to the one that takes over the session, and might
        reconnect before the session ends. So the session is ended at another server, and again if that failed.
        """
        lost, (number, password) = becomes(client, KazooState.LOST), client.client_id
        own = self.server_of(client)
        port = self.ensemble.client_port(next((sid for sid in self.ensemble.sids if sid != own), own))

        def ended() -> bool:
            session = Session(int(SESSION * 1000))
            session.session_id, session.password = number, password
            try:
                if session.connect(port):
                    session.close()
            except DisconnectedError:
                return False
            return True

        eventually(ended)
        assert lost.wait(WAIT)

    def server_of(self, client: KazooClient) -> int:
        port = client._connection._socket.getpeername()[1]
        return next(sid for sid in self.ensemble.sids if self.ensemble.client_port(sid) == port)


@contextmanager
def world(ensemble: Ensemble, root: str) -> Iterator[World]:
    """A world whose clients are stopped at the end in every case."""
    with ExitStack() as ends:
        yield World(ensemble, root, ends)


def becomes(client: KazooClient, state: str) -> threading.Event:
    """Return an event that is set when the connection enters this state, and all listeners have been notified.

    Kazoo notifies its listeners in no fixed order: the recipes' listener may be the last one.
    """
    reached, tells = threading.Event(), client._make_state_change

    def telling(now: str) -> None:
        tells(now)
        if now == state:
            reached.set()

    client._make_state_change = telling
    return reached


def drop(client: KazooClient) -> None:
    """Close a client's connection, and wait until it has another one with the same session."""
    session, back = client.client_id[0], becomes(client, KazooState.CONNECTED)
    client._connection._socket.shutdown(2)
    assert back.wait(WAIT)
    assert client.client_id[0] == session


def lose_answer(client: KazooClient, request: type) -> threading.Event:
    """Drop the connection when the next answer to such a request arrives; the returned event is set then."""
    connection, lost = client._connection, threading.Event()
    reads = connection._read_response

    def losing(header: Any, buffer: Any, offset: int) -> Any:
        if not isinstance(client._pending[0][0], request):
            return reads(header, buffer, offset)
        connection._read_response = reads
        lost.set()
        raise ConnectionDropped("the test has lost the answer")

    connection._read_response = losing
    return lost


def remove_queue(client: KazooClient, path: str) -> None:
    """Delete a znode and its children in one transaction, so that no child is created before its parent is deleted."""

    def removed() -> bool:
        deletion = client.transaction()
        for child in client.get_children(path):
            deletion.delete(f"{path}/{child}")
        deletion.delete(path)
        return all(answer is True for answer in deletion.commit())

    eventually(removed)  # a child may have been created or deleted since the children were read


class Running:
    """A call in a separate thread; `result` waits for its return value or exception."""

    def __init__(self, call: Callable[..., Any], *arguments: Any) -> None:
        self._outcome: list[Any] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(call, arguments), daemon=True)
        self._thread.start()

    def _run(self, call: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        try:
            self._outcome.append(call(*arguments))
        except BaseException as error:
            self._error = error

    def runs(self, seconds: float = BRIEF) -> bool:
        """Whether it is still running after this time."""
        self._thread.join(seconds)
        return self._thread.is_alive()

    def result(self) -> Any:
        self._thread.join(WAIT)
        assert not self._thread.is_alive(), "the call has not returned"
        if self._error is not None:
            raise self._error
        return self._outcome[0]


def eventually(holds: Callable[[], bool], seconds: float = WAIT) -> None:
    """Wait until a condition that other threads fulfil holds."""
    pause = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if holds():
            return
        pause.wait(0.02)
    raise AssertionError(f"not within {seconds} s")


def places(client: KazooClient, number: int, path: str = "/lock") -> None:
    """Wait until this number of places are in the queue."""

    def there() -> bool:
        client.sync("/")
        return bool(client.exists(path)) and len(client.get_children(path)) == number

    eventually(there)
