"""The messages in the logs of servers that say something about the state of an ensemble.

Rules of this module:

- A log is read once, line by line in bounded memory: a line counts up to `LONGEST` bytes, a file up to `MOST_BYTES`
  from its end. Of each kind the first and the last line are held, with their numbers, and how many there are.
- A row has the text of the source, with `{NAME}` for an argument that is read, and `...` for one that is not. Layouts
  of log4j and logback before it make no difference, except for the role, which is a bare word.
- The times are those of the machine. A log does not show that its server is silent now.
- `docs/reference-log-messages.md` is written from the table, and a test compares each row with released jars.

Source: the class and method of each row, at the tags 3.4.14 to 3.9.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
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
BLOCK = 1 << 18
"""The bytes that are read together."""


class LogKind(Enum):
    """The kinds of messages; the value is their meaning for an operator."""

    ROLE = "the role of the server changes"
    VERSION = "the server starts, with this release"
    EPOCH_CREATED = "a file with an epoch was missing, and was written anew"
    EPOCHS_CONTRADICT = "the server does not start, because its epochs contradict each other or its log"
    NO_DATABASE = "the server does not start, because it cannot read its snapshot or its log"
    BAD_CHECKSUM = "a record of the log is damaged"
    BAD_SNAPSHOT = "a snapshot cannot be read"
    NO_SNAPSHOT = "there is a log without a snapshot"
    SHORT_LOG = "the log ends before the snapshot does: a part of the log is missing"
    DIGEST_DIFFERS = "the data differ from those of the server that wrote the transaction"
    OUT_OF_ORDER = "a committed transaction is not the next one: transactions are missing"
    MIXED_DIRECTORIES = "snapshots are in dataLogDir, or logs in dataDir: a directory was changed"
    NO_DIRECTORY = "the server does not start, because it cannot use its data directory"
    NO_SPACE = "the disk is full"
    NO_FILE = "the operating system refuses a file or a port"
    SLOW_DISK = "the disk is slow"
    BAD_CONFIGURATION = "the server does not start, because its zoo.cfg or myid cannot be used"
    STANDALONE = "the server runs alone, because its zoo.cfg names no ensemble"
    NO_MEMBER = "the server does not start, because its id is not in its configuration"
    SAME_ID = "another server has the same id"
    STRANGER = "a server or its candidate is not in the configuration of this one"
    NO_ADDRESS = "the elected leader is not in the configuration of this server"
    UNKNOWN_HOST = "the host name of a server is unknown on this machine"
    REFUSED = "another server cannot be reached at its election port"
    LEADER_REFUSED = "the leader cannot be reached at its quorum port"
    NO_LISTENER = "the server cannot listen on a port between servers"
    IN_USE = "a port is in use"
    WRONG_PROTOCOL = "an election port receives something else than votes: ports are exchanged, or TLS is at one side"
    NO_TLS = "a connection between servers fails in the TLS handshake"
    NO_SASL = "a connection between servers fails in the SASL authentication"
    SMALLER_ID = "the server leaves the connection to the one with the greater id; this is normal"
    ORACLE = "the server hears of a leader that too few others follow"
    LEADER_BEHIND = "the leader has an older epoch than the server has promised"
    LEARNER_AHEAD = "a server that wants to follow has a later epoch or configuration"
    EPOCH_TIMEOUT = "too few servers answered the leader in time"
    NO_FOLLOWERS = "the leader gives up, because too few servers follow it"
    SLOW_LEARNER = "a server does not acknowledge in time, and its leader leaves it"
    TRUNCATED = "the leader has the server cut its log back"
    NOT_TRUNCATED = "the server cannot cut its log back, and ends"
    SNAPSHOT_RECEIVED = "the leader replaces the server's data by a snapshot"
    RESTORED = "the data was replaced by the AdminServer's restore"
    CLIENT_AHEAD = "a client has seen a later transaction than the server has: the server is behind, or writes are lost"
    NO_RECONFIG = "a reconfiguration was asked for where reconfigEnabled is false"
    RECONFIG_REFUSED = "a reconfiguration was refused, because too few of its servers follow the leader"
    VIEW_UNWRITTEN = "the server cannot write its dynamic file"
    TOO_LARGE = "a request or a record is larger than jute.maxbuffer"
    OUT_OF_MEMORY = "the server has no memory left"
    FAILED = "a thread of the server failed, and the server ends"
    ENDED = "the server ends with an error"


NORMAL = frozenset(
    {
        LogKind.ROLE, LogKind.VERSION, LogKind.EPOCH_CREATED, LogKind.SMALLER_ID, LogKind.REFUSED, LogKind.ORACLE,
        LogKind.EPOCH_TIMEOUT, LogKind.NO_FOLLOWERS, LogKind.SLOW_LEARNER, LogKind.SNAPSHOT_RECEIVED,
    }
)  # fmt: skip
"""The kinds that a healthy ensemble has as well, at each start and election."""
ARGUMENT = re.compile(r"\{(\w+)\}|\.\.\.")
FIELDS = {
    "role": r"(?:LOOKING|FOLLOWING|LEADING|OBSERVING)(?=\s*$)",
    "release": r"[0-9][^\s,-]*",
    "file": r"\w{1,40}",
    "host": r"[A-Za-z0-9._:-]{1,253}",
    "length": r"-?\d{1,10}",
    **dict.fromkeys(("sid", "code", "millis", "number"), r"\d{1,19}"),
    **dict.fromkeys(("zxid", "seen", "epoch", "accepted"), r"[0-9a-f]{1,16}"),
}
"""The arguments that are read."""


class LogMessage(NamedTuple):
    """A row of the table: the kind, the first release (all reach to 3.9), the class and its method, and the text."""

    kind: LogKind
    since: str
    source: str
    text: str

    @property
    def literals(self) -> list[str]:
        """The parts of the text that the source has as they are."""
        return [part for part in ARGUMENT.split(self.text)[::2] if part]

    @property
    def pattern(self) -> re.Pattern[str]:
        """The pattern of the text in a line."""
        literal, *rest = ARGUMENT.split(self.text)
        parts = [re.escape(literal)]
        for argument, literal in zip(rest[::2], rest[1::2], strict=True):
            value = FIELDS.get(argument or "", "")
            parts += [f"(?P<{argument}>{value})" if argument else ".{0,80}?", re.escape(literal)]
        return re.compile("".join(parts))


K = LogKind
# fmt: off
MESSAGES = tuple(LogMessage(*row) for row in (
    (K.ROLE, "3.4", "QuorumPeer.run", "QuorumPeer... - {role}"),
    (K.VERSION, "3.4", "Environment.logEnv", "Server environment:zookeeper.version={release}"),
    (K.EPOCH_CREATED, "3.4", "QuorumPeer.loadDataBase",
     "{file} not found! Creating with a reasonable default of {epoch}. "),
    (K.EPOCHS_CONTRADICT, "3.4", "QuorumPeer.loadDataBase",
     "The current epoch, {epoch}, is older than the last zxid, {number}"),
    (K.EPOCHS_CONTRADICT, "3.4", "QuorumPeer.loadDataBase",
     "The accepted epoch, {accepted} is less than the current epoch, {epoch}"),
    (K.NO_DATABASE, "3.4", "QuorumPeer.loadDataBase", "Unable to load database on disk"),
    (K.BAD_CHECKSUM, "3.4", "FileTxnIterator.next", "CRC check failed"),
    (K.BAD_SNAPSHOT, "3.4", "FileSnap.deserialize", "Not able to find valid snapshots in "),
    (K.NO_SNAPSHOT, "3.5", "FileTxnSnapLog.restore", "No snapshot found, but there are log entries. "),
    (K.SHORT_LOG, "3.6", "FileTxnSnapLog.restore",
     "Highest txn zxid 0x{zxid} is not covering the snapshot digest zxid 0x{seen}, "),
    (K.DIGEST_DIFFERS, "3.6", "DataTree.compareDigest", "First digest mismatch on txn: "),
    (K.OUT_OF_ORDER, "3.9.4", "ZKDatabase.addCommittedProposal",
     "Committed proposal cached out of order: 0x{zxid} is not the next proposal of 0x{seen}"),
    (K.OUT_OF_ORDER, "3.4", "FollowerZooKeeperServer.commit", "Committing zxid 0x{zxid} but next pending txn 0x{seen}"),
    (K.MIXED_DIRECTORIES, "3.4", "FileTxnSnapLog.checkLogDir",
     "Check if dataLogDir and dataDir configuration is correct."),
    (K.NO_DIRECTORY, "3.5", "QuorumPeerMain.main", "Unable to access datadir, exiting abnormally"),
    (K.NO_SPACE, "3.4", "java.io.IOException", "No space left on device"),
    (K.NO_SPACE, "3.4", "java.io.IOException", "Disk quota exceeded"),
    (K.NO_FILE, "3.4", "java.io.IOException", "Read-only file system"),
    (K.NO_FILE, "3.4", "java.io.IOException", "Too many open files"),
    (K.SLOW_DISK, "3.4", "FileTxnLog.commit", "fsync-ing the write ahead log in ... took {millis}ms "),
    (K.BAD_CONFIGURATION, "3.4", "QuorumPeerMain.main", "Invalid config, exiting abnormally"),
    (K.STANDALONE, "3.4", "QuorumPeerMain.initializeAndRun",
     "Either no config or no quorum defined in config, running "),
    (K.NO_MEMBER, "3.4", "QuorumPeer.start", "My id {sid} not in the peer list"),
    (K.SAME_ID, "3.5.8", "QuorumCnxManager.handleConnection", "a connection request from a server with our own ID."),
    (K.STRANGER, "3.4", "FastLeaderElection.lookForLeader",
     "Ignoring notification for non-cluster member sid {sid} from sid "),
    (K.STRANGER, "3.5", "LearnerHandler.run", "Follower sid: {sid} not in the current config "),
    (K.NO_ADDRESS, "3.4", "Learner.findLeader", "Couldn't find the leader with id = {sid}"),
    (K.UNKNOWN_HOST, "3.4", "java.net.UnknownHostException", "UnknownHostException: {host}"),
    (K.UNKNOWN_HOST, "3.4", "java.net.InetSocketAddress", " {host}/<unresolved>"),
    (K.REFUSED, "3.4", "QuorumCnxManager.initiateConnection", "Cannot open channel to {sid} at election address "),
    (K.LEADER_REFUSED, "3.5", "Learner.connectToLeader", " exceeded. tries="),
    (K.NO_LISTENER, "3.4", "Listener.run", "Exception while listening"),
    (K.NO_LISTENER, "3.4", "Listener.run", "As I'm leaving the listener thread"),
    (K.NO_LISTENER, "3.4", "Leader.createServerSocket", "Couldn't bind to "),
    (K.IN_USE, "3.4", "java.net.BindException", "Address already in use"),
    (K.WRONG_PROTOCOL, "3.4", "RecvWorker.run", "Received packet with invalid packet: {length}"),
    (K.NO_TLS, "3.5", "javax.net.ssl.SSLHandshakeException", "SSLHandshakeException"),
    (K.NO_TLS, "3.5", "javax.net.ssl.SSLException", "Unsupported or unrecognized SSL message"),
    (K.NO_SASL, "3.4", "SaslQuorumAuthServer.authenticate", "Failed to authenticate using SASL"),
    (K.SMALLER_ID, "3.4", "QuorumCnxManager.startConnection", "Have smaller server identifier"),
    (K.ORACLE, "3.8", "FastLeaderElection.receivedLeadingNotification", "Oracle indicates not to follow"),
    (K.LEADER_BEHIND, "3.4", "Learner.registerWithLeader",
     "Leaders epoch, {epoch} is less than accepted epoch, {accepted}"),
    (K.LEADER_BEHIND, "3.4", "Follower.followLeader", "Proposed leader epoch {epoch} is less than our accepted epoch "),
    (K.LEARNER_AHEAD, "3.4", "Leader.waitForEpochAck", "Follower is ahead of the leader"),
    (K.EPOCH_TIMEOUT, "3.4", "Leader.getEpochToPropose", "Timeout while waiting for "),
    (K.NO_FOLLOWERS, "3.4", "Leader.lead", "Not sufficient followers synced"),
    (K.SLOW_LEARNER, "3.4", "LearnerHandler.ping", "Closing connection to peer due to transaction timeout."),
    (K.TRUNCATED, "3.4", "Learner.syncWithLeader", "Truncating log to get in sync with the leader 0x{zxid}"),
    (K.NOT_TRUNCATED, "3.4", "Learner.syncWithLeader", "Not able to truncate the log "),
    (K.SNAPSHOT_RECEIVED, "3.4", "Learner.syncWithLeader", "Getting a snapshot from leader 0x{zxid}"),
    (K.RESTORED, "3.9", "ZooKeeperServer.restoreFromSnapshot",
     "Restored to a new database. lastProcessedZxid={number}"),
    (K.CLIENT_AHEAD, "3.4", "ZooKeeperServer.processConnectRequest",
     " as it has seen zxid 0x{seen} our last zxid is 0x{zxid}"),
    (K.NO_RECONFIG, "3.5", "PrepRequestProcessor.pRequest2Txn",
     "Reconfig operation requested but reconfig feature is disabled."),
    (K.RECONFIG_REFUSED, "3.5", "PrepRequestProcessor.pRequest2Txn",
     "Reconfig failed - there must be a connected and synced quorum in new configuration"),
    (K.VIEW_UNWRITTEN, "3.5", "QuorumPeer.setLastSeenQuorumVerifier", "Error writing next dynamic config file to disk"),
    (K.TOO_LARGE, "3.4", "BinaryInputArchive.checkLength", "Unreasonable length = {length}"),
    (K.OUT_OF_MEMORY, "3.4", "java.lang.OutOfMemoryError", "java.lang.OutOfMemoryError"),
    (K.FAILED, "3.4", "ZooKeeperCriticalThread.handleException", "Severe unrecoverable error, from thread : "),
    (K.ENDED, "3.4", "QuorumPeerMain.main", "Unexpected exception, exiting abnormally"),
    (K.ENDED, "3.6", "ServiceUtils", "Exiting JVM with code {code}"),
))
# fmt: on
"""The table of messages."""

# Most blocks of a log have few of the literals, and a line is compared with the rows of its block alone.
Row = tuple[str, re.Pattern[str], LogKind]
_ROWS: tuple[Row, ...] = tuple((max(row.literals, key=len), row.pattern, row.kind) for row in MESSAGES)
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

    @property
    def findings(self) -> Iterator[LogKind]:
        """The kinds, other than those of a healthy ensemble, that occur after the last start of the server."""
        start = self.kinds[LogKind.VERSION].last.number if LogKind.VERSION in self.kinds else 0
        for kind, occurrences in self.kinds.items():
            if kind not in NORMAL and occurrences.last.number > start:
                yield kind


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


def _blocks(file: BinaryIO) -> Iterator[str]:
    """The lines of a file in blocks, each line up to a length."""
    rest = b""
    while data := file.read(BLOCK):
        first, *lines = (part[:LONGEST] for part in data.split(b"\n"))
        lines.insert(0, (rest + first)[:LONGEST])
        rest = lines.pop()
        if lines:
            yield b"\n".join(lines).decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")


def _lines(file: BinaryIO) -> Iterator[tuple[int, str, Sequence[Row]]]:
    """The lines of a file with their numbers, each with the rows that may match it."""
    number = 0
    for block in _blocks(file):
        rows = [row for row in _ROWS if row[0] in block]
        for line in block.split("\n"):
            number += 1
            yield number, line, rows


def _read(path: str, file: BinaryIO) -> LogEvidence:
    kinds: dict[LogKind, Occurrences] = {}
    sid = former = release = role = since = time = None
    refused, hosts, roles = set[Sid](), set[str](), tuple[str, ...]()
    for number, line, rows in _lines(file):
        if (stamp := _TIME.search(line[:60])) is not None:
            time = _time(stamp)
        if (owner := _MYID.search(line)) is not None:
            myid = integer(owner[1] or owner[2], 0, LONG[1])
            if myid != sid:
                sid, former = myid, sid
        for literal, pattern, kind in rows:
            if literal not in line or (match := pattern.search(line)) is None:
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
