"""The abstract actions of one step of a server, as a value that the model sends to its history.

A step that concerns abstract Zab has the disk of its server before and after it, and the actions between the two, in
order. All other steps are stutters, and send nothing. Both users of the refinement, the property and the validation of
journals, name a broken condition by `named`. Nothing here loads z3.

The history variables of the refinement are reigns, with the promises and acknowledgements to each. No server stores
these values; they follow from the steps so far:

- What no later condition reads is forgotten: promises once the epoch is established, acknowledgements of NEWLEADER once
  the leader serves, and a whole reign once its leader is gone and no learner has its epoch. So the variables add few
  states to those of the model.
- Equal pasts are equal values: reigns are in the order of their epochs and servers.

The mapping of the refinement goes from a step of a server to its abstract actions:

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

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from spec.durable import Durable
from spec.effects import Effects, Fact, Message, Observe, Send
from spec.quorum import Sid, View
from spec.server import Event, Server
from spec.txn import Txn, counter_of, make_zxid
from spec.zab.events import Broadcast, Committed, EpochEstablished, Receive
from spec.zab.packets import Ack, AckEpoch, Diff, LeaderInfo, Snap, Trunc
from spec.zab.state import Leader, LeaderPhase, Learner, LearnerPhase

REFINEMENT = "RefinesAbstractZab"
"""The name of the property."""
Broken: TypeAlias = tuple[str, str]
"""An action, and the condition of it that does not hold."""
ReignKey: TypeAlias = tuple[int, Sid]
"""A reign: its epoch and its server. A server begins an epoch once, since it accepts it by that."""
NO_REIGN: ReignKey = (0, 0)
"""The zero reign; with another epoch, the reign of a server that the history does not know."""


class Disk(msgspec.Struct, frozen=True):
    """The part of a disk that abstract Zab has: both epochs, the transactions in order, and the last zxid."""

    accepted: int
    current: int
    txns: tuple[Txn, ...]
    last: int


def disk_of(durable: Durable) -> Disk:
    """The abstraction of a disk."""
    return Disk(durable.accepted_epoch, durable.current_epoch, tuple(durable.txns), durable.last_zxid)


class Name(Enum):
    """The abstract actions, by their names in `checker.symbolic.zab.actions`; the last three only keep the books."""

    BEGIN = "begin"
    PROMISE = "promise"
    ESTABLISH = "establish"
    SYNCHRONISE = "synchronise"
    ENTER = "enter"
    PROPOSE = "propose"
    BEGIN_BROADCAST = "begin_broadcast"
    ACK = "ack"
    VOID_ACKS = "void_acks"
    SERVE = "serve"
    COMMIT = "commit"
    FOLLOW = "follow"
    """A learner has the epoch of this reign, and may take steps of it until it leaves."""
    LEAVE = "leave"
    """The server no longer leads or follows."""


class AbstractAction(msgspec.Struct, frozen=True):
    """An abstract action of a reign.

    `zxid` belongs to a transaction, or is the bound of an action. `quorum` is the set that the leader
    counted, and `view` the view of a reign that begins. `learner` is the server whose acknowledgements become void.
    """

    name: Name
    reign: ReignKey
    zxid: int = 0
    quorum: frozenset[Sid] = frozenset()
    txns: tuple[Txn, ...] = ()
    view: View | None = None
    learner: Sid = 0


class AbstractSteps(Fact, frozen=True):
    """A step of `server` that concerns abstract Zab."""

    server: Sid
    before: Disk
    calls: tuple[AbstractAction, ...]
    after: Disk


def named(broken: Sequence[Broken]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The clause of a finding, the first broken condition, and the others as its values. `broken` has at least one."""
    (action, condition), *rest = broken
    return f"{action}: {condition}", tuple((f"and at {name}", also) for name, also in rest)


class Reign(msgspec.Struct, frozen=True):
    """One attempt of a server to lead, from the choice of its epoch on.

    - `began_in` is currentEpoch of its server then, `initial` and `initial_last` its log and last zxid.
    - `acked` has the acknowledged transactions of each server, `committed` the zxids with the quorum of each.
    - `learners` have its epoch from LEADERINFO and have not left; `over`: its server no longer leads.
    """

    key: ReignKey
    view: View
    began_in: int
    initial: tuple[Txn, ...]
    initial_last: int
    history: tuple[Txn, ...] = ()
    history_last: int = 0
    established: bool = False
    served: bool = False
    promised: frozenset[Sid] = frozenset()
    entered: frozenset[Sid] = frozenset()
    acked: frozenset[tuple[Sid, Txn]] = frozenset()
    committed: frozenset[tuple[Txn, frozenset[Sid]]] = frozenset()
    learners: frozenset[Sid] = frozenset()
    over: bool = False


class ReignHistory(msgspec.Struct, frozen=True):
    """All reigns that some later step may concern.

    `lasts` has the last zxid of each server whose disk has another one. Only zxids that no transaction has differ: a
    snapshot may be named "epoch:0", and a TRUNC to such a zxid leaves an earlier one.
    """

    known: tuple[Reign, ...] = ()
    lasts: tuple[tuple[Sid, int], ...] = ()

    def last_of(self, server: Sid, on_disk: int) -> int:
        """The last zxid of a server in the abstract state."""
        return dict(self.lasts).get(server, on_disk)

    def with_last(self, server: Sid, last: int, on_disk: int) -> ReignHistory:
        """These with the last zxid of a server."""
        lasts = {**dict(self.lasts), server: last}
        if last == on_disk:
            del lasts[server]
        return ReignHistory(self.known, tuple(sorted(lasts.items())))

    def find(self, key: ReignKey) -> Reign | None:
        """The reign of this key."""
        return next((reign for reign in self.known if reign.key == key), None)

    def entered_by(self, server: Sid, epoch: int) -> ReignKey:
        """The reign of an epoch that concerns this server; the server 0 stands for one that is not known."""
        keys = (r.key for r in self.known if r.key[0] == epoch and (server in r.learners or server == r.key[1]))
        return next(keys, (epoch, 0))

    def with_reign(self, reign: Reign) -> ReignHistory:
        """These with another value of one reign."""
        rest = (known_reign for known_reign in self.known if known_reign.key != reign.key)
        return replace(self, known=tuple(sorted((*rest, reign), key=lambda known_reign: known_reign.key)))

    def left_by(self, server: Sid) -> ReignHistory:
        """These after a server has stopped to lead or to follow."""
        return replace(self, known=tuple(_left(reign, server) for reign in self.known))

    def needed(self) -> ReignHistory:
        """These without the values that no later condition reads."""
        return replace(self, known=tuple(_needed(reign) for reign in self.known if reign.learners or not reign.over))


