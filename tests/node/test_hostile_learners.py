"""Learners that send wrong packets at wrong times, to the leader of three servers.

Expected is the behaviour of the real leader: a packet that its handler does not expect ends the connection, and one
without a meaning for a handler that serves is ignored.
"""

import struct
from collections.abc import Callable, Iterator

import pytest

from harness.ensemble import Ensemble
from harness.processes import wait_until
from refimpl.jute import encode
from refimpl.wire import quorum as wire
from refimpl.wire.packet import Packet, PacketDecoder, PacketType, encode_raw
from spec.tree.data import OPEN_ACL_UNSAFE, Id
from spec.tree.requests import OPCODES, Create, CreateSession, Request, SetData
from spec.tree.txns import Change, CreateTxn
from spec.txn import Txn, make_zxid
from spec.zab import packets as zab
from tests.node.hostile import (
    WAIT,
    check_unharmed,
    client,
    connection,
    hang_up,
    has_ended,
    leads_alone,
    log_of,
    resident,
    send,
    wait_said,
)
from tests.node.patience import LONG_LIMITS

Launch = Callable[..., Ensemble]
GROWTH = 24 << 20
HIGH, LOW = 2**63 - 1, -(2**63)
STRANGER = 99
TREE = zab.Proposal(Txn(make_zxid(9, 9), Change(1, 1, 1, CreateTxn("/forged", b"", OPEN_ACL_UNSAFE, False, 1))))


@pytest.fixture(scope="module")
def ensemble(launch: Launch) -> Ensemble:
    return launch(["node", "node", "node"], tick_time=250, extra=LONG_LIMITS)


@pytest.fixture
def leader(ensemble: Ensemble) -> Iterator[int]:
    """The leader's id; afterwards every server must be as before, and the tree must contain nothing forged."""
    wait_until(lambda: leads_alone(ensemble), WAIT, "one server leads")
    ensemble.wait_serving()
    before = resident(ensemble)
    yield ensemble.leader()
    check_unharmed(ensemble, before, GROWTH)
    with client(ensemble) as asking:
        assert not [name for name in asking.get_children("/") if name.startswith("forged")]


class Impostor:
    """A scripted learner, connected to the leader."""

    def __init__(self, ensemble: Ensemble, leader: int) -> None:
        self._opened = connection(ensemble.member(leader).quorum_port)
        self.socket = self._opened.__enter__()
        self._decoder = PacketDecoder()
        self._heard: list[Packet] = []
        self._is_served = False
        self.passed: list[Packet] = []
        """The packets that `hear` has skipped."""

    def close(self) -> None:
        hang_up(self.socket)
        self.socket.close()

    def say(self, *packets: wire.QuorumMessage | Packet) -> bool:
        return send(
            self.socket,
            b"".join(encode_raw(each) if isinstance(each, Packet) else wire.encode_packet(each) for each in packets),
        )

    def hear(self, kind: PacketType) -> Packet:
        """Return the next packet of this type; skip others, including a snapshot after one.

        Once it is served, it answers each PING, as a learner does: the leader disconnects a silent one in any case.
        """
        while True:
            while self._heard:
                found = self._heard.pop(0)
                if found.type == kind:
                    return found
                self.passed.append(found)
                if found.type == PacketType.PING and self._is_served:
                    self.say(wire.PingPacket(0))
            self._heard += self._decoder.feed(self._arrived(kind))
            if self._decoder.streaming:
                taken = self._decoder.take()
                while b"BenWasHere" not in taken:
                    taken += self._arrived(kind)
                self._heard += self._decoder.resume(taken.partition(b"BenWasHere")[2])

    def _arrived(self, kind: PacketType) -> bytes:
        """Return the next bytes. A connection that ends while bytes to the leader are in flight ends by a reset."""
        try:
            arrived = self.socket.recv(65536)
        except ConnectionError:
            arrived = b""
        assert arrived, f"the leader has ended the connection before {kind.name}"
        return arrived

    def registers(self, sid: int = STRANGER, accepted: int = 0, *, observer: bool = False) -> int:
        """Send FOLLOWERINFO; return the epoch of the LEADERINFO."""
        self.say(wire.Registration(zab.FollowerInfo(accepted, observer), sid))
        return self.hear(PacketType.LEADERINFO).zxid >> 32

    def serves(self, sid: int = STRANGER, *, observer: bool = False) -> int:
        """Perform all steps of a learner until it is served; return the epoch."""
        epoch = self.registers(sid, observer=observer)
        self.say(zab.AckEpoch(0, 0))
        self.hear(PacketType.NEWLEADER)
        self.say(zab.Ack(make_zxid(epoch)))
        self.hear(PacketType.UPTODATE)
        self.say(zab.Ack(make_zxid(epoch)))
        self._is_served = True
        return epoch


@pytest.fixture
def impostor(ensemble: Ensemble, leader: int) -> Iterator[Impostor]:
    found = Impostor(ensemble, leader)
    yield found
    found.close()


