"""QuorumPacket: the one form of everything on the quorum port, and its decoder.

    i32 type · i64 zxid · buffer data · vector<Id> authinfo

Rules this module keeps:

- A packet has no length of its own, so it is complete when its last identity is. The two lengths it depends on are
  judged as soon as they are there.
- After SNAP comes a snapshot as a raw stream, whose end only its reader knows: the decoder stops there, hands over what
  it holds, and goes on with what the reader leaves.
- No identities are written as null, as ZooKeeper's servers do.

Source: `QuorumPacket` in `zookeeper.jute`, `BinaryInputArchive.checkLength`, `Leader` (the types),
`LearnerHandler.run` and `Learner.syncWithLeader` (SNAP).
"""

import enum
import struct

import msgspec

from refimpl.jute import JuteError, decode, encode
from spec.tree.data import Id
from spec.tree.fields import Record

MAX_BUFFER = 0xFFFFF
"""`jute.maxbuffer`, unless it is configured."""
MAX_AUTHINFO = 0x10000
"""The most bytes that the identities of one request may take here; ZooKeeper has no limit of its own for their sum."""

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


class Packet(msgspec.Struct, frozen=True):
    """A QuorumPacket as the wire has it."""

    type: int
    zxid: int
    data: bytes | None = None
    authinfo: tuple[Id, ...] = ()


class _Authinfo(Record, frozen=True, gc=False):
    authinfo: tuple[Id, ...]


_NO_AUTHINFO = COUNT.pack(-1)


def encode_raw(packet: Packet) -> bytes:
    """A packet as bytes. Raises JuteError."""
    data = packet.data
    authinfo = encode(_Authinfo(packet.authinfo)) if packet.authinfo else _NO_AUTHINFO
    try:
        if data is None:
            return HEAD.pack(packet.type, packet.zxid, -1) + authinfo
        return b"".join((HEAD.pack(packet.type, packet.zxid, len(data)), data, authinfo))
    except struct.error as error:
        raise JuteError("QuorumPacket", "", -1, f"type {packet.type}, zxid {packet.zxid}: {error}") from None


def largest_data(max_buffer: int) -> int:
    """The most bytes of data in a packet: room for what is added to a request of `max_buffer` bytes."""
    return max_buffer + max(max_buffer, 1024)


class PacketDecoder:
    """Cuts what arrives from one peer into packets.

    Holds one incomplete packet at most: `largest_data(max_buffer)` and MAX_AUTHINFO bound it. `streaming` says that a
    SNAP was met and its snapshot is not over: what arrives is then to be had from `take`, until `resume`.
    """

    def __init__(self, max_buffer: int = MAX_BUFFER) -> None:
        self.streaming = False
        self._limit = largest_data(max_buffer)
        self._waiting = bytearray()
        self._needed = HEAD.size

    def feed(self, data: bytes) -> list[Packet]:
        """The packets that these bytes complete. Raises JuteError; the connection is then of no use."""
        self._waiting += data
        if self.streaming or len(self._waiting) < self._needed:
            return []
        # One copy, out of which packets are cut: slices of a bytearray would be copied twice.
        held = bytes(self._waiting)
        packets: list[Packet] = []
        at = 0
        while not self.streaming:
            found = self._packet(held, at)
            if found is None:
                break
            packet, at = found
            packets.append(packet)
            self.streaming = packet.type == PacketType.SNAP
        del self._waiting[:at]
        return packets

    def take(self) -> bytes:
        """The bytes of the snapshot that have arrived since the last call."""
        if not self.streaming:
            return b""
        taken = bytes(self._waiting)
        self._waiting.clear()
        return taken

    def resume(self, rest: bytes) -> list[Packet]:
        """The snapshot has ended, and `rest` of what was taken stands behind its end: the packets in that."""
        self.streaming = False
        self._waiting[:0] = rest
        self._needed = HEAD.size
        return self.feed(b"")

    def _packet(self, held: bytes, at: int) -> tuple[Packet, int] | None:
        """The packet that begins at `at` and where it ends; None, and `_needed` is set, if it is not complete."""
        left = len(held) - at
        self._needed = HEAD.size
        if left < self._needed:
            return None
        kind, zxid, length = HEAD.unpack_from(held, at)
        if not -1 <= length <= self._limit:
            right = f"-1 to {self._limit} would be right"
            raise JuteError("QuorumPacket", "data", HEAD.size - 4, f"length {length} (type {kind}), where {right}")
        start = at + HEAD.size
        end = start + max(length, 0)
        self._needed += max(length, 0) + COUNT.size
        if left < self._needed:
            return None
        authinfo, behind = self._authinfo(held, end)
        if behind > len(held):
            self._needed = behind - at
            return None
        return Packet(kind, zxid, None if length < 0 else held[start:end], authinfo), behind

    def _authinfo(self, held: bytes, at: int) -> tuple[tuple[Id, ...], int]:
        """The identities, and where they end; if they are not complete, an end beyond what is held."""
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
                what = f"{count} identities, one with length {length}, where {MAX_AUTHINFO} bytes are the most"
                raise JuteError("QuorumPacket", "authinfo", end, what)
            if end > len(held):
                return (), end
        return decode(_Authinfo, held[at:end])[0].authinfo, end