def _left(reign: Reign, server: Sid) -> Reign:
    return replace(reign, learners=reign.learners - {server}, over=reign.over or reign.key[1] == server)


def _needed(reign: Reign) -> Reign:
    if reign.established and reign.promised:
        reign = replace(reign, promised=frozenset())
    if reign.served and reign.entered:
        reign = replace(reign, entered=frozenset())
    if reign.over:
        acked = frozenset((server, txn) for server, txn in reign.acked if server in reign.learners)
        reign = replace(reign, promised=frozenset(), entered=frozenset(), committed=frozenset(), acked=acked)
    return reign


def abstract_steps(before: Server, event: Event | None, after: Server, effects: Effects) -> AbstractSteps | None:
    """The abstract actions of a step; None if it is a stutter. The event is None for a crash."""
    disks = disk_of(before.durable), disk_of(after.durable)
    calls = [*_of_leader(before, event, after, effects), *_of_learner(before, event, after, effects)]
    if _ended(before, after):
        calls.append(AbstractAction(Name.LEAVE, NO_REIGN))
    is_concerned = any(call.name is not Name.LEAVE for call in calls)
    if not is_concerned and disks[0] != disks[1]:
        calls.insert(0, AbstractAction(Name.SYNCHRONISE, _reign(before), disks[1].last))
    return AbstractSteps(before.sid, disks[0], tuple(calls), disks[1]) if calls else None


def _ended(before: Server, after: Server) -> bool:
    """The server stops to lead or to follow, or begins with another leader in the same step."""
    part, after_part = before.zab, after.zab
    if isinstance(part, Leader):
        return part.phase is not LeaderPhase.FOLLOWERINFO and not isinstance(after_part, Leader)
    return isinstance(part, Learner) and bool(part.epoch) and not isinstance(after_part, Learner)


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
    acks = frozenset((before.sid,) if old is None or phase is LeaderPhase.FOLLOWERINFO else old.counted)
    yield from _established(reign, acks | {source}, after.durable.last_zxid, effects)
    yield from _voided(reign, old, now, effects)
    if phase is not LeaderPhase.BROADCAST and now.phase is LeaderPhase.BROADCAST:
        alone = frozenset({before.sid, source})
        is_later = old is not None and phase is LeaderPhase.NEWLEADER_ACK
        yield AbstractAction(Name.SERVE, reign, quorum=acks | {source} if is_later else alone)
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
            limit = first.zxid
            if isinstance(first, Diff) and handler is not None and handler.last_zxid:
                limit = handler.last_zxid
            if not any(proposal.zxid > limit and learner in proposal.acks for proposal in now.outstanding):
                yield AbstractAction(Name.VOID_ACKS, reign, limit, learner=learner)


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
            outstanding = old.outstanding if old else ()
            acks = next((proposal.acks for proposal in outstanding if proposal.zxid == fact.txn.zxid), ())
            yield AbstractAction(Name.COMMIT, reign, fact.txn.zxid, quorum=frozenset({*acks, source}))


# A learner.


def _of_learner(before: Server, event: Event | None, after: Server, effects: Effects) -> Iterator[AbstractAction]:
    part = after.zab if isinstance(after.zab, Learner) else before.zab
    if not isinstance(part, Learner) or not isinstance(before.zab, Learner):
        return
    reign = (part.epoch, part.leader)
    messages = [effect.message for effect in effects if isinstance(effect, Send) and effect.peer == part.leader]
    if isinstance(event, Receive) and isinstance(event.packet, LeaderInfo):
        if any(isinstance(message, AckEpoch) for message in messages):
            yield AbstractAction(Name.FOLLOW, reign)
            if after.durable.accepted_epoch != before.durable.accepted_epoch:
                yield AbstractAction(Name.PROMISE, reign)
        return
    enters = after.durable.current_epoch != before.durable.current_epoch or _acknowledges(before.zab, after, messages)
    grown = tuple(before.durable.txns) != tuple(after.durable.txns)
    if grown or enters or before.durable.last_zxid != after.durable.last_zxid:
        yield AbstractAction(Name.SYNCHRONISE, reign, after.durable.last_zxid)
    if enters:
        yield AbstractAction(Name.ENTER, reign)
    for message in messages:
        if isinstance(message, Ack) and counter_of(message.zxid):
            yield AbstractAction(Name.ACK, reign, message.zxid)


def _acknowledges(was: Learner, after: Server, sent: list[Message]) -> bool:
    """The learner sends the ACK of NEWLEADER in this step, and not that of UPTODATE."""
    now = after.zab
    first = was.phase is LearnerPhase.SYNCHRONIZATION
    acknowledges = any(isinstance(message, Ack) and message.zxid == make_zxid(was.epoch) for message in sent)
    return acknowledges and first and (now is None or isinstance(now, Learner))