FIRST = [
    zab.AckEpoch(0, 0),
    zab.Ack(make_zxid(1)),
    zab.QuorumRequest(Request(1, 1, SetData("/", b"", -1))),
    wire.PingPacket(0),
    zab.LeaderInfo(1),
    zab.Diff(0),
    zab.Commit(HIGH),
    zab.UpToDate(),
    TREE,
    wire.RevalidateRequest(1, 1),
]


@pytest.mark.parametrize("packet", FIRST, ids=lambda packet: type(packet).__name__)
def test_whoever_does_not_begin_with_followerinfo_is_cut_off(packet: wire.QuorumMessage, impostor: Impostor) -> None:
    impostor.say(packet)
    assert has_ended(impostor.socket)


@pytest.mark.parametrize("observer", [False, True], ids=["FOLLOWERINFO", "OBSERVERINFO"])
@pytest.mark.parametrize("epoch", [-1, -(2**31), 2**21, 2**31 - 2, 2**31 - 1])
def test_an_accepted_epoch_that_no_honest_server_has_is_refused(
    epoch: int, observer: bool, ensemble: Ensemble, leader: int, impostor: Impostor
) -> None:
    impostor.say(wire.Registration(zab.FollowerInfo(epoch, observer), STRANGER))
    assert has_ended(impostor.socket)
    wait_said(ensemble, leader, f"server {STRANGER} has accepted epoch {epoch}, where 0 to ")


def test_nobody_else_is_the_leader(ensemble: Ensemble, leader: int, impostor: Impostor) -> None:
    impostor.say(wire.Registration(zab.FollowerInfo(0), leader))
    assert has_ended(impostor.socket)
    wait_said(ensemble, leader, f"it says that it is server {leader}, and that is this one")


@pytest.mark.parametrize(
    "packet",
    [
        wire.Registration(zab.FollowerInfo(0), STRANGER),
        zab.Ack(0),
        wire.PingPacket(0),
        TREE,
        wire.RevalidateReply(1, True),
    ],
    ids=["FOLLOWERINFO again", "ACK", "PING", "PROPOSAL", "an answer to REVALIDATE"],
)
def test_after_followerinfo_comes_ackepoch_and_nothing_else(packet: wire.QuorumMessage, impostor: Impostor) -> None:
    impostor.registers()
    impostor.say(packet)
    assert has_ended(impostor.socket)


@pytest.mark.parametrize("zxid", [LOW, -1, 0, 1, make_zxid(1, 1), make_zxid(2**31 - 1), HIGH])
@pytest.mark.parametrize("epoch", [-(2**31), -1, 0, 2**31 - 1])
def test_any_history_in_ackepoch_is_answered_or_refused(zxid: int, epoch: int, impostor: Impostor) -> None:
    impostor.registers()
    impostor.say(zab.AckEpoch(zxid, epoch))
    first = impostor.socket.recv(4)
    assert not first or struct.unpack(">i", first)[0] in (PacketType.DIFF, PacketType.TRUNC, PacketType.SNAP)


def test_a_request_before_newleader_is_acknowledged_ends_the_connection(impostor: Impostor) -> None:
    impostor.registers()
    impostor.say(zab.AckEpoch(0, 0))
    impostor.hear(PacketType.NEWLEADER)
    impostor.say(zab.QuorumRequest(Request(1, 1, Create("/forged", b"", OPEN_ACL_UNSAFE, 0))))
    assert has_ended(impostor.socket)


def test_acknowledgements_of_what_was_never_proposed_mean_nothing(impostor: Impostor) -> None:
    epoch = impostor.serves()
    for zxid in (make_zxid(epoch, 77), make_zxid(epoch + 1, 1), HIGH, LOW, -1, 1):
        impostor.say(zab.Ack(zxid), zab.Ack(zxid))
    impostor.say(zab.QuorumRequest(Request(1, 5, SetData("/none", b"", -1))))
    impostor.hear(PacketType.COMMIT)  # it is still connected, so everything before was handled


def test_its_acknowledgements_do_not_count(ensemble: Ensemble, leader: int, impostor: Impostor) -> None:
    epoch = impostor.serves()
    followers = [sid for sid in ensemble.sids if sid != leader]
    for sid in followers:
        ensemble.pause(sid)
    try:
        impostor.say(zab.QuorumRequest(Request(1, 5, SetData("/none", b"", -1))))
        zxid = impostor.hear(PacketType.PROPOSAL).zxid
        assert zxid > make_zxid(epoch)
        # With the impostor's ACK there would be two of three. The leader has read it when it proposes the next request.
        impostor.say(zab.Ack(zxid), zab.QuorumRequest(Request(1, 6, SetData("/none", b"", -1))))
        assert impostor.hear(PacketType.PROPOSAL).zxid == zxid + 1
        assert (PacketType.COMMIT, zxid) not in [(packet.type, packet.zxid) for packet in impostor.passed]
    finally:
        for sid in followers:
            ensemble.resume(sid)
    assert impostor.hear(PacketType.COMMIT).zxid == zxid


