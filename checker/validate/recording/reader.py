"""The reader of recordings: what proxies saw of real servers, with their disks and the replies to clients.

Rules of this module:

- A recording is complete: its first line is the header, its last one the end. A damaged, truncated or foreign file
  raises `JournalError` with the line, the mistake and the correction.
- Packets become those of `spec.zab.packets`. A type that no step of the specification reads has none.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from checker.user_files import JOURNAL, TooLargeError, opened, read_bytes
from checker.validate.journals import JournalError
from spec.quorum import Sid, View
from spec.quorum.view import majority_view
from spec.text import integers
from spec.txn import Txn, make_zxid
from spec.zab import packets as zab


@dataclass(frozen=True, slots=True)
class Header:
    """The first line: the release of the servers, and the time that all other times count from."""

    release: str
    began: float


@dataclass(frozen=True, slots=True)
class DiskRecord:
    """The files of a server: both epochs, the snapshots by the zxids in their names, and the records of the log."""

    accepted: int
    current: int
    snapshots: tuple[int, ...]
    log: tuple[Txn, ...]


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """A process starts, with its configuration, or ends, with None; and its disk at that time."""

    line: int
    time: float
    sid: Sid
    disk: DiskRecord
    view: View | None


@dataclass(frozen=True, slots=True)
class LinkRecord:
    """A quorum connection begins, or ends."""

    line: int
    time: float
    connection: int
    learner: Sid = 0
    leader: Sid = 0
    opens: bool = False


@dataclass(frozen=True, slots=True)
class PacketRecord:
    """A packet has left its sender, and is delivered, unless it is held; `up`: from the learner to the leader.

    `counter` is that of a zxid which stands for an epoch; ZooKeeper has 0 there.
    """

    line: int
    time: float
    connection: int
    up: bool
    kind: str
    packet: zab.QuorumPacket | None
    held: bool
    counter: int = 0


@dataclass(frozen=True, slots=True)
class FateRecord:
    """The oldest held packet of a direction is delivered or lost."""

    line: int
    time: float
    connection: int
    up: bool
    delivered: bool


@dataclass(frozen=True, slots=True)
class ReplyRecord:
    """A client has its reply from a server: the write of this zxid is acknowledged."""

    line: int
    time: float
    sid: Sid
    zxid: int
    path: str


@dataclass(frozen=True, slots=True)
class TreeRecord:
    """A server was asked for all acknowledged writes; it lacks these paths."""

    line: int
    time: float
    sid: Sid
    absent: tuple[str, ...]


RecordedEvent = ProcessRecord | LinkRecord | PacketRecord | FateRecord | ReplyRecord | TreeRecord


FORMAT = 1
"""The version of the format."""
UNREAD = frozenset({"REQUEST", "REVALIDATE", "SYNC", "PING", "COMMITANDACTIVATE", "INFORMANDACTIVATE"})
"""The types without a packet here: they carry requests and sessions, or belong to reconfiguration."""


class _Disk(msgspec.Struct, forbid_unknown_fields=True):
    accepted: int
    current: int
    snapshots: list[str]
    log: list[str]


class _RecordedLine(msgspec.Struct, forbid_unknown_fields=True):
    e: str = ""
    t: float = 0.0
    recording: int | None = None
    release: str = ""
    began: float = 0.0
    note: str = ""
    sid: int | None = None
    c: int | None = None
    learner: int | None = None
    leader: int | None = None
    way: str | None = None
    type: str | None = None
    zxid: str | None = None
    epoch: int | None = None
    counter: int = 0
    digest: str | None = None
    held: bool = False
    path: str | None = None
    absent: list[str] | None = None
    voters: list[int] | None = None
    observers: list[int] = []
    disk: _Disk | None = None


_decode = msgspec.json.Decoder(_RecordedLine).decode


class _LineError(Exception):
    """A line that is not one of a recording; the message has the mistake and the correction."""


def is_recording(path: Path) -> bool:
    """Whether the first line of a file says that it is a recording."""
    try:
        with opened(path, sys.maxsize) as stream:
            return stream.read(64).lstrip().startswith(b'{"recording"')
    except OSError:
        return False


def read_recording(path: Path) -> tuple[Header, Iterator[RecordedEvent]]:
    """The header and the events of a file, in order. Raises JournalError, also while the events are read."""
    try:
        numbered = enumerate(read_bytes(path, JOURNAL).split(b"\n"), start=1)
    except TooLargeError as error:
        raise JournalError(path, 0, f"{error}; validate the recording of a shorter run") from None
    except OSError as error:
        raise JournalError(path, 0, f"it cannot be read ({error.strerror}); name a recording") from None
    number, raw = next(numbered)
    line = _decoded(path, number, raw)
    if line.recording is None:
        raise JournalError(path, number, 'not a recording: the first line must be {"recording": 1, ...}')
    if line.recording != FORMAT:
        raise JournalError(path, number, f"the format is {line.recording}; this program reads format {FORMAT}")
    return Header(line.release, line.began), _events(path, numbered)


def _events(path: Path, numbered: Iterator[tuple[int, bytes]]) -> Iterator[RecordedEvent]:
    before = 0.0
    for number, raw in numbered:
        line = _decoded(path, number, raw)
        if line.e == "end":
            rest = next((place for place, text in numbered if text), None)
            if rest is not None:
                raise JournalError(path, rest, "lines follow the end; a recording ends with its end")
            return
        if line.t < before:
            raise JournalError(path, number, "the time is before that of the line above; lines are out of order")
        before = line.t
        try:
            yield _MAKERS.get(line.e, _unknown)(number, line)
        except (_LineError, ValueError) as error:
            raise JournalError(path, number, str(error)) from None
    raise JournalError(path, number, "the recording has no end: it is truncated; record the run again")


def _decoded(path: Path, number: int, raw: bytes) -> _RecordedLine:
    try:
        return _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if not raw:
            problem = "the recording has no end: it is truncated; record the run again"
        else:
            problem = f"it is damaged ({error}); a line is one JSON object, as the recorder wrote it"
        raise JournalError(path, number, problem) from None


def _unknown(_number: int, line: _RecordedLine) -> RecordedEvent:
    raise _LineError(f"no event is called {line.e[:40]!r}; known are {', '.join(_MAKERS)} and end")


def _process(number: int, line: _RecordedLine) -> ProcessRecord:
    disk = _needed(line.disk, "disk", line)
    view = None
    if line.e == "start":
        view = majority_view(_needed(line.voters, "voters", line), line.observers)
    log = tuple(_logged(text) for text in disk.log)
    record = DiskRecord(disk.accepted, disk.current, tuple(map(_zxid, disk.snapshots)), log)
    return ProcessRecord(number, line.t, _needed(line.sid, "sid", line), record, view)


def _link(number: int, line: _RecordedLine) -> LinkRecord:
    connection = _needed(line.c, "c", line)
    if line.e == "close":
        return LinkRecord(number, line.t, connection)
    ends = _needed(line.learner, "learner", line), _needed(line.leader, "leader", line)
    return LinkRecord(number, line.t, connection, *ends, opens=True)


def _packet(number: int, line: _RecordedLine) -> PacketRecord:
    kind = _needed(line.type, "type", line)
    make = _PACKETS.get(kind)
    if make is None and kind not in UNREAD:
        raise _LineError(f"no packet is called {kind[:40]!r}; known are {', '.join((*_PACKETS, *sorted(UNREAD)))}")
    packet = None if make is None else make(line)
    return PacketRecord(number, line.t, _needed(line.c, "c", line), _is_up(line), kind, packet, line.held, line.counter)


def _fate(number: int, line: _RecordedLine) -> FateRecord:
    return FateRecord(number, line.t, _needed(line.c, "c", line), _is_up(line), line.e == "read")


def _reply(number: int, line: _RecordedLine) -> ReplyRecord:
    return ReplyRecord(number, line.t, _needed(line.sid, "sid", line), _zxid_of(line), _needed(line.path, "path", line))


def _tree(number: int, line: _RecordedLine) -> TreeRecord:
    return TreeRecord(number, line.t, _needed(line.sid, "sid", line), tuple(_needed(line.absent, "absent", line)))


_MAKERS: dict[str, Callable[[int, _RecordedLine], RecordedEvent]] = {
    "start": _process,
    "kill": _process,
    "open": _link,
    "close": _link,
    "packet": _packet,
    "read": _fate,
    "lost": _fate,
    "reply": _reply,
    "tree": _tree,
}


def _needed(value: Any, name: str, line: _RecordedLine) -> Any:
    if value is None:
        raise _LineError(f"the event {line.e} has no {name}")
    return value


def _is_up(line: _RecordedLine) -> bool:
    if line.way not in ("up", "down"):
        raise _LineError(f"the way is {line.way!r}; write up or down")
    return line.way == "up"


def _zxid_of(line: _RecordedLine) -> int:
    return _zxid(_needed(line.zxid, "zxid", line))


def _zxid(text: str) -> int:
    epoch, _, counter = text.partition(":")
    numbers = integers((epoch, counter), 0, (1 << 32) - 1)
    if numbers is None:
        raise _LineError(f"{text[:40]!r} is not a zxid; write it as epoch:counter")
    return make_zxid(numbers[0], numbers[1])


def _epoch_of(line: _RecordedLine) -> int:
    return int(_needed(line.epoch, "epoch", line))


def _txn(line: _RecordedLine) -> Txn:
    return Txn(_zxid_of(line), _needed(line.digest, "digest", line))


def _logged(text: str) -> Txn:
    zxid, _, digest = text.partition(" ")
    if not digest:
        raise _LineError(f"{text[:40]!r} is not a record of a log; write its zxid and its digest")
    return Txn(_zxid(zxid), digest)


_PACKETS: dict[str, Callable[[_RecordedLine], zab.QuorumPacket]] = {
    "FOLLOWERINFO": lambda line: zab.FollowerInfo(_epoch_of(line)),
    "OBSERVERINFO": lambda line: zab.FollowerInfo(_epoch_of(line), observer=True),
    "LEADERINFO": lambda line: zab.LeaderInfo(_epoch_of(line)),
    "ACKEPOCH": lambda line: zab.AckEpoch(_zxid_of(line), _epoch_of(line)),
    "DIFF": lambda line: zab.Diff(_zxid_of(line)),
    "TRUNC": lambda line: zab.Trunc(_zxid_of(line)),
    "SNAP": lambda line: zab.Snap(_zxid_of(line), None),
    "NEWLEADER": lambda line: zab.NewLeader(_epoch_of(line)),
    "UPTODATE": lambda _: zab.UpToDate(),
    "PROPOSAL": lambda line: zab.Proposal(_txn(line)),
    "INFORM": lambda line: zab.Inform(_txn(line)),
    "COMMIT": lambda line: zab.Commit(_zxid_of(line)),
    "ACK": lambda line: zab.Ack(_zxid_of(line)),
}
