"""What invariants of Zab see of a server: projections, each as small as the properties that read it allow.

Properties that read the same are looked up together, so there are three views and no more:

    seen    what a server has delivered and logged, in which epoch and behind whom
    duty    what it waits for, and how far its learners have come
    held    what is on its disk, and which quorums its view asks for

Rules: a projection is a value of few distinct ones; a server that a view says nothing about is a word, never None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from checker.engine import Read
from checker.models.ensemble.applied import Misapplied, up_to
from checker.models.ensemble.history import Part, part
from checker.models.ensemble.names import HISTORY, server_name
from checker.models.ensemble.setup import Setup
from spec.quorum import Sid, View
from spec.server import Server
from spec.txn import Txn, epoch_of
from spec.zab.state import Leader, LeaderPhase, Learner, LearnerPhase, Mode, Stage, logged_and_queued

AWAY = "away"
"""A server that does not run, looks for a leader, or has not come far enough to say anything."""


class Seen(msgspec.Struct, frozen=True):
    """A server that leads an established epoch, or has acknowledged its leader's NEWLEADER.

    `serves`: it is in BROADCAST. `delivered` are the transactions it has committed, as a leader, or applied while
    serving, in the order of its log; `log` is everything it has logged or asked its disk to log.
    """

    leads: bool
    leader: Sid
    epoch: int
    serves: bool
    delivered: tuple[Txn, ...]
    log: tuple[Txn, ...]


def seen(server: Server) -> Seen | str:
    """See `Seen`."""
    part_of = server.zab
    if isinstance(part_of, Leader) and part_of.phase in (LeaderPhase.NEWLEADER_ACK, LeaderPhase.BROADCAST):
        serves = part_of.phase is LeaderPhase.BROADCAST
        log = logged_and_queued(server.durable, part_of.queue)
        delivered = up_to(log, part_of.committed) if serves else ()
        return Seen(True, server.sid, part_of.epoch, serves, delivered, log)
    if isinstance(part_of, Learner) and part_of.phase in (LearnerPhase.SYNCED, LearnerPhase.BROADCAST):
        log = logged_and_queued(server.durable, part_of.queue)
        serves = part_of.phase is LearnerPhase.BROADCAST
        delivered = up_to(log, part_of.delivered) if serves else ()
        return Seen(False, part_of.leader, part_of.epoch, serves, delivered, log)
    return AWAY


class Duty(msgspec.Struct, frozen=True):
    """What a leader or a learner waits for, and what its counterpart may rely on.

    `initial` is the last zxid that a leader in BROADCAST began with; `served` are the followers whose ACK of UPTODATE
    it has read (an observer applies what it was synchronised with after that ACK, and nobody counts it). `applied` is
    the last zxid that a learner in BROADCAST has applied.
    """

    leads: bool
    leader: Sid
    epoch: int
    initial: int = 0
    served: tuple[Sid, ...] = ()
    applied: int | None = None
    awaits_acks: bool = False
    awaits_proposals: bool = False
    awaits_commits: bool = False


def duty(server: Server) -> Duty | str:
    """See `Duty`."""
    own = server.zab
    if isinstance(own, Leader):
        before = [txn.zxid for txn in server.durable.txns if epoch_of(txn.zxid) < own.epoch]
        began = own.phase is LeaderPhase.BROADCAST
        return Duty(
            True,
            server.sid,
            own.epoch,
            initial=before[-1] if began and before else 0,
            served=tuple(each.sid for each in own.handlers if each.stage is Stage.SERVING and not each.observer),
            awaits_acks=any(handler.stage >= Stage.SYNCING for handler in own.handlers),
        )
    if isinstance(own, Learner):
        return Duty(
            False,
            own.leader,
            own.epoch,
            applied=own.delivered if own.phase is LearnerPhase.BROADCAST else None,
            awaits_proposals=own.mode is not None or own.phase in (LearnerPhase.SYNCED, LearnerPhase.BROADCAST),
            awaits_commits=bool(own.pending or own.not_logged),
        )
    return AWAY


class Held(msgspec.Struct, frozen=True):
    """What is on a server's disk, and its view."""

    txns: tuple[Txn, ...]
    view: View


def held(server: Server) -> Held:
    """See `Held`."""
    return Held(server.durable.txns, server.view)


def truncates(server: Server) -> bool:
    """Whether a server synchronises by a TRUNC, or by a SNAP without a transaction that is on its disk."""
    part_of = server.zab
    if not isinstance(part_of, Learner):
        return False
    without = part_of.mode is Mode.SNAP and not set(server.durable.txns) <= set(part_of.tree or ())
    return without or part_of.mode is Mode.TRUNC


def as_applied(sid: Sid, each: Seen, reports: tuple[Misapplied, ...]) -> Seen:
    """A server with what it reported as delivered, where that differs from its log (see `Misapplied`)."""
    for report in reports:
        count = len(report.logged)
        same = report.server == sid and each.serves and report.epoch == each.epoch
        if same and each.delivered[:count] == report.logged:
            return replace(each, delivered=(*report.applied, *each.delivered[count:]))
    return each


def reads_of(setup: Setup, view: Callable[[Server], Any], *parts: Part) -> tuple[Read, ...]:
    """Reads of these parts of the history, and of this view of every server."""
    of_history = tuple(Read(HISTORY, part(which)) for which in parts)
    return (*of_history, *(Read(server_name(sid), view) for sid in setup.sids))
