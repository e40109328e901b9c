"""The guarantees of plain reads within a session, on whichever servers the session was.

A plain read may be old: one server answers it from the state that the server has applied. But it must be the state of
*some* moment, and the moments of a session advance.

Rules of this module:

- The zxids of the replies of one session never go back. Replies arrive in the order of the requests, so the order of
  completion is the order of the session.
- A read returns a value that was written. The value is not that of a refused write, nor of a write that was invoked
  after the read ended. Its mzxid and version are those of the write, and the same for every reader.
- A read at zxid z returns the state at z: no known write of the znode lies after its mzxid and up to z. Together with
  the first rule, this makes a session see its own writes.

Source: `FinalRequestProcessor.processRequest` (the zxid of a reply); `ZooKeeperServer.processConnectRequest` (a server
that is behind the last zxid of a client refuses the client).
"""

from __future__ import annotations

from collections.abc import Iterable

from checker.histories.record import ClientHistory, Operation
from checker.histories.violation import Violation
from checker.histories.writes import Writes

FORWARD = "the zxids of a session never go back"
OWN_WRITES = "a session sees its own writes"
VALUES = "a read returns what was written, with its mzxid and version"
MOMENT = "a read tells the state at its zxid"


def check(history: ClientHistory, writes: Writes) -> Violation | None:
    """Find the first reply, by completion, whose zxid goes back; if none does, the first read that breaks a clause."""
    answered = [operation for operation in history.operations if operation.outcome != "unknown" and operation.zxid > 0]
    answered.sort(key=lambda operation: operation.end)
    return _forward(answered) or _reads(answered, writes)


def _forward(answered: Iterable[Operation]) -> Violation | None:
    last: dict[int, Operation] = {}
    for operation in answered:
        before = last.get(operation.session)
        if before is not None and before.zxid > operation.zxid:
            moved = "" if before.server == operation.server else ", after the session moved"
            detail = f"session {operation.session:#x} saw zxid {before.zxid:#x}, then {operation.zxid:#x}{moved}"
            return Violation(FORWARD, detail, (before, operation))
        last[operation.session] = operation
    return None


def _reads(answered: Iterable[Operation], writes: Writes) -> Violation | None:
    own: dict[tuple[int, str], Operation] = {}
    for operation in answered:
        if operation.acknowledged:
            own[operation.session, operation.key] = operation
        elif not operation.is_write:
            violation = (
                _own_writes(operation, own.get((operation.session, operation.key)), writes)
                or _value(operation, writes)
                or _moment(operation, writes)
            )
            if violation is not None:
                return violation
    return None


def _own_writes(read: Operation, mine: Operation | None, writes: Writes) -> Violation | None:
    """Check that a read returns the last earlier write of its session, or a newer one."""
    if mine is None or (read.outcome == "ok" and read.mzxid >= mine.txn):
        return None
    if read.outcome == "failed" and (read.error != "NoNode" or _may_be_absent(read, writes)):
        return None
    return Violation(OWN_WRITES, f"it wrote {mine.key} at zxid {mine.txn:#x}, then read an older state", (mine, read))


def _value(read: Operation, writes: Writes) -> Violation | None:
    """Check that the value was written, and that its mzxid and version are those of its write."""
    if read.outcome != "ok":
        return None
    write = writes.by_value.get((read.key, read.value))
    if write is None:
        return Violation(VALUES, f"nobody wrote {read.value!r} to {read.key}", (read,))
    if write.outcome == "failed":
        return Violation(VALUES, f"the write of {read.value!r} was refused", (write, read))
    if write.invoked > read.end:
        return Violation(VALUES, f"{read.value!r} was read before its write was invoked", (write, read))
    known = writes.at(read.key, read.mzxid)
    if known is None or known.operation is not write or known.version != read.version:
        others = () if known is None else (known.operation, known.witness)
        told = next((placed for placed in writes.placed(read.key) if placed.operation is write), None)
        marks = "none" if told is None else f"mzxid {told.txn:#x}, version {told.version}"
        told_by = () if told is None else (told.witness,)
        detail = f"{read.value!r} has {marks}; read with mzxid {read.mzxid:#x}, version {read.version}"
        return Violation(VALUES, detail, tuple(dict.fromkeys((*others, write, *told_by, read))))
    return None


def _moment(read: Operation, writes: Writes) -> Violation | None:
    """Check that the reply is the state of the znode at the zxid of the reply."""
    if read.outcome == "failed":
        if read.error != "NoNode" or _may_be_absent(read, writes):
            return None
        last = writes.last(read.key, read.zxid)
        detail = f"{read.key} existed at zxid {read.zxid:#x}"
        return None if last is None else Violation(MOMENT, detail, (last.operation, read))
    if read.mzxid > read.zxid:
        return Violation(MOMENT, f"mzxid {read.mzxid:#x} lies after the zxid of the reply, {read.zxid:#x}", (read,))
    missed = writes.between(read.key, read.mzxid, read.zxid)
    if missed is None:
        return None
    detail = f"a write of {read.key} at zxid {missed.txn:#x} is missing from the state at zxid {read.zxid:#x}"
    return Violation(MOMENT, detail, tuple(dict.fromkeys((missed.operation, missed.witness, read))))


def _may_be_absent(read: Operation, writes: Writes) -> bool:
    """Whether the znode may have been absent at the zxid of this reply."""
    last = writes.last(read.key, read.zxid)
    return last is None or last.operation.kind == "delete" or writes.may_have_deleted(read.key, read.end)