@pytest.mark.parametrize(
    "packet",
    [TREE, zab.Commit(HIGH), zab.QuorumSync(), zab.UpToDate(), zab.Trunc(0), zab.Diff(HIGH), zab.Inform(TREE.txn)],
    ids=lambda packet: type(packet).__name__,
)
def test_packets_that_only_a_leader_sends_are_passed_over_once_it_serves(
    packet: zab.QuorumPacket, impostor: Impostor
) -> None:
    impostor.serves()
    impostor.say(packet, Packet(99, HIGH, b""), zab.QuorumRequest(Request(1, 6, SetData("/none", b"", -1))))
    impostor.hear(PacketType.COMMIT)


def request(opcode: int, body: bytes, session: int = 7) -> Packet:
    return Packet(PacketType.REQUEST, -1, struct.pack(">qii", session, 1, opcode) + body, (Id("super", "x"),))


def test_forwarded_requests_that_make_no_sense_are_answered_with_errors(impostor: Impostor) -> None:
    impostor.serves()
    bodies = [b"", b"\xff" * 7, b"\0" * 40, struct.pack(">i", 2**31 - 1), b"\x80" * 2000]
    sent = 0
    for opcode in [*OPCODES, 0, 999, -1, 2**31 - 1, -(2**31)]:
        if opcode in (9, -10, -11):
            continue  # sync has no transaction; sessions are opened and closed below
        for body in bodies:
            impostor.say(request(opcode, body))
            sent += 1
    impostor.say(zab.QuorumRequest(Request(7, 4242, SetData("/none", b"", -1))))
    for _ in range(sent + 1):
        impostor.hear(PacketType.COMMIT)


def test_sessions_that_cannot_be_end_as_any_other(ensemble: Ensemble, leader: int, impostor: Impostor) -> None:
    impostor.serves()
    for session, timeout in ((0, 0), (-1, -(2**31)), (HIGH, 2**31 - 1), (LOW, 1)):
        impostor.say(zab.QuorumRequest(Request(session, 1, CreateSession(timeout))))
        impostor.hear(PacketType.COMMIT)
        impostor.say(
            wire.RevalidateRequest(session, -1), wire.PingPacket(0, ((session, -(2**31)), (session, 2**31 - 1)))
        )
        impostor.hear(PacketType.REVALIDATE)
    for session in (0, -1, HIGH, LOW):
        impostor.say(request(-11, b"", session))
        impostor.hear(PacketType.COMMIT)
    # The test waits here: a session that expires meanwhile has a COMMIT too, which may have been taken for the last
    # one.
    wait_until(lambda: lists_no_session(ensemble.word(leader, "dump"), HIGH), WAIT, "the last of them has ended")


def lists_no_session(dump: str, session: int) -> bool:
    """Whether a server has answered `dump`, and this session is not in the list."""
    return "Session" in dump and f"{session:#x}" not in dump


def test_pings_of_sessions_that_nobody_knows_are_not_kept(impostor: Impostor) -> None:
    impostor.serves()
    for first in range(0, 1_000_000, 50_000):
        impostor.say(wire.PingPacket(0, tuple((session, 10_000) for session in range(first, first + 50_000))))
    impostor.say(zab.QuorumRequest(Request(1, 6, SetData("/none", b"", -1))))
    impostor.hear(PacketType.COMMIT)


def test_only_so_many_that_the_configuration_does_not_name(ensemble: Ensemble, leader: int) -> None:
    impostors = [Impostor(ensemble, leader) for _ in range(64)]
    for sid, each in enumerate(impostors, 1000):
        each.registers(sid, observer=True)
    one_more = Impostor(ensemble, leader)
    one_more.say(wire.Registration(zab.FollowerInfo(0), 2000))
    assert has_ended(one_more.socket)
    for each in (*impostors, one_more):
        each.close()


def test_whoever_takes_the_place_of_a_follower_does_not_end_the_service(ensemble: Ensemble, leader: int) -> None:
    follower = next(sid for sid in ensemble.sids if sid != leader)
    for _ in range(3):
        thief = Impostor(ensemble, leader)
        thief.registers(follower)
        thief.close()
    ensemble.wait_serving()


def test_a_learner_that_reads_nothing_is_silent_at_last_and_cut_off(ensemble: Ensemble, leader: int) -> None:
    deaf = Impostor(ensemble, leader)
    deaf.say(wire.Registration(zab.FollowerInfo(0, observer=True), STRANGER))
    deaf.say(zab.AckEpoch(0, 0))
    wait_said(ensemble, leader, f"lost learner {STRANGER} at ")
    deaf.close()


def test_thousands_of_requests_at_once(ensemble: Ensemble, leader: int, impostor: Impostor) -> None:
    impostor.serves(observer=True)
    body = encode(SetData("/none", b"", -1))
    count = 4500  # more than are kept in memory after they are applied
    impostor.say(*(request(5, body) for _ in range(count)))
    for _ in range(count):
        impostor.hear(PacketType.INFORM)
    assert "defect" not in log_of(ensemble, leader)
