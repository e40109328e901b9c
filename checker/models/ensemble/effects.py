"""Effects that do not fit the state after a step: timers, the tree, quorum connections, applied transactions.

A model derives the possible events from states, so a missing or an additional effect changes no state. In a node it
means a wrong timer, transaction or connection. Each step of a server is therefore compared with its effects, and a
difference is reported as a fact. A specification without differences reports nothing, so these facts add no states.

The state of a server contains the zxid that it applied last, but no list of applied transactions. Invariants derive the
list from the log, up to that zxid. The derived list is right as long as every step applies exactly the next
transactions of the log. A step that does anything else is reported as `Misapplied`.

Sources: `FastLeaderElection.lookForLeader` (each poll has a timeout); `Leader.lead`, `Follower.followLeader` and their
`shutdown`; `LearnerHandler.run`; `FinalRequestProcessor`.
"""

from collections.abc import Iterator
from enum import Enum
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from spec.effects import Apply, Arm, Connect, Disarm, Disconnect, Effects, Fact, Observe, Timer
from spec.election.messages import Fired
from spec.election.vote import ServerState
from spec.quorum import Sid
from spec.server import Server
from spec.txn import Txn, format_zxid
from spec.zab.events import Broadcast, ClientSync, Committed, Delivered, LearnerGone, Receive
from spec.zab.state import Leader, Learner, LearnerPhase, logged_and_queued, merged


class Concern(Enum):
    """The subject of effects."""

    TIMER = "timer"
    TREE = "tree"
    CONNECTION = "connection"


class Misfit(Fact, frozen=True):
    """The effects of a step of this server do not fit the state after it."""

    server: Sid
    concern: Concern
    what: str


class SyncAsked(Fact, frozen=True):
    """A client asks a follower or an observer for a sync; `epoch` is that of its leader."""

    server: Sid
    epoch: int


class BeganAlone(Fact, frozen=True):
    """A server starts standalone, with these transactions on its disk."""

    server: Sid
    txns: tuple[Txn, ...]


class SyncsEnded(Fact, frozen=True):
    """A server has ended its role, so the syncs that wait there have no answer."""

    server: Sid


NO_EPOCH = -1
"""The epoch in the reports of a standalone server: what it does belongs to no leader's epoch."""


def standing_alone(before: Server, after: Server, effects: Effects) -> Effects:
    """The effects of a standalone server: it reports its start, and nothing that belongs to an epoch."""
    began = () if before.runs else (Observe(BeganAlone(after.sid, tuple(after.durable.txns))),)
    return began + tuple(
        Observe(replace(effect.fact, epoch=NO_EPOCH))
        if isinstance(effect, Observe) and isinstance(effect.fact, Broadcast | Committed | Delivered)
        else effect
        for effect in effects
    )


def syncs(before: Server, event: Any, after: Server, effects: Effects) -> Effects:
    """The effects with the beginning and the end of clients' syncs."""
    if isinstance(event, ClientSync) and isinstance(before.zab, Learner):
        effects = (Observe(SyncAsked(before.sid, before.zab.epoch)), *effects)
    if before.zab is not None and after.zab is None:
        effects = (*effects, Observe(SyncsEnded(before.sid)))
    return effects


def misfits(before: Server, event: Any, after: Server, effects: Effects) -> Iterator[Misfit]:
    """The differences between a step of a running server and its effects."""
    for concern, differences in (
        (Concern.TIMER, _timers(before, event, after, effects)),
        (Concern.TREE, _tree(before, after, effects)),
        (Concern.CONNECTION, _connections(before, event, after, effects)),
    ):
        yield from (Misfit(after.sid, concern, difference) for difference in differences)


def _timer_of(server: Server) -> Timer | None:
    """The timer that runs in this state: a LOOKING server polls, with one of two timeouts."""
    election = server.election
    if election is None or election.state is not ServerState.LOOKING:
        return None
    return Timer.FINALIZE_WAIT if election.finalizing else Timer.NOTIFICATION_TIMEOUT


