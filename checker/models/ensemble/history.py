"""The history of an ensemble: the reported facts that some invariant still needs.

A fact that no property reads would multiply states without use. The history therefore has parts, and keeps only the
parts that some property reads: `Read(HISTORY, part(Part.COMMITTED))`. Rules of this module:

- A part is a tuple in an order that the facts themselves define, so that equal pasts are equal values.
- Information that the present state contains is not repeated here.
- The transactions that an operator has undone by a restore are forgotten: the ensemble has to behave as if they had
  never been there.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Any

import msgspec
from msgspec.structs import replace

from checker.engine import Actor, Outcome, Property
from checker.engine.steps import StepProperty
from checker.models.ensemble.effects import NO_EPOCH, BeganAlone, Misapplied, Misfit, SyncAsked, SyncsEnded
from checker.models.ensemble.setup import HISTORY
from checker.refinement.abstract_steps import AbstractSteps, ReignHistory
from spec.effects import Fact
from spec.quorum import Sid, View
from spec.txn import Txn
from spec.zab.events import (
    Broadcast,
    Committed,
    Delivered,
    EpochEstablished,
    SyncAnswered,
    Truncated,
    Undone,
    Unexpected,
    ViewCommitted,
)


class HistoryPart(Enum):
    """A part of the history, by the name of its field."""

    ESTABLISHED = "established"
    COMMITTED = "committed"
    COUNTED = "counted"
    BROADCAST = "broadcast"
    LOST = "lost"
    UNEXPECTED = "unexpected"
    MISFITS = "misfits"
    SYNCS = "syncs"
    MISAPPLIED = "misapplied"
    BEGUN_WITHOUT = "begun_without"
    REIGNS = "reigns"
    VIEWS = "views"


class EstablishedEpoch(msgspec.Struct, frozen=True):
    """A leader of an epoch that a quorum has acknowledged, and its initial transactions."""

    epoch: int
    leader: Sid
    initial: tuple[Txn, ...]


class FirstCommit(msgspec.Struct, frozen=True):
    """A transaction, and the epoch of its first report as committed by a leader or as delivered by a server.

    For a report of a standalone server it is the last epoch in `established`, or 0: a leader of any later epoch must
    have the transaction.
    """

    txn: Txn
    epoch: int


class CommittedView(msgspec.Struct, frozen=True):
    """A view that a leader has committed, and the first epoch in which one did."""

    epoch: int
    view: View


class ProposedTxn(msgspec.Struct, frozen=True):
    """A transaction, the server that proposed it, and the epoch of the proposal."""

    epoch: int
    leader: Sid
    txn: Txn


class PendingSync(msgspec.Struct, frozen=True):
    """A client's sync at a server, and the last zxid that was committed at the time of the request.

    `answered` is the last zxid that the server has applied, or will before it answers, where that is lower.
    """

    server: Sid
    committed: int
    answered: int | None = None


class History(msgspec.Struct, frozen=True):
    """All parts; the parts that no property reads stay empty.

    - `established`: ascending by epoch, one entry for each time that a quorum acknowledges an epoch.
    - `committed`: in the order of the first commits.
    - `counted`: those of them for which a leader has counted a quorum, so that the client may have its answer.
    - `broadcast`: sorted by epoch, leader and zxid.
    - `lost`: transactions committed in one epoch that the leader of a later one has made a server truncate, with that
      server.
    - `unexpected`: the first report of each family.
    - `misapplied`: the first report of each server.
    - `misfits`: the first report of each concern.
    - `begun_without`: committed transactions without which a server has started standalone, each with that server.
    - `syncs`: those that wait for an answer, oldest first, and those whose answer came too early.
    - `reigns`: the history variables of abstract Zab.
    - `views`: ascending by version.
    """

    established: tuple[EstablishedEpoch, ...] = ()
    committed: tuple[FirstCommit, ...] = ()
    counted: tuple[FirstCommit, ...] = ()
    broadcast: tuple[ProposedTxn, ...] = ()
    lost: tuple[tuple[Sid, Txn], ...] = ()
    unexpected: tuple[Unexpected, ...] = ()
    misfits: tuple[Misfit, ...] = ()
    syncs: tuple[PendingSync, ...] = ()
    misapplied: tuple[Misapplied, ...] = ()
    begun_without: tuple[tuple[Sid, Txn], ...] = ()
    reigns: ReignHistory = ReignHistory()
    views: tuple[CommittedView, ...] = ()


class HistoryProjection:
    """The projection of a history to one part; equal ones are one object (see `part`)."""

    def __init__(self, which: HistoryPart) -> None:
        self.which = which

    def __call__(self, history: History) -> Any:
        """The part."""
        return getattr(history, self.which.value)


_PROJECTIONS = {which: HistoryProjection(which) for which in HistoryPart}


def part(which: HistoryPart) -> HistoryProjection:
    """The projection for a property that reads this part of the history."""
    return _PROJECTIONS[which]


def parts_read(properties: Iterable[Property]) -> frozenset[HistoryPart]:
    """The parts that these properties read, and the parts from which those are computed."""
    reads = [r for p in properties for r in (*p.reads, *(p.demands if isinstance(p, StepProperty) else ()))]
    parts = {r.projection.which for r in reads if isinstance(r.projection, HistoryProjection)}
    return frozenset(parts | ({HistoryPart.COMMITTED} if parts & {HistoryPart.LOST, HistoryPart.SYNCS} else set()))


def history_actor(kept: frozenset[HistoryPart]) -> Actor:
    """Folds facts into the parts that are kept."""

    def step(values: tuple[Any, ...], fact: Fact) -> Outcome:
        return Outcome((_folded(values[0], fact, kept),))

    return Actor(HISTORY, (HISTORY,), step)


def concerns(fact: Fact, kept: frozenset[HistoryPart]) -> bool:
    """Whether a fact may change a part that is kept."""
    return any(type(fact) in _SOURCES[which] for which in kept)


_SOURCES: dict[HistoryPart, tuple[type, ...]] = {
    HistoryPart.ESTABLISHED: (EpochEstablished,),
    HistoryPart.COMMITTED: (Committed, Delivered, Undone),
    HistoryPart.COUNTED: (Committed, Undone),
    HistoryPart.BROADCAST: (Broadcast, Undone),
    HistoryPart.LOST: (Truncated,),
    HistoryPart.UNEXPECTED: (Unexpected,),
    HistoryPart.MISFITS: (Misfit,),
    HistoryPart.SYNCS: (SyncAsked, SyncAnswered, SyncsEnded),
    HistoryPart.MISAPPLIED: (Misapplied,),
    HistoryPart.BEGUN_WITHOUT: (BeganAlone,),
    HistoryPart.REIGNS: (AbstractSteps,),
    HistoryPart.VIEWS: (ViewCommitted,),
}


def _folded(history: History, fact: Fact, kept: frozenset[HistoryPart]) -> History:
    match fact:
        case EpochEstablished(leader=leader, epoch=epoch, initial=initial) if HistoryPart.ESTABLISHED in kept:
            reigns = (*history.established, EstablishedEpoch(epoch, leader, initial))
            return replace(history, established=tuple(sorted(reigns, key=order_of_reign)))
        case Committed(epoch=epoch, txn=txn):
            if HistoryPart.COUNTED in kept and all(each.txn != txn for each in history.counted):
                history = replace(history, counted=(*history.counted, FirstCommit(txn, epoch)))
            return _committed(history, epoch, (txn,)) if HistoryPart.COMMITTED in kept else history
        case Delivered(epoch=epoch, txns=txns) if HistoryPart.COMMITTED in kept:
            return _committed(history, epoch, txns)
        case Undone(txns=txns):
            return replace(
                history,
                committed=tuple(entry for entry in history.committed if entry.txn not in txns),
                counted=tuple(entry for entry in history.counted if entry.txn not in txns),
                broadcast=tuple(entry for entry in history.broadcast if entry.txn not in txns),
            )
        case Broadcast(epoch=epoch, leader=leader, txn=txn) if HistoryPart.BROADCAST in kept:
            proposals = {*history.broadcast, ProposedTxn(epoch, leader, txn)}
            return replace(history, broadcast=tuple(sorted(proposals, key=order_of_proposal)))
        case Truncated(server=server, epoch=epoch, txns=txns) if HistoryPart.LOST in kept:
            earlier = {each.txn for each in history.committed if each.epoch < epoch}
            lost = tuple((server, txn) for txn in txns if txn in earlier)
            return replace(history, lost=(*history.lost, *lost)) if lost else history
        case BeganAlone(server=server, txns=txns) if HistoryPart.BEGUN_WITHOUT in kept:
            absent = tuple((server, each.txn) for each in history.committed if each.txn not in txns)
            return replace(history, begun_without=(*history.begun_without, *absent)) if absent else history
        case AbstractSteps() if HistoryPart.REIGNS in kept:
            from checker.refinement.judgement import judge  # noqa: PLC0415 (it loads z3 where that is installed)

            return replace(history, reigns=judge(history.reigns, fact).reigns)
        case ViewCommitted(epoch=epoch, view=view) if HistoryPart.VIEWS in kept:
            if any(each.view == view for each in history.views):
                return history
            views = (*history.views, CommittedView(epoch, view))
            return replace(history, views=tuple(sorted(views, key=lambda each: each.view.version)))
        case Unexpected(family=family) if HistoryPart.UNEXPECTED in kept:
            reported = any(each.family is family for each in history.unexpected)
            return history if reported else replace(history, unexpected=(*history.unexpected, fact))
        case Misfit(concern=concern) if HistoryPart.MISFITS in kept:
            reported = any(misfit.concern is concern for misfit in history.misfits)
            return history if reported else replace(history, misfits=(*history.misfits, fact))
        case SyncAsked(server=server, epoch=epoch) if HistoryPart.SYNCS in kept:
            last = max((each.txn.zxid for each in history.committed if each.epoch <= epoch), default=0)
            return replace(history, syncs=(*history.syncs, PendingSync(server, last)))
        case SyncAnswered(server=server, zxid=zxid) if HistoryPart.SYNCS in kept:
            return replace(history, syncs=_answered(history.syncs, server, zxid))
        case SyncsEnded(server=server) if HistoryPart.SYNCS in kept:
            open_syncs = tuple(sync for sync in history.syncs if sync.server != server or sync.answered is not None)
            return replace(history, syncs=open_syncs)
        case Misapplied(server=server) if HistoryPart.MISAPPLIED in kept:
            reported = any(each.server == server for each in history.misapplied)
            return history if reported else replace(history, misapplied=(*history.misapplied, fact))
    return history


def _answered(syncs: tuple[PendingSync, ...], server: Sid, zxid: int) -> tuple[PendingSync, ...]:
    """The syncs after the oldest one of a server is answered; it stays if the answer was early."""
    for place, sync in enumerate(syncs):
        if sync.server == server and sync.answered is None:
            early = (replace(sync, answered=zxid),) if zxid < sync.committed else ()
            return (*syncs[:place], *early, *syncs[place + 1 :])
    return syncs


def order_of_reign(reign: EstablishedEpoch) -> tuple[int, Sid, tuple[int, ...]]:
    """The key by which established epochs are sorted."""
    return reign.epoch, reign.leader, tuple(txn.zxid for txn in reign.initial)


def order_of_proposal(proposed: ProposedTxn) -> tuple[int, Sid, int]:
    """The key by which proposals are sorted."""
    return proposed.epoch, proposed.leader, proposed.txn.zxid


def _committed(history: History, epoch: int, txns: tuple[Txn, ...]) -> History:
    past = {entry.txn for entry in history.committed}
    if epoch == NO_EPOCH:
        epoch = max((entry.epoch for entry in history.established), default=0)
    new = tuple(FirstCommit(txn, epoch) for txn in dict.fromkeys(txns) if txn not in past)  # a log may repeat one
    return replace(history, committed=(*history.committed, *new)) if new else history
