"""The quorum port's messages: the conversion between packets of the wire and those of `spec.zab.packets`.

A message is a packet of `spec.zab.packets`. Where the wire carries fields that no step reads, it is one of the structs
of this module, which holds that packet and the other fields.

Rules this module keeps:

- `encode_packet` and `decode_packet` are inverses. The length of a REVALIDATE shows its direction, so the decoder needs
  no parameter for it.
- SNAP carries only its zxid; the tree follows as a raw stream (see `refimpl.wire.packet`).
- NEWLEADER always has a configuration as text, and a `NewLeader` has its view only if the version is above 0.
- Learners older than 3.4 are refused with an error.
- The content of a packet that only a leader sends is never read by a leader (`decode_of_learner`).

Source: `Leader`, `LearnerHandler.run`, `Learner.registerWithLeader`, `request`, `validateSession`, `ping`,
`revalidate`; `LearnerMaster.revalidateSession`; `LearnerInfo`.
"""

import struct
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from refimpl.jute import JuteError, encode
from refimpl.wire.packet import HEAD, INTRODUCTIONS, NO_AUTHINFO, SHORT, Packet, PacketType, encode_raw
from refimpl.wire.request import decode_body
from refimpl.wire.txn import decode_txn, encode_txn, txn_of
from spec.config import ConfigError
from spec.config.dynamic_files import view_in
from spec.quorum import Sid, change_of
from spec.tree import requests
from spec.txn import Txn, epoch_of, make_zxid
from spec.zab import packets as zab

PROTOCOL_VERSION = 0x10000
"""The protocol of ZooKeeper 3.4 and later (Zab 1.0)."""
NO_ZXID = -1

INT = struct.Struct(">i")
SID = struct.Struct(">q")
SID_AND_VERSION = struct.Struct(">qi")
LEARNER_INFO = struct.Struct(">qiq")
SESSION_TIMEOUT = struct.Struct(">qi")
SESSION_VALID = struct.Struct(">q?")
REQUEST_HEAD = struct.Struct(">qii")


class Registration(msgspec.Struct, frozen=True):
    """FOLLOWERINFO or OBSERVERINFO with the id of the server from its LearnerInfo."""

    packet: zab.FollowerInfo
    sid: Sid
    protocol_version: int = PROTOCOL_VERSION


class LeaderConfig(msgspec.Struct, frozen=True):
    """NEWLEADER with a configuration of the leader, as `render_ensemble` writes it."""

    packet: zab.NewLeader
    config: str


class PingPacket(msgspec.Struct, frozen=True):
    """PING: the leader's last zxid; a learner's answer adds the sessions active since the last one.

    A session is its id and its timeout in milliseconds; a learner answers with the zxid that it received. Without
    sessions the data is empty and never null, since a real leader fails on a null answer.
    """

    zxid: int
    sessions: tuple[tuple[int, int], ...] = ()


class RevalidateRequest(msgspec.Struct, frozen=True):
    """REVALIDATE from a learner that a client has moved to: is the session, with this timeout, still alive?"""

    session: int
    timeout: int


class RevalidateReply(msgspec.Struct, frozen=True):
    """REVALIDATE from the leader: whether the session is alive."""

    session: int
    valid: bool


class ForwardedSync(msgspec.Struct, frozen=True):
    """REQUEST with the opcode sync (`spec.zab.packets.SyncRequest`), with its session and its number."""

    request: requests.Request


Wrapped: TypeAlias = Registration | LeaderConfig | PingPacket | RevalidateRequest | RevalidateReply | ForwardedSync
QuorumMessage: TypeAlias = zab.QuorumPacket | Wrapped


FROM_LEADERS = frozenset(PacketType) - {
    *INTRODUCTIONS,
    *(PacketType.ACKEPOCH, PacketType.ACK, PacketType.REQUEST, PacketType.PING, PacketType.REVALIDATE),
}
"""The types that only a leader sends."""


class UnknownPacketError(JuteError):
    """A packet of an unknown type; ZooKeeper logs it and continues."""


_SHORT: dict[type[QuorumMessage], int] = {zab.Ack: PacketType.ACK, zab.Commit: PacketType.COMMIT}
"""The packets that have only a zxid: most of all."""


def encode_packet(message: QuorumMessage) -> bytes:
    """Encode a message. Raises JuteError, also for a packet that must be wrapped in one of the structs here."""
    kind = _SHORT.get(type(message))
    if kind is not None and -(1 << 63) <= message.zxid < 1 << 63:  # type: ignore[union-attr]
        return SHORT.pack(kind, message.zxid, -1, -1)  # type: ignore[union-attr]
    return encode_raw(to_raw(message))


def encode_proposal(zxid: int, txn: bytes) -> bytes:
    """Encode the PROPOSAL of a transaction that is encoded already."""
    return b"".join((HEAD.pack(PacketType.PROPOSAL, zxid, len(txn)), txn, NO_AUTHINFO))


