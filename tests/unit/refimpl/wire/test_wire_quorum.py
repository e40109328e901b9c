"""The quorum port: recorded messages of a real leader, a follower and an observer.

golden/wire/quorum.hex describes the recording. The expected messages follow from the requests of test_wire_client.
"""

import struct
from pathlib import Path

import pytest
from msgspec.structs import replace

from refimpl.jute import JuteError
from refimpl.wire.client import BadRequestError
from refimpl.wire.packet import MAX_AUTHINFO, Packet, PacketDecoder, PacketType, encode_raw, largest_data
from refimpl.wire.quorum import (
    ForwardedSync,
    LeaderConfig,
    PingPacket,
    QuorumMessage,
    Registration,
    RevalidateReply,
    RevalidateRequest,
    UnknownPacketError,
    decode_of_learner,
    decode_packet,
    encode_packet,
    to_raw,
)
from spec.config import parse_ensemble
from spec.quorum import Reconfiguration, majority_view
from spec.tree.data import OPEN_ACL_UNSAFE, Id
from spec.tree.replies import Code
from spec.tree.requests import CloseSession, Create, CreateSession, Request, SetData, Sync
from spec.tree.txns import Change, ReconfigTxn, SetDataTxn
from spec.txn import Txn, make_zxid
from spec.zab import packets as zab

EPOCH = make_zxid(1)
MOVED = 0x100001D2B9E0000
SHORT_LIVED = 0x200001D2B9C0000
LOCAL = (Id("ip", "127.0.0.1"),)

Stream = list[bytes]


def recorded() -> dict[str, Stream]:
    """Return the packets of each learner and of the leader to it, and the raw stream after SNAP."""
    found: dict[str, Stream] = {}
    learner = ""
    lines = (Path(__file__).parents[2] / "golden" / "wire" / "quorum.hex").read_text().splitlines()
    for line in lines:
        if line[0] == "#":
            learner = line[2:].partition(",")[0]
        else:
            name = {">": learner, "<": f"to {learner}", "=": "tree"}[line[0]]
            found.setdefault(name, []).append(bytes.fromhex(line[2:]))
    return found


RECORDED = recorded()
FOLLOWER, TO_FOLLOWER = RECORDED["follower"], RECORDED["to follower"]
OBSERVER, TO_OBSERVER = RECORDED["observer"], RECORDED["to observer"]
(TREE,) = RECORDED["tree"]
EVERYTHING = FOLLOWER + TO_FOLLOWER + OBSERVER + TO_OBSERVER


def packet_of(data: bytes) -> Packet:
    decoder = PacketDecoder()
    (packet,) = decoder.feed(data)
    return packet


def message_of(data: bytes) -> QuorumMessage:
    return decode_packet(packet_of(data))


def raw(kind: int, data: bytes | None = None, zxid: int = 0) -> Packet:
    return Packet(kind, zxid, data)


def test_every_packet_is_written_as_it_was_read() -> None:
    for data in EVERYTHING:
        assert encode_raw(packet_of(data)) == data


def test_every_message_is_written_as_the_real_server_wrote_it() -> None:
    """Two differences are allowed: the digest of a transaction is omitted, and an empty PING has null data."""
    for data in EVERYTHING:
        packet = packet_of(data)
        written = to_raw(decode_packet(packet))
        if packet.type in (PacketType.PROPOSAL, PacketType.INFORM):
            assert (packet.data or b"").removeprefix(written.data or b"")[:4] in (b"", b"\0\0\0\2")
        elif packet.type == PacketType.PING and packet.data is None:
            assert written == Packet(PacketType.PING, packet.zxid, b"")
        else:
            assert encode_raw(written) == data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(FOLLOWER[0], Registration(zab.FollowerInfo(0), 2), id="FOLLOWERINFO"),
        pytest.param(OBSERVER[0], Registration(zab.FollowerInfo(0, True), 4), id="OBSERVERINFO"),
        pytest.param(TO_FOLLOWER[0], zab.LeaderInfo(1), id="LEADERINFO"),
        pytest.param(FOLLOWER[1], zab.AckEpoch(0, 0), id="ACKEPOCH"),
        pytest.param(TO_FOLLOWER[1], zab.Diff(0), id="DIFF"),
        pytest.param(TO_OBSERVER[1], zab.Snap(EPOCH + 28, None), id="SNAP"),
        pytest.param(FOLLOWER[2], zab.Ack(EPOCH), id="ACK of NEWLEADER"),
        pytest.param(TO_FOLLOWER[3], zab.UpToDate(), id="UPTODATE"),
        pytest.param(TO_FOLLOWER[4], PingPacket(EPOCH), id="PING"),
    ],
)
def test_the_handshake_says_what_it_says(data: bytes, message: QuorumMessage) -> None:
    assert message_of(data) == message


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        pytest.param(FOLLOWER, PingPacket(EPOCH + 7, ((MOVED, 9000),)), id="PING with a session"),
        pytest.param(FOLLOWER, RevalidateRequest(MOVED, 9000), id="REVALIDATE"),
        pytest.param(TO_FOLLOWER, RevalidateReply(MOVED, True), id="REVALIDATE, answered"),
        pytest.param(FOLLOWER, zab.QuorumRequest(Request(MOVED, 1, SetData("/a", b"moved", -1), LOCAL)), id="REQUEST"),
        pytest.param(FOLLOWER, zab.QuorumRequest(Request(SHORT_LIVED, 0, CreateSession(9000))), id="createSession"),
        pytest.param(FOLLOWER, zab.QuorumRequest(Request(SHORT_LIVED, 1, CloseSession(), LOCAL)), id="closeSession"),
        pytest.param(FOLLOWER, ForwardedSync(Request(SHORT_LIVED + 1, 12, Sync("/a"), LOCAL)), id="sync"),
        pytest.param(TO_FOLLOWER, zab.QuorumSync(), id="SYNC"),
        pytest.param(TO_FOLLOWER, zab.Commit(EPOCH + 7), id="COMMIT"),
        pytest.param(FOLLOWER, zab.Ack(EPOCH + 7), id="ACK"),
    ],
)
def test_a_stream_has_the_message_that_the_clients_requests_led_to(stream: Stream, message: QuorumMessage) -> None:
    assert message in map(message_of, stream)


