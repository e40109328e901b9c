"""The zxids of acknowledged writes: a check that is stronger than linearizability of each znode.

Rules of this module:

- One zxid belongs to one write. A write that completed before another was invoked has the smaller zxid, also if the two
  wrote different znodes: zxids are the one order of all writes.
- The versions of a znode count up by one for each set, in the order of the zxids. Between two placed sets there may be
  as many further sets as had been invoked by then and never answered.

Source: `Leader.propose` (a zxid for each proposal, in order); `PrepRequestProcessor.checkAndIncVersion`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from checker.histories.record import ClientHistory, Operation
from checker.histories.violation import Violation
from checker.histories.writes import PlacedWrite, Writes

REAL_TIME = "zxids of writes respect real time"
UNIQUE = "a zxid belongs to one write"
VERSIONS = "versions count up by one for each set"


def check(history: ClientHistory, writes: Writes) -> Violation | None:
    """Find the first write that breaks a clause; the clauses are checked in the order unique, real time, versions."""
    acknowledged = [operation for operation in history.operations if operation.acknowledged]
    return _unique(acknowledged) or _real_time(acknowledged) or _versions(history.by_key, writes)


def _unique(acknowledged: Iterable[Operation]) -> Violation | None:
    owner: dict[int, Operation] = {}
    for operation in sorted(acknowledged, key=lambda write: write.end):
        first = owner.setdefault(operation.txn, operation)
        if first is not operation:
            return Violation(UNIQUE, f"zxid {operation.txn:#x} was given to two writes", (first, operation))
    return None


def _real_time(acknowledged: list[Operation]) -> Violation | None:
    """Sweep over invocations; `newest` is the completed write with the largest zxid so far."""
    ended = sorted(acknowledged, key=lambda write: write.end)
    newest: Operation | None = None
    index = 0
    for operation in sorted(acknowledged, key=lambda write: write.invoked):
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
    begun = {"create", "delete"} & {op.kind for op in possible} or earlier.operation.kind == "delete"
    if begun:  # the znode may have been created again in between: the search for an order decides
        return None
    sets = sum(op.kind == "set" for op in possible)
    if 1 <= later.version - earlier.version <= 1 + sets:
        return None
    detail = (
        f"{later.operation.key}: version {earlier.version} at zxid {earlier.txn:#x}, then version {later.version} at"
        f" zxid {later.txn:#x}, with {sets} unanswered sets that may lie between"
    )
    return Violation(VERSIONS, detail, (earlier.operation, later.operation))
