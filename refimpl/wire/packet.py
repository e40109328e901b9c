"""QuorumPacket, the common form of all messages on the quorum port, and its decoder.

    i32 type · i64 zxid · buffer data · vector<Id> authinfo

Rules this module keeps:

- A packet has no length field; it is complete when its last identity is. The lengths of the data and of the identities
  are checked as soon as they have arrived.
- The type of a first packet is checked before its content arrives: only an introduction is one, and a short one.
- A snapshot follows SNAP as a raw stream, and only its reader can find its end. The decoder stops there, hands over the
  bytes that it holds, and resumes with the bytes that the reader leaves.
- An empty list of identities is written as null, as ZooKeeper's servers do.

Source: `QuorumPacket` in `zookeeper.jute`, `BinaryInputArchive.checkLength`, `Leader` (the types),
`LearnerHandler.run` and `Learner.syncWithLeader` (SNAP).
"""

import enum
import struct

import msgspec

from refimpl.jute import JuteError, decode, encode
from spec.tree.data import Id, Record

MAX_BUFFER = 0xFFFFF
"""The default of `jute.maxbuffer`."""
MAX_AUTHINFO = 0x10000
"""The maximum number of bytes for the identities of one request; ZooKeeper does not limit their sum."""

MAX_INTRODUCTION = 1024
"""The maximum size of the data of a first packet; a LearnerInfo has 20 bytes."""

HEAD = struct.Struct(">iqi")
"""Type, zxid, and the length of the data."""
COUNT = struct.Struct(">i")


class PacketType(enum.IntEnum):
    """The types of packets (`Leader.REQUEST` and the others)."""

    REQUEST = 1
    PROPOSAL = 2
    ACK = 3
    COMMIT = 4
    PING = 5
    REVALIDATE = 6
    SYNC = 7
    INFORM = 8
    COMMITANDACTIVATE = 9
    NEWLEADER = 10
    FOLLOWERINFO = 11
    UPTODATE = 12
    DIFF = 13
    TRUNC = 14
    SNAP = 15
    OBSERVERINFO = 16
    LEADERINFO = 17
    ACKEPOCH = 18
    INFORMANDACTIVATE = 19


INTRODUCTIONS = frozenset({PacketType.FOLLOWERINFO, PacketType.OBSERVERINFO})
"""The types of which the first packet of a learner has one."""


class Packet(msgspec.Struct, frozen=True):
    """A QuorumPacket as encoded on the wire."""

    type: int
    zxid: int
    data: bytes | None = None
    authinfo: tuple[Id, ...] = ()


class _Authinfo(Record, frozen=True, gc=False):
    authinfo: tuple[Id, ...]


NO_AUTHINFO = COUNT.pack(-1)
SHORT = struct.Struct(">iqii")
"""A whole packet without data and identities, as ACK and COMMIT are: type, zxid, and two lengths of -1."""


_FIRST = " or ".join(f"{kind.name} ({kind})" for kind in sorted(INTRODUCTIONS))


def encode_raw(packet: Packet) -> bytes:
    """Encode a packet. Raises JuteError."""
    data = packet.data
    authinfo = encode(_Authinfo(packet.authinfo)) if packet.authinfo else NO_AUTHINFO
    try:
        if data is None:
            return HEAD.pack(packet.type, packet.zxid, -1) + authinfo
        return b"".join((HEAD.pack(packet.type, packet.zxid, len(data)), data, authinfo))
    except struct.error as error:
        raise JuteError("QuorumPacket", "", -1, f"type {packet.type}, zxid {packet.zxid}: {error}") from None


def largest_data(max_buffer: int) -> int:
    """Return the maximum data size of a packet: a request of `max_buffer` bytes, and room for additions to it."""
    return max_buffer + max(max_buffer, 1024)