def _timers(before: Server, event: Any, after: Server, effects: Effects) -> Iterator[str]:
    running = None if isinstance(event, Fired) else _timer_of(before)
    for effect in effects:
        if isinstance(effect, Arm):
            running = effect.timer
        elif isinstance(effect, Disarm) and effect.timer is running:
            running = None
    if running is not _timer_of(after):
        wanted = _timer_of(after)
        names = tuple("no timer" if timer is None else timer.value for timer in (running, wanted))
        yield f"{names[0]} runs, where {names[1]} should"


def _tree(before: Server, after: Server, effects: Effects) -> Iterator[str]:
    applied = [effect.zxid for effect in effects if isinstance(effect, Apply)]
    target, last = applied_zxid(after), applied_zxid(before)
    if target is None:
        return
    if applied != sorted(set(applied)) or (applied and last is not None and applied[0] <= last):
        yield f"{', '.join(map(format_zxid, applied))} are applied, not once each in order"
    if not applied and last is None:
        yield f"nothing is applied, where all up to {format_zxid(target)} should be"
        return
    reached = _transaction(after, applied[-1] if applied else last or 0)
    if reached != _transaction(after, target):
        yield f"{format_zxid(reached)} is the last that was applied, where {format_zxid(target)} should be"


def _transaction(server: Server, zxid: int) -> int:
    """The last transaction of the log up to this zxid: the counter of a transaction is at least 1."""
    return max((txn.zxid for txn in memory_of(server) if txn.zxid <= zxid), default=server.durable.snapshot)


def _connections(before: Server, event: Any, after: Server, effects: Effects) -> Iterator[str]:
    old, new = before.zab, after.zab
    closed = {effect.peer for effect in effects if isinstance(effect, Disconnect)}
    opened = [effect.leader for effect in effects if isinstance(effect, Connect)]
    if old is not None and new is None and not closed & {None, old.leader if isinstance(old, Learner) else None}:
        yield "its connections stay open, and it leads and follows no more"
    follows = isinstance(new, Learner) and not (isinstance(old, Learner) and _continues(old, new))
    if opened != ([new.leader] if follows and isinstance(new, Learner) else []):
        yield f"it connects to {opened}"
    if follows and None not in closed:
        yield "it follows, and the connections of its own learners stay open"
    if isinstance(old, Leader) and isinstance(new, Leader):
        handlers = {handler.sid for handler in new.handlers}
        lost = {handler.sid for handler in old.handlers} - handlers
        if isinstance(event, LearnerGone):
            lost.discard(event.learner)
        elif isinstance(event, Receive) and event.source not in handlers:
            lost.add(event.source)
        if lost - closed:
            yield f"the connections with {sorted(lost - closed)} stay open, and no handler serves them"
        if None in closed or closed & handlers:
            yield "the connection of a handler is closed"


def _continues(old: Learner, new: Learner) -> bool:
    """Whether a learner is the same as before: one that registers again with its leader begins with DISCOVERY."""
    again = new.phase is LearnerPhase.DISCOVERY and old.phase is not LearnerPhase.DISCOVERY
    return old.leader == new.leader and not again


# Applied transactions.


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
    reported = [effect.fact for effect in effects if isinstance(effect, Observe) and isinstance(effect.fact, Delivered)]
    was, now = applied_zxid(before), applied_zxid(after)
    if not reported and (now is None or now == was):
        return None
    new = tuple(txn for fact in reported for txn in fact.txns)
    older = () if was is None else up_to(memory_of(before), was)
    log = memory_of(after)
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


def memory_of(server: Server) -> tuple[Txn, ...]:
    """The transactions that a server has logged, has asked its disk to log, or, in variants, has in memory only."""
    log = tuple(server.durable.txns) if server.zab is None else logged_and_queued(server.durable, server.zab.queue)
    return merged(log, server.remains.unlogged)
