"""One connection on the quorum port, over a transport that the test controls."""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refimpl.peers import quorum_socket
from refimpl.peers.quorum_socket import SIGNATURE, QuorumSocket
from refimpl.wire.packet import Packet, PacketType, encode_raw

LINES = (Path(__file__).parents[2] / "golden" / "wire" / "quorum.hex").read_text().splitlines()
# The observer was sent a SNAP; the recording after `=` is the stream that followed, including its signature.
PLACE = next(place for place, line in enumerate(LINES) if line[0] == "=")
SNAPSHOT = bytes.fromhex(LINES[PLACE][2:])
SNAP = next(bytes.fromhex(line[2:]) for line in reversed(LINES[:PLACE]) if line[0] == "<")
NEWLEADER = encode_raw(Packet(PacketType.NEWLEADER, 1 << 32, b"version=0"))
UPTODATE = encode_raw(Packet(PacketType.UPTODATE, -1))
PING = encode_raw(Packet(PacketType.PING, 5, b""))
MAX_BUFFER = 0xFFFFF


class HeldTransport:
    """A transport that records the calls of the socket; `unread` is the number of bytes that the peer has not read."""

    def __init__(self) -> None:
        self.written = b""
        self.paused = self.closed = self.aborted = False
        self.unread = 0

    def write(self, data: bytes) -> None:
        assert not self.closed, "written after close"
        self.written += data

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def get_extra_info(self, _name: str) -> object:
        return ("192.0.2.1", 2888)

    def get_write_buffer_size(self) -> int:
        return self.unread

    def is_closing(self) -> bool:
        return self.closed or self.aborted

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True


class Owner:
    """An owner that records its notifications."""

    def __init__(self) -> None:
        self.came: list[QuorumSocket] = []
        self.went: list[QuorumSocket] = []
        self.why: list[str] = []

    def opened(self, socket: QuorumSocket) -> None:
        self.came.append(socket)

    def arrived(self, socket: QuorumSocket) -> None:
        assert socket.inbox

    def gone(self, socket: QuorumSocket) -> None:
        self.went.append(socket)

    def broken(self, socket: QuorumSocket, why: str) -> None:
        assert socket in self.came
        self.why.append(why)


Scene = Callable[[QuorumSocket, HeldTransport, Owner], Any]


def play(scene: Scene, peer: int | None = 3) -> None:
    """Run a scene with a connection: to leader 3, or with `None` from a learner that has connected."""

    async def run() -> None:
        owner, transport = Owner(), HeldTransport()
        socket = QuorumSocket(owner, peer, MAX_BUFFER)
        socket.connection_made(cast(asyncio.Transport, transport))
        assert owner.came == [socket]
        done = scene(socket, transport, owner)
        if done is not None:
            await done

    asyncio.run(run())


def types(socket: QuorumSocket) -> list[int]:
    return [packet.type for packet in socket.inbox]


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2000), max_size=12))
def test_a_snapshot_may_come_in_any_pieces_with_packets_before_and_behind_it(cuts: list[int]) -> None:
    stream = PING + SNAP + SNAPSHOT + NEWLEADER + UPTODATE

    def scene(socket: QuorumSocket, transport: HeldTransport, owner: Owner) -> None:
        places = sorted({0, len(stream), *(cut % len(stream) for cut in cuts)})
        for start, end in itertools.pairwise(places):
            socket.data_received(stream[start:end])
        assert owner.why == []
        assert types(socket) == [PacketType.PING, PacketType.SNAP, PacketType.NEWLEADER, PacketType.UPTODATE]
        assert socket.snapshot is not None
        assert socket.snapshot.node("/zookeeper/quota") is not None

    play(scene)


def test_the_packet_snap_is_not_handed_over_before_its_snapshot_is_whole() -> None:
    def scene(socket: QuorumSocket, transport: HeldTransport, owner: Owner) -> None:
        socket.data_received(SNAP + SNAPSHOT[:-1])
        assert types(socket) == []
        socket.data_received(SNAPSHOT[-1:])
        assert types(socket) == [PacketType.SNAP]

    play(scene)