class PacketDecoder:
    """Splits the bytes from one peer into packets.

    Holds at most one incomplete packet, bounded by `largest_data(max_buffer)` and MAX_AUTHINFO. `streaming` is true
    from a SNAP to the end of its snapshot; the bytes that arrive are then available from `take`, until `resume`.
    `of_stranger`: the peer has yet to introduce itself, by its first packet.
    """

    def __init__(self, max_buffer: int = MAX_BUFFER, *, of_stranger: bool = False) -> None:
        self.streaming = False
        self._of_stranger = of_stranger
        self._limit = largest_data(max_buffer)
        self._waiting = bytearray()
        self._needed = HEAD.size

    def feed(self, data: bytes) -> list[Packet]:
        """Return the packets that these bytes complete. Raises JuteError, which makes the connection unusable."""
        self._waiting += data
        if self.streaming or len(self._waiting) < self._needed:
            return []
        # One copy, from which packets are cut: slices of a bytearray would be copied twice.
        content = bytes(self._waiting)
        packets: list[Packet] = []
        offset = 0
        while not self.streaming:
            decoded = self._packet(content, offset)
            if decoded is None:
                break
            packet, offset = decoded
            packets.append(packet)
            self.streaming = packet.type == PacketType.SNAP
        del self._waiting[:offset]
        return packets

    def take(self) -> bytes:
        """Return the bytes of the snapshot that have arrived since the last call."""
        if not self.streaming:
            return b""
        content = bytes(self._waiting)
        self._waiting.clear()
        return content

    def resume(self, rest: bytes) -> list[Packet]:
        """End the snapshot; `rest` is the part of the taken bytes after its end. Return the packets in it."""
        self.streaming = False
        self._waiting[:0] = rest
        self._needed = HEAD.size
        return self.feed(b"")

    def _packet(self, held: bytes, at: int) -> tuple[Packet, int] | None:
        """Decode the packet at `at`; return it and its end. If it is incomplete, set `_needed` and return None."""
        rest = len(held) - at
        if rest >= SHORT.size and not self._of_stranger:
            kind, zxid, length, count = SHORT.unpack_from(held, at)
            if length == count == -1:
                self._needed = HEAD.size
                return Packet(kind, zxid), at + SHORT.size
        self._needed = HEAD.size
        if rest < self._needed:
            return None
        kind, zxid, length = HEAD.unpack_from(held, at)
        if self._of_stranger and kind not in INTRODUCTIONS:
            raise JuteError("QuorumPacket", "type", at, f"{kind} in its first packet, where {_FIRST} would be right")
        limit = MAX_INTRODUCTION if self._of_stranger else self._limit
        if not -1 <= length <= limit:
            right = f"-1 to {limit} would be right"
            raise JuteError("QuorumPacket", "data", HEAD.size - 4, f"length {length} (type {kind}), where {right}")
        start = at + HEAD.size
        end = start + max(length, 0)
        self._needed += max(length, 0) + COUNT.size
        if rest < self._needed:
            return None
        authinfo, behind = self._authinfo(held, end)
        if behind > len(held):
            self._needed = behind - at
            return None
        self._of_stranger = False
        return Packet(kind, zxid, None if length < 0 else held[start:end], authinfo), behind

    def _authinfo(self, held: bytes, at: int) -> tuple[tuple[Id, ...], int]:
        """Decode the identities; return them and their end. If they are incomplete, the end is beyond `held`."""
        if held.startswith(NO_AUTHINFO, at):
            return (), at + COUNT.size
        (count,) = COUNT.unpack_from(held, at)
        if count <= 0:
            if count < -1:
                raise JuteError("QuorumPacket", "authinfo", at, f"a vector of {count} items")
            return (), at + COUNT.size
        end = at + COUNT.size
        for _ in range(2 * count):
            (length,) = COUNT.unpack_from(held, end) if end + COUNT.size <= len(held) else (0,)
            end += COUNT.size + max(length, 0)
            if length < -1 or end - at > MAX_AUTHINFO:
                problem = f"{count} identities, one with length {length}, where {MAX_AUTHINFO} bytes are the most"
                raise JuteError("QuorumPacket", "authinfo", end, problem)
            if end > len(held):
                return (), end
        return decode(_Authinfo, held[at:end])[0].authinfo, end
