"""The events of a recording: what proxies saw of real servers, with their disks and the replies to clients."""

from __future__ import annotations

from dataclasses import dataclass

from spec.quorum import Sid, View
from spec.txn import Txn
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
