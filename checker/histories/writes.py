"""The writes of a history: their order by zxid, and the checks of that order and of the final content of the servers.

The zxids of acknowledged writes are the known part of the order in which the ensemble carried them out. This check is
stronger than linearizability of each znode. The final content of the servers must be identical everywhere, and contain
every acknowledged write.

Rules of this module:

- An acknowledged write is placed by the zxid in its reply.
- An acknowledged write whose reply had no zxid is treated as a write without a reply: its place is not known.
- A write without a reply is placed if a read returned its value: the Stat of the first such read has its zxid and
  version. If no read did, the write stays `open`: it may be anywhere after its invocation, or nowhere.
- One zxid belongs to one write, also to a refused one, which is a transaction, too. A write that completed before
  another was invoked has the smaller zxid, also if the two wrote different znodes: zxids are the one order of all
  writes.
- The versions of a znode count up by one for each set, in the order of the zxids. Between two placed sets there may be
  as many further sets as had been invoked by then and never answered.
- Replicas are compared path by path, with every field of the Stat. The first path that differs is reported.
- A final znode is that of the last known write, or of an unanswered write after it; the value must be that of the
  write.
- `/zookeeper` is left out: a server describes its own configuration there, by its own clock.

Source: `Leader.propose` (a zxid for each proposal, in order); `PrepRequestProcessor.checkAndIncVersion`; `DataTree`
(the content of a replica); `ZKDatabase.initConfigInZKDatabase`.
"""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

import msgspec

from checker.histories.record import ClientHistory, FinalZnodes, Kind, Leaf, Operation, Violation


class PlacedWrite(msgspec.Struct, frozen=True):
    """A write with the zxid of its transaction, and the version that it left (0 for a delete)."""

    txn: int
    version: int
    operation: Operation
    witness: Operation
    """The source of the zxid: the write, or the first read of its value."""


class Writes:
    """The writes of a history: by value, by zxid within a key, and those without a known zxid."""

    def __init__(self, history: ClientHistory) -> None:
        self.by_value = {(op.key, op.value): op for op in history.operations if op.kind in {"create", "set"}}
        self._placed: dict[str, list[PlacedWrite]] = defaultdict(list)
        self._open: dict[str, list[Operation]] = defaultdict(list)
        reads = self._first_reads(history)
        for operation in history.operations:
            if operation.acknowledged and operation.txn:
                self._place(PlacedWrite(operation.txn, operation.version, operation, operation))
            elif operation.is_write and operation.outcome != "failed":
                witness = reads.get((operation.key, operation.value)) if operation.kind != "delete" else None
                if witness is None:
                    self._open[operation.key].append(operation)
                else:
                    self._place(PlacedWrite(witness.mzxid, witness.version, operation, witness))
        for placed in self._placed.values():
            placed.sort(key=lambda write: write.txn)

    @staticmethod
    def _first_reads(history: ClientHistory) -> dict[tuple[str, str | None], Operation]:
        reads: dict[tuple[str, str | None], Operation] = {}
        for operation in history.operations:
            if not operation.is_write and operation.outcome == "ok" and operation.has_stat:
                reads.setdefault((operation.key, operation.value), operation)
        return reads

    def _place(self, write: PlacedWrite) -> None:
        self._placed[write.operation.key].append(write)

    def placed(self, key: str) -> list[PlacedWrite]:
        """The writes of this key whose zxids are known, in the order of their zxids."""
        return self._placed.get(key, [])

    def open(self, key: str) -> list[Operation]:
        """The writes of this key that may have happened, without a known zxid."""
        return self._open.get(key, [])

    def last(self, key: str, zxid: int) -> PlacedWrite | None:
        """The last write of this key up to and including this zxid."""
        placed = self.placed(key)
        index = bisect_right(placed, zxid, key=lambda write: write.txn)
        return placed[index - 1] if index else None

    def between(self, key: str, after: int, zxid: int) -> PlacedWrite | None:
        """The first write of this key after one zxid, up to and including another."""
        placed = self.placed(key)
        index = bisect_right(placed, after, key=lambda write: write.txn)
        return placed[index] if index < len(placed) and placed[index].txn <= zxid else None

    def at(self, key: str, zxid: int) -> PlacedWrite | None:
        """The write of this key with exactly this zxid."""
        placed = self.placed(key)
        index = bisect_left(placed, zxid, key=lambda write: write.txn)
        return placed[index] if index < len(placed) and placed[index].txn == zxid else None

    def may_have(self, kind: Kind, key: str, before: float) -> bool:
        """Whether a write of a kind without a known zxid had been invoked before this time."""
        return any(op.kind == kind and op.invoked < before for op in self.open(key))


REAL_TIME = "zxids of writes respect real time"
UNIQUE = "a zxid belongs to one write"
VERSIONS = "versions count up by one for each set"


def check_zxids(history: ClientHistory, writes: Writes) -> Violation | None:
    """Find the first write that breaks a clause; the clauses are checked in the order unique, real time, versions."""
    answered = [op for op in history.operations if op.is_write and (op.outcome == "ok" or op.refused) and op.txn]
    return _unique(answered) or _real_time(answered) or _versions(history.by_key, writes)


def _unique(answered: Iterable[Operation]) -> Violation | None:
    owner: dict[int, Operation] = {}
    for operation in sorted(answered, key=lambda write: write.end):
        first = owner.setdefault(operation.txn, operation)
        if first is not operation:
            return Violation(UNIQUE, f"zxid {operation.txn:#x} was given to two writes", (first, operation))
    return None


