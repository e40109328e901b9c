"""One client's connection over a transport that only records: order, watches, limits, and bad input."""

import asyncio
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refimpl.clients import ClientPort, ClientSettings, final_processor
from refimpl.clients.auth import AuthSettings
from refimpl.clients.connection import Connection
from refimpl.clients.final_processor import FinalProcessor
from refimpl.jute import encode
from refimpl.system import System
from spec.service.sessions import password
from spec.tree.data import OPEN_ACL_UNSAFE, Acl, Id, Record
from spec.tree.options import Options
from spec.tree.replies import Code
from spec.tree.requests import (
    OPCODE_OF,
    CloseSession,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    MultiRead,
    Ping,
    Reconfig,
    Sasl,
    SetAuth,
    SetData,
    SetWatches,
    Sync,
)
from tests.support.memory_server import MemoryServer, Wire

EVENT = -1


class World:
    """A client port without a socket, its server, and an event loop that runs one turn per call of `turn`."""

    def __init__(self, **limits: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.clients = ClientPort(ClientSettings(**limits))
        self.loop.run_until_complete(self.clients.start())
        self.server = MemoryServer(self.clients)
        self.clients.begin(self.server)

    def turn(self) -> None:
        self.loop.run_until_complete(asyncio.sleep(0))

    def close(self) -> None:
        self.loop.run_until_complete(self.clients.close())
        self.loop.close()


class Client:
    """A client with its session; with `presents` false it sends its own first bytes."""

    def __init__(self, world: World, presents: bool = True, address: str = "127.0.0.1") -> None:
        self.world, self.wire = world, Wire()
        admitted = world.clients.admit(address, 5000)
        assert admitted is not None
        self.protocol: Connection = admitted
        self.wire.protocol = self.protocol
        self.protocol.connection_made(self.wire)
        if presents:
            self.bytes(connect())
            self.taken()

    def bytes(self, data: bytes) -> None:
        self.protocol.data_received(data)

    def asks(self, *requests: tuple[int, Record]) -> None:
        self.bytes(b"".join(request(xid, record) for xid, record in requests))

    def taken(self) -> list[tuple[int, int]]:
        """Return the xid and the error of each packet since the last call, after a turn of the loop."""
        self.world.turn()
        packets, data = [], bytes(self.wire.written)
        self.wire.written.clear()
        while data:
            (length,) = struct.unpack_from(">i", data)
            xid, _, err = struct.unpack_from(">iqi", data, 4)
            packets.append((xid, err))
            data = data[4 + length :]
        return packets


def framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def request(xid: int, record: Record) -> bytes:
    return framed(struct.pack(">ii", xid, OPCODE_OF[type(record)]) + encode(record))


def connect(session: int = 0, passwd: bytes = bytes(16), zxid: int = 0) -> bytes:
    return framed(struct.pack(">iqiqi", 0, zxid, 10000, session, len(passwd)) + passwd + b"\0")


def create(path: str) -> Create:
    return Create(path, b"", OPEN_ACL_UNSAFE, 0)


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()


@pytest.fixture
def limited(request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(**request.param)
    yield made
    made.close()


# Order.


def test_a_read_behind_a_write_waits_for_its_commit_and_shows_it(world: World) -> None:
    client = Client(world)
    world.server.held = True
    client.asks((1, create("/a")), (2, Exists("/a", False)))
    assert client.taken() == []
    world.server.let_go()
    assert client.taken() == [(1, 0), (2, 0)]


def test_another_client_reads_while_a_write_waits(world: World) -> None:
    writer, reader = Client(world), Client(world)
    world.server.held = True
    writer.asks((1, create("/a")))
    reader.asks((1, Exists("/a", False)))
    assert reader.taken() == [(1, Code.NO_NODE)]


def test_pings_keep_their_place(world: World) -> None:
    client = Client(world)
    world.server.held = True
    client.asks((1, create("/a")), (-2, Ping()))
    assert client.taken() == []
    world.server.let_go()
    assert client.taken() == [(1, 0), (-2, 0)]


def test_a_sync_is_answered_with_its_path_after_what_was_asked_before(world: World) -> None:
    client = Client(world)
    world.server.held = True
    client.asks((1, create("/a")), (2, Sync("/a")), (3, GetData("/a", False)))
    world.server.let_go(1)
    assert client.taken() == [(1, 0)]
    world.server.let_go()
    world.turn()
    assert bytes(client.wire.written).startswith(struct.pack(">iiqi", 22, 2, 2, 0) + struct.pack(">i2s", 2, b"/a"))


def test_a_watch_fires_before_the_answer_to_the_write_that_fires_it(world: World) -> None:
    client = Client(world)
    client.asks((1, Exists("/a", True)), (2, create("/a")))
    assert client.taken() == [(1, Code.NO_NODE), (EVENT, 0), (2, 0)]


def test_a_watch_of_another_client_precedes_the_data_that_shows_the_change(world: World) -> None:
    watching, writing = Client(world), Client(world)
    writing.asks((1, create("/a")))
    watching.asks((1, GetData("/a", True)))
    watching.taken()
    writing.asks((2, SetData("/a", b"2", -1)))
    watching.asks((2, GetData("/a", False)))
    assert watching.taken() == [(EVENT, 0), (2, 0)]


def test_deleting_a_znode_tells_who_watches_its_data_and_its_children_once(world: World) -> None:
    client = Client(world)
    client.asks((1, create("/a")), (2, GetData("/a", True)), (3, GetChildren("/a", True)), (4, Delete("/a", -1)))
    assert client.taken() == [(1, 0), (2, 0), (3, 0), (EVENT, 0), (4, 0)]


STEPS = st.lists(st.sampled_from(["read", "write", "sync", "ping", "commit"]), max_size=25)


@settings(max_examples=40, deadline=None)
@given(STEPS, st.integers(1, 40))
def test_answers_come_in_order_however_bytes_and_commits_arrive(steps: list[str], piece: int) -> None:
    """Requests are cut into pieces of any length, and commits happen at any time between them."""
    world = World()
    try:
        client, sent, got = Client(world), 0, []
        world.server.held = True
        for step in steps:
            if step == "commit":
                world.server.let_go(1)
                continue
            sent += 1
            record = {"read": Exists("/", False), "write": create("/a"), "sync": Sync("/"), "ping": Ping()}[step]
            data = request(sent, record)
            for at in range(0, len(data), piece):
                client.bytes(data[at : at + piece])
        world.server.let_go()
        got = [xid for xid, _ in client.taken()]
        assert got == list(range(1, sent + 1))
        assert world.clients.in_process == 0
    finally:
        world.close()


def test_the_answers_of_one_turn_leave_in_one_write(world: World) -> None:
    client = Client(world)
    before = client.wire.writes
    client.asks(*((xid, Exists("/", False)) for xid in range(1, 51)))
    assert len(client.taken()) == 50
    assert client.wire.writes == before + 1


# Sessions.


def test_close_session_is_answered_and_then_the_connection_ends(world: World) -> None:
    client = Client(world)
    client.asks((1, CloseSession()), (2, Ping()))
    assert client.taken() == [(1, 0)]
    assert client.wire.over


def test_a_session_that_expires_loses_its_connection(world: World) -> None:
    client = Client(world)
    world.server.expire(now=1 << 60)
    assert client.taken() == []
    assert client.wire.over


def test_a_session_that_connects_again_ends_its_older_connection(world: World) -> None:
    older, newer = Client(world), Client(world, presents=False)
    session = older.protocol.session
    newer.bytes(connect(session, password(session)))
    assert older.wire.closed
    newer.asks((1, Ping()))
    world.turn()
    assert struct.unpack_from(">iiiq", newer.wire.written) == (37, 0, 10000, session)


def test_a_wrong_password_leaves_the_older_connection_alone(world: World) -> None:
    older, newer = Client(world), Client(world, presents=False)
    newer.bytes(connect(older.protocol.session, bytes(16)))
    world.turn()
    assert struct.unpack(">iiiqi16s?", newer.wire.written) == (37, 0, 0, 0, 16, bytes(16), False)
    assert (newer.wire.over, older.wire.over) == (True, False)


def test_a_client_ahead_of_the_server_gets_no_answer(world: World) -> None:
    client = Client(world, presents=False)
    client.bytes(connect(zxid=99))
    assert client.taken() == []
    assert client.wire.closed


def test_requests_behind_the_connect_request_wait_for_the_session(world: World) -> None:
    client = Client(world, presents=False)
    world.server.held = True
    client.bytes(connect() + request(1, Ping()))
    world.turn()
    assert not client.wire.written
    world.server.let_go()
    world.turn()
    assert len(client.wire.written) == 41 + 20


def test_a_server_that_stops_serving_ends_every_connection_and_refuses_new_ones(world: World) -> None:
    before = Client(world)
    world.clients.end()
    after = Client(world, presents=False)
    after.bytes(connect())
    assert (before.wire.over, after.wire.over) == (True, True)
    world.clients.begin(world.server)
    assert not Client(world).wire.over


# Requests that are not served.


def test_sasl_without_users_is_answered_with_no_token_and_the_connection_goes_on(world: World) -> None:
    """Recorded from ZooKeeper 3.9.5, which logs that its SaslServer is missing."""
    client = Client(world)
    client.asks((1, Sasl(b"")), (-2, Ping()))
    assert client.taken() == [(1, 0), (-2, 0)]


@pytest.mark.parametrize(
    "limited", [{"auth": AuthSettings(passwords={"ann": "secret"}), "max_client_cnxns": 2}], indirect=True
)
@pytest.mark.parametrize("hangs_up", [False, True], ids=["and waits", "and hangs up"])
def test_a_client_with_a_wrong_password_waits_or_keeps_its_place(
    limited: World, hangs_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(final_processor, "WRONG_PASSWORD_DELAY", 0.05)
    Client(limited, address="127.0.0.2")
    client, other = Client(limited), Client(limited)
    client.asks((1, Sasl(b"")), (2, Sasl(b"nonsense")), (3, Ping()))
    other.asks((1, Ping()))
    assert (client.taken(), other.taken()) == ([(1, 0)], [(1, 0)])
    if hangs_up:
        client.wire.close()
    assert limited.clients.admit("127.0.0.1", 5000) is None
    limited.loop.run_until_complete(asyncio.sleep(0.06))
    assert client.taken() == ([] if hangs_up else [(2, Code.AUTH_FAILED)])
    assert client.wire.over
    client.wire.close()
    assert limited.clients.admit("127.0.0.1", 5000) is not None


def test_reconfig_is_disabled_by_the_leader_in_the_order_of_the_requests(world: World) -> None:
    """It is a transaction, as in FollowerRequestProcessor: the reads behind it wait for the error."""
    client = Client(world)
    world.server.held = True
    client.asks((1, Reconfig("", "", "", -1)), (2, Exists("/", False)), (-2, Ping()))
    assert client.taken() == []
    world.server.let_go()
    assert client.taken() == [(1, Code.RECONFIG_DISABLED), (2, 0), (-2, 0)]


def test_an_unknown_opcode_is_answered_and_ends_the_connection(world: World) -> None:
    client = Client(world)
    client.bytes(framed(struct.pack(">ii", 1, 999)))
    assert client.taken() == [(1, Code.UNIMPLEMENTED)]
    assert client.wire.over


def test_an_unknown_scheme_fails_and_ends_the_connection(world: World) -> None:
    client = Client(world)
    client.asks((-4, SetAuth(0, "kerberos", b"")))
    assert client.taken() == [(-4, Code.AUTH_FAILED)]
    assert client.wire.over


def test_a_broken_body_is_a_marshalling_error_in_its_place(world: World) -> None:
    client = Client(world)
    world.server.held = True
    client.asks((1, create("/a")))
    client.bytes(framed(struct.pack(">iii", 2, 4, 1000)))
    world.server.let_go()
    assert client.taken() == [(1, 0), (2, Code.MARSHALLING_ERROR)]


@pytest.mark.parametrize(
    "data",
    [struct.pack(">i", 0x100000), struct.pack(">i", -1), struct.pack(">i", 0), framed(b"\0\0\0"), framed(bytes(20))],
    ids=["too long", "negative", "empty", "no header", "no connect request"],
)
@pytest.mark.parametrize("presents", [True, False])
def test_malformed_packets_end_their_connection_and_no_other(world: World, data: bytes, presents: bool) -> None:
    other, client = Client(world), Client(world, presents)
    client.bytes(data)
    if data == framed(bytes(20)) and presents:
        assert client.taken() == [(0, Code.UNIMPLEMENTED)]  # opcode 0 is not a known request
    assert client.wire.over
    other.asks((1, Ping()))
    assert other.taken() == [(1, 0)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=6), st.booleans())
def test_no_bytes_at_all_harm_another_client(pieces: list[bytes], presents: bool) -> None:
    world = World()
    try:
        other, client = Client(world), Client(world, presents)
        for piece in pieces:
            client.bytes(piece)
        other.asks((1, Ping()))
        assert other.taken() == [(1, 0)]
    finally:
        world.close()


# Limits.


@pytest.mark.parametrize("limited", [{"max_waiting": 3}], indirect=True)
def test_a_client_with_too_many_requests_waiting_is_not_read_from_until_they_are_answered(limited: World) -> None:
    client = Client(limited)
    limited.server.held = True
    client.asks(*((xid, create(f"/a{xid}")) for xid in range(1, 6)))
    assert (len(client.protocol.waiting), client.wire.reading) == (3, False)
    limited.server.let_go()
    assert client.taken() == [(xid, 0) for xid in range(1, 6)]
    assert client.wire.reading


@pytest.mark.parametrize("limited", [{"max_waiting_bytes": 2000}], indirect=True)
def test_a_client_with_large_requests_waiting_is_not_read_from_until_they_are_answered(limited: World) -> None:
    """The bound is on bytes: two requests reach it, whatever `max_waiting` allows, and none is lost."""
    client = Client(limited)
    limited.server.held = True
    client.asks(*((xid, Create(f"/a{xid}", b"x" * 1000, OPEN_ACL_UNSAFE, 0)) for xid in range(1, 6)))
    assert (len(client.protocol.waiting), client.wire.reading) == (2, False)
    for _ in range(3):
        limited.server.let_go()
        limited.server.held = True
    assert [xid for xid, _ in client.taken()] == [1, 2, 3, 4, 5]
    assert (client.wire.reading, limited.clients.bytes_in_process) == (True, 0)


@pytest.mark.parametrize("limited", [{"large_request_max_bytes": 4000}], indirect=True)
def test_over_the_bytes_of_the_server_a_client_may_have_one_request(limited: World) -> None:
    first, second = Client(limited), Client(limited)
    limited.server.held = True
    for client in (first, second):
        client.asks(*((xid, Create(f"/{id(client)}-{xid}", b"x" * 1000, OPEN_ACL_UNSAFE, 0)) for xid in range(1, 9)))
    assert (len(first.protocol.waiting), len(second.protocol.waiting)) == (4, 1)
    first.protocol.connection_lost(None)
    assert limited.clients.bytes_in_process < 4000
    assert len(second.protocol.waiting) == 1


@pytest.mark.parametrize("limited", [{"max_watch_bytes": 1100}], indirect=True)
def test_a_client_that_watches_too_much_is_disconnected(limited: World) -> None:
    """Watches that have fired or are asked for twice do not count."""
    client, other = Client(limited), Client(limited)
    for xid in range(1, 20):
        client.asks((xid, Exists("/a", True)))
    other.asks((1, create("/a")), (2, Delete("/a", -1)))
    assert not client.wire.over
    client.asks(*((xid, Exists(f"/{xid}" + "x" * 300, True)) for xid in range(20, 22)))
    assert (len(client.taken()), client.wire.over) == (19 + 1 + 2, False)
    client.asks((22, Exists("/c", True)))
    client.taken()
    assert (client.wire.over, other.wire.over) == (True, False)


def test_a_pause_of_the_server_is_no_silence_of_its_clients(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a pause the packets of clients still wait in the sockets; a client that stays silent then is late."""
    now = 1_000_000
    monkeypatch.setattr(System, "monotonic_ms", lambda _: now)
    world.clients._tick()
    client = Client(world)
    now += 3_600_000
    world.clients._tick()
    assert not client.wire.over
    for _ in range(20):
        now += 1000
        world.clients._tick()
    assert client.wire.over


@pytest.mark.parametrize("limited", [{"global_outstanding_limit": 4}], indirect=True)
def test_over_the_limit_of_the_server_a_client_may_have_one_request(limited: World) -> None:
    first, second = Client(limited), Client(limited)
    limited.server.held = True
    first.asks(*((xid, create(f"/a{xid}")) for xid in range(1, 9)))
    second.asks((1, create("/b")), (2, create("/c")))
    assert (len(first.protocol.waiting), len(second.protocol.waiting)) == (5, 1)
    limited.server.let_go()
    assert (len(first.taken()), len(second.taken()), limited.clients.in_process) == (8, 2, 0)


def test_a_client_that_does_not_read_is_not_served_until_it_does(world: World) -> None:
    client = Client(world)
    client.protocol.pause_writing()
    client.asks((1, Ping()))
    assert (client.taken(), client.wire.reading) == ([], False)
    client.protocol.resume_writing()
    assert (client.taken(), client.wire.reading) == ([(1, 0)], True)


@pytest.mark.parametrize("limited", [{"max_unsent": 1000}], indirect=True)
def test_a_client_that_reads_nothing_is_disconnected_before_its_events_fill_the_memory(limited: World) -> None:
    client, other = Client(limited), Client(limited)
    client.asks((1, Exists("/a", True)))
    client.taken()
    client.wire.unread = 1001
    client.protocol.pause_writing()
    other.asks((1, create("/a")))
    assert other.taken() == [(1, 0)]
    assert client.wire.closed


@pytest.mark.parametrize("limited", [{"max_unsent_in_all": 1000}], indirect=True)
def test_beyond_the_unread_bytes_of_all_the_slowest_client_is_disconnected(
    limited: World, caplog: pytest.LogCaptureFixture
) -> None:
    clients = [Client(limited) for _ in range(4)]
    for client, unread in zip(clients, (300, 600, 200, 0), strict=True):
        client.asks((1, Exists("/a", True)), (2, Exists("/b", True)))
        client.taken()
        client.wire.unread = unread
        if unread:
            client.protocol.pause_writing()
    clients[3].asks((3, create("/a")), (4, create("/b")))
    clients[3].taken()
    assert [client.wire.closed for client in clients] == [False, True, False, False]
    assert caplog.text.count("does not read its answers") == 1


@pytest.mark.parametrize("before", [Sync("/"), Ping()], ids=["behind a sync", "at once"])
def test_large_answers_are_made_only_as_fast_as_they_are_read(world: World, before: Record) -> None:
    client = Client(world)
    client.asks((1, Create("/big", bytes(100_000), OPEN_ACL_UNSAFE, 0)))
    client.taken()
    world.server.held = True
    client.asks((2, before), *((xid, GetData("/big", False)) for xid in range(3, 53)))
    client.protocol.pause_writing()
    world.server.let_go()
    first = client.taken()
    assert len(first) < 5
    client.protocol.resume_writing()
    rest = [packet for _ in range(50) for packet in client.taken()]
    assert first + rest == [(xid, 0) for xid in range(2, 53)]
    assert client.wire.reading


@pytest.mark.parametrize("limited", [{"max_client_cnxns": 2}], indirect=True)
def test_an_address_may_have_so_many_connections_and_gets_them_back(limited: World) -> None:
    first, second = Client(limited), Client(limited)
    assert limited.clients.admit("127.0.0.1", 5000) is None
    assert not Client(limited, address="127.0.0.2").wire.over
    first.wire.close()
    assert not Client(limited).wire.over
    assert not second.wire.over


@pytest.mark.parametrize("limited", [{"max_cnxns": 1, "max_client_cnxns": 0}], indirect=True)
def test_the_server_may_have_so_many_connections(limited: World) -> None:
    Client(limited)
    assert limited.clients.admit("127.0.0.2", 5000) is None


def test_a_client_that_is_gone_leaves_nothing_behind(world: World) -> None:
    client = Client(world)
    world.server.held = True
    client.asks((1, Exists("/", True)), (2, create("/a")), (3, Exists("/a", True)))
    client.wire.close()
    world.server.let_go()
    assert (world.clients.in_process, world.clients.connections, world.clients.processor.watches) == (0, (), 0)
    assert world.server.tree.node("/a") is not None


# Watches that are registered again.


def test_a_client_that_comes_back_is_told_what_it_missed_before_the_answer(world: World) -> None:
    client = Client(world)
    client.asks((1, create("/new")), (2, create("/old")))
    client.taken()
    seen = world.server.last_zxid
    client.asks((3, SetData("/new", b"1", -1)))
    client.taken()
    client.asks((-8, SetWatches(seen, ("/new", "/old"), (), ())), (4, SetData("/old", b"1", -1)))
    assert client.taken() == [(EVENT, 0), (-8, 0), (EVENT, 0), (4, 0)]


def test_who_may_not_read_a_znode_is_not_told_of_it(world: World) -> None:
    owner, stranger = Client(world), Client(world)
    stranger.asks((1, Exists("/secret", True)))
    stranger.taken()
    owner.asks((-4, SetAuth(0, "digest", b"a:b")))
    owner.asks((1, Create("/secret", b"", (Acl(31, Id("auth", "")),), 0)))
    assert owner.taken() == [(-4, 0), (1, 0)]
    assert stranger.taken() == []


def test_an_address_is_an_identity_of_its_connection(world: World) -> None:
    client, elsewhere = Client(world), Client(world, address="10.0.0.1")
    client.asks((1, Create("/mine", b"", (Acl(31, Id("ip", "127.0.0.1")),), 0)), (2, GetData("/mine", False)))
    elsewhere.asks((1, GetData("/mine", False)))
    assert (client.taken(), elsewhere.taken()) == ([(1, 0), (2, 0)], [(1, Code.NO_AUTH)])


def test_small_requests_of_others_are_handled_between_large_ones(world: World) -> None:
    """A large request takes a turn of the event loop; the other client is answered after the first one."""
    flooding, other = Client(world), Client(world)
    large = SetWatches(0, (), tuple(f"/{'x' * 1000}{n}" for n in range(100)), ())
    flooding.asks(*((xid, large) for xid in range(1, 6)))
    other.asks((1, Ping()))
    answered = [number for number, _ in flooding.taken()]
    assert len(answered) < 5
    assert other.taken() == [(1, 0)]
    while len(answered) < 5:
        answered += [number for number, _ in flooding.taken()]
    assert answered == [1, 2, 3, 4, 5]
    assert flooding.wire.reading


@pytest.mark.parametrize("limited", [{"max_buffer": 2000}], indirect=True)
def test_a_frame_beyond_the_limit_leaves_one_line_in_the_log(limited: World, caplog: pytest.LogCaptureFixture) -> None:
    client = Client(limited)
    client.bytes(struct.pack(">i", 2001) + bytes(100))
    client.bytes(bytes(100))
    (line,) = caplog.messages
    assert str(client.protocol) in line
    assert "2001" in line


def test_the_reason_of_a_refused_read_is_in_the_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    client = Client(world)
    processor = FinalProcessor(world.clients.statistics, Options(max_multi_read=100), AuthSettings(), 1 << 20)
    world.clients.processor = processor
    client.asks((1, MultiRead((GetData("/", False),) * 2)))
    assert client.taken() == [(1, Code.MARSHALLING_ERROR)]
    assert caplog.messages == [f"{client.protocol}: MultiRead is refused: its answer exceeds 100 bytes"]


def test_a_connection_with_a_reserved_descriptor_is_refused() -> None:
    clients = ClientPort(ClientSettings(), first_reserved=100)
    assert clients.admit("127.0.0.1", 5000, descriptor=99) is not None
    assert clients.admit("127.0.0.1", 5000, descriptor=100) is None
    assert clients.statistics.refused == 1


def test_a_connection_that_opens_after_its_port_has_closed_ends() -> None:
    world = World()
    connection, wire = world.clients.admit("127.0.0.1", 5000), Wire()
    assert connection is not None
    wire.protocol = connection
    world.close()
    connection.connection_made(wire)
    assert wire.closed
