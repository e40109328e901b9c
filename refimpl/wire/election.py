"""The election port's messages: the introduction that opens a connection, and the votes.

    opening:       i64 -65536, or -65535 with several addresses · i64 sid · i32 length · host:port|host:port...
    notification:  i32 state · i64 leader · i64 zxid · i64 electionEpoch · i64 peerEpoch · i32 version = 2
                   · i32 length · the configuration as text

Rules this module keeps:

- The configuration is always sent, whatever its version: a server answers an empty one with silence or worse.
- A notification without peerEpoch (28 bytes) or without version (40 bytes) is accepted, and so is one with an invalid
  configuration; the vote counts. Any other malformed one is a JuteError: the receiver drops the message and keeps the
  connection. A malformed frame or opening ends the connection.
- A configuration enters a `Notification` only if its version is above 0, as `spec.election.messages` requires.

Source: `QuorumCnxManager.InitialMessage.parse`, `startConnection`, `RecvWorker.run`;
`FastLeaderElection.buildMsg`, `WorkerReceiver.run`.
"""

import re
import struct
from functools import lru_cache

import msgspec

from refimpl.jute import JuteError
from refimpl.wire.frames import LENGTH, Frames
from spec.config import Address, ConfigError
from spec.config.dynamic_files import view_in
from spec.election.messages import Notification
from spec.election.vote import ServerState, Vote
from spec.quorum import Sid, View
from spec.text import integer
from spec.txn import epoch_of

MAX_FRAME = 512 * 1024
"""The longest notification (`QuorumCnxManager.PACKETMAXSIZE`)."""
MAX_ADDRESSES = 2048
"""The longest address text in an opening (`QuorumCnxManager.maxBuffer`)."""

MOST_ADDRESSES = 16
"""The maximum number of addresses in an opening, at each of which this server may try to call back."""

ONE_ADDRESS = -65536
SEVERAL_ADDRESSES = -65535
NOTIFICATION_VERSION = 2

PROTOCOL = struct.Struct(">q")
OPENING = struct.Struct(">qqi")
OLDEST = struct.Struct(">iqqq")
"""State, leader, zxid and electionEpoch: the start of every notification, and the whole of the oldest form."""
WITH_EPOCH = struct.Struct(">iqqqq")
UNVERSIONED_SIZE = 40
"""The size of a notification whose version is ignored (ZOOKEEPER-107)."""
WITH_CONFIG = struct.Struct(">iqqqqii")

_ADDRESS = re.compile(r"(?:\[([^\[\]]+)\]|([^:\[\]]+)):([0-9]{1,5})")
_WILDCARDS = ("0.0.0.0", "::", "0:0:0:0:0:0:0:0")


class Opening(msgspec.Struct, frozen=True):
    """The introduction of a connection: the sender and its addresses; without any, those in the receiver's file."""

    sid: Sid
    addresses: tuple[Address, ...]


def encode_opening(opening: Opening) -> bytes:
    """Encode the first bytes of a connection that this server opens; at least one address. Raises JuteError."""
    text = "|".join(map(str, opening.addresses)).encode()
    if not 0 < len(text) <= MAX_ADDRESSES:
        raise JuteError("opening", "addresses", -1, f"{len(text)} bytes, where 1 to {MAX_ADDRESSES} would be right")
    protocol = ONE_ADDRESS if len(opening.addresses) == 1 else SEVERAL_ADDRESSES
    return OPENING.pack(protocol, opening.sid, len(text)) + text


class OpeningDecoder:
    """Decodes the opening of a connection that another server has opened."""

    def __init__(self) -> None:
        self._waiting = b""

    def feed(self, data: bytes) -> tuple[Opening, bytes] | None:
        """Return the opening and the bytes after it, once it is complete. Raises JuteError.

        A server before 3.5 sends only its sid, which is never negative.
        """
        self._waiting += data
        waiting = self._waiting
        if len(waiting) < PROTOCOL.size:
            return None
        (protocol,) = PROTOCOL.unpack_from(waiting)
        if protocol >= 0:
            return Opening(protocol, ()), waiting[PROTOCOL.size :]
        if protocol not in (ONE_ADDRESS, SEVERAL_ADDRESSES):
            right = f"{ONE_ADDRESS} or {SEVERAL_ADDRESSES} would be right"
            raise JuteError("opening", "protocol", 0, f"{protocol}, where {right}")
        if len(waiting) < OPENING.size:
            return None
        _, sid, length = OPENING.unpack_from(waiting)
        if not 0 < length <= MAX_ADDRESSES:
            raise JuteError("opening", "length", 16, f"{length}, where 1 to {MAX_ADDRESSES} would be right")
        end = OPENING.size + length
        if len(waiting) < end:
            return None
        return Opening(sid, _addresses(waiting[OPENING.size : end])), waiting[end:]