BROKEN = {
    "a snapshot without its signature": SNAP + SNAPSHOT[: -len(SIGNATURE)] + bytes(len(SIGNATURE)),
    "a second snapshot before the first is taken": 2 * (SNAP + SNAPSHOT),
    "a snapshot of noise": SNAP + b"\xff" * 100,
    "a packet of 2 GiB": b"\0\0\0\5" + bytes(8) + b"\x7f\xff\xff\xff",
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_cannot_be_read_ends_the_connection(what: str) -> None:
    def scene(socket: QuorumSocket, transport: HeldTransport, owner: Owner) -> None:
        socket.data_received(BROKEN[what])
        assert transport.closed
        assert len(owner.why) == 1

    play(scene)


def test_a_learner_may_not_send_a_snapshot() -> None:
    def scene(socket: QuorumSocket, transport: HeldTransport, owner: Owner) -> None:
        socket.data_received(encode_raw(Packet(PacketType.FOLLOWERINFO, 0, b"")) + SNAP + SNAPSHOT[:100])
        assert transport.closed
        assert owner.why == ["a snapshot, which only a leader may send"]
        assert socket.snapshot is None

    play(scene, peer=None)


@pytest.mark.parametrize(
    ("packet", "count"), [(PING, 1001), (encode_raw(Packet(PacketType.PROPOSAL, 1, bytes(1 << 20))), 17)]
)
def test_a_peer_with_too_much_waiting_is_not_read_from_until_that_is_taken(packet: bytes, count: int) -> None:
    def scene(socket: QuorumSocket, transport: HeldTransport, owner: Owner) -> None:
        for _ in range(count):
            assert not transport.paused
            socket.data_received(packet)
        assert transport.paused
        socket.drained()
        assert transport.paused, "nothing was taken"
        while len(socket.inbox) > count // 2:
            socket.inbox.popleft()
        socket.drained()
        assert not transport.paused

    play(scene)


def chunks(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield b"%d" % number


def test_what_is_sent_behind_a_snapshot_waits_until_that_is_out() -> None:
    async def scene(socket: QuorumSocket, transport: HeldTransport, owner: Owner) -> None:
        socket.write(b"before ")
        socket.stream(chunks(3))
        socket.write(b" behind")
        await turns(10)
        assert transport.written == b"before 012" + SIGNATURE + b" behind"

    play(scene)


def test_a_snapshot_goes_out_no_faster_than_it_is_read() -> None:
    async def scene(socket: QuorumSocket, transport: HeldTransport, owner: Owner) -> None:
        socket.stream(chunks(9))
        socket.pause_writing()
        held = transport.written
        await turns()
        assert transport.written == held
        socket.resume_writing()
        await turns(12)
        assert transport.written == b"012345678" + SIGNATURE

    play(scene)


def test_a_snapshot_stops_when_its_connection_is_closed() -> None:
    async def scene(socket: QuorumSocket, transport: HeldTransport, owner: Owner) -> None:
        socket.stream(chunks(9))
        socket.write(b"behind")
        socket.close()
        held = transport.written
        await turns(12)
        assert transport.written == held
        assert transport.closed

    play(scene)


@pytest.mark.parametrize("streaming", [False, True], ids=["it is sent packets", "it is sent a snapshot"])
def test_a_peer_that_does_not_read_is_cut_off(streaming: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quorum_socket, "MOST_UNSENT", 100)

    async def scene(socket: QuorumSocket, transport: HeldTransport, owner: Owner) -> None:
        socket.pause_writing()
        if streaming:
            socket.stream(chunks(9))
        transport.unread = 101
        socket.write(bytes(101))
        await turns()
        assert transport.aborted
        assert owner.why == ["more than 100 bytes wait to be read by it"]

    play(scene)


def test_a_closed_connection_whose_peer_does_not_read_is_ended_a_little_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quorum_socket, "LINGER", 0.0)

    async def scene(socket: QuorumSocket, transport: HeldTransport, owner: Owner) -> None:
        transport.unread = 1
        socket.close()
        assert (transport.closed, transport.aborted) == (True, False)
        await asyncio.sleep(0.01)
        assert transport.aborted

    play(scene)


def test_nothing_is_sent_on_a_connection_that_has_ended() -> None:
    async def scene(socket: QuorumSocket, transport: HeldTransport, owner: Owner) -> None:
        socket.write(b"in this turn, but too late")
        socket.connection_lost(None)
        transport.closed = True
        socket.write(b"later")
        socket.flush()
        socket.close()
        await turns()
        assert owner.went == [socket]
        assert transport.written == b""

    play(scene)
