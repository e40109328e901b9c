"""The writer of recordings: one JSON object per line, in one order for the whole ensemble.

Rules of this module:

- The order of the lines is sound for causes: a packet is written after it was sent and before it is delivered, a reply
  to a client after it has arrived, and a kill after the last packet of the process.
- Events are kept in memory, and written as a file by `save`: recording must not slow the servers down.
- PING packets are left out. A transaction is its zxid and a digest of its bytes.

The format is described in docs/how-to-validate-real-servers.md. The reader (`checker/validate/recording`) shares no
code with this module.
"""

import hashlib
import json
import struct
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.processes import ServerError
from harness.reproduce.disks import FILE_HEADER_BYTES, RECORD, TXN_HEADER
from harness.reproduce.proxies import HEAD, Fate, Link, Way, WirePacket
from refimpl.wire.packet import PacketType
from spec.quorum import Sid
from spec.quorum.view import View
from spec.text import required_integer
from spec.txn import counter_of, epoch_of, format_zxid

FORMAT = 1
DIGEST_BYTES = 4
OF_EPOCHS = frozenset({PacketType.FOLLOWERINFO, PacketType.OBSERVERINFO, PacketType.LEADERINFO, PacketType.NEWLEADER})
OF_TXNS = frozenset({PacketType.PROPOSAL, PacketType.INFORM})
OF_ZXIDS = OF_TXNS | {PacketType.ACK, PacketType.COMMIT, PacketType.DIFF, PacketType.TRUNC, PacketType.SNAP}
DRAIN_SECONDS = 1.0


class Recorder:
    """A recording in progress; it is a `Tap` of a `Network`."""

    def __init__(self, release: str, note: str = "") -> None:
        self._began, self._clock = time.time(), time.monotonic()
        self._header = {"recording": FORMAT, "release": release, "began": round(self._began, 6), "note": note}
        self._events: list[tuple[float, dict[str, Any]]] = []
        self._lock = threading.Lock()
        self._links: dict[int, Link] = {}
        self.packets = 0

    # --- connections and packets

    def opened(self, link: Link) -> None:
        """Note a new quorum connection."""
        with self._lock:
            self._links[link.number] = link
            self._add("open", c=link.number, learner=link.learner, leader=link.leader)

    def packet(self, link: Link, way: Way, packet: WirePacket, fate: Fate) -> None:
        """Note a packet: with its content when it has arrived at the proxy, later only by its fate."""
        with self._lock:
            if fate in (Fate.RELEASED, Fate.LOST):
                self._add("read" if fate is Fate.RELEASED else "lost", c=link.number, way=way.value)
                return
            self.packets += 1
            mark = {"held": True} if fate is Fate.ARRIVED else {}
            self._add("packet", c=link.number, way=way.value, **content_of(packet), **mark)

    def closed(self, link: Link) -> None:
        """Note the end of a quorum connection."""
        with self._lock:
            self._links.pop(link.number, None)
            self._add("close", c=link.number)

    # --- servers and clients

    def started(self, sid: Sid, view: View, data: Path) -> None:
        """Note the start of a process, with its configuration and its disk."""
        members = {"voters": sorted(view.voters), "observers": sorted(view.observers)}
        with self._lock:
            self._add("start", sid=sid, **members, disk=disk_of(data))

    def killed(self, sid: Sid, data: Path) -> None:
        """Note the end of a process, with its disk, once the packets that it sent have been read."""
        self._drain(sid)
        with self._lock:
            self._add("kill", sid=sid, disk=disk_of(data))

    def acknowledged(self, sid: Sid, path: str, zxid: int) -> None:
        """Note a reply to a client: the write of a path is acknowledged."""
        with self._lock:
            self._add("reply", sid=sid, zxid=format_zxid(zxid), path=path)

    def looked(self, sid: Sid, absent: Iterable[str]) -> None:
        """Note the acknowledged paths that a server does not have after a sync with its leader."""
        with self._lock:
            self._add("tree", sid=sid, absent=sorted(absent))

    def _drain(self, sid: Sid) -> None:
        """Wait until the proxies have noticed the end of a process. Closed gates keep connections: hence the limit."""
        deadline = time.monotonic() + DRAIN_SECONDS
        while time.monotonic() < deadline:
            with self._lock:
                if not any(sid in (link.learner, link.leader) for link in self._links.values()):
                    return
            time.sleep(0.01)

    def _add(self, event: str, **fields: Any) -> None:
        self._events.append((time.monotonic(), {"e": event, **fields}))

    def save(self, file: Path) -> None:
        """Write the file. Raises ServerError."""
        with self._lock:
            lines = [json.dumps(self._header)]
            for moment, event in (*self._events, (time.monotonic(), {"e": "end"})):
                lines.append(json.dumps({"t": round(moment - self._clock, 6), **event}, separators=(",", ":")))
        try:
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        except OSError as error:
            raise ServerError(f"{file}: it cannot be written ({error.strerror or error})") from None


def content_of(packet: WirePacket) -> dict[str, Any]:
    """The fields of a packet that the protocol reads."""
    fields: dict[str, Any] = {"type": packet.name}
    _, _, length = HEAD.unpack_from(packet.raw)
    data = packet.raw[HEAD.size : HEAD.size + max(length, 0)]
    if packet.type in OF_EPOCHS:
        fields["epoch"] = epoch_of(packet.zxid)
        if counter_of(packet.zxid):
            fields["counter"] = counter_of(packet.zxid)
    elif packet.type in OF_ZXIDS:
        fields["zxid"] = format_zxid(packet.zxid)
    if packet.type in OF_TXNS:
        fields["digest"] = digest_of(data)
    if packet.type == PacketType.ACKEPOCH:
        fields |= {"zxid": format_zxid(packet.zxid), "epoch": struct.unpack_from(">i", data)[0]}
    return fields


def digest_of(data: bytes) -> str:
    """The digest of the bytes of a transaction."""
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).hexdigest()


def disk_of(data: Path) -> dict[str, Any]:
    """The epochs, the transactions in the log files, and the zxids in the names of the snapshots of a `dataDir`."""
    folder = data / "version-2"
    files = sorted(folder.glob("log.*"), key=lambda file: required_integer(file.suffix[1:], base=16))
    log = [record for file in files for record in _records(file.read_bytes())]
    names = (file.name.removeprefix("snapshot.") for file in folder.glob("snapshot.*"))
    snapshots = sorted(required_integer(name, base=16) for name in names if _is_hexadecimal(name))
    return {
        "accepted": _number(folder / "acceptedEpoch"),
        "current": _number(folder / "currentEpoch"),
        "snapshots": [format_zxid(zxid) for zxid in snapshots],
        "log": log,
    }


def _is_hexadecimal(text: str) -> bool:
    return bool(text) and all(character in "0123456789abcdef" for character in text)


def _records(content: bytes) -> Iterable[str]:
    """`ZXID DIGEST` of each record of a log file, up to the padding or an incomplete record."""
    offset = FILE_HEADER_BYTES
    while offset + RECORD.size + TXN_HEADER.size <= len(content):
        _, length = RECORD.unpack_from(content, offset)
        start = offset + RECORD.size
        if length < TXN_HEADER.size or start + length >= len(content):
            return
        zxid = TXN_HEADER.unpack_from(content, start)[2]
        yield f"{format_zxid(zxid)} {digest_of(content[start : start + length])}"
        offset = start + length + 1  # and the end mark


def _number(file: Path) -> int:
    try:
        return required_integer(file.read_text(encoding="ascii").split("\n")[0].strip())
    except (FileNotFoundError, ValueError):
        return 0