def notifications() -> Frames:
    """Return a splitter of the bytes after the opening into notifications."""
    return Frames(MAX_FRAME)


def encode_notification(notification: Notification, config: str) -> bytes:
    """Encode a notification, with its length; `config` is the sender's own configuration (`render_ensemble`).

    Raises JuteError.
    """
    vote, text = notification.vote, config.encode()
    length = WITH_CONFIG.size + len(text)
    if not text or length > MAX_FRAME:
        right = f"1 to {MAX_FRAME - WITH_CONFIG.size} would be right"
        raise JuteError("Notification", "config", -1, f"{len(text)} bytes, where {right}")
    return (
        LENGTH.pack(length)
        + WITH_CONFIG.pack(
            notification.state,
            vote.leader,
            vote.zxid,
            notification.election_epoch,
            vote.peer_epoch,
            NOTIFICATION_VERSION,
            len(text),
        )
        + text
    )


def decode_notification(frame: bytes, *, reads_view: bool = True) -> Notification:
    """Decode a notification of any version, without its length; its configuration only on demand. Raises JuteError."""
    size = len(frame)
    if size < OLDEST.size:
        raise _short(size, OLDEST.size, "any notification")
    state, leader, zxid, election_epoch = OLDEST.unpack_from(frame)
    if size == OLDEST.size:
        peer_epoch = epoch_of(zxid)
    elif size >= WITH_EPOCH.size:
        peer_epoch = WITH_EPOCH.unpack_from(frame)[4]
    else:
        raise _short(size, WITH_EPOCH.size, "one with a peerEpoch")
    config = _config(frame) if size not in (OLDEST.size, UNVERSIONED_SIZE) else None
    view = _view(config) if reads_view and config is not None else None
    if not ServerState.LOOKING <= state <= ServerState.OBSERVING:
        raise JuteError("Notification", "state", 0, f"{state}, where 0 to 3 would be right")
    vote = Vote(leader, zxid, peer_epoch)
    return Notification(ServerState(state), vote, election_epoch, view)


def _config(frame: bytes) -> bytes | None:
    """Return the configuration of a notification in neither of the two old forms; None for one without a version."""
    if len(frame) < UNVERSIONED_SIZE:
        raise _short(len(frame), UNVERSIONED_SIZE, "one with a version")
    (version,) = LENGTH.unpack_from(frame, WITH_EPOCH.size)
    if version < NOTIFICATION_VERSION:
        return None
    if len(frame) < WITH_CONFIG.size:
        raise _short(len(frame), WITH_CONFIG.size, "one with a configuration")
    (length,) = LENGTH.unpack_from(frame, UNVERSIONED_SIZE)
    room = len(frame) - WITH_CONFIG.size
    if not 0 <= length <= room:
        problem = f"length {length}, where 0 to {room} would be right"
        raise JuteError("Notification", "config", UNVERSIONED_SIZE, problem)
    return frame[WITH_CONFIG.size : WITH_CONFIG.size + length]


@lru_cache(maxsize=16)
def _view(content: bytes) -> View | None:
    text = str(content, "utf-8", "replace")
    try:
        view = view_in(text, "notification")
    except ConfigError:
        return None
    return view if view.version > 0 else None


def _addresses(content: bytes) -> tuple[Address, ...]:
    try:
        texts = str(content, "utf-8").split("|")
    except UnicodeDecodeError as error:
        raise JuteError("opening", "addresses", OPENING.size + error.start, f"invalid UTF-8: {error.reason}") from None
    if len(texts) > MOST_ADDRESSES:
        right = f"{MOST_ADDRESSES} are the most"
        raise JuteError("opening", "addresses", OPENING.size, f"{len(texts)} of them, where {right}")
    addresses = []
    for text in texts:
        match = _ADDRESS.fullmatch(text)
        port = integer(match[3], 0, 65535) if match is not None else None
        if match is None or port is None:
            raise JuteError("opening", "addresses", OPENING.size, f"{text[:60]!r}, where host:port would be right")
        host = match[1] or match[2]
        if host not in _WILDCARDS:
            addresses.append(Address(host, port))
    return tuple(addresses)


def _short(size: int, needed: int, what: str) -> JuteError:
    return JuteError("Notification", "", size, f"it ends here, and {what} has {needed} bytes at least")
