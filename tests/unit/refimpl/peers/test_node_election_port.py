"""The election port of one server, over loopback sockets; the test plays its peers.

The expected behaviour is that of `QuorumCnxManager`: one socket per pair, the smaller id is called back, the last vote
again on a new connection.
"""

import asyncio
import re
import struct
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.processes import free_ports
from refimpl.listening import MAX_STRANGERS
from refimpl.membership import Membership
from refimpl.peers import election_port
from refimpl.peers.election_port import ElectionSockets
from refimpl.tls import PeerStreams
from refimpl.wire.election import decode_notification
from spec.config import parse_ensemble
from spec.election.messages import Notification
from spec.election.vote import ServerState, Vote
from spec.quorum import majority_view

OWN, SMALLER, LARGER, STRANGER = 2, 1, 3, 77
WAIT = 60.0
LOOKING, LEADING = ServerState.LOOKING, ServerState.LEADING


def notification(round_: int, leader: int = LARGER) -> Notification:
    return Notification(LOOKING, Vote(leader, 5, 1), round_)


def vote(election_epoch: int, *, state: int = 0, config: str = "version=0", zxid: int = 5) -> bytes:
    """A notification's frame, as a peer sends it."""
    body = struct.pack(">iqqqqii", state, LARGER, zxid, election_epoch, 1, 2, len(config)) + config.encode()
    return struct.pack(">i", len(body)) + body


def opening(sid: int, address: str = "127.0.0.1:9") -> bytes:
    return struct.pack(">qqi", -65536, sid, len(address)) + address.encode()


class Peer:
    """The other end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def say(self, data: bytes) -> None:
        self.writer.write(data)

    async def reads_opening(self) -> int:
        """Read the id with which the server opens the connection."""
        _, sid, length = struct.unpack(">qqi", await self.reader.readexactly(20))
        await self.reader.readexactly(length)
        return int(sid)

    async def reads_round(self) -> int:
        """Read the round of the next vote."""
        (length,) = struct.unpack(">i", await self.reader.readexactly(4))
        return decode_notification(await self.reader.readexactly(length)).election_epoch

    async def has_ended(self) -> bool:
        """Read until the connection ends; return whether it does."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            pass
        return True

    async def hangs_up(self) -> None:
        self.writer.write_eof()
        await self.has_ended()
        self.writer.close()


