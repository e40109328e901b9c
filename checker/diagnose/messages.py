"""The messages in the logs of servers that say something about the state of an ensemble.

Rules of this module:

- A log is read line by line in bounded memory: a line counts up to `LONGEST` bytes, a file up to `MOST_BYTES` from its
  end. Of each kind the first and the last line are held, with their numbers, and how many there are.
- A pattern is the text of the source without its arguments. Layouts of log4j and logback before it make no difference.
- The times are those of the machine. A log does not show that its server is silent now.

Source: the classes of each row, releases 3.4.14 to 3.9.5; the rows were seen on the releases of
`docs/reference-log-messages.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import BinaryIO, NamedTuple

from spec.quorum import Sid
from spec.text import LONG, excerpt, integer

LONGEST = 4096
"""The bytes of a line that are read."""
MOST_ROLES = 1000
"""The number of the last roles that are held."""
MOST_BYTES = 256 << 20
"""The bytes of a file that are read, from its end."""


class LogKind(Enum):
    """The kinds of messages; the value is their meaning for an operator."""

    ROLE = "the role of the server changes"
    VERSION = "the server starts, with this release"
    EPOCH_CREATED = "a file with an epoch was missing, and was written anew"
    EPOCHS_CONTRADICT = "the server does not start, because its epochs contradict each other or its log"
    NO_DATABASE = "the server does not start, because it cannot read its snapshot or its log"
    BAD_CHECKSUM = "a record of the log is damaged"
    NO_SNAPSHOT = "there is a log without a snapshot"
    NO_SPACE = "the disk is full"
    SLOW_DISK = "the disk is slow"
    UNKNOWN_HOST = "the host name of a server is unknown on this machine"
    REFUSED = "another server cannot be reached at its election port"
    NO_MEMBER = "the server does not start, because its id is not in its configuration"
    LEADER_BEHIND = "the leader has an older epoch than the server has promised"
    ORACLE = "the server hears of a leader that too few others follow"
    NO_FOLLOWERS = "the leader gives up, because too few servers follow it"
    TRUNCATED = "the leader has the server cut its log back"
    SNAPSHOT_RECEIVED = "the leader replaces the server's data by a snapshot"
    RESTORED = "the data was replaced by the AdminServer's restore"
    NO_RECONFIG = "a reconfiguration was asked for where reconfigEnabled is false"
    NO_TLS = "a connection between servers fails in the TLS handshake"
    IN_USE = "a port is in use"
    OUT_OF_MEMORY = "the server has no memory left"
    SMALLER_ID = "the server leaves the connection to the one with the greater id; this is normal"
    EPOCH_TIMEOUT = "too few servers answered the leader in time"


class LogMessage(NamedTuple):
    """A row of the table: the kind, the pattern, and the class and method that write it."""

    kind: LogKind
    pattern: str
    source: str


MESSAGES = (
    LogMessage(LogKind.ROLE, r"QuorumPeer@\d+\] - (?P<role>LOOKING|FOLLOWING|LEADING|OBSERVING)\s*$", "QuorumPeer.run"),
    LogMessage(
        LogKind.VERSION, r"Server environment:zookeeper\.version=(?P<release>[0-9][^\s,-]*)", "Environment.logEnv"
    ),
    LogMessage(
        LogKind.EPOCH_CREATED,
        r"(?P<file>acceptedEpoch|currentEpoch) not found! Creating with a reasonable default of (?P<epoch>\d+)",
        "QuorumPeer.loadDataBase",
    ),
    LogMessage(
        LogKind.EPOCHS_CONTRADICT,
        r"The (?:current epoch, .{1,20}, is older than the last zxid|accepted epoch, .{1,20} is less than the current)",
        "QuorumPeer.loadDataBase",
    ),
    LogMessage(LogKind.NO_DATABASE, r"Unable to load database on disk", "QuorumPeer.loadDataBase"),
    LogMessage(LogKind.BAD_CHECKSUM, r"CRC check failed", "FileTxnLog.FileTxnIterator.next"),
    LogMessage(LogKind.NO_SNAPSHOT, r"No snapshot found, but there are log entries", "FileTxnSnapLog.restore"),
    LogMessage(LogKind.NO_SPACE, r"No space left on device|Disk quota exceeded", "FileTxnLog.commit"),
    LogMessage(
        LogKind.SLOW_DISK, r"fsync-ing the write ahead log in .{1,40} took (?P<millis>\d+)ms", "FileTxnLog.commit"
    ),
    LogMessage(
        LogKind.UNKNOWN_HOST,
        r"(?:UnknownHostException: |Failed to resolve address: )(?P<host>[A-Za-z0-9._:-]{1,253})",
        "MultipleAddresses, QuorumPeer.QuorumServer.recreateSocketAddresses",
    ),
    LogMessage(
        LogKind.REFUSED,
        r"Cannot open channel to (?P<sid>\d+) at election address",
        "QuorumCnxManager.initiateConnection",
    ),
    LogMessage(LogKind.NO_MEMBER, r"My id (?P<sid>-?\d+) not in the peer list", "QuorumPeer.start"),
    LogMessage(
        LogKind.LEADER_BEHIND,
        r"Leaders epoch, (?P<epoch>\d+) is less than accepted epoch, (?P<accepted>\d+)",
        "Learner.registerWithLeader",
    ),
    LogMessage(LogKind.ORACLE, r"Oracle indicates not to follow", "FastLeaderElection.lookForLeader"),
    LogMessage(LogKind.NO_FOLLOWERS, r"Not sufficient followers synced", "Leader.lead"),
    LogMessage(
        LogKind.TRUNCATED,
        r"Truncating log to get in sync with the leader 0x(?P<zxid>[0-9a-f]{1,16})",
        "Learner.syncWithLeader",
    ),
    LogMessage(
        LogKind.SNAPSHOT_RECEIVED,
        r"Getting a snapshot from (?:the )?leader 0x(?P<zxid>[0-9a-f]{1,16})",
        "Learner.syncWithLeader",
    ),
    LogMessage(
        LogKind.RESTORED,
        r"Restored to a new database\. lastProcessedZxid=(?P<number>\d+)",
        "ZooKeeperServer.restoreFromSnapshot",
    ),
    LogMessage(LogKind.NO_RECONFIG, r"reconfig feature is disabled", "PrepRequestProcessor.precheckReconfig"),
    LogMessage(LogKind.NO_TLS, r"SSLHandshakeException|Unsupported or unrecognized SSL message", "UnifiedServerSocket"),
    LogMessage(LogKind.IN_USE, r"Address already in use", "java.net.BindException"),
    LogMessage(LogKind.OUT_OF_MEMORY, r"java\.lang\.OutOfMemoryError", "java.lang"),
    LogMessage(LogKind.SMALLER_ID, r"Have smaller server identifier", "QuorumCnxManager.startConnection"),
    LogMessage(
        LogKind.EPOCH_TIMEOUT,
        r"Timeout while waiting for (?:epoch|quorum)(?: to be acked by quorum| from quorum)?",
        "Leader.getEpochToPropose, Leader.waitForEpochAck",
    ),
)
"""The table of messages."""

# One pattern finds the lines that any row can match; most lines of a log match none.
_ANY = re.compile("|".join(re.sub(r"\?P<\w+>", "?:", row.pattern) for row in MESSAGES))
_ROWS = tuple((row.kind, re.compile(row.pattern)) for row in MESSAGES)
_MYID = re.compile(r"QuorumPeer\[myid=([0-9]{1,18})\]|\[myid:([0-9]{1,18})\]")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)[,.](\d{3})")


class LogLine(NamedTuple):
    """A line of a log: its number, counted from the first one read, its time if it has one, and its groups."""

    number: int
    time: datetime | None
    values: Mapping[str, str]


@dataclass(frozen=True)
class Occurrences:
    """How often a kind of message occurs, and its first and last line."""

    count: int
    first: LogLine
    last: LogLine


@dataclass(frozen=True)
class LogEvidence:
    """The evidence in the log of one server.

    `sid` is the last id that it names as its own, and `former_sid` the last other one before. `role` is the last role,
    and `since` its time; `until` is that of the last line. `roles` are the last `MOST_ROLES` roles, and `refused` the
    servers that it did not reach in the last one. `hosts` are the names that it could not look up.
    """

    path: str
    sid: Sid | None = None
    former_sid: Sid | None = None
    release: str | None = None
    role: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    roles: tuple[str, ...] = ()
    refused: frozenset[Sid] = frozenset()
    hosts: frozenset[str] = frozenset()
    fault: str = ""
    kinds: Mapping[LogKind, Occurrences] = field(default_factory=dict)

    def line(self, kind: LogKind) -> str:
        """A sentence about a kind of message in this log, with its place; it occurs."""
        occurrences = self.kinds[kind]
        times = "once" if occurrences.count == 1 else f"{occurrences.count} times"
        when = f", {occurrences.last.time:%Y-%m-%d %H:%M:%S}" if occurrences.last.time is not None else ""
        values = ", ".join(f"{name} {excerpt(value, 60)}" for name, value in occurrences.last.values.items())
        return f"{self.path}:{occurrences.last.number}{when}: {kind.value} ({times}{'; ' + values if values else ''})"


def read_log(path: Path) -> LogEvidence:
    """Read the log of a server. A file that cannot be read is a fault in the answer."""
    try:
        with path.open("rb") as file:
            start = file.read(2)
            if start in (b"\x1f\x8b", b"PK"):
                return LogEvidence(str(path), fault=f"{path} is compressed: unpack it first")
            size = file.seek(0, 2)
            file.seek(max(0, size - MOST_BYTES))
            return _read(str(path), file)
    except OSError as error:
        return LogEvidence(str(path), fault=f"{path} cannot be read: {error.strerror}")


def _lines(file: BinaryIO) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, each up to a length."""
    number = 1
    while raw := file.readline(LONGEST):
        yield number, raw.decode("utf-8", "replace")
        while raw and not raw.endswith(b"\n"):
            raw = file.readline(LONGEST)
        number += 1


