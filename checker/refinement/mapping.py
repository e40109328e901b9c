"""From a step of a server to its abstract actions: the mapping of the refinement.

    leader: the epoch is chosen                 begin
    leader: a quorum of ACKEPOCH                establish, synchronise, enter
    leader: a learner is synchronised again     void_acks, beyond what it keeps
    leader: a quorum of acks of NEWLEADER       serve, begin_broadcast
    leader: a proposal; a log entry; a commit   propose; synchronise and ack; commit
    learner: LEADERINFO with a higher epoch     promise, or accept if it is ahead of the leader
    learner: the disk changes                   synchronise
    learner: currentEpoch, or ACK of NEWLEADER  synchronise to the end of the log, enter
    learner: an ACK of a proposal               ack

Elections, FOLLOWERINFO, PING, requests, COMMIT at a learner, UPTODATE, applied transactions, crashes and starts are
stutters. The mapping reads the disk, the packets and the facts of a server. A defect that acts too early
therefore shows as an action whose condition does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator

from checker.refinement.abstract_steps import NO_REIGN, AbstractAction, AbstractSteps, Name, ReignKey, disk_of
from spec.effects import Effects, Message, Observe, Send
from spec.quorum import Sid
from spec.server import Event, Server
from spec.txn import counter_of, make_zxid
from spec.zab.events import Broadcast, Committed, EpochEstablished, Receive
from spec.zab.packets import Ack, AckEpoch, Diff, LeaderInfo, Snap, Trunc
from spec.zab.state import Leader, LeaderPhase, Learner, LearnerPhase


def abstract_steps(before: Server, event: Event | None, after: Server, effects: Effects) -> AbstractSteps | None:
    """The abstract actions of a step; None if it is a stutter. The event is None for a crash."""
    disks = disk_of(before.durable), disk_of(after.durable)
    calls = [*_of_leader(before, event, after, effects), *_of_learner(before, event, after, effects)]
    if _ended(before, after):
        calls.append(AbstractAction(Name.LEAVE, NO_REIGN))
    known = any(call.name is not Name.LEAVE for call in calls)
    if not known and disks[0] != disks[1]:
        calls.insert(0, AbstractAction(Name.SYNCHRONISE, _reign(before), disks[1].last))
    return AbstractSteps(before.sid, disks[0], tuple(calls), disks[1]) if calls else None


def _ended(before: Server, after: Server) -> bool:
    """The server stops to lead or to follow, or begins with another leader in the same step."""
    part, then = before.zab, after.zab
    if isinstance(part, Leader):
        return part.phase is not LeaderPhase.FOLLOWERINFO and not isinstance(then, Leader)
    return isinstance(part, Learner) and bool(part.epoch) and not isinstance(then, Learner)


def _reign(server: Server) -> ReignKey:
    part = server.zab
    if isinstance(part, Leader):
        return part.epoch, server.sid
    return (part.epoch, part.leader) if isinstance(part, Learner) else NO_REIGN


# A leader.


def _of_leader(before: Server, event: Event | None, after: Server, effects: Effects) -> Iterator[AbstractAction]:
    was, now = before.zab, after.zab
    if not isinstance(now, Leader):
        return
    old = was if isinstance(was, Leader) else None
    reign, source = (now.epoch, before.sid), _source(event, before.sid)
    phase = LeaderPhase.FOLLOWERINFO if old is None else old.phase
    if phase is LeaderPhase.FOLLOWERINFO is not now.phase:
        yield AbstractAction(Name.BEGIN, reign, view=after.view)
    counted = frozenset((before.sid,) if old is None or phase is LeaderPhase.FOLLOWERINFO else old.counted)
    yield from _established(reign, counted | {source}, after.durable.last_zxid, effects)
    yield from _voided(reign, old, now, effects)
    if phase is not LeaderPhase.BROADCAST and now.phase is LeaderPhase.BROADCAST:
        alone = frozenset({before.sid, source})
        is_later = old is not None and phase is LeaderPhase.NEWLEADER_ACK
        yield AbstractAction(Name.SERVE, reign, quorum=counted | {source} if is_later else alone)
        yield AbstractAction(Name.BEGIN_BROADCAST, reign, make_zxid(now.epoch))
    yield from _broadcast(reign, old, before, after, source, effects)


def _source(event: Event | None, own: Sid) -> Sid:
    """The server whose packet the leader counts, or the leader itself."""
    return event.source if isinstance(event, Receive) and isinstance(event.packet, Ack | AckEpoch) else own


def _established(reign: ReignKey, counted: frozenset[Sid], last: int, effects: Effects) -> Iterator[AbstractAction]:
    for effect in effects:
        if isinstance(effect, Observe) and isinstance(effect.fact, EpochEstablished):
            yield AbstractAction(Name.ESTABLISH, reign, quorum=counted, txns=effect.fact.initial)
            yield AbstractAction(Name.SYNCHRONISE, reign, last)
            yield AbstractAction(Name.ENTER, reign)


def _voided(reign: ReignKey, old: Leader | None, now: Leader, effects: Effects) -> Iterator[AbstractAction]:
    """The acknowledgements that a synchronisation makes void: beyond the last zxid that its learner keeps.

    A leader that still counts one of them has not made them void.
    """
    for effect in effects:
        if isinstance(effect, Send) and isinstance(effect.message, Diff | Trunc | Snap):
            learner, first = effect.peer, effect.message
            handler = None if old is None else old.handler(learner)
            kept = first.zxid
            if isinstance(first, Diff) and handler is not None and handler.last_zxid:
                kept = handler.last_zxid
            if not any(each.zxid > kept and learner in each.acks for each in now.outstanding):
                yield AbstractAction(Name.VOID_ACKS, reign, kept, learner=learner)


def _broadcast(
    reign: ReignKey, old: Leader | None, before: Server, after: Server, source: Sid, effects: Effects
) -> Iterator[AbstractAction]:
    facts = [effect.fact for effect in effects if isinstance(effect, Observe)]
    for fact in facts:
        if isinstance(fact, Broadcast):
            yield AbstractAction(Name.PROPOSE, reign, fact.txn.zxid, txns=(fact.txn,))
    log, longer = tuple(before.durable.txns), tuple(after.durable.txns)
    appended = longer[len(log) :]
    if longer != log:
        yield AbstractAction(Name.SYNCHRONISE, reign, after.durable.last_zxid)
        for txn in appended:
            yield AbstractAction(Name.ACK, reign, txn.zxid)
    for fact in facts:
        if isinstance(fact, Committed):
            acks = next((each.acks for each in old.outstanding if each.zxid == fact.txn.zxid), ()) if old else ()
            yield AbstractAction(Name.COMMIT, reign, fact.txn.zxid, quorum=frozenset({*acks, source}))


# A learner.


def _of_learner(before: Server, event: Event | None, after: Server, effects: Effects) -> Iterator[AbstractAction]:
    part = after.zab if isinstance(after.zab, Learner) else before.zab
    if not isinstance(part, Learner) or not isinstance(before.zab, Learner):
        return
    reign = (part.epoch, part.leader)
    sent = [effect.message for effect in effects if isinstance(effect, Send) and effect.peer == part.leader]
    if isinstance(event, Receive) and isinstance(event.packet, LeaderInfo):
        if any(isinstance(message, AckEpoch) for message in sent):
            yield AbstractAction(Name.FOLLOW, reign)
            if after.durable.accepted_epoch != before.durable.accepted_epoch:
                yield AbstractAction(Name.PROMISE, reign)
        return
    enters = after.durable.current_epoch != before.durable.current_epoch or _acknowledges(before.zab, after, sent)
    grown = tuple(before.durable.txns) != tuple(after.durable.txns)
    if grown or enters or before.durable.last_zxid != after.durable.last_zxid:
        yield AbstractAction(Name.SYNCHRONISE, reign, after.durable.last_zxid)
    if enters:
        yield AbstractAction(Name.ENTER, reign)
    for message in sent:
        if isinstance(message, Ack) and counter_of(message.zxid):
            yield AbstractAction(Name.ACK, reign, message.zxid)


def _acknowledges(was: Learner, after: Server, sent: list[Message]) -> bool:
    """The learner sends the ACK of NEWLEADER in this step, and not that of UPTODATE."""
    now = after.zab
    first = was.phase is LearnerPhase.SYNCHRONIZATION
    answered = any(isinstance(each, Ack) and each.zxid == make_zxid(was.epoch) for each in sent)
    return answered and first and (now is None or isinstance(now, Learner))
