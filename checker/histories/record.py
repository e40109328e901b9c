"""What clients of an ensemble saw: a recorded history, and its file of JSON lines.

A history is taken by the clients alone, outside the servers, so it holds real ZooKeeper and the reference node to the
same account. One line of the file is one entry: an operation, a pause of a server, what a server held at the end, or
(once) how long a deposed leader may go on answering.

Rules this module keeps:

- All times are seconds of one monotonic clock. An operation that completed before another was invoked precedes it;
  nothing else orders them.
- A value is written at most once, so a value that is read names its write. Histories that break this are refused.
- An outcome is `unknown` unless an answer arrived. An unknown write may take effect at any time after it was invoked,
  or never.
- Reading a file keeps every entry or names the line that is wrong, and what would be right.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal["create", "set", "delete", "get", "sync+get"]
Outcome: TypeAlias = Literal["ok", "failed", "unknown"]

WRITES: frozenset[Kind] = frozenset({"create", "set", "delete"})
ANY_VERSION = -1
EPOCH_BITS = 32
"""A zxid is an epoch above so many bits, and a counter in them."""


class HistoryError(ValueError):
    """A recorded history cannot be used; the message names the place and what would be right."""


class Operation(msgspec.Struct, frozen=True, tag="operation", tag_field="entry", omit_defaults=True):
    """One request of a client, from the moment before it was sent to the moment after its answer arrived.

    `value` is what a write writes and what a read returned (None: no such znode). `condition` is the version that a
    set or delete asks for. `zxid` is that of the reply's header, `mzxid` and `version` those of the Stat in it.
    `error` names the refusal (`NoNode`, `NodeExists`, `BadVersion`, ...) where the outcome is `failed`. A read of an
    absent znode is `failed` with `NoNode`. A `sync+get` begins with the sync and completes with the get.
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
        """Whether it is a write of which the client was told that it is done."""
        return self.is_write and self.outcome == "ok"

    @property
    def txn(self) -> int:
        """The zxid of the transaction of an acknowledged write; a Stat tells it where the reply has one."""
        return self.zxid if self.kind == "delete" else self.mzxid

    @property
    def end(self) -> float:
        """When it completed; never, if its answer did not arrive."""
        return float("inf") if self.completed is None else self.completed

    def __str__(self) -> str:
        asked = "" if self.condition == ANY_VERSION else f" if version {self.condition}"
        written = f" {self.value!r}" if self.is_write and self.value is not None else ""
        return (
            f"{self.client} (session {self.session:#x}, server {self.server}) {self.kind} {self.key}{written}{asked}"
            f" -> {self._answer()} [{_seconds(self.invoked)}, {_seconds(self.completed)}]"
        )

    def _answer(self) -> str:
        if self.outcome == "unknown":
            return "no answer"
        if self.outcome == "failed":
            return f"{self.error} at zxid {self.zxid:#x}"
        if self.kind == "delete":
            return f"ok at zxid {self.zxid:#x}"
        read = "ok" if self.is_write else repr(self.value)
        return f"{read}, version {self.version}, mzxid {self.mzxid:#x}, at zxid {self.zxid:#x}"


class Pause(msgspec.Struct, frozen=True, tag="pause", tag_field="entry"):
    """A server was stopped (SIGSTOP) for a while: time that it could not have noticed."""

    server: int
    since: float
    until: float


class Leaf(msgspec.Struct, frozen=True, array_like=True):
    """What a server holds of one znode: its value, and the eleven numbers of its Stat, by name."""

    value: str | None
    stat: dict[str, int]


class Replica(msgspec.Struct, frozen=True, tag="replica", tag_field="entry"):
    """What one server held at the end, path by path, when every write had ended and it had been synced."""

    server: int
    znodes: dict[str, Leaf]


class Bound(msgspec.Struct, frozen=True, tag="bound", tag_field="entry"):
    """How many seconds a deposed leader may go on answering while a newer epoch already does."""

    seconds: float


Entry: TypeAlias = Operation | Pause | Replica | Bound


class History(msgspec.Struct, frozen=True):
    """Everything that was recorded of one run."""

    operations: tuple[Operation, ...]
    pauses: tuple[Pause, ...] = ()
    replicas: tuple[Replica, ...] = ()
    bound: float | None = None

    @property
    def by_key(self) -> dict[str, list[Operation]]:
        """The operations on each key, in the order of the record; keys in the order in which they first appear."""
        grouped: dict[str, list[Operation]] = {}
        for operation in self.operations:
            grouped.setdefault(operation.key, []).append(operation)
        return grouped


def history_of(entries: Iterable[Entry], name: str = "history") -> History:
    """Put entries together, refusing what no check could rely on."""
    kept = tuple(entries)
    history = History(
        operations=tuple(entry for entry in kept if isinstance(entry, Operation)),
        pauses=tuple(entry for entry in kept if isinstance(entry, Pause)),
        replicas=tuple(entry for entry in kept if isinstance(entry, Replica)),
        bound=next((entry.seconds for entry in kept if isinstance(entry, Bound)), None),
    )
    _refuse_ambiguity(history, name)
    return history


def _refuse_ambiguity(history: History, name: str) -> None:
    written: set[tuple[str, str | None]] = set()
    for operation in history.operations:
        if operation.outcome != "unknown" and operation.completed is None:
            raise HistoryError(f"{name}: {operation}: it was answered, so it needs the time at which it completed")
        if operation.end < operation.invoked:
            raise HistoryError(f"{name}: {operation}: it completed before it was invoked")
        if operation.kind in {"create", "set"}:
            if operation.value is None:
                raise HistoryError(f"{name}: {operation}: a {operation.kind} needs the value that it writes")
            if (operation.key, operation.value) in written:
                raise HistoryError(f"{name}: {operation}: this value was written before; write every value once")
            written.add((operation.key, operation.value))


_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Operation | Pause | Replica | Bound)


def save(path: Path, entries: Iterable[Entry]) -> None:
    """Write entries as JSON lines."""
    path.write_bytes(_ENCODER.encode_lines(list(entries)))


def load(*paths: Path) -> History:
    """Read one history, which may be spread over several files (say, one for each client)."""
    return history_of((entry for path in paths for entry in _entries(path)), ", ".join(map(str, paths)))


def _entries(path: Path) -> Iterable[Entry]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise HistoryError(f"{path}: it cannot be read ({error.strerror}); name a recorded history") from error
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield _DECODER.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise HistoryError(
                    f"{path}:{number}: {error}; a line is one JSON object whose `entry` is operation, pause, replica or"
                    " bound"
                ) from error


def epoch(zxid: int) -> int:
    """The epoch that a zxid belongs to."""
    return zxid >> EPOCH_BITS


def _seconds(time: float | None) -> str:
    return "-" if time is None else f"{time:.4f} s"