def test_a_proposal_carries_the_transaction() -> None:
    (proposal,) = [
        message
        for message in map(message_of, TO_FOLLOWER)
        if isinstance(message, zab.Proposal) and message.txn.zxid == EPOCH + 7
    ]
    change = proposal.txn.value

    assert isinstance(change, Change)
    assert (change.session, change.cxid, change.record) == (MOVED, 6, SetDataTxn("/a", b"new", 1))


def test_an_observer_is_informed_of_what_it_asked_for() -> None:
    informs = [message.txn for message in map(message_of, TO_OBSERVER) if isinstance(message, zab.Inform)]
    requests = [message.value for message in map(message_of, OBSERVER) if isinstance(message, zab.QuorumRequest)]

    assert [(txn.value.session, txn.value.cxid) for txn in informs] == [(r.session, r.cxid) for r in requests]
    assert requests[1].record == Create("/obs", b"o", OPEN_ACL_UNSAFE, 0)


def test_new_leader_carries_a_configuration_that_can_be_read() -> None:
    message = message_of(TO_FOLLOWER[2])

    assert isinstance(message, LeaderConfig)
    assert message.packet == zab.NewLeader(1)
    assert parse_ensemble(message.config).view == majority_view({1, 2, 3}, {4})


def test_the_decoder_stops_at_snap_and_goes_on_behind_the_tree() -> None:
    before, behind = b"".join(TO_OBSERVER[:2]), b"".join(TO_OBSERVER[2:])
    decoder, found, tree = PacketDecoder(), [], b""
    stream = before + TREE + behind
    for at in range(0, len(stream), 13):
        found += decoder.feed(stream[at : at + 13])
        tree += decoder.take()
        if decoder.streaming and b"BenWasHere" in tree:
            end = tree.index(b"BenWasHere") + len(b"BenWasHere")
            found += decoder.resume(tree[end:])
            tree = tree[:end]

    assert tree == TREE
    assert found == [packet_of(data) for data in TO_OBSERVER]


def test_what_arrives_before_the_decoder_goes_on_stands_behind_what_was_taken() -> None:
    first, second = TO_OBSERVER[2:4]
    decoder = PacketDecoder()
    decoder.feed(TO_OBSERVER[1] + TREE + first[:9])
    taken = decoder.take()

    assert decoder.feed(first[9:] + second) == []
    assert decoder.resume(taken[len(TREE) :]) == [packet_of(first), packet_of(second)]


def test_nothing_is_taken_while_no_tree_is_on_its_way() -> None:
    decoder = PacketDecoder()
    decoder.feed(TO_FOLLOWER[0][:10])

    assert decoder.take() == b""
    assert decoder.feed(TO_FOLLOWER[0][10:]) == [packet_of(TO_FOLLOWER[0])]


def test_data_may_have_the_size_that_a_request_may_have_and_its_header() -> None:
    data = bytes(largest_data(1024))

    assert PacketDecoder(1024).feed(encode_raw(raw(2, data))) == [raw(2, data)]


