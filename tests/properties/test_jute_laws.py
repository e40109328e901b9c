"""Laws of the wire: written data reads back, both coders agree, and invalid bytes raise only a JuteError."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from refimpl.jute import JuteError, decode, decode_whole, encode
from refimpl.jute.plain import Scalar, Shape, Structure, Vector, decode_plainly, encode_plainly, shape_of
from refimpl.jute.special import PARTS, READS, RESULTS, SPECIAL, WRITES
from refimpl.wire.client import decode_connect_request, decode_request
from refimpl.wire.election import OpeningDecoder, decode_notification, notifications
from refimpl.wire.packet import Packet, PacketDecoder, PacketType, encode_raw
from refimpl.wire.quorum import decode_packet, encode_packet
from refimpl.wire.txn import TYPES, decode_txn, encode_txn
from spec.quorum import Reconfiguration, majority_view
from spec.tree import data, replies, requests, txns
from spec.tree.data import Id, Record
from spec.tree.txns import Change, TxnDigest
from spec.txn import Txn
from spec.zab.packets import Inform, Proposal

INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
BUFFERS = st.none() | st.binary(max_size=20)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "int": INTS,
    "long": LONGS,
    "boolean": st.booleans(),
    "ustring": TEXTS,
    "buffer": BUFFERS,
}

CLASSES = sorted(
    {
        cls
        for module in (data, requests, replies, txns)
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, Record) and cls not in (Record, replies.OperationResult)
    },
    key=lambda cls: cls.__name__,
)
PLAIN = [cls for cls in CLASSES if cls not in SPECIAL]


def values(shape: Shape) -> st.SearchStrategy[Any]:
    match shape:
        case Scalar(kind=kind):
            return SCALARS[kind]
        case Vector(item=item):
            return st.lists(values(item), max_size=3).map(tuple)
        case Structure():
            return records(shape.cls)


def records(cls: type[Record]) -> st.SearchStrategy[Any]:
    special: dict[type[Record], st.SearchStrategy[Any]] = {
        requests.Multi: several(WRITES.values()).map(requests.Multi),
        requests.MultiRead: several(READS.values()).map(requests.MultiRead),
        txns.MultiTxn: several(PARTS.values()).map(txns.MultiTxn),
        replies.MultiReply: st.lists(results(), max_size=3).map(lambda found: replies.MultiReply(tuple(found))),
        requests.DeleteContainer: TEXTS.map(requests.DeleteContainer),
    }
    if cls in special:
        return special[cls]
    return st.builds(cls, *(values(part) for _, part in shape_of(cls).fields))


def several(classes: Any) -> st.SearchStrategy[tuple[Record, ...]]:
    return st.lists(st.sampled_from(sorted(classes, key=str)).flatmap(records), max_size=3).map(tuple)


def results() -> st.SearchStrategy[replies.OperationResult]:
    def of(number: int) -> st.SearchStrategy[replies.OperationResult]:
        cls = RESULTS[number]
        record = st.none() if cls is None else records(cls)
        return record.map(lambda answer: replies.OperationResult(number, answer))

    return st.sampled_from(sorted(RESULTS)).flatmap(of)


ANY_RECORD = st.sampled_from(CLASSES).flatmap(records)
TXNS = st.sampled_from(sorted(TYPES.values(), key=str)).flatmap(records)
CHANGES = st.builds(Change, LONGS, INTS, LONGS, TXNS)
IDS = st.lists(st.builds(Id, TEXTS, TEXTS), max_size=3).map(tuple)
PACKETS = st.builds(Packet, st.sampled_from(sorted(set(PacketType) - {PacketType.SNAP})).map(int), LONGS, BUFFERS, IDS)


@settings(max_examples=300, deadline=None)
@given(ANY_RECORD)
def test_every_record_reads_back_as_it_was_written(record: Record) -> None:
    assert decode_whole(type(record), encode(record)) == record


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(PLAIN).flatmap(records), st.binary(max_size=3), st.binary(max_size=3))
def test_the_compiled_and_the_plain_coder_agree(record: Record, before: bytes, behind: bytes) -> None:
    content = encode_plainly(record)

    assert encode(record) == content
    surrounded = before + content + behind
    assert decode(type(record), surrounded, len(before)) == decode_plainly(type(record), surrounded, len(before))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(CLASSES), st.binary(max_size=60))
@example(replies.ChildrenReply, b"\x7f\xff\xff\xff")
@example(requests.Multi, b"\0\0\0\x0e\0\xff\xff\xff\xff" * 3)
def test_no_bytes_do_worse_than_a_jute_error(cls: type[Record], content: bytes) -> None:
    try:
        record, end = decode(cls, content)
    except JuteError:
        return
    assert 0 <= end <= len(content)
    assert isinstance(record, cls)


@settings(max_examples=300, deadline=None)
@given(ANY_RECORD, st.data())
def test_a_record_that_was_damaged_is_a_record_or_a_jute_error(record: Record, draw: st.DataObject) -> None:
    content = bytearray(encode(record))
    for _ in range(draw.draw(st.integers(1, 3))):
        if content:
            content[draw.draw(st.integers(0, len(content) - 1))] = draw.draw(st.integers(0, 255))
    del content[draw.draw(st.integers(0, len(content))) :]
    try:
        found, _ = decode(type(record), bytes(content))
    except JuteError:
        return
    assert isinstance(found, type(record))


@settings(max_examples=200, deadline=None)
@given(LONGS, CHANGES)
def test_every_transaction_reads_back_with_and_without_a_digest(zxid: int, change: Change) -> None:
    content = encode_txn(zxid, change)

    assert decode_txn(content) == (zxid, change)
    digest = TxnDigest(2, -0x1111111111111112)
    assert decode_txn(content + b"\0\0\0\2" + b"\xee" * 8) == (zxid, replace(change, digest=digest))


@st.composite
def reconfigurations(draw: st.DrawFn) -> Txn:
    """Draw one as PrepRequestProcessor makes it: the lines of its servers, then its zxid as the version."""
    zxid = draw(st.integers(1, 2**63 - 1))
    sids = draw(st.lists(st.integers(1, 255), min_size=1, max_size=5, unique=True))
    lines = "\n".join(f"server.{sid}=zk{sid}:2888:3888:participant;127.0.0.1:{2000 + sid}" for sid in sorted(sids))
    record = txns.ReconfigTxn(draw(TEXTS), f"{lines}\nversion={zxid:x}".encode(), draw(INTS))
    view = replace(majority_view(sids, version=zxid), text=lines)
    return Txn(zxid, Reconfiguration(view, Change(draw(LONGS), draw(INTS), draw(LONGS), record)))


OTHER_CHANGES = CHANGES.filter(lambda change: not isinstance(change.record, txns.ReconfigTxn))


@settings(max_examples=100, deadline=None)
@given(st.builds(Txn, LONGS, OTHER_CHANGES) | reconfigurations())
def test_proposals_and_informs_carry_every_transaction(txn: Txn) -> None:
    for message in (Proposal(txn), Inform(txn)):
        (packet,) = PacketDecoder().feed(encode_packet(message))
        assert decode_packet(packet) == message


@settings(max_examples=100, deadline=None)
@given(LONGS, st.builds(txns.ReconfigTxn, TEXTS, BUFFERS, INTS))
@example(0, txns.ReconfigTxn("", None, 0))
def test_a_reconfiguration_without_a_configuration_is_refused(zxid: int, record: txns.ReconfigTxn) -> None:
    """A learner of ZooKeeper leaves its leader then: `QuorumPeer.configFromString` throws ConfigException."""
    with pytest.raises(JuteError, match="ReconfigTxn"):
        decode_packet(Packet(PacketType.PROPOSAL, zxid, encode_txn(zxid, Change(1, 2, 3, record))))


@settings(max_examples=150, deadline=None)
@given(st.lists(PACKETS, max_size=5), st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_packets_come_out_as_they_went_in_however_the_stream_is_cut(packets: list[Packet], cuts: list[int]) -> None:
    stream = b"".join(map(encode_raw, packets))
    decoder, found, at, turn = PacketDecoder(), [], 0, 0
    while at < len(stream):
        size = cuts[turn % len(cuts)]
        found += decoder.feed(stream[at : at + size])
        at, turn = at + size, turn + 1

    assert found == packets


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=80))
def test_no_bytes_from_a_peer_or_a_client_do_worse_than_a_jute_error(content: bytes) -> None:
    readers = (
        decode_request,
        decode_connect_request,
        decode_notification,
        decode_txn,
        OpeningDecoder().feed,
        notifications().feed,
        PacketDecoder().feed,
    )
    for reader in readers:
        try:
            reader(content)
        except JuteError:
            continue


@settings(max_examples=300, deadline=None)
@given(st.builds(Packet, st.integers(-2, 25), LONGS, BUFFERS | st.binary(max_size=60), IDS))
def test_no_packet_does_worse_than_a_jute_error(packet: Packet) -> None:
    try:
        message = decode_packet(packet)
    except JuteError:
        return
    encode_packet(message)
