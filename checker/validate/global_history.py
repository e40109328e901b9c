"""The logs and the history of all servers in one order, reduced to the part that an invariant can still refer to.

A journal may contain millions of transactions, and invariants quantify over everything that was ever delivered. Settled
transactions are therefore removed from every log and every part of the history together. Rules this module keeps:

- The committed log, in the order of the commits, is kept whole, in arrays: some tens of bytes for each transaction. It
  has digests of values, except for reconfigurations, whose views the invariants read. A log has its position in it, so
  that logs are compared by positions and not from their beginnings. Every transaction that a server has on disk
  and has delivered is compared with its position there, once.
- A transaction is settled when every server that leads or follows has it on disk, has delivered it if it serves, and
  has the same log before it. Settled transactions have the same position in every sequence that an invariant reads, so
  the invariants have the same values without them. The last two stay, so that no invariant becomes vacuous.
- Only committed transactions are settled. A transaction that a server that is down has on disk, and that was never
  committed, stays in its log, however old it is: it may be part of the history with which an epoch began.
- A server that returns is compared from its previous position. If it does not agree, the settled part shrinks to the
  prefix that it agrees with, and the invariants see the difference.
- A snapshot contains what its sender has applied at the time of sending, logged or not. A snapshot from a server
  without a journal is taken as given, and so is everything before the logs begin.
- A process that ends may have finished requests to its disk, and not have reported them. The disk may have the snapshot
  that NEWLEADER asked for, and then the log of that snapshot, not the one before. It may have transactions that only a
  snapshot shows, since the log before a snapshot is not read.
- The records of a turn reach the system before its effects are carried out. A server can report there that it has
  established an epoch, and be killed before the epoch is on its disk. A later life then establishes the same epoch with
  the same log, which is one reign. Every other second establishment is a second reign.

Source: `checker.models.ensemble.history` for the fold; `spec.zab.learner_sync` for the log of a synchronising server.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from checker.models.ensemble.effects import misapplied
from checker.models.ensemble.history import (
    EstablishedEpoch,
    FirstCommit,
    History,
    HistoryPart,
    ProposedTxn,
    history_actor,
    order_of_proposal,
)
from checker.validate.codec import digest_in
from checker.validate.happens_before import NONE
from checker.validate.replay import appended, delivered, finished, is_present, known_from, tree_in_memory, written
from spec.effects import Effects, Fact, Observe, Send, Truncate
from spec.quorum import Reconfiguration, Sid
from spec.server import Event, Server, stopped
from spec.text import required_integer
from spec.txn import Txn, epoch_of
from spec.zab.events import Broadcast, Delivered, EpochEstablished, Receive, Truncated
from spec.zab.packets import Inform, InformAndActivate, Proposal, Snap
from spec.zab.state import Append, Learner, TakeSnapshot

Txns = tuple[Txn, ...]


@dataclass(frozen=True)
class Log:
    """Transactions in order; `base` is the position of the first in the committed log, if the log agrees with that."""

    base: int = 0
    txns: Txns = ()

    def up_to(self, zxid: int) -> Log:
        """The log without the transactions after this zxid."""
        return Log(self.base, tuple(txn for txn in self.txns if txn.zxid <= zxid))

    def and_then(self, txns: Iterable[Txn]) -> Log:
        """The log with these transactions appended."""
        return Log(self.base, (*self.txns, *txns))


@dataclass(frozen=True)
class VisibleLog:
    """The transactions of a log that are neither settled nor taken as given, for these ends of both."""

    log: Log
    settled: int
    start: int
    txns: Txns


class CommittedLog:
    """The complete committed log: zxid, value, epoch of the first commit, and proposer of each transaction."""

    def __init__(self) -> None:
        self.zxids, self.epochs = array("q"), array("q")
        self.proposed, self.leaders = array("q"), array("q")
        self.values = array("Q")
        self.ascending = True
        self._reconfigurations: dict[int, Reconfiguration] = {}

    def __len__(self) -> int:
        return len(self.zxids)

    def add(self, first: FirstCommit) -> None:
        """Append a transaction; its proposer is filled in when the transaction is settled."""
        self.ascending = self.ascending and (not self.zxids or first.txn.zxid > self.zxids[-1])
        self.zxids.append(first.txn.zxid)
        self.values.append(_number_of(first.txn))
        if isinstance(first.txn.value, Reconfiguration):
            self._reconfigurations[len(self) - 1] = first.txn.value
        self.epochs.append(first.epoch)
        self.proposed.append(NONE)
        self.leaders.append(NONE)

    def txn(self, place: int) -> Txn:
        """The transaction at a position."""
        return Txn(self.zxids[place], self._reconfigurations.get(place) or f"{self.values[place]:016x}")

    def is_at(self, place: int, txn: Txn) -> bool:
        """Whether the transaction at this position is `txn`."""
        return self.zxids[place] == txn.zxid and self.values[place] == _number_of(txn)

    def epoch_of(self, txn: Txn) -> int | None:
        """The epoch in which a transaction was first committed; None if it was not. The log must be ascending."""
        place = bisect_left(self.zxids, txn.zxid)
        return self.epochs[place] if place < len(self) and self.is_at(place, txn) else None

    def is_before(self, end: int, txn: Txn) -> bool:
        """Whether a transaction is committed at a position before `end`. The log up to there must be ascending."""
        end = min(end, len(self))
        place = bisect_left(self.zxids, txn.zxid, 0, end)
        return place < end and self.is_at(place, txn)


def _number_of(txn: Txn) -> int:
    """The digest of a transaction's value, as a number."""
    return required_integer(digest_in(txn.value), base=16)


