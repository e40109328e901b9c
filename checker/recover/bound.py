"""The acknowledged writes that a history does not have: which transactions may have been acknowledged, exactly.

Rules of this module:

- A write is acknowledged when a quorum of the voters has it on disk. So one that too few disks have or may have had was
  never acknowledged. The disks that may have had it are those of the lost voters, and those that may have lost it.
  An observer hears of commits alone, so what it has may have been acknowledged.
- A server acknowledges nothing of an epoch above its currentEpoch, which it writes first.
- Each later epoch begins with all acknowledged writes. So a disk whose history goes on behind a place without a write
  shows that the write was never acknowledged. This needs one set of voters: two leaders of servers with different files
  both acknowledge. It is not used if the voters are not known, if two sources name different ones, or if two
  transactions have one zxid.
- A currentEpoch alone shows nothing. Before 3.9.3 a server writes it before the transactions that the epoch begins with
  (ZOOKEEPER-4643).
- A disk that reads as whole is taken as its server left it: no reader sees a file that was cut behind a whole record.

Sources: `SyncedLearnerTracker.hasAllQuorums`, `Leader.tryToCommit`, `Learner.syncWithLeader`; Zab (DSN 2011), "leader
completeness".
"""

import enum
from collections.abc import Iterable, Sequence

import msgspec

from checker.recover.histories import DiskHistory, Histories, Piece, Place
from spec.quorum import Sid, View
from spec.txn import epoch_of


class Standing(enum.Enum):
    """The state of knowledge about a transaction outside the kept history."""

    TOO_FEW = "never acknowledged: too few disks can have it"
    SUPERSEDED = "never acknowledged: a later epoch began without it"
    COVERED = "in the first snapshot of the history, or never acknowledged"
    POSSIBLE = "a client may have its answer"
    UNKNOWN = "unknown without the voters"


class Unkept(msgspec.Struct, frozen=True):
    """Transactions that surviving disks have and the history has not."""

    place: Place
    first: int
    last: int
    count: int
    disks: frozenset[int]
    standing: Standing
    reachable: bool


class Missing(msgspec.Struct, frozen=True):
    """Transactions behind the history that all remaining disks lack, and that may have been acknowledged.

    They are behind `after` and before `before`; `count` is their number, None if it is unknown. Without `before` any
    number of writes may be lost.
    """

    after: int
    before: int | None
    count: int | None


class LossBound(msgspec.Struct, frozen=True):
    """The bound of the acknowledged writes that are lost with a history.

    `missing` is None if the voters are unknown: any number may then be lost.
    """

    unkept: tuple[Unkept, ...]
    missing: tuple[Missing, ...] | None
    one_electorate: bool

    @property
    def is_empty(self) -> bool:
        """Whether it is shown that no acknowledged write is lost."""
        return self.missing == () and all(unkept.standing in NEVER for unkept in self.unkept)

    @property
    def is_open(self) -> bool:
        """Whether any number of acknowledged writes may be lost."""
        return self.missing is None or any(missing.before is None for missing in self.missing)


NEVER = frozenset({Standing.TOO_FEW, Standing.SUPERSEDED, Standing.COVERED})