@pytest.mark.parametrize(
    ("head", "said"),
    [
        pytest.param("00000002 0000000000000001 00000801", "data at byte 12: length 2049", id="data too long"),
        pytest.param("00000002 0000000000000001 fffffffe", "data at byte 12: length -2", id="data below null"),
        pytest.param("00000002 0000000000000001 ffffffff fffffffe", "authinfo at byte 16: a vector of -2", id="vector"),
        pytest.param("00000002 0000000000000001 ffffffff 7fffffff 00010000", "authinfo", id="too many identities"),
        pytest.param("00000002 0000000000000001 ffffffff 00000001 fffffffe", "authinfo", id="identity below null"),
        pytest.param("00000002 0000000000000001 ffffffff 00000001 00000001 ff 00000000", "UTF-8", id="no text"),
    ],
)
def test_a_length_out_of_bounds_is_refused_before_it_arrives(head: str, said: str) -> None:
    with pytest.raises(JuteError, match=said):
        PacketDecoder(1024).feed(bytes.fromhex(head))


@pytest.mark.parametrize(
    ("head", "fault"),
    [
        (struct.pack(">iqi", PacketType.NEWLEADER, 0, 2_000_000), "type at byte 0: 10 in its first packet"),
        (struct.pack(">iqii", PacketType.COMMIT, 0, -1, -1), "type at byte 0: 4 in its first packet"),
        (struct.pack(">iqi", PacketType.OBSERVERINFO, 0, 1025), "length 1025 (type 16), where -1 to 1024 would be"),
    ],
)
def test_a_stranger_is_refused_by_the_head_of_its_first_packet(head: bytes, fault: str) -> None:
    """`LearnerHandler.run` refuses another type too, but only after it has read the packet."""
    with pytest.raises(JuteError) as raised:
        PacketDecoder(of_stranger=True).feed(head)
    assert fault in str(raised.value)


def test_a_learner_may_send_any_packet_once_it_has_introduced_itself() -> None:
    decoder = PacketDecoder(of_stranger=True)
    packets = [Packet(PacketType.FOLLOWERINFO, 0, bytes(20)), Packet(PacketType.REQUEST, 0, bytes(4096))]
    assert decoder.feed(b"".join(map(encode_raw, packets))) == packets


@pytest.mark.parametrize("kind", sorted(set(PacketType) - {1, 3, 5, 6, 11, 16, 18}))
def test_a_leader_does_not_read_what_only_a_leader_sends(kind: PacketType) -> None:
    """The content is invalid, so reading it would be an error; `LearnerHandler.run` passes over such a packet."""
    assert decode_of_learner(Packet(kind, 0, b"\xff")) == zab.UpToDate()


def test_identities_may_not_take_more_than_their_share() -> None:
    packet = Packet(1, -1, None, (Id("x", "y" * MAX_AUTHINFO),))

    with pytest.raises(JuteError, match=f"{MAX_AUTHINFO} bytes are the most"):
        PacketDecoder().feed(encode_raw(packet))


@pytest.mark.parametrize(
    ("packet", "said"),
    [
        pytest.param(raw(PacketType.FOLLOWERINFO), "FOLLOWERINFO.data at byte 0", id="a learner without a name"),
        pytest.param(raw(PacketType.FOLLOWERINFO, bytes(12)), "LearnerInfo.protocolVersion", id="older than 3.4"),
        pytest.param(raw(PacketType.LEADERINFO), "LEADERINFO.data", id="LEADERINFO without a protocol"),
        pytest.param(raw(PacketType.ACKEPOCH, b"\0"), "ACKEPOCH.data at byte 1", id="ACKEPOCH without an epoch"),
        pytest.param(raw(PacketType.PING, bytes(13)), "PING.data at byte 13", id="half a session"),
        pytest.param(raw(PacketType.REVALIDATE, bytes(3)), "REVALIDATE.data at byte 3", id="no session"),
        pytest.param(raw(PacketType.REQUEST, bytes(3)), "REQUEST.data at byte 3", id="no header of a request"),
        pytest.param(raw(PacketType.PROPOSAL), "TxnHeader at byte 0", id="no transaction"),
    ],
)
def test_data_that_a_packet_cannot_have_is_refused(packet: Packet, said: str) -> None:
    with pytest.raises(JuteError, match=f"^{said}"):
        decode_packet(packet)


@pytest.mark.parametrize("kind", [0, 99])
def test_a_type_that_is_not_supported_can_be_told_from_other_errors(kind: int) -> None:
    with pytest.raises(UnknownPacketError, match="is not supported"):
        decode_packet(raw(kind))


def test_a_learner_that_does_not_say_its_configurations_version_has_version_zero() -> None:
    named = raw(PacketType.FOLLOWERINFO, bytes.fromhex("0000000000000007 00010000"), make_zxid(3))

    assert decode_packet(named) == Registration(zab.FollowerInfo(3, config_version=0), 7)