def to_raw(message: QuorumMessage) -> Packet:
    """Convert a message to a QuorumPacket. Raises JuteError."""
    try:
        return _to_raw(message)
    except struct.error as error:
        raise JuteError(type(message).__name__, "", -1, str(error)) from None


def decode_packet(packet: Packet) -> QuorumMessage:
    """Convert a QuorumPacket to a message.

    Raises UnknownPacketError, BadRequestError for a REQUEST that must be answered with an error, and JuteError
    otherwise.
    """
    decoder = _DECODERS.get(packet.type)
    if decoder is None:
        names = {kind.value: kind.name for kind in PacketType}
        problem = f"{names.get(packet.type, packet.type)} is not supported"
        raise UnknownPacketError("QuorumPacket", "type", 0, problem)
    return decoder(packet)


def decode_of_learner(packet: Packet) -> QuorumMessage:
    """Convert a QuorumPacket of a learner to a message, as `decode_packet` does.

    All packets that only a leader sends mean the same to a leader. UPTODATE, which has no content, stands for each.
    """
    return zab.UpToDate() if packet.type in FROM_LEADERS else decode_packet(packet)


def _to_raw(message: QuorumMessage) -> Packet:
    match message:
        case zab.Proposal(txn=txn):
            return Packet(PacketType.PROPOSAL, txn.zxid, encode_txn(txn.zxid, change_of(txn.value)))
        case zab.Commit(zxid=zxid):
            return Packet(PacketType.COMMIT, zxid)
        case zab.Ack(zxid=zxid):
            return Packet(PacketType.ACK, zxid)
        case zab.Inform(txn=txn):
            return Packet(PacketType.INFORM, txn.zxid, encode_txn(txn.zxid, change_of(txn.value)))
        case zab.CommitAndActivate(zxid=zxid, designated=designated):
            return Packet(PacketType.COMMITANDACTIVATE, zxid, SID.pack(designated))
        case zab.InformAndActivate(txn=txn, designated=designated):
            data = SID.pack(designated) + encode_txn(txn.zxid, change_of(txn.value))
            return Packet(PacketType.INFORMANDACTIVATE, txn.zxid, data)
        case zab.QuorumRequest(value=request) | ForwardedSync(request=request):
            head = REQUEST_HEAD.pack(request.session, request.cxid, requests.OPCODE_OF[type(request.record)])
            return Packet(PacketType.REQUEST, NO_ZXID, head + encode(request.record), request.auth)
        case zab.QuorumSync():
            return Packet(PacketType.SYNC, 0)
        case PingPacket(zxid=zxid, sessions=sessions):
            touched = b"".join(SESSION_TIMEOUT.pack(*session) for session in sessions)
            return Packet(PacketType.PING, zxid, touched)
        case RevalidateRequest(session=session, timeout=timeout):
            return Packet(PacketType.REVALIDATE, NO_ZXID, SESSION_TIMEOUT.pack(session, timeout))
        case RevalidateReply(session=session, valid=valid):
            return Packet(PacketType.REVALIDATE, NO_ZXID, SESSION_VALID.pack(session, valid))
    return _handshake(message)


def _handshake(message: QuorumMessage) -> Packet:
    match message:
        case Registration(packet=packet, sid=sid, protocol_version=protocol):
            kind = PacketType.OBSERVERINFO if packet.observer else PacketType.FOLLOWERINFO
            info = LEARNER_INFO.pack(sid, protocol, packet.config_version)
            return Packet(kind, make_zxid(packet.accepted_epoch), info)
        case zab.LeaderInfo(epoch=epoch):
            return Packet(PacketType.LEADERINFO, make_zxid(epoch), INT.pack(PROTOCOL_VERSION))
        case zab.AckEpoch(last_zxid=zxid, current_epoch=epoch):
            return Packet(PacketType.ACKEPOCH, zxid, INT.pack(epoch))
        case zab.Diff(zxid=zxid):
            return Packet(PacketType.DIFF, zxid)
        case zab.Trunc(zxid=zxid):
            return Packet(PacketType.TRUNC, zxid)
        case zab.Snap(zxid=zxid):
            return Packet(PacketType.SNAP, zxid)
        case LeaderConfig(packet=zab.NewLeader(epoch=epoch), config=config):
            return Packet(PacketType.NEWLEADER, make_zxid(epoch), config.encode())
        case zab.UpToDate():
            return Packet(PacketType.UPTODATE, NO_ZXID)
    name = type(message).__name__
    raise JuteError(name, "", -1, "the wire carries more; use the struct of refimpl.wire.quorum that holds it")


def _decode_request(packet: Packet) -> QuorumMessage:
    data = packet.data or b""
    session, cxid, opcode = _unpack(REQUEST_HEAD, packet)
    record = decode_body(session, cxid, opcode, data, REQUEST_HEAD.size)
    request = requests.Request(session, cxid, record, packet.authinfo)
    return ForwardedSync(request) if isinstance(record, requests.Sync) else zab.QuorumRequest(request)