def _real_time(answered: list[Operation]) -> Violation | None:
    """Sweep over invocations; `newest` is the completed write with the largest zxid so far."""
    ended = sorted(answered, key=lambda write: write.end)
    newest: Operation | None = None
    index = 0
    for operation in sorted(answered, key=lambda write: write.invoked):
        while index < len(ended) and ended[index].end < operation.invoked:
            if newest is None or ended[index].txn > newest.txn:
                newest = ended[index]
            index += 1
        if newest is not None and newest.txn >= operation.txn:
            detail = f"zxid {newest.txn:#x} was answered before the write with zxid {operation.txn:#x} was invoked"
            return Violation(REAL_TIME, detail, (newest, operation))
    return None


def _versions(keys: Iterable[str], writes: Writes) -> Violation | None:
    for key in keys:
        placed = writes.placed(key)
        for earlier, later in pairwise(placed):
            violation = _counts(earlier, later, writes.open(key))
            if violation is not None:
                return violation
    return None


def _counts(earlier: PlacedWrite, later: PlacedWrite, unanswered: list[Operation]) -> Violation | None:
    """Check that the versions of two neighbours, by zxid, leave room for the writes that may be between them."""
    possible = [op for op in unanswered if op.invoked < later.witness.end]
    if later.operation.kind == "delete":
        return None
    if later.operation.kind == "create":
        if later.version != 0:
            return Violation(VERSIONS, "a create begins at version 0", (later.operation, later.witness))
        return None
    begins = {"create", "delete"} & {op.kind for op in possible} or earlier.operation.kind == "delete"
    if begins:  # the znode may have been created again in between: the search for an order decides
        return None
    sets = sum(op.kind == "set" for op in possible)
    if 1 <= later.version - earlier.version <= 1 + sets:
        return None
    detail = (
        f"{later.operation.key}: version {earlier.version} at zxid {earlier.txn:#x}, then version {later.version} at"
        f" zxid {later.txn:#x}, with {sets} unanswered sets that may lie between"
    )
    return Violation(VERSIONS, detail, (earlier.operation, later.operation))


IDENTICAL = "replicas are identical at the end"
DURABLE = "no acknowledged write is missing at the end"
OWN = "/zookeeper"


def check_replicas(history: ClientHistory, writes: Writes) -> Violation | None:
    """Find the first difference between two replicas, or the first write that is missing from them."""
    if not history.replicas:
        return None
    first, *replicas = history.replicas
    for replica in replicas:
        for detail in _differences(first, replica):
            return Violation(IDENTICAL, detail)
    for key in history.by_key:
        violation = _durable(key, first.znodes.get(key), first.server, writes)
        if violation is not None:
            return violation
    return None


def compared_paths(replicas: Iterable[FinalZnodes]) -> list[str]:
    """The paths of the znodes of replicas, in order, without those in which a server describes itself."""
    paths = sorted({path for replica in replicas for path in replica.znodes})
    return [path for path in paths if path != OWN and not path.startswith(f"{OWN}/")]


def _differences(one: FinalZnodes, other: FinalZnodes) -> Iterator[str]:
    for path in compared_paths((one, other)):
        mine, theirs = one.znodes.get(path), other.znodes.get(path)
        if mine == theirs:
            continue
        if mine is None or theirs is None:
            has, lacks = (one, other) if theirs is None else (other, one)
            yield f"{path}: server {has.server} holds it, server {lacks.server} does not"
        elif mine.value != theirs.value:
            yield f"{path}: {mine.value!r} on server {one.server}, {theirs.value!r} on server {other.server}"
        else:
            name = next(name for name in mine.stat | theirs.stat if mine.stat.get(name) != theirs.stat.get(name))
            yield (
                f"{path}: {name} is {mine.stat.get(name)} on server {one.server},"
                f" {theirs.stat.get(name)} on server {other.server}"
            )


def _durable(key: str, leaf: Leaf | None, server: int, writes: Writes) -> Violation | None:
    placed = writes.placed(key)
    last = placed[-1] if placed else None
    if leaf is None:
        if last is None or last.operation.kind == "delete" or writes.may_have("delete", key, math.inf):
            return None
        return Violation(DURABLE, f"{key} does not exist on server {server}", (last.operation,))
    return _explained(key, leaf, server, last, writes)


def _explained(key: str, leaf: Leaf, server: int, last: PlacedWrite | None, writes: Writes) -> Violation | None:
    """Check that the final znode is that of the last known write, or of an unanswered one after it."""
    mzxid, version = leaf.stat["mzxid"], leaf.stat["version"]
    state = f"{key} is {leaf.value!r}, mzxid {mzxid:#x}, version {version} on server {server}"
    if last is not None and mzxid < last.txn:
        return Violation(DURABLE, f"{state}: older than the last write", (last.operation,))
    writer: Operation | None = writes.by_value.get((key, leaf.value))
    if writer is None or writer.outcome == "failed":
        return Violation(DURABLE, f"{state}: nobody wrote that", () if writer is None else (writer,))
    if last is not None and mzxid == last.txn:
        if writer is last.operation and version == last.version:
            return None
        return Violation(DURABLE, f"{state}: not what was written then", (last.operation,))
    if writer in writes.open(key):
        return None
    return Violation(DURABLE, f"{state}: its write was carried out again, or elsewhere in the order", (writer,))