@pytest.mark.parametrize(
    ("head", "code"),
    [
        pytest.param("0000000000000007 00000005 00000063", Code.UNIMPLEMENTED, id="unknown opcode"),
        pytest.param("0000000000000007 00000005 00000002 00000009", Code.MARSHALLING_ERROR, id="broken body"),
    ],
)
def test_a_request_that_cannot_be_read_says_who_waits_for_an_answer(head: str, code: Code) -> None:
    with pytest.raises(BadRequestError) as error:
        decode_packet(raw(PacketType.REQUEST, bytes.fromhex(head), -1))

    assert (error.value.session, error.value.xid, error.value.code) == (7, 5, code)


@pytest.mark.parametrize("packet", [zab.FollowerInfo(1), zab.NewLeader(1), zab.QuorumPing(), zab.SyncRequest()])
def test_a_packet_that_the_wire_gives_more_is_not_written_without_it(packet: zab.QuorumPacket) -> None:
    with pytest.raises(JuteError, match="the wire carries more"):
        encode_packet(packet)


def test_a_number_that_does_not_fit_is_refused() -> None:
    with pytest.raises(JuteError, match="RevalidateRequest"):
        encode_packet(RevalidateRequest(1, 1 << 40))
    with pytest.raises(JuteError, match="QuorumPacket"):
        encode_packet(zab.Commit(1 << 70))


# Reconfiguration. The bytes are put together from the packets of real servers (docs/reference-reconfig-facts.md).

LINES = "server.1=zk1:28881:38881:participant;127.0.0.1:21811\nserver.2=zk2:28882:38882:participant;127.0.0.1:21812"
CONFIG = f"{LINES}\nversion=100000001".encode()
VIEW = replace(majority_view((1, 2), version=0x100000001), text=LINES)
PATH = b"/zookeeper/config"
RECORD = struct.pack(">i17si", len(PATH), PATH, len(CONFIG)) + CONFIG + struct.pack(">i", -1)
TXN = struct.pack(">qiqqi", 7, 8, 0x100000001, 9, 16) + RECORD
RECONFIGURATION = Txn(0x100000001, Reconfiguration(VIEW, Change(7, 8, 9, ReconfigTxn(PATH.decode(), CONFIG, -1))))
LEADER_3 = struct.pack(">q", 3)


@pytest.mark.parametrize(
    ("packet", "message"),
    [
        pytest.param(raw(PacketType.PROPOSAL, TXN, 0x100000001), zab.Proposal(RECONFIGURATION), id="PROPOSAL"),
        pytest.param(raw(PacketType.INFORM, TXN, 0x100000001), zab.Inform(RECONFIGURATION), id="INFORM"),
        pytest.param(
            raw(PacketType.COMMITANDACTIVATE, LEADER_3, 0x100000001),
            zab.CommitAndActivate(0x100000001, 3),
            id="COMMITANDACTIVATE",
        ),
        pytest.param(
            raw(PacketType.INFORMANDACTIVATE, LEADER_3 + TXN, 0x100000001),
            zab.InformAndActivate(RECONFIGURATION, 3),
            id="INFORMANDACTIVATE",
        ),
        pytest.param(
            raw(PacketType.NEWLEADER, CONFIG, make_zxid(2)),
            LeaderConfig(zab.NewLeader(2, VIEW), CONFIG.decode()),
            id="NEWLEADER",
        ),
    ],
)
def test_a_packet_of_reconfiguration_is_read_and_written(packet: Packet, message: QuorumMessage) -> None:
    assert decode_packet(packet) == message
    assert to_raw(message) == packet


def test_a_configuration_without_a_version_is_no_view() -> None:
    message = decode_packet(raw(PacketType.NEWLEADER, f"{LINES}\nversion=0".encode(), make_zxid(2)))
    assert isinstance(message, LeaderConfig) and message.packet == zab.NewLeader(2)


@pytest.mark.parametrize(
    "packet",
    [
        pytest.param(raw(PacketType.NEWLEADER, b"server.1=nonsense", make_zxid(2)), id="NEWLEADER"),
        pytest.param(raw(PacketType.NEWLEADER, rb"server.1=a\nb:1:2", make_zxid(2)), id="NEWLEADER with a line break"),
        pytest.param(raw(PacketType.PROPOSAL, TXN.replace(b"zk1:28881", b"zk1:x8881"), 0x100000001), id="PROPOSAL"),
        pytest.param(
            raw(PacketType.PROPOSAL, TXN.replace(b"version=100000001", b"version=-00000001"), 0x100000001),
            id="PROPOSAL with a version that is not its zxid",
        ),
        pytest.param(raw(PacketType.COMMITANDACTIVATE, b"\0" * 7), id="COMMITANDACTIVATE, cut short"),
        pytest.param(raw(PacketType.INFORMANDACTIVATE, LEADER_3), id="INFORMANDACTIVATE without a transaction"),
    ],
)
def test_a_malformed_configuration_is_an_error(packet: Packet) -> None:
    with pytest.raises(JuteError):
        decode_packet(packet)
