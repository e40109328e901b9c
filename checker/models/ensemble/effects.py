"""Effects that do not fit the state after a step: timers, the tree, quorum connections.

A model derives the possible events from states, so a missing or an additional effect changes no state. In a node it
means a wrong timer, transaction or connection. Each step of a server is therefore compared with its effects, and a
difference is reported as a fact. A specification without differences reports nothing, so these facts add no states.

Sources: `FastLeaderElection.lookForLeader` (each poll has a timeout); `Leader.lead`, `Follower.followLeader` and their
`shutdown`; `LearnerHandler.run`; `FinalRequestProcessor`.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from spec.effects import Apply, Arm, Connect, Disarm, Disconnect, Effects, Fact, Observe, Timer
from spec.election.messages import Fired
from spec.election.vote import ServerState
from spec.quorum import Sid
from spec.server import Server
from spec.txn import told
from spec.zab.events import ClientSync, LearnerGone, Receive
from spec.zab.state import Leader, Learner, logged_and_queued


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


class SyncsEnded(Fact, frozen=True):
    """A server has ended its role, so the syncs that wait there have no answer."""

    server: Sid


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
        yield from (Misfit(after.sid, concern, what) for what in differences)


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


def _applied(server: Server) -> int | None:
    """The last zxid in the tree of a server that serves."""
    part = server.zab
    if part is None or not part.serves:
        return None
    return part.applied if isinstance(part, Leader) else part.delivered


def _tree(before: Server, after: Server, effects: Effects) -> Iterator[str]:
    applied = [effect.zxid for effect in effects if isinstance(effect, Apply)]
    wanted, last = _applied(after), _applied(before)
    if wanted is None:
        return
    if applied != sorted(set(applied)) or (applied and last is not None and applied[0] <= last):
        yield f"{', '.join(map(told, applied))} are applied, not once each in order"
    if not applied and last is None:
        yield f"nothing is applied, where all up to {told(wanted)} should be"
        return
    reached = _transaction(after, applied[-1] if applied else last or 0)
    if reached != _transaction(after, wanted):
        yield f"{told(reached)} is the last that was applied, where {told(wanted)} should be"


def _transaction(server: Server, zxid: int) -> int:
    """The last transaction of the log up to this zxid: the counter of a transaction is at least 1."""
    log = logged_and_queued(server.durable, () if server.zab is None else server.zab.queue)
    return max((txn.zxid for txn in log if txn.zxid <= zxid), default=server.durable.snapshot)


def _connections(before: Server, event: Any, after: Server, effects: Effects) -> Iterator[str]:
    old, new = before.zab, after.zab
    closed = {effect.peer for effect in effects if isinstance(effect, Disconnect)}
    opened = [effect.leader for effect in effects if isinstance(effect, Connect)]
    if old is not None and new is None and not closed & {None, old.leader if isinstance(old, Learner) else None}:
        yield "its connections stay open, and it leads and follows no more"
    follows = isinstance(new, Learner) and not (isinstance(old, Learner) and old.leader == new.leader)
    if opened != ([new.leader] if follows and isinstance(new, Learner) else []):
        yield f"it connects to {opened}"
    if follows and None not in closed:
        yield "it follows, and the connections of its own learners stay open"
    if isinstance(old, Leader) and isinstance(new, Leader):
        held = {handler.sid for handler in new.handlers}
        lost = {handler.sid for handler in old.handlers} - held
        if isinstance(event, LearnerGone):
            lost.discard(event.learner)
        elif isinstance(event, Receive) and event.source not in held:
            lost.add(event.source)
        if lost - closed:
            yield f"the connections with {sorted(lost - closed)} stay open, and no handler serves them"
        if None in closed or closed & held:
            yield "the connection of a handler is closed"