def _read(path: str, file: BinaryIO) -> LogEvidence:
    kinds: dict[LogKind, Occurrences] = {}
    sid = former = release = role = since = time = None
    refused, hosts, roles = set[Sid](), set[str](), tuple[str, ...]()
    for number, line in _lines(file):
        if (stamp := _TIME.search(line[:60])) is not None:
            time = _time(stamp)
        if (owner := _MYID.search(line)) is not None:
            myid = integer(owner[1] or owner[2], 0, LONG[1])
            if myid != sid:
                sid, former = myid, sid
        if _ANY.search(line) is None:
            continue
        for kind, pattern in _ROWS:
            if (match := pattern.search(line)) is None:
                continue
            place = LogLine(number, time, {name: value for name, value in match.groupdict().items() if value})
            occurrences = kinds.get(kind)
            kinds[kind] = (
                Occurrences(1, place, place)
                if occurrences is None
                else Occurrences(occurrences.count + 1, occurrences.first, place)
            )
            if kind is LogKind.ROLE:
                role, since, refused = match["role"], time, set()
                roles = (*roles, role)[-MOST_ROLES:]
            elif kind is LogKind.VERSION:
                release, role, refused = match["release"], None, set()
            elif kind is LogKind.REFUSED and (other := integer(match["sid"], 0, LONG[1])) is not None:
                refused.add(other)
            elif kind is LogKind.UNKNOWN_HOST and len(hosts) < 64:
                hosts.add(match["host"])
    return LogEvidence(
        path, sid, former, release, role, since, time, roles, frozenset(refused), frozenset(hosts), kinds=kinds
    )  # fmt: skip


def _time(stamp: re.Match[str]) -> datetime | None:
    try:
        return datetime.fromisoformat(f"{stamp[1]}T{stamp[2]}.{stamp[3]}")
    except ValueError:
        return None