class LossJudge:
    """The judgement of one history and its losses.

    `views` are those that may have been in use, and empty if they are unknown. A write may have been acknowledged if it
    may in one of the views.
    """

    def __init__(self, histories: Histories, history: DiskHistory, views: Sequence[View]) -> None:
        self._histories, self._history, self._views = histories, history, views
        self._disks = histories.disks
        surviving = {disk.sid for disk in self._disks}
        self.lost = frozenset(sid for view in views for sid in view.voters if sid not in surviving)
        has_conflict = any(len(piece.sides) > 1 for piece in histories.pieces)
        self.one_electorate = len({view.quorums for view in views}) == 1 and not has_conflict

    def bound(self) -> LossBound:
        """The bound."""
        places = self._history.all_places
        unkept = tuple(self._unkept(place) for place in self._histories.places() if place not in places)
        missing = tuple(self._missing()) if self._views else None
        return LossBound(unkept, missing, self.one_electorate)

    def _is_quorum(self, disks: Iterable[int]) -> bool:
        """Whether these disks and those of the lost voters may have been a quorum."""
        sids: set[Sid] = {sid for disk in disks if (sid := self._disks[disk].sid) is not None}
        return any(view.contains_quorum(sids | self.lost) for view in self._views)

    def _unkept(self, place: Place) -> Unkept:
        piece = self._histories.pieces[place.piece]
        holders = self._histories.side(place)
        return Unkept(
            place,
            piece.first,
            piece.last,
            piece.count,
            holders,
            self._standing(piece, holders),
            place in self._histories.reachable,
        )

    def _standing(self, piece: Piece, holders: frozenset[int]) -> Standing:
        if not self._views:
            return Standing.UNKNOWN
        lacking = {number for number in range(len(self._disks)) if number not in holders}
        # A snapshot behind it may contain it.
        maybe = {
            number
            for number in lacking
            if self._disks[number].may_have_lost(piece.first) or self._disks[number].covered >= piece.first
        }
        observers = {sid for view in self._views for sid in view.observers}
        if not self._is_quorum(holders | maybe) and not any(self._disks[number].sid in observers for number in holders):
            return Standing.TOO_FEW
        if self.one_electorate:
            if self._history.base.zxid >= piece.first:
                return Standing.COVERED
            if self._history.end > piece.first:
                return Standing.SUPERSEDED
            if any(self._histories.last_of(number) > piece.first for number in lacking - maybe):
                return Standing.SUPERSEDED
        return Standing.POSSIBLE

    def _missing(self) -> Iterable[Missing]:
        """Yield the places behind the history where acknowledged writes may be lost that no disk has."""
        pieces, end = self._histories.pieces, self._history.end
        lasts = sorted({end, *(piece.last for piece in pieces if piece.last > end)})
        firsts = [piece.first for piece in pieces]
        for after in lasts:
            before = min((first for first in firsts if first > after), default=None)
            if before is not None and before != after + 1 and self._may_miss(after, before):
                count = before - after - 1 if epoch_of(before) == epoch_of(after) else None
                yield Missing(after, before, count)
        if self._may_miss_at_end():
            yield Missing(lasts[-1], None, None)

    def _may_miss(self, after: int, before: int) -> bool:
        """Whether transactions between two that follow each other on the remaining disks may have been acknowledged.

        Each disk with a later transaction has had them, unless its records show the contrary.
        """
        having = {
            number
            for number, disk in enumerate(self._disks)
            if any(loss.after <= after and (loss.before is None or loss.before >= before) for loss in disk.losses)
        }
        is_refuted = any(
            self._histories.last_of(number) >= before and self._disks[number].covered <= after
            for number in range(len(self._disks))
            if number not in having
        )
        return self._is_quorum(having) and not (is_refuted and self.one_electorate)

    def _may_miss_at_end(self) -> bool:
        """Whether a quorum may have acknowledged writes that are on no remaining disk, behind all of them.

        They are of one epoch, in which all its members acknowledge, and no disk has begun a later epoch without them.
        """
        is_open = {
            number for number, disk in enumerate(self._disks) if any(loss.before is None for loss in disk.losses)
        }
        if not self.one_electorate:
            return self._is_quorum(is_open)
        highest = 1 << 31
        currents = {number: self._disks[number].current for number in is_open}
        # No server acknowledges in epoch 0: a member of an ensemble has followed no leader yet.
        for epoch in {highest, *(current for current in currents.values() if current)}:
            having = {number for number, current in currents.items() if current is None or current >= epoch}
            whole = [number for number in range(len(self._disks)) if number not in having]
            if epoch < epoch_of(self._history.end) or any(epoch_of(self._histories.last_of(n)) > epoch for n in whole):
                continue
            if self._is_quorum(having):
                return True
        return False
