"""The guarantees of reads: of plain reads within a session, and of reads after `sync`.

A plain read may be old: one server answers it from the state that the server has applied. But it must be the state of
*some* moment, and the moments of a session advance.

A read after `sync` is current, except inside the window of a deposed leader. A leader answers a sync without asking a
quorum. So a leader that has been cut off, and has not noticed that a newer epoch has begun, answers a sync from its old
state. This is the only case in which a synced read may miss acknowledged writes.

Rules of this module:

- The zxids of the replies of one session never go back, on whichever servers the session was. Replies arrive in the
  order of the requests, so the order of completion is the order of the session.
- A reply without a zxid has no place among the transactions: only its value is checked.
- A read returns a value that was written. The value is not that of a refused write, nor of a write that was invoked
  after the read ended. Its mzxid and version are those of the write, and the same for every reader.
- A refused request was refused by the state at the zxid of its reply: NoNode is the absence of the znode, NodeExists
  and BadVersion are its presence.
- A read at zxid z returns the state at z: no known write of the znode lies after its mzxid and up to z. Together with
  the first rule, this makes a session see its own writes.
- A synced read must return every write of its znode that was acknowledged, or read by another synced read, before the
  sync was invoked.
- A read that misses one is tolerated only if some operation in a newer epoch was already answered: its server was a
  deposed leader, or followed one. The window runs from that first reply to the end of the stale read.
- A window is bounded by the time after which a leader without a quorum steps down (`syncLimit` ticks, and the ticks
  until it notices), if the history states this bound. Time during which the server was stopped does not count.

Source: `FinalRequestProcessor.processRequest` (the zxid of a reply); `ZooKeeperServer.processConnectRequest` (a server
that is behind the last zxid of a client refuses the client); `Leader.processSync` (answers immediately if no proposal
is outstanding); `Leader.lead` (checks for a quorum of synced learners once per tick); `LearnerHandler.synced`.
"""

from collections.abc import Iterable

import msgspec

from checker.histories.record import ClientHistory, Operation, Pause, Violation, epoch
from checker.histories.writes import Writes

FORWARD = "the zxids of a session never go back"
OWN_WRITES = "a session sees its own writes"
VALUES = "a read returns what was written, with its mzxid and version"
MOMENT = "a reply tells the state at its zxid"


def check_sessions(history: ClientHistory, writes: Writes) -> Violation | None:
    """Find the first reply, by completion, whose zxid goes back; if none does, the first read that breaks a clause."""
    answered = [operation for operation in history.operations if operation.outcome != "unknown"]
    answered.sort(key=lambda operation: operation.end)
    return _forward(op for op in answered if op.zxid) or _reads(answered, writes)


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
    latest: dict[tuple[int, str], Operation] = {}
    for operation in answered:
        if operation.acknowledged and operation.txn:
            latest[operation.session, operation.key] = operation
        elif not operation.is_write or operation.refused:
            mine = latest.get((operation.session, operation.key)) if operation.marked else None
            violation = _own_writes(operation, mine, writes) or _value(operation, writes)
            violation = violation or (_moment(operation, writes) if operation.marked else None)
            if violation is not None:
                return violation
    return None


def _own_writes(read: Operation, mine: Operation | None, writes: Writes) -> Violation | None:
    if mine is None or (read.outcome == "ok" and read.mzxid >= mine.txn):
        return None
    if read.outcome == "failed" and (read.error != "NoNode" or _may_be_absent(read, writes)):
        return None
    return Violation(OWN_WRITES, f"it wrote {mine.key} at zxid {mine.txn:#x}, then read an older state", (mine, read))


def _value(read: Operation, writes: Writes) -> Violation | None:
    """Check that the value was written, and that its mzxid and version are those of its write."""
    if read.outcome != "ok":
        is_odd = read.refused and not read.is_write and read.error != "NoNode"
        return Violation(VALUES, f"no read is refused with {read.error}", (read,)) if is_odd else None
    write = writes.by_value.get((read.key, read.value))
    if write is None:
        return Violation(VALUES, f"nobody wrote {read.value!r} to {read.key}", (read,))
    if write.outcome == "failed":
        return Violation(VALUES, f"the write of {read.value!r} was refused", (write, read))
    if write.invoked > read.end:
        return Violation(VALUES, f"{read.value!r} was read before its write was invoked", (write, read))
    if not read.has_stat:
        return None
    placement = writes.at(read.key, read.mzxid)
    if placement is None or placement.operation is not write or placement.version != read.version:
        witnesses = () if placement is None else (placement.operation, placement.witness)
        match = next((placed for placed in writes.placed(read.key) if placed.operation is write), None)
        marks = "none" if match is None else f"mzxid {match.txn:#x}, version {match.version}"
        told_by = () if match is None else (match.witness,)
        detail = f"{read.value!r} has {marks}; read with mzxid {read.mzxid:#x}, version {read.version}"
        return Violation(VALUES, detail, tuple(dict.fromkeys((*witnesses, write, *told_by, read))))
    return None


