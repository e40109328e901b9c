"""Comparison of the transactions that a server reports as applied with its log, step by step.

The state of a server contains the zxid that it applied last, but no list of applied transactions. Invariants derive the
list from the log, up to that zxid. The derived list is right as long as every step applies exactly the next
transactions of the log. A step that does anything else is reported as `Misapplied`.
"""

from __future__ import annotations

from itertools import pairwise

from spec.effects import Effects, Fact, Observe
from spec.quorum import Sid
from spec.server import Server
from spec.txn import Txn
from spec.zab.events import Delivered
from spec.zab.state import Leader, logged_and_queued


class Misapplied(Fact, frozen=True):
    """A report that `server`, in one step of `epoch`, did not apply the next transactions of its log in zxid order.

    `applied` lists every transaction that it has applied since it began to serve, and `logged` the log up to the zxid
    that it reports as the last one.
    """

    server: Sid
    epoch: int
    applied: tuple[Txn, ...]
    logged: tuple[Txn, ...]


def misapplied(before: Server, after: Server, effects: Effects) -> Misapplied | None:
    """The report about a step, or None if the step applies the next transactions of the log, in zxid order.

    If the server ceases to serve in the step, the comparison covers the transactions that it reports.
    """
    reported = [each.fact for each in effects if isinstance(each, Observe) and isinstance(each.fact, Delivered)]
    was, now = applied_zxid(before), applied_zxid(after)
    if not reported and (now is None or now == was):
        return None
    new = tuple(txn for fact in reported for txn in fact.txns)
    older = () if was is None else up_to(_log(before), was)
    log = _log(after)
    applied = (*older, *new)
    logged = log[: len(applied)] if now is None else up_to(log, now)
    ascending = all(one.zxid < other.zxid for one, other in pairwise((*older[-1:], *new)))
    if applied == logged and ascending:
        return None
    epoch = reported[0].epoch if reported else 0 if after.zab is None else after.zab.epoch
    return Misapplied(after.sid, epoch, applied, logged)


def applied_zxid(server: Server) -> int | None:
    """The zxid that a server reports as the last one that it applied; None if it does not serve."""
    part = server.zab
    if part is None or not part.serves:
        return None
    return part.applied if isinstance(part, Leader) else part.delivered


def up_to(log: tuple[Txn, ...], zxid: int) -> tuple[Txn, ...]:
    """The log up to its last transaction with this zxid or a lower one."""
    place = next((place for place in range(len(log), 0, -1) if log[place - 1].zxid <= zxid), 0)
    return log[:place]


def _log(server: Server) -> tuple[Txn, ...]:
    return server.durable.txns if server.zab is None else logged_and_queued(server.durable, server.zab.queue)