KEPT = 2
"""The number of settled transactions that stay visible."""
STRIDE = 8
"""The number of further settled transactions that triggers a removal, which is slow."""


@dataclass
class Image:
    """The state of a server according to all journals: its log on disk, and `tree` in memory after TRUNC and SNAP.

    - `agreed`: the length of the prefix of the committed log that it has on disk, and has delivered if it serves;
      maintained while it is present.
    - `ended`: the server at the end of its last life, with the requests to its disk; `tree` is that of this end until
      it starts again.
    - `visible`: its log without the settled part, kept while it is not present, since its log seldom changes then.
    - `turn`: the epochs that it has established in its latest turn. `unentered`: those that it established in the last
      turn of a life, and that did not reach its disk.
    """

    server: Server
    log: Log = field(default_factory=Log)
    tree: Log | None = None
    agreed: int = 0
    present: bool = False
    ended: Server | None = None
    visible: VisibleLog | None = None
    turn: set[int] = field(default_factory=set)
    unentered: set[int] = field(default_factory=set)


class GlobalHistory:
    """All servers and their history; everything before the zxid `start` is taken as given."""

    def __init__(self, durables: Mapping[Sid, Server]) -> None:
        self.start = max(known_from(server.durable) - 1 for server in durables.values())
        self.images = {sid: Image(server) for sid, server in durables.items()}
        for image in self.images.values():
            image.log = Log(0, self._beyond(image.server.durable.txns))
        self.given = {sid: image.log.txns for sid, image in self.images.items()}
        self.history = History()
        self.committed = CommittedLog()
        self.settled = 0
        self.facts = 0
        self.given_snapshots: set[tuple[Sid, Sid, int]] = set()
        self._least = 0
        self._snapshots: dict[tuple[Sid, Sid, int], Log] = {}
        self._fold = history_actor(frozenset(HistoryPart)).step

    @property
    def floor(self) -> int:
        """The zxid of the last transaction that is settled and removed."""
        return self.committed.zxids[self.settled - 1] if self.settled > self._least else self.start

    # Events.

    def restarted(self, server: Server) -> None:
        """A server starts with the contents of its disk; `Replay` has found that they are possible."""
        image = self.images[server.sid]
        for operation in () if image.ended is None else finished(image.ended, server.durable):
            if isinstance(operation, TakeSnapshot):
                image.log = self._in_snapshot(image, operation)
            elif isinstance(operation, Append):
                image.log = image.log.and_then(self._beyond((operation.txn,)))
        image.tree, image.present, image.ended = None, False, None
        image.unentered |= {epoch for epoch in image.turn if epoch > server.durable.current_epoch}
        image.turn.clear()
        log = image.log.up_to(server.durable.last_zxid)
        before = self.committed.zxids[log.base - 1] if log.base > self._least else self.start
        last = log.txns[-1].zxid if log.txns else before
        more = tuple(txn for txn in server.durable.txns if txn.zxid > last)
        image.log = log.and_then(more)
        for txn in more:
            self._folded(Broadcast(NONE, epoch_of(txn.zxid), txn))
        image.server = server

    def crashed(self, sid: Sid) -> None:
        """A server has stopped."""
        image = self.images[sid]
        server = image.server
        image.server, image.ended, image.present = stopped(server, server.durable), server, False

    def stepped(
        self, record: int, before: Server, after: Server, event: Event, effects: Effects, sent: int, *, first: bool
    ) -> None:
        """A step; `record` is its number, `sent` the number of the record that sent the packet it reads, or NONE.

        `first`: the step begins a turn.
        """
        sid = after.sid
        image = self.images[sid]
        log = image.log
        image.server = after
        if first:
            image.turn.clear()
        self._follow(image, before, event, effects, sent)
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, Snap) and effect.peer in self.images:
                self._snapshots[sid, effect.peer, record] = self._whole_log(image).up_to(effect.message.zxid)
        # The comparison of a server that leads or follows starts at the beginning of its log.
        present = is_present(image.server)
        if present and not image.present:
            image.agreed = image.log.base
        image.present = present
        image.agreed = min(image.agreed, image.log.base + len(image.log.txns))
        self._advance(image)
        self._widen()
        for fact in (*self._served_in_silence(image, before, effects), *self._facts(image, log, event, effects)):
            if not (isinstance(fact, EpochEstablished) and self._is_same_reign(image, fact)):
                self._folded(fact)
        if (report := misapplied(before, after, effects)) is not None:
            self._folded(report)
        self._advance(image)

    def given_by(self, event: Event) -> None:
        """A packet that is not in its sender's journal: the transaction of a proposal there counts as broadcast."""
        if isinstance(event, Receive) and isinstance(event.packet, Proposal | Inform | InformAndActivate):
            self._folded(Broadcast(NONE, epoch_of(event.packet.txn.zxid), event.packet.txn))

    # Logs.

    def _follow(self, image: Image, before: Server, event: Event, effects: Effects, sent: int) -> None:
        after, old, new = image.server, before.durable.txns, image.server.durable.txns
        cut = next((effect.zxid for effect in effects if isinstance(effect, Truncate)), None)
        if cut is not None:
            image.log = image.log.up_to(cut)
        was, tree_after = tree_in_memory(before), tree_in_memory(after)
        if isinstance(event, Receive) and isinstance(event.packet, Snap) and tree_after is not None:
            image.tree = self._received(after.sid, event.source, event.packet, sent)
        elif was is None and tree_after is not None:
            image.tree = image.log
        elif was is not None and tree_after is not None and tree_after is not was and image.tree is not None:
            image.tree = image.tree.and_then(self._beyond(tree_after[len(was) :]))
        snapshot = written(before, after, effects)
        if (new is old and snapshot is None) or cut is not None:
            return
        if snapshot is None:
            image.log = image.log.and_then(self._beyond(new[len(old) :]))
        else:
            image.log = self._in_snapshot(image, snapshot).and_then(self._beyond(new[len(snapshot.txns) :]))
        if tree_after is None:
            image.tree = None

    def _whole_log(self, image: Image) -> Log:
        """The log of a server with what its disk has not yet reported; a leader may have applied some of that."""
        return image.log.and_then(self._beyond(appended(image.server)))

    def _in_snapshot(self, image: Image, snapshot: TakeSnapshot) -> Log:
        """The log in a snapshot that the disk of a server has finished."""
        return image.tree or Log(self._least, self._beyond(snapshot.txns))

    def _received(self, sid: Sid, source: Sid, snap: Snap, sent: int) -> Log:
        log = self._snapshots.pop((source, sid, sent), None)
        if log is not None:
            return log
        self.given_snapshots.add((source, sid, snap.zxid))
        self._take_as_given(snap.zxid)
        return Log(self._least)

    def _take_as_given(self, zxid: int) -> None:
        if zxid <= self.start:
            return
        place = bisect_right(self.committed.zxids, zxid)
        self._take_out(max(self.settled, place))
        self.start, self._least, self.settled = zxid, place, max(self.settled, place)
        for image in self.images.values():
            image.log = Log(max(image.log.base, place), self._beyond(image.log.txns))
            image.tree = image.tree and Log(max(image.tree.base, place), self._beyond(image.tree.txns))
            image.agreed = max(image.agreed, place)

    def _beyond(self, txns: Iterable[Txn]) -> Txns:
        return tuple(txn for txn in txns if txn.zxid > self.start)

    def log_of(self, image: Image) -> Txns:
        """The log of a server without its settled part."""
        log = image.log
        if image.present and log.base <= self.settled <= image.agreed:
            return log.txns[self.settled - log.base :]
        view = image.visible
        if view is None or view.log is not log or view.settled != self.settled or view.start != self.start:
            view = image.visible = VisibleLog(log, self.settled, self.start, self._visible(log))
        return view.txns

    def _visible(self, log: Log) -> Txns:
        floor = self.floor
        older = tuple(self.committed.txn(place) for place in range(self.settled, log.base))
        return (*older, *(txn for txn in log.txns if txn.zxid > floor or not self._is_removed(txn)))

    def _is_removed(self, txn: Txn) -> bool:
        """Whether a transaction is settled and removed, or taken as given."""
        return txn.zxid <= self.start or self.committed.is_before(self.settled, txn)

    # Facts.

    def _facts(self, image: Image, log: Log, event: Event, effects: Effects) -> Iterator[Fact]:
        """The facts of a step with all of their transactions, and the transactions that are taken as given."""
        sid = image.server.sid
        match event:
            case Receive(source=source, packet=Proposal(txn=txn) | Inform(txn=txn) | InformAndActivate(txn=txn)) if (
                source not in self.images
            ):
                yield Broadcast(source, epoch_of(txn.zxid), txn)
            case Receive(packet=Snap()) if image.tree is not None and isinstance(image.server.zab, Learner):
                in_tree, older = set(image.tree.txns), image.tree.base  # it begins with the committed log up to there
                removed = tuple(t for t in log.txns if t not in in_tree and not self.committed.is_before(older, t))
                yield Truncated(sid, image.server.zab.epoch, removed)
        is_snap = isinstance(event, Receive) and isinstance(event.packet, Snap)
        for effect in effects:
            if isinstance(effect, Observe):
                self.facts += 1
                if not (is_snap and isinstance(effect.fact, Truncated)):
                    yield self._whole(image, effect.fact)

    def _served_in_silence(self, image: Image, before: Server, effects: Effects) -> Iterator[Fact]:
        """The log that a server delivers when it begins to serve, if all of it came in a snapshot: no fact tells it."""
        part, last = image.server.zab, delivered(image.server)
        if part is None or last is None or delivered(before) is not None:
            return
        if not any(isinstance(effect, Observe) and isinstance(effect.fact, Delivered) for effect in effects):
            yield Delivered(image.server.sid, part.epoch, tuple(t for t in self.log_of(image) if t.zxid <= last))

    def _whole(self, image: Image, fact: Fact) -> Fact:
        """A fact about a whole log, when its server remembers only the end."""
        if isinstance(fact, EpochEstablished):
            last = fact.initial[-1].zxid if fact.initial else image.server.durable.last_zxid
            return replace(fact, initial=tuple(txn for txn in self.log_of(image) if txn.zxid <= last))
        if isinstance(fact, Delivered) and fact.txns and fact.txns[:1] == tuple(image.server.durable.txns[:1]):
            older = (txn for txn in image.log.txns if txn.zxid < fact.txns[0].zxid)
            return replace(fact, txns=(*older, *fact.txns))
        return fact

    def _is_same_reign(self, image: Image, fact: EpochEstablished) -> bool:
        """Whether a server establishes again, with the same log, an epoch that did not reach its disk."""
        unentered = fact.epoch in image.unentered
        image.unentered.discard(fact.epoch)
        image.turn.add(fact.epoch)
        return unentered and EstablishedEpoch(fact.epoch, fact.leader, fact.initial) in self.history.established

    def _folded(self, fact: Fact) -> None:
        floor, count = self.floor, len(self.history.committed)
        if isinstance(fact, Delivered):
            fact = replace(fact, txns=tuple(txn for txn in fact.txns if txn.zxid > floor))
        if isinstance(fact, Broadcast) and fact.txn.zxid <= floor and self._is_removed(fact.txn):
            return
        if isinstance(fact, Truncated):
            self._lost(fact, floor)
        history: History = self._fold((self.history,), fact).values[0]  # type: ignore[union-attr]
        self.history = history
        for first in history.committed[count:]:
            self.committed.add(first)

    def _lost(self, fact: Truncated, floor: int) -> None:
        """Records dropped transactions that were settled long ago."""
        for txn in fact.txns:
            epoch = self.committed.epoch_of(txn) if self.start < txn.zxid <= floor else None
            if epoch is not None and epoch < fact.epoch:
                self.history = replace(self.history, lost=(*self.history.lost, (fact.server, txn)))

    # The settled part.

    def _advance(self, image: Image) -> None:
        """Extends the prefix of the committed log that this server agrees with."""
        if not image.present:
            return
        served, log = delivered(image.server), image.log
        while image.agreed < len(self.committed) and image.agreed - log.base < len(log.txns):
            txn = log.txns[image.agreed - log.base]
            if not self.committed.is_at(image.agreed, txn) or (served is not None and txn.zxid > served):
                break
            image.agreed += 1

    def _agreed(self) -> int | None:
        return min((image.agreed for image in self.images.values() if image.present), default=None)

    def _widen(self) -> None:
        """Restores the part of the settled transactions that a server does not agree with."""
        agreed = self._agreed()
        place = self.settled if agreed is None else max(self._least, agreed - KEPT)
        if place >= self.settled:
            return
        log, places = self.committed, range(place, self.settled)
        older = tuple(FirstCommit(log.txn(n), log.epochs[n]) for n in places)
        sendings = [ProposedTxn(log.proposed[n], log.leaders[n], log.txn(n)) for n in places if log.proposed[n] != NONE]
        reigns = []
        for reign in self.history.established:
            initial = tuple(commit.txn for commit in older if epoch_of(commit.txn.zxid) < reign.epoch)
            reigns.append(replace(reign, initial=(*initial, *reign.initial)))
        self.history = replace(
            self.history,
            committed=(*older, *self.history.committed),
            broadcast=tuple(sorted((*sendings, *self.history.broadcast), key=order_of_proposal)),
            established=tuple(reigns),
        )
        self.settled = place

    def settle(self) -> None:
        """Removes the settled transactions; called after the invariants have been evaluated."""
        agreed = self._agreed()
        if agreed is None or agreed - KEPT - self.settled < STRIDE or not self.committed.ascending:
            return
        self._take_out(agreed - KEPT)
        for image in self.images.values():
            if image.present and image.log.base < self.settled:
                image.log = Log(self.settled, image.log.txns[self.settled - image.log.base :])

    def _take_out(self, place: int) -> None:
        count = place - self.settled
        out = {commit.txn: self.settled + n for n, commit in enumerate(self.history.committed[:count])}
        rest = []
        for proposal in self.history.broadcast:
            position = out.get(proposal.txn)
            if position is None:
                rest.append(proposal)
            else:
                self.committed.proposed[position], self.committed.leaders[position] = proposal.epoch, proposal.leader
        reigns = tuple(
            replace(reign, initial=tuple(txn for txn in reign.initial if txn not in out))
            for reign in self.history.established
        )
        self.history = replace(
            self.history, committed=self.history.committed[count:], broadcast=tuple(rest), established=reigns
        )
        self.settled = place