def _decode_registration(packet: Packet) -> QuorumMessage:
    """Decode a registration. An old learner may omit the end of its LearnerInfo; one older than 3.4 is refused."""
    sid, protocol = _unpack(SID_AND_VERSION, packet)
    if protocol < PROTOCOL_VERSION:
        problem = f"protocol {protocol:#x}, where {PROTOCOL_VERSION:#x} (ZooKeeper 3.4) or higher is right"
        raise JuteError("LearnerInfo", "protocolVersion", SID.size, problem)
    complete = len(packet.data or b"") >= LEARNER_INFO.size
    config = _unpack(LEARNER_INFO, packet)[2] if complete else 0
    info = zab.FollowerInfo(epoch_of(packet.zxid), packet.type == PacketType.OBSERVERINFO, config)
    return Registration(info, sid, protocol)


def _decode_leader_info(packet: Packet) -> QuorumMessage:
    _unpack(INT, packet)
    return zab.LeaderInfo(epoch_of(packet.zxid))


def _decode_new_leader(packet: Packet) -> QuorumMessage:
    """Decode NEWLEADER. A text that is not a configuration is an error (`Learner.syncWithLeader`)."""
    text = str(packet.data or b"", "utf-8", "replace")
    try:
        view = view_in(text, "NEWLEADER")
    except ConfigError as error:
        raise JuteError("NEWLEADER", "data", -1, str(error)) from None
    config = view if view.version > 0 else None
    return LeaderConfig(zab.NewLeader(epoch_of(packet.zxid), config), text)


def _decode_ping(packet: Packet) -> QuorumMessage:
    data = packet.data or b""
    if len(data) % SESSION_TIMEOUT.size:
        problem = f"{len(data)} bytes of sessions, where a multiple of {SESSION_TIMEOUT.size} would be right"
        raise JuteError("PING", "data", len(data), problem)
    return PingPacket(packet.zxid, tuple(SESSION_TIMEOUT.iter_unpack(data)))


def _decode_revalidate(packet: Packet) -> QuorumMessage:
    if len(packet.data or b"") == SESSION_VALID.size:
        session, valid = _unpack(SESSION_VALID, packet)
        return RevalidateReply(session, bool(valid))
    return RevalidateRequest(*_unpack(SESSION_TIMEOUT, packet))


def _decode_txn(packet: Packet) -> Txn:
    """Decode the transaction of a PROPOSAL or an INFORM; its zxid is the one in its own header."""
    return txn_of(*decode_txn(packet.data or b""))


def _decode_inform_and_activate(packet: Packet) -> QuorumMessage:
    (designated,) = _unpack(SID, packet)
    return zab.InformAndActivate(txn_of(*decode_txn((packet.data or b"")[SID.size :])), designated)


def _unpack(coder: struct.Struct, packet: Packet) -> tuple[int, ...]:
    data = packet.data or b""
    if len(data) < coder.size:
        name = PacketType(packet.type).name
        raise JuteError(name, "data", len(data), f"it ends here, and at least {coder.size} bytes would be right")
    return coder.unpack_from(data)


_DECODERS: dict[int, Callable[[Packet], QuorumMessage]] = {
    PacketType.REQUEST: _decode_request,
    PacketType.PROPOSAL: lambda packet: zab.Proposal(_decode_txn(packet)),
    PacketType.ACK: lambda packet: zab.Ack(packet.zxid),
    PacketType.COMMIT: lambda packet: zab.Commit(packet.zxid),
    PacketType.PING: _decode_ping,
    PacketType.REVALIDATE: _decode_revalidate,
    PacketType.SYNC: lambda _: zab.QuorumSync(),
    PacketType.COMMITANDACTIVATE: lambda packet: zab.CommitAndActivate(packet.zxid, _unpack(SID, packet)[0]),
    PacketType.INFORMANDACTIVATE: _decode_inform_and_activate,
    PacketType.INFORM: lambda packet: zab.Inform(_decode_txn(packet)),
    PacketType.NEWLEADER: _decode_new_leader,
    PacketType.FOLLOWERINFO: _decode_registration,
    PacketType.UPTODATE: lambda _: zab.UpToDate(),
    PacketType.DIFF: lambda packet: zab.Diff(packet.zxid),
    PacketType.TRUNC: lambda packet: zab.Trunc(packet.zxid),
    PacketType.SNAP: lambda packet: zab.Snap(packet.zxid, None),
    PacketType.OBSERVERINFO: _decode_registration,
    PacketType.LEADERINFO: _decode_leader_info,
    PacketType.ACKEPOCH: lambda packet: zab.AckEpoch(packet.zxid, _unpack(INT, packet)[0]),
}
