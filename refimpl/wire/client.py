"""The client port's messages: session requests, requests, replies, and watch events.

Rules this module keeps:

- Decoders take frames without their length; encoders include it.
- A client before 3.4 does not say whether it accepts a read-only server. Its reply omits the field too.
- An event has xid -1 and zxid -1, and the state SyncConnected: no other state is ever sent.

Source: `ZooKeeperServer.processConnectRequest`, `finishSessionInit`, `processPacket`; `NIOServerCnxn.process` and
`sendResponse`; `ClientCnxn` (the xids).
"""

import struct

import msgspec

from refimpl.jute import JuteError, decode, encode
from refimpl.wire.request import BadRequestError, decode_body
from spec.tree.apply import Event
from spec.tree.data import Buffer, Int, Long, Record
from spec.tree.replies import Code, WatcherEvent
from spec.tree.requests import OPCODE_OF, CreateSession

__all__ = [
    "AUTH_XID",
    "MAX_FRAME",
    "NOTIFICATION_XID",
    "PING_XID",
    "SET_WATCHES_XID",
    "BadRequestError",
    "ConnectRequest",
    "ConnectResponse",
    "decode_connect_request",
    "decode_request",
    "encode_connect_response",
    "encode_event",
    "encode_reply",
]

MAX_FRAME = 0xFFFFF
"""The longest frame that a server accepts from a client (`jute.maxbuffer`)."""

NOTIFICATION_XID = -1
PING_XID = -2
AUTH_XID = -4
SET_WATCHES_XID = -8
SYNC_CONNECTED = 3

REQUEST_HEADER = struct.Struct(">ii")
REPLY_HEADER = struct.Struct(">iiqi")
"""The frame's length, and a ReplyHeader: xid, zxid, err."""
LENGTH = struct.Struct(">i")


class ConnectRequest(msgspec.Struct, frozen=True):
    """A client's request for a session, or to resume one (`session_id` other than 0, and its password).

    `time_out` is in milliseconds. `read_only` says whether the client accepts a server without a quorum; None: an old
    client, which does not say.
    """

    protocol_version: int
    last_zxid_seen: int
    time_out: int
    session_id: int
    passwd: bytes | None
    read_only: bool | None = None


class ConnectResponse(msgspec.Struct, frozen=True):
    """The session, and its timeout in milliseconds; both are 0 if the session has expired.

    `read_only` must be None for a client that did not say (`ServerCnxn.isOldClient`).
    """

    time_out: int
    session_id: int
    passwd: bytes
    read_only: bool | None
    protocol_version: int = 0


class _ConnectRequestBody(Record, frozen=True, gc=False):
    """The part of ConnectRequest that jute declares; `readOnly` follows it."""

    protocol_version: Int
    last_zxid_seen: Long
    time_out: Int
    session_id: Long
    passwd: Buffer


class _ConnectResponseBody(Record, frozen=True, gc=False):
    """The part of ConnectResponse that jute declares; `readOnly` follows it."""

    protocol_version: Int
    time_out: Int
    session_id: Long
    passwd: Buffer


def decode_connect_request(frame: bytes) -> ConnectRequest:
    """Decode the first frame of a connection. Raises JuteError."""
    body, end = decode(_ConnectRequestBody, frame)
    read_only = bool(frame[end]) if end < len(frame) else None
    return ConnectRequest(
        body.protocol_version, body.last_zxid_seen, body.time_out, body.session_id, body.passwd, read_only
    )


def encode_connect_response(response: ConnectResponse) -> bytes:
    """Encode the reply to the first frame, with its length."""
    content = encode(
        _ConnectResponseBody(response.protocol_version, response.time_out, response.session_id, response.passwd)
    )
    if response.read_only is not None:
        content += bytes([response.read_only])
    return LENGTH.pack(len(content)) + content


def decode_request(frame: bytes) -> tuple[int, Record]:
    """Decode a request; return its xid and its record.

    Raises JuteError for a frame without a header, which makes the connection unusable, and BadRequestError for a
    request that can be answered with an error. A client must not request createSession this way.
    """
    if len(frame) < REQUEST_HEADER.size:
        raise JuteError("RequestHeader", "", 0, f"{len(frame)} bytes, where it takes {REQUEST_HEADER.size}")
    xid, opcode = REQUEST_HEADER.unpack_from(frame)
    if opcode == OPCODE_OF[CreateSession]:
        cause = JuteError("RequestHeader", "type", 4, "createSession (-10) is asked by servers only")
        raise BadRequestError(0, xid, Code.UNIMPLEMENTED, cause)
    return xid, decode_body(0, xid, opcode, frame, REQUEST_HEADER.size)


def encode_reply(xid: int, zxid: int, code: int, record: Record | None = None) -> bytes:
    """Encode a reply, with its length; only a multi has a record in an error reply. Raises JuteError."""
    content = b"" if record is None else encode(record)
    return REPLY_HEADER.pack(REPLY_HEADER.size - LENGTH.size + len(content), xid, zxid, code) + content


def encode_event(event: Event) -> bytes:
    """Encode the notification of a fired watch, with its length."""
    return encode_reply(NOTIFICATION_XID, -1, Code.OK, WatcherEvent(event.type, SYNC_CONNECTED, event.path))