class Stage:
    """Server 2 with its election port, and listeners in place of 1 and 3."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.ports = dict(zip((SMALLER, OWN, LARGER), ports, strict=True))
        text = "".join(f"server.{sid}=127.0.0.1:1{sid}:{port}:participant\n" for sid, port in self.ports.items())
        ensemble = parse_ensemble(text + "version=0")
        own = next(server for server in ensemble.servers if server.sid == OWN)
        self.heard: list[tuple[int, Notification]] = []
        membership = Membership(Path("zoo.cfg"), OWN, ensemble)
        self.port = ElectionSockets(own, membership, lambda sid, what: self.heard.append((sid, what)), PeerStreams())
        self.called: asyncio.Queue[Peer] = asyncio.Queue()
        self._listening: list[asyncio.Server] = []

    async def listens(self, sid: int) -> None:
        """Listen as a peer; each accepted connection is put into `called`."""
        listening = await asyncio.start_server(
            lambda reader, writer: self.called.put_nowait(Peer(reader, writer)), "127.0.0.1", self.ports[sid]
        )
        self._listening.append(listening)

    async def connects(self, said: bytes = b"") -> Peer:
        """Connect to the server as a peer, and send these bytes."""
        peer = Peer(*await asyncio.open_connection("127.0.0.1", self.ports[OWN]))
        peer.say(said)
        return peer

    async def hears(self, count: int) -> list[int]:
        """Return the rounds of the votes that the server has accepted, once there are this many."""
        while len(self.heard) < count:
            await asyncio.sleep(0.001)
        return [each.election_epoch for _, each in self.heard]

    def close(self) -> None:
        self.port.close()
        for listening in self._listening:
            listening.close()


def play(scene: Callable[[Stage], Awaitable[None]]) -> None:
    async def run() -> None:
        stage = Stage(free_ports(3))
        stage.port.listen()
        try:
            await asyncio.wait_for(scene(stage), WAIT)
        finally:
            stage.close()
            await asyncio.sleep(0.01)

    asyncio.run(run())


def test_a_smaller_server_is_called_and_told_the_newest_vote() -> None:
    async def scene(stage: Stage) -> None:
        await stage.listens(SMALLER)
        stage.port.send(SMALLER, notification(1))
        stage.port.send(SMALLER, notification(2))
        peer = await stage.called.get()
        assert await peer.reads_opening() == OWN
        assert await peer.reads_round() == 2
        stage.port.send(SMALLER, notification(3))
        assert await peer.reads_round() == 3

    play(scene)


def test_a_server_outside_the_configuration_that_connects_again_gets_its_votes_on_the_new_connection() -> None:
    """It has ended its connections, as after a new configuration; here the end of the older one is seen later."""

    async def scene(stage: Stage) -> None:
        older = await stage.connects(opening(STRANGER) + vote(1))
        await stage.hears(1)
        newer = await stage.connects(opening(STRANGER) + vote(2))
        assert await older.has_ended()
        await stage.hears(2)
        await asyncio.sleep(0.05)  # the server handles the end of the older connection
        stage.port.send(STRANGER, notification(9))
        assert await newer.reads_round() == 9

    play(scene)


def test_a_larger_server_is_only_asked_to_call_back() -> None:
    async def scene(stage: Stage) -> None:
        await stage.listens(LARGER)
        stage.port.send(LARGER, notification(1))
        asked = await stage.called.get()
        assert await asked.reads_opening() == OWN
        assert await asked.has_ended()
        kept = await stage.connects(opening(LARGER))
        assert await kept.reads_round() == 1

    play(scene)


def test_a_smaller_server_that_connects_is_called_back() -> None:
    async def scene(stage: Stage) -> None:
        await stage.listens(SMALLER)
        asking = await stage.connects(opening(SMALLER))
        assert await asking.has_ended()
        kept = await stage.called.get()
        assert await kept.reads_opening() == OWN
        kept.say(vote(4))
        assert await stage.hears(1) == [4]
        assert stage.heard[0][0] == SMALLER

    play(scene)


@pytest.mark.parametrize(("age", "calls"), [(-1.0, True), (3600.0, False)], ids=["an old socket", "a new one"])
def test_a_smaller_server_that_asks_again_has_lost_the_socket_there_was_unless_that_is_new(
    age: float, calls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(election_port, "CROSSING", age)

    async def scene(stage: Stage) -> None:
        await stage.listens(SMALLER)
        stage.port.send(SMALLER, notification(1))
        first = await stage.called.get()
        assert await first.reads_opening() == OWN
        assert await first.reads_round() == 1
        again = await stage.connects(opening(SMALLER))
        assert await again.has_ended()
        if calls:
            # As after a power failure, when the other side receives nothing.
            second = await stage.called.get()
            assert await second.reads_opening() == OWN
            assert await second.reads_round() == 1
            assert await first.has_ended()
        else:
            stage.port.send(SMALLER, notification(2))
            assert await first.reads_round() == 2
            assert stage.called.empty()

    play(scene)


def test_the_last_vote_is_sent_again_on_a_new_connection() -> None:
    async def scene(stage: Stage) -> None:
        first = await stage.connects(opening(LARGER))
        stage.port.send(LARGER, notification(7))
        assert await first.reads_round() == 7
        await first.hangs_up()
        second = await stage.connects(opening(LARGER))
        assert await second.reads_round() == 7

    play(scene)


def test_a_second_connection_of_a_server_takes_the_place_of_the_first() -> None:
    async def scene(stage: Stage) -> None:
        first = await stage.connects(opening(LARGER) + vote(1))
        assert await stage.hears(1) == [1]
        second = await stage.connects(opening(LARGER) + vote(2))
        assert await first.has_ended()
        assert await stage.hears(2) == [1, 2]
        stage.port.send(LARGER, notification(9))
        assert await second.reads_round() == 9

    play(scene)


def test_votes_come_in_their_order_in_whatever_pieces() -> None:
    async def scene(stage: Stage) -> None:
        peer = await stage.connects()
        for byte in opening(LARGER) + vote(1) + vote(2) + vote(3):
            peer.say(bytes([byte]))
            await peer.writer.drain()
        assert await stage.hears(3) == [1, 2, 3]

    play(scene)


BAD_OPENINGS = {
    "of an unknown protocol": struct.pack(">qqi", -65537, LARGER, 1) + b"x",
    "without an address": struct.pack(">qqi", -65536, LARGER, 0),
    "with too long an address": struct.pack(">qqi", -65536, LARGER, 2049),
    "whose address is none": opening(LARGER, "nowhere"),
    "in the server's own name": opening(OWN),
}


@pytest.mark.parametrize("what", BAD_OPENINGS)
def test_an_opening_ends_its_connection(what: str) -> None:
    async def scene(stage: Stage) -> None:
        assert await (await stage.connects(BAD_OPENINGS[what])).has_ended()

    play(scene)


@pytest.mark.parametrize("length", [0, -1, 512 * 1024 + 1, 2**31 - 1])
def test_a_frame_of_an_impossible_length_ends_its_connection(length: int) -> None:
    async def scene(stage: Stage) -> None:
        assert await (await stage.connects(opening(LARGER) + struct.pack(">i", length))).has_ended()

    play(scene)


DROPPED = {
    "too short": struct.pack(">i", 4) + b"abcd",
    "in no state": vote(1, state=7),
    "in a negative state": vote(1, state=-1),
}


@pytest.mark.parametrize("what", DROPPED)
def test_a_vote_that_is_none_is_dropped_and_its_connection_goes_on(what: str) -> None:
    async def scene(stage: Stage) -> None:
        await stage.connects(opening(LARGER) + DROPPED[what] + vote(3))
        assert await stage.hears(1) == [3]

    play(scene)


@pytest.mark.parametrize("number", [-(2**63), 2**63 - 1])
def test_any_zxid_and_any_round_can_be_voted_for_and_passed_on(number: int) -> None:
    async def scene(stage: Stage) -> None:
        peer = await stage.connects(opening(LARGER) + vote(number, zxid=number))
        await stage.hears(1)
        stage.port.send(LARGER, stage.heard[0][1])
        assert await peer.reads_round() == number

    play(scene)


def test_a_later_configuration_in_a_vote_is_passed_on_with_its_lines() -> None:
    async def scene(stage: Stage) -> None:
        line = "server.1=127.0.0.1:1:2:participant"
        await stage.connects(opening(LARGER) + vote(1, config=f"{line}\nversion=100"))
        await stage.hears(1)
        assert stage.heard[0][1].config == replace(majority_view({1}, version=0x100), text=line)

    play(scene)


def test_only_so_many_may_be_silent_about_who_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(election_port, "CONNECT_TIMEOUT", 3600.0)  # no timeout occurs

    async def scene(stage: Stage) -> None:
        silent = [await stage.connects() for _ in range(MAX_STRANGERS + 5)]
        ends = [asyncio.create_task(each.has_ended()) for each in silent]
        while sum(end.done() for end in ends) < 5:
            await asyncio.sleep(0.001)
        assert sum(end.done() for end in ends) == 5
        for each in silent:
            each.writer.close()
        # There is room again.
        while not stage.heard:
            peer = await stage.connects(opening(LARGER) + vote(1))
            await asyncio.sleep(0.01)
        peer.writer.close()

    play(scene)


def test_who_is_silent_for_too_long_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(election_port, "CONNECT_TIMEOUT", 0.05)

    async def scene(stage: Stage) -> None:
        assert await (await stage.connects()).has_ended()
        assert await (await stage.connects(opening(LARGER)[:10])).has_ended()

    play(scene)


def test_only_so_many_of_servers_that_nobody_named() -> None:
    async def scene(stage: Stage) -> None:
        held = [await stage.connects(opening(1000 + n) + vote(n)) for n in range(MAX_STRANGERS + 3)]
        await stage.hears(len(held))
        assert await (await stage.connects(opening(5000) + vote(1))).has_ended()
        assert await (await stage.connects(opening(LARGER) + vote(999))).reader.read(0) == b""
        assert (await stage.hears(len(held) + 1))[-1] == 999

    play(scene)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "a..b:1", "x" * 70 + ":1"])
def test_strangers_that_cannot_be_called_back_are_forgotten(address: str) -> None:
    async def scene(stage: Stage) -> None:
        for sid in range(-2 * MAX_STRANGERS, 0):
            assert await (await stage.connects(opening(sid, address))).has_ended()
        while len(stage.port._links) > 0:
            await asyncio.sleep(0.001)
        await stage.connects(opening(STRANGER) + vote(1))
        assert await stage.hears(1) == [1]

    play(scene)


def test_a_member_that_cannot_be_reached_is_tried_again_with_the_next_vote() -> None:
    async def scene(stage: Stage) -> None:
        problems: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
        stage.port.send(SMALLER, notification(1))  # without a listener
        trying = stage.port._links[SMALLER]._connecting
        assert trying is not None
        await trying  # otherwise a listener may exist by then, or the next vote arrive too early
        await stage.listens(SMALLER)
        stage.port.send(SMALLER, notification(2))
        peer = await stage.called.get()
        assert await peer.reads_opening() == OWN
        assert await peer.reads_round() == 2
        assert problems == []

    play(scene)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """The log without the limit on its rate, which counts the lines of other tests."""
    monkeypatch.setattr(election_port.logger, "filters", [])
    return caplog


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "quorate.election"]


def test_a_peer_that_cannot_be_reached_is_named_once_with_the_reason(log: pytest.LogCaptureFixture) -> None:
    async def scene(stage: Stage) -> None:
        address = f"127.0.0.1:{stage.ports[SMALLER]}"
        for number in range(5):
            stage.port.send(SMALLER, notification(number))
            trying = stage.port._links[SMALLER]._connecting
            assert trying is not None
            await trying
        refused = f"server {SMALLER} cannot be reached at its election port {address}: Connection refused"
        assert warnings_of(log) == [refused]

    play(scene)


@pytest.mark.parametrize(
    ("sid", "address", "fact"),
    [
        (
            STRANGER,
            "127.0.0.1:9",
            f"server {STRANGER}, connected from 127.0.0.1:.*, is not in this server's configuration",
        ),
        (LARGER, "SMALLER", f"server {LARGER}, .* where server {SMALLER} should be: is its myid that of another one"),
        (OWN, "127.0.0.1:9", f"a stranger at 127.0.0.1:.* says that it is server {OWN}, as this one is: two machines"),
    ],
    ids=["no member", "at the address of another one", "with the id of this one"],
)
def test_a_peer_that_is_not_whom_the_file_says_is_named_once(
    sid: int, address: str, fact: str, log: pytest.LogCaptureFixture
) -> None:
    async def scene(stage: Stage) -> None:
        said = f"127.0.0.1:{stage.ports[SMALLER]}" if address == "SMALLER" else address
        for _ in range(3 if sid != OWN else 1):
            await stage.connects(opening(sid, said))
        while not warnings_of(log):
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.02)
        (line,) = warnings_of(log)
        assert re.search(fact, line)

    play(scene)


def test_a_packet_that_is_refused_has_the_address_of_its_sender(log: pytest.LogCaptureFixture) -> None:
    async def scene(stage: Stage) -> None:
        peer = await stage.connects(struct.pack(">qqi", -65536, LARGER, 99999))
        host, port = peer.writer.get_extra_info("sockname")
        assert await peer.has_ended()
        assert f"a stranger at {host}:{port}" in warnings_of(log)[-1]

    play(scene)
