"""A real client library (kazoo) against the client port, with an in-memory server behind it."""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from queue import Queue
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, BadVersionError, NoAuthError, NodeExistsError, NoNodeError, NotEmptyError
from kazoo.protocol.states import KazooState
from kazoo.security import make_digest_acl

from refimpl.clients import ClientPort, ClientSettings
from spec.config.server_line import Address
from tests.support.memory_server import MemoryServer


class Live:
    """A client port on loopback, with its event loop in a thread."""

    def __init__(self, **limits: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.clients = ClientPort(ClientSettings(address=Address("127.0.0.1", 0), max_client_cnxns=0, **limits))
        self.server = MemoryServer(self.clients)
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        asyncio.run_coroutine_threadsafe(self.clients.start(), self.loop).result(10)
        self.does(lambda: self.clients.begin(self.server))
        self.port = self.clients.ports()[0]
        self.kazoos: list[KazooClient] = []

    def does(self, work: Callable[[], Any]) -> Any:
        """Run a function in the loop's thread, and wait for its result."""

        async def run() -> Any:
            return work()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(10)

    def kazoo(self, **options: Any) -> KazooClient:
        client = KazooClient(f"127.0.0.1:{self.port}", **options)
        client.start(10)
        self.kazoos.append(client)
        return client

    def socket(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), 10)

    def close(self) -> None:
        for client in self.kazoos:
            client.stop()
            client.close()
        asyncio.run_coroutine_threadsafe(self.clients.close(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()


@pytest.fixture
def live() -> Iterator[Live]:
    made = Live()
    yield made
    made.close()


def test_creating_reading_changing_and_deleting(live: Live) -> None:
    client = live.kazoo()
    assert client.create("/a", b"1") == "/a"
    assert client.get("/a")[0] == b"1"
    assert client.set("/a", b"2", version=0).version == 1
    client.create("/a/b")
    assert client.get_children("/a") == ["b"]
    with pytest.raises(NotEmptyError):
        client.delete("/a")
    client.delete("/a/b")
    client.delete("/a", version=1)
    assert client.exists("/a") is None


def test_errors_keep_their_names(live: Live) -> None:
    client = live.kazoo()
    client.create("/a")
    with pytest.raises(NodeExistsError):
        client.create("/a")
    with pytest.raises(NoNodeError):
        client.get("/none")
    with pytest.raises(BadVersionError):
        client.set("/a", b"", version=5)


def test_sequential_names_count_up(live: Live) -> None:
    client = live.kazoo()
    assert [client.create("/s-", sequence=True)[-10:] for _ in range(3)] == ["0000000000", "0000000001", "0000000002"]


def test_many_requests_without_waiting(live: Live) -> None:
    client = live.kazoo()
    creating = [client.create_async(f"/n{number}", str(number).encode()) for number in range(200)]
    reading = [client.get_async(f"/n{number}") for number in range(200)]
    assert [each.get(10) for each in creating] == [f"/n{number}" for number in range(200)]
    assert [each.get(10)[0] for each in reading] == [str(number).encode() for number in range(200)]


def test_a_multi_is_done_as_a_whole_or_not_at_all(live: Live) -> None:
    client = live.kazoo()
    good, bad = client.transaction(), client.transaction()
    good.create("/m")
    good.set_data("/m", b"x")
    good.check("/m", 1)
    assert good.commit()[0] == "/m"
    bad.delete("/m")
    bad.create("/none/x")
    assert [type(each).__name__ for each in bad.commit()] == ["RolledBackError", "NoNodeError"]
    assert client.exists("/m") is not None


def test_watches_of_data_and_children_fire_once(live: Live) -> None:
    client, other, events = live.kazoo(), live.kazoo(), Queue[Any]()
    client.create("/w")
    client.get("/w", watch=events.put)
    client.get_children("/w", watch=events.put)
    other.set("/w", b"1")
    other.set("/w", b"2")
    other.create("/w/c")
    assert [(each.type, each.path) for each in (events.get(timeout=10), events.get(timeout=10))] == [
        ("CHANGED", "/w"),
        ("CHILD", "/w"),
    ]


def test_ephemerals_go_with_their_session(live: Live) -> None:
    owner, watcher, events = live.kazoo(), live.kazoo(), Queue[Any]()
    owner.create("/e", ephemeral=True)
    assert watcher.exists("/e", watch=events.put).ephemeralOwner == owner.client_id[0]
    owner.stop()
    assert events.get(timeout=10).type == "DELETED"


def test_an_expired_session_is_told_so_when_it_comes_back(live: Live) -> None:
    client, states = live.kazoo(), Queue[str]()
    client.add_listener(states.put)
    live.does(lambda: live.server.expire(now=1 << 60))
    assert states.get(timeout=10) == KazooState.SUSPENDED
    assert states.get(timeout=10) == KazooState.LOST


def test_a_client_whose_connection_breaks_keeps_its_session_and_its_ephemerals(live: Live) -> None:
    client, states = live.kazoo(), Queue[str]()
    client.create("/e", ephemeral=True)
    session = client.client_id
    client.add_listener(states.put)
    live.does(live.clients.connections[0].abort)
    assert [states.get(timeout=10), states.get(timeout=10)] == [KazooState.SUSPENDED, KazooState.CONNECTED]
    assert (client.client_id, client.exists("/e") is not None) == (session, True)


def test_digest_acls_let_in_who_knows_the_password(live: Live) -> None:
    owner, stranger = live.kazoo(), live.kazoo()
    owner.add_auth("digest", "alice:secret")
    owner.create("/private", b"x", acl=[make_digest_acl("alice", "secret", all=True)])
    assert owner.get("/private")[0] == b"x"
    with pytest.raises(NoAuthError):
        stranger.get("/private")
    stranger.add_auth("digest", "alice:secret")
    assert stranger.get("/private")[0] == b"x"


def test_an_unknown_scheme_fails(live: Live) -> None:
    with pytest.raises(AuthFailedError):
        live.kazoo().add_auth("kerberos", "x")


def test_a_lock_passes_from_one_client_to_the_next(live: Live) -> None:
    first, second, order = live.kazoo(), live.kazoo(), Queue[str]()
    lock = first.Lock("/lock")
    lock.acquire(timeout=10)

    def wait_for_it() -> None:
        with second.Lock("/lock"):
            order.put("second")

    waiting = threading.Thread(target=wait_for_it)
    waiting.start()
    order.put("first")
    lock.release()
    waiting.join(10)
    assert [order.get(timeout=10), order.get(timeout=10)] == ["first", "second"]


def test_a_client_that_says_nothing_is_disconnected(live: Live) -> None:
    live.clients.settings = ClientSettings(connect_timeout=1)
    with live.socket() as silent, live.socket() as half:
        half.sendall(struct.pack(">i", 45) + b"\0" * 10)
        assert (silent.recv(1), half.recv(1)) == (b"", b"")
    assert live.kazoo().exists("/") is not None


def test_a_large_request_in_small_pieces_is_served(live: Live) -> None:
    client = live.kazoo()
    client.create("/big", b"x" * 1_000_000)
    assert len(client.get("/big")[0]) == 1_000_000