def _moment(read: Operation, writes: Writes) -> Violation | None:
    """Check that the reply is the state of the znode at the zxid of the reply."""
    if read.outcome == "failed":
        may_be = _may_be_absent if read.error == "NoNode" else _may_be_present
        if not read.refused or may_be(read, writes):
            return None
        last = writes.last(read.key, read.zxid)
        detail = f"{read.key} {'existed' if read.error == 'NoNode' else 'did not exist'} at zxid {read.zxid:#x}"
        return Violation(MOMENT, detail, (read,) if last is None else (last.operation, read))
    if read.mzxid > read.zxid:
        return Violation(MOMENT, f"mzxid {read.mzxid:#x} lies after the zxid of the reply, {read.zxid:#x}", (read,))
    missed = writes.between(read.key, read.mzxid, read.zxid)
    if missed is None:
        return None
    detail = f"a write of {read.key} at zxid {missed.txn:#x} is missing from the state at zxid {read.zxid:#x}"
    return Violation(MOMENT, detail, tuple(dict.fromkeys((missed.operation, missed.witness, read))))


def _may_be_absent(read: Operation, writes: Writes) -> bool:
    last = writes.last(read.key, read.zxid)
    return last is None or last.operation.kind == "delete" or writes.may_have("delete", read.key, read.end)


def _may_be_present(reply: Operation, writes: Writes) -> bool:
    last = writes.last(reply.key, reply.zxid)
    exists = last is not None and last.operation.kind != "delete"
    return exists or writes.may_have("create", reply.key, reply.end)


CURRENT = "a synced read sees every earlier write"
BOUNDED = "the window of a deposed leader is bounded"


class StaleRead(msgspec.Struct, frozen=True):
    """A synced read that missed a write, and the window of the deposed leader that excuses it.

    `seconds` is the length of the window without the pauses of the server.
    """

    read: Operation
    missed: Operation
    newer: Operation
    seconds: float

    def __str__(self) -> str:
        return (
            f"stale for {self.seconds:.3f} s: epoch {epoch(self.read.zxid)} still answered, while epoch"
            f" {epoch(self.newer.zxid)} had answered since {self.newer.end:.4f} s; missed {self.missed}"
            f"\n    {self.read}"
        )


class SyncResult(msgspec.Struct, frozen=True):
    """The result of the check: the stale reads that a window excuses, and the first violation."""

    stale: tuple[StaleRead, ...] = ()
    violation: Violation | None = None


def check_synced_reads(history: ClientHistory) -> SyncResult:
    """Judge every synced read, in the order of invocation."""
    answered = sorted((op for op in history.operations if op.outcome != "unknown"), key=lambda op: op.end)
    reads = sorted((op for op in answered if op.kind == "sync+get"), key=lambda op: op.invoked)
    first_of_epoch = _first_answers(answered)
    stale: list[StaleRead] = []
    owed: dict[str, tuple[int, Operation]] = {}
    index = 0
    for read in reads:
        while index < len(answered) and answered[index].end < read.invoked:
            _owe(owed, answered[index])
            index += 1
        zxid, missed = owed.get(read.key, (0, read))
        if read.zxid >= zxid or read.zxid == 0:
            continue
        excuse = _excuse(read, missed, first_of_epoch, history.pauses)
        if isinstance(excuse, Violation):
            return SyncResult(tuple(stale), excuse)
        stale.append(excuse)
        if history.bound is not None and excuse.seconds > history.bound:
            detail = f"{excuse.seconds:.3f} s, where {history.bound:.3f} s are the bound; {excuse}"
            return SyncResult(tuple(stale), Violation(BOUNDED, detail, (missed, excuse.newer, read)))
    return SyncResult(tuple(stale))


def _owe(owed: dict[str, tuple[int, Operation]], operation: Operation) -> None:
    """Record the newest transaction of a key that every later sync must see."""
    if operation.acknowledged:
        zxid = operation.txn
    elif operation.kind == "sync+get" and operation.outcome == "ok":
        zxid = operation.mzxid
    else:
        return
    if zxid > owed.get(operation.key, (0, operation))[0]:
        owed[operation.key] = zxid, operation


def _first_answers(answered: list[Operation]) -> list[Operation]:
    """The first reply of each epoch, in the order of completion; only epochs newer than all before."""
    firsts: list[Operation] = []
    for operation in answered:
        if operation.zxid and (not firsts or epoch(operation.zxid) > epoch(firsts[-1].zxid)):
            firsts.append(operation)
    return firsts


def _excuse(
    read: Operation, missed: Operation, first_of_epoch: list[Operation], pauses: tuple[Pause, ...]
) -> StaleRead | Violation:
    for newer in first_of_epoch:
        if epoch(newer.zxid) > epoch(read.zxid) and newer.end <= read.end:
            return StaleRead(read, missed, newer, _awake(read, newer.end, pauses))
    detail = f"its state is that of zxid {read.zxid:#x}, and no newer epoch had answered anybody"
    return Violation(CURRENT, detail, (missed, read))


def _awake(read: Operation, since: float, pauses: tuple[Pause, ...]) -> float:
    """The length of the window, without the time during which the server was stopped."""
    awake = 0.0
    for stop in sorted((pause for pause in pauses if pause.server == read.server), key=lambda each: each.since):
        awake += max(0.0, min(stop.since, read.end) - since)
        since = max(since, stop.until)
    return awake + max(0.0, read.end - since)
