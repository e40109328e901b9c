"""Reads after `sync`: current, except inside the window of a deposed leader.

A leader answers a sync without asking a quorum. So a leader that has been cut off, and has not noticed that a newer
epoch has begun, answers a sync from its old state. This is the only case in which a synced read may miss acknowledged
writes.

Rules of this module:

- A synced read must return every write of its znode that was acknowledged, or read by another synced read, before the
  sync was invoked.
- A read that misses one is tolerated only if some operation in a newer epoch was already answered: its server was a
  deposed leader, or followed one. The window runs from that first reply to the end of the stale read.
- A window is bounded by the time after which a leader without a quorum steps down (`syncLimit` ticks, and the ticks
  until it notices), if the history states this bound. Time during which the server was stopped does not count.

Source: `Leader.processSync` (answers immediately if no proposal is outstanding); `Leader.lead` (checks for a quorum of
synced learners once per tick); `LearnerHandler.synced`.
"""

from __future__ import annotations

import msgspec

from checker.histories.record import ClientHistory, Operation, Pause, epoch
from checker.histories.violation import Violation

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


def check(history: ClientHistory) -> SyncResult:
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
    mine = [pause for pause in pauses if pause.server == read.server]
    return read.end - since - sum(max(0.0, min(stop.until, read.end) - max(stop.since, since)) for stop in mine)
