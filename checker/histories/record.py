"""Recorded histories: the operations of clients, their file of JSON lines, and the form of a violation.

The clients record a history outside the servers, so the same checks apply to real ZooKeeper and to the reference node.
A line of the file is an entry: an operation, a pause of a server, the final content of a server, or (in one line) the
time that a deposed leader may continue to answer.

Rules:

- All times are seconds of one monotonic clock. An operation that completed before the invocation of another precedes
  it, and there is no other order.
- A value is written at most once, so a value that is read identifies its write. Other histories are refused. (Those
  of Jepsen's registers, whose values repeat, are read by `checker.histories.jepsen`.)
- An outcome is `unknown` unless an answer arrived. An unknown write may take effect at any time after its invocation,
  or never.
- Reading a file returns every entry, or raises an error with the number of the invalid line.
- A violation is a value, never a boolean. Its witnesses show, without the rest of the history, that the clause is
  broken. As text they are in the order of invocation.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from checker.command import CommandError, ExitCode
from checker.user_files import HISTORY, HISTORY_KIND, JSON_KIND, TooLargeError, kind_of, read_bytes

Kind: TypeAlias = Literal["create", "set", "delete", "get", "sync+get"]
Outcome: TypeAlias = Literal["ok", "failed", "unknown"]

WRITES: frozenset[Kind] = frozenset({"create", "set", "delete"})
TELLING = ("NoNode", "NodeExists", "BadVersion")
"""The errors that depend on the state of the znode."""
ANY_VERSION = -1
EPOCH_BITS = 32
"""The number of bits of the counter in a zxid; the epoch is above them."""


class ClientHistoryError(CommandError, ValueError):
    """A recorded history cannot be used; the message names the place and the correction."""

    exit_code = ExitCode.SCENARIO


class Operation(
    msgspec.Struct, frozen=True, tag="operation", tag_field="entry", omit_defaults=True, forbid_unknown_fields=True
):
    """One request of a client, from before the request was sent to after the answer arrived.

    `value` is the value that a write writes or a read returned (None: no such znode). `condition` is the expected
    version of a set or delete. `zxid` is from the header of the reply, `mzxid` and `version` are from its Stat. `error`
    is the code of a failure (`NoNode`, `NodeExists`, `BadVersion`, ...). A read of an absent znode is `failed` with
    `NoNode`. A `sync+get` begins with the sync and completes with the get.
    """

    client: str
    session: int
    server: int
    kind: Kind
    key: str
    invoked: float
    completed: float | None = None
    outcome: Outcome = "unknown"
    value: str | None = None
    condition: int = ANY_VERSION
    error: str = ""
    zxid: int = 0
    mzxid: int = 0
    version: int = 0

    @property
    def is_write(self) -> bool:
        """Whether the operation would change its key."""
        return self.kind in WRITES

    @property
    def acknowledged(self) -> bool:
        """Whether it is a write with a positive answer."""
        return self.is_write and self.outcome == "ok"

    @property
    def refused(self) -> bool:
        """Whether it failed because of the state of the znode."""
        return self.outcome == "failed" and self.error in TELLING

    @property
    def txn(self) -> int:
        """The zxid of the transaction of an answered write: that of the Stat, if the reply has a Stat."""
        return self.zxid if self.kind == "delete" or self.outcome == "failed" else self.mzxid

    @property
    def has_stat(self) -> bool:
        """Whether the reply had a Stat: without one, the zxid and the version are not known."""
        return self.mzxid > 0

    @property
    def marked(self) -> bool:
        """Whether the reply tells its place among all transactions, by the zxid of its header and that of its Stat."""
        return self.zxid > 0 and (self.has_stat or self.outcome == "failed" or self.kind == "delete")

    @property
    def end(self) -> float:
        """The time of completion; infinity if no answer arrived."""
        return math.inf if self.completed is None else self.completed

    def __str__(self) -> str:
        condition = "" if self.condition == ANY_VERSION else f" if version {self.condition}"
        value = f" {self.value!r}" if self.is_write and self.value is not None else ""
        return (
            f"{self.client} (session {self.session:#x}, server {self.server}) {self.kind} {self.key}{value}{condition}"
            f" -> {self._answer()} [{_seconds(self.invoked)}, {_seconds(self.completed)}]"
        )

    def _answer(self) -> str:
        if self.outcome == "unknown":
            return "no answer"
        if self.outcome == "failed":
            return f"{self.error} at zxid {self.zxid:#x}"
        if self.kind == "delete":
            return f"ok at zxid {self.zxid:#x}"
        reply = "ok" if self.is_write else repr(self.value)
        return f"{reply}, version {self.version}, mzxid {self.mzxid:#x}, at zxid {self.zxid:#x}"


class RegisterOperation(Operation, frozen=True):
    """An operation on a register without versions; the times are places in the history.

    `expected` is the old value of a compare-and-set, None for a read or a write. Values are in EDN.
    """

    expected: str | None = None

    def __str__(self) -> str:
        request = "read" if not self.is_write else f"write {self.value}"
        request = request if self.expected is None else f"cas {self.expected} {self.value}"
        answer = "no answer" if self.outcome == "unknown" else "ok" if self.is_write else self.value
        span = f"{self.invoked:.0f}, {'-' if self.completed is None else f'{self.completed:.0f}'}"
        return f"process {self.client}: {request} -> {answer} [entries {span}]"


class Pause(msgspec.Struct, frozen=True, tag="pause", tag_field="entry", forbid_unknown_fields=True):
    """A pause of a server (SIGSTOP): the server does not notice this time."""

    server: int
    since: float
    until: float


class Leaf(msgspec.Struct, frozen=True, array_like=True):
    """A znode on a server: its value, and the eleven numbers of its Stat by name."""

    value: str | None
    stat: dict[str, int]


class FinalZnodes(msgspec.Struct, frozen=True, tag="replica", tag_field="entry", forbid_unknown_fields=True):
    """The final znodes of one server by path, after the end of all writes and a sync."""

    server: int
    znodes: dict[str, Leaf]


class StaleBound(msgspec.Struct, frozen=True, tag="bound", tag_field="entry", forbid_unknown_fields=True):
    """The seconds that a deposed leader may continue to answer after the first answer in a newer epoch."""

    seconds: float


Entry: TypeAlias = Operation | Pause | FinalZnodes | StaleBound


class ClientHistory(msgspec.Struct, frozen=True):
    """The recorded entries of one run."""

    operations: tuple[Operation, ...]
    pauses: tuple[Pause, ...] = ()
    replicas: tuple[FinalZnodes, ...] = ()
    bound: float | None = None

    @property
    def by_key(self) -> dict[str, list[Operation]]:
        """The operations on each key in the order of the file; keys in the order of their first operation."""
        grouped: dict[str, list[Operation]] = {}
        for operation in self.operations:
            grouped.setdefault(operation.key, []).append(operation)
        return grouped


def history_of(entries: Iterable[Entry], name: str = "history") -> ClientHistory:
    """Make a history of entries. Raises ClientHistoryError for entries that no check can use."""
    items = tuple(entries)
    bounds = {entry.seconds for entry in items if isinstance(entry, StaleBound)}
    if len(bounds) > 1:
        raise ClientHistoryError(f"{name}: entries `bound` of {' and '.join(map(str, sorted(bounds)))} s; one is right")
    history = ClientHistory(
        operations=tuple(entry for entry in items if isinstance(entry, Operation)),
        pauses=tuple(entry for entry in items if isinstance(entry, Pause)),
        replicas=tuple(entry for entry in items if isinstance(entry, FinalZnodes)),
        bound=next(iter(bounds), None),
    )
    _refuse_ambiguity(history, name)
    return history


def _refuse_ambiguity(history: ClientHistory, name: str) -> None:
    values: set[tuple[str, str | None]] = set()
    for operation in history.operations:
        if operation.outcome != "unknown" and operation.completed is None:
            raise ClientHistoryError(
                f"{name}: {operation}: it was answered, so it needs the time at which it completed"
            )
        if operation.end < operation.invoked:
            raise ClientHistoryError(f"{name}: {operation}: it completed before it was invoked")
        if operation.kind in {"create", "set"}:
            if operation.value is None:
                raise ClientHistoryError(f"{name}: {operation}: a {operation.kind} needs the value that it writes")
            if (operation.key, operation.value) in values:
                raise ClientHistoryError(f"{name}: {operation}: this value was written before; write every value once")
            values.add((operation.key, operation.value))
    servers = [replica.server for replica in history.replicas]
    if repeated := [server for server in servers if servers.count(server) > 1]:
        right = "one entry has the final znodes of a server"
        raise ClientHistoryError(f"{name}: server {repeated[0]} has two entries `replica`; {right}")
    for replica in history.replicas:
        for path, leaf in replica.znodes.items():
            if not leaf.stat.keys() >= {"mzxid", "version"}:
                raise ClientHistoryError(f"{name}: {path} on server {replica.server}: its Stat needs mzxid and version")


_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Operation | Pause | FinalZnodes | StaleBound)


def save(path: Path, entries: Iterable[Entry]) -> None:
    """Write entries as JSON lines."""
    path.write_bytes(_ENCODER.encode_lines(list(entries)))


def load(*paths: Path) -> ClientHistory:
    """Read one history from one or several files, such as one for each client. Raises ClientHistoryError."""
    return history_of((entry for path in paths for entry in _entries(path)), ", ".join(map(str, paths)))


def _entries(path: Path) -> Iterable[Entry]:
    try:
        lines = read_bytes(path, HISTORY).splitlines()
    except TooLargeError as error:
        raise ClientHistoryError(f"{path}: {error}; record less, or split the history by key") from error
    except OSError as error:
        raise ClientHistoryError(f"{path}: it cannot be read ({error.strerror}); name a recorded history") from error
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield _DECODER.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                if number == 1 and (kind := kind_of(path)) not in {HISTORY_KIND, JSON_KIND}:
                    raise ClientHistoryError(f"{path}: it is {kind}; name a recorded history") from None
                raise ClientHistoryError(
                    f"{path}:{number}: {error}; a line is one JSON object whose `entry` is operation, pause, replica or"
                    " bound"
                ) from error


def epoch(zxid: int) -> int:
    """Return the epoch of a zxid."""
    return zxid >> EPOCH_BITS


def _seconds(time: float | None) -> str:
    return "-" if time is None else f"{time:.4f} s"


class Violation(msgspec.Struct, frozen=True):
    """A broken guarantee (`clause`), a description of the run (`detail`), and the operations that show it."""

    clause: str
    detail: str
    witnesses: tuple[Operation, ...] = ()

    def __str__(self) -> str:
        operations = sorted(self.witnesses, key=lambda operation: operation.invoked)
        return "\n".join([f"{self.clause}: {self.detail}", *(f"    {operation}" for operation in operations)])
