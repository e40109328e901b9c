"""The histories on some disks: where they agree, where they part, and which of them Zab's rule keeps.

Rules of this module:

- Transactions stream by. Those with the same holders form one piece, which has a side for each different content.
- A piece continues another one if a disk has both and nothing between them, or if its zxid is the next one and there
  is no other content at either place: a leader gives each zxid of its epoch once.
- A record does not continue one that is older than a snapshot between them: a follower that gets a snapshot keeps
  older records, also those that the snapshot does not have.
- A history is a whole snapshot (or the empty tree, if a log begins with the first transaction) and the pieces that
  continue it. The one of the highest epoch, then of the highest zxid, is kept.
- The epoch of a history is the highest `currentEpoch` of the disks whose last transaction it has, unless it continues
  with a transaction of a lower epoch: that disk has begun its epoch without this transaction.

Sources: Zab (DSN 2011), "the leader's history is that of the follower with the highest epoch and zxid";
`FastLeaderElection.totalOrderPredicate`, `Learner.syncWithLeader`.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from refimpl.disk.files import follows
from refimpl.disk.survey import Loss
from spec.quorum import Sid
from spec.txn import epoch_of


class Base(msgspec.Struct, frozen=True):
    """The beginning of a history: the zxid of a whole snapshot, the disk, and the newest transaction that it may hold.

    `is_empty`: it is no snapshot but the empty tree, since the log of this disk begins with the first transaction.
    """

    zxid: int
    disk: int
    newest: int
    is_empty: bool = False


class DiskClaim(msgspec.Struct, frozen=True):
    """The claims of one disk: its transactions, its possible losses, and the epoch of its history.

    `sid` is None if the id of its server is unknown; `current` is None if currentEpoch cannot be read. `snapshots` are
    the zxids of all its snapshots, whole or not.
    """

    sid: Sid | None
    current: int | None
    bases: tuple[Base, ...]
    snapshots: tuple[int, ...] = ()
    losses: tuple[Loss, ...] = ()

    @property
    def covered(self) -> int:
        """The zxid of the newest whole snapshot, 0 without any."""
        return max((base.zxid for base in self.bases), default=0)

    def may_have_lost(self, zxid: int) -> bool:
        """Whether the disk may have had a transaction that it no longer has: it acknowledges none of a later epoch."""
        can_acknowledge = self.current is None or self.current >= epoch_of(zxid)
        return can_acknowledge and any(loss.has(zxid) for loss in self.losses)


class HeldRecord(NamedTuple):
    """A record on a disk; `side` is its content as a number, equal for equal contents of one zxid."""

    zxid: int
    disk: int
    side: int
    continues: bool


class Place(NamedTuple):
    """One side of a piece: the number of the piece, and that of the side."""

    piece: int
    side: int


class Piece(msgspec.Struct):
    """Successive transactions that the same disks have; `sides` are the disks with each content."""

    first: int
    last: int
    count: int
    sides: tuple[frozenset[int], ...]


class DiskHistory(msgspec.Struct, frozen=True):
    """A history: its base, the places after it in order, the places before it, its last zxid, and its epoch."""

    base: Base
    places: tuple[Place, ...]
    before: frozenset[Place]
    end: int
    epoch: int

    @property
    def all_places(self) -> frozenset[Place]:
        """All places that the history has."""
        return self.before | frozenset(self.places)


class Histories:
    """The pieces on some disks and their connections, from records in the order of their zxids."""

    def __init__(self, disks: Sequence[DiskClaim], records: Iterable[HeldRecord]) -> None:
        self.disks = disks
        self.pieces: list[Piece] = []
        self.earlier: dict[Place, set[Place]] = {}
        """The places that a place continues."""
        self.tops: list[Place | None] = [None] * len(disks)
        """The place of the last record of each disk."""
        self._uncertain: set[tuple[int, int]] = set()
        """Disks and pieces where records may be missing between the piece and the record before it."""
        self._boundaries = {base.zxid for disk in disks for base in disk.bases}
        self._collect(records)
        self._join()
        self.bases: dict[Place, list[Base]] = {}
        """The bases with which a history may begin, before a place or at its end."""
        self._ending_bases: set[tuple[Place, Base]] = set()
        for disk in disks:
            for base in disk.bases:
                self._attach(base)
        self.reachable = self._reachable()

    # --- pieces

    def _collect(self, records: Iterable[HeldRecord]) -> None:
        last = [0] * len(self.disks)
        for zxid, group in groupby(records, key=lambda record: record.zxid):
            holdings = list(group)
            links = [record.continues and self._is_unbroken(record, last[record.disk]) for record in holdings]
            sides: dict[int, set[int]] = {}
            for record in holdings:
                sides.setdefault(record.side, set()).add(record.disk)
            partition = tuple(sorted(map(frozenset, sides.values()), key=min))
            piece = self.pieces[-1] if self.pieces else None
            if (
                piece is not None
                and piece.sides == partition
                and follows(zxid, piece.last)
                and piece.last not in self._boundaries
                and all(links)
                and all(last[record.disk] == piece.last for record in holdings)
            ):
                piece.last, piece.count = zxid, piece.count + 1
            else:
                self._add_piece(zxid, partition, holdings, links)
            for record in holdings:
                last[record.disk] = zxid

    def _is_unbroken(self, record: HeldRecord, before: int) -> bool:
        return bool(before) and not any(before < zxid < record.zxid for zxid in self.disks[record.disk].snapshots)

    def _add_piece(
        self, zxid: int, partition: tuple[frozenset[int], ...], held: list[HeldRecord], links: list[bool]
    ) -> None:
        number = len(self.pieces)
        self.pieces.append(Piece(zxid, zxid, 1, partition))
        for record, is_linked in zip(held, links, strict=True):
            place = Place(number, next(side for side, disks in enumerate(partition) if record.disk in disks))
            top = self.tops[record.disk]
            if is_linked and top is not None:
                self.earlier.setdefault(place, set()).add(top)
            if not record.continues:
                self._uncertain.add((record.disk, number))
            self.tops[record.disk] = place

    def _join(self) -> None:
        """Connect places that no disk has together: the next zxid, with one content at both."""
        for number in range(1, len(self.pieces)):
            before, piece = self.pieces[number - 1], self.pieces[number]
            if piece.first == before.last + 1 and len(before.sides) == len(piece.sides) == 1:
                self.earlier.setdefault(Place(number, 0), set()).add(Place(number - 1, 0))

    # --- bases

    def _attach(self, base: Base) -> None:
        """Note the places where a history may begin with a base."""
        ending = self._ending_at(base)
        if ending is not None:
            self._ending_bases.add((ending, base))
            self.bases.setdefault(ending, []).append(base)
        for number, piece in enumerate(self.pieces):
            if piece.first <= base.zxid or not follows(piece.first, base.zxid):
                continue
            for side, disks in enumerate(piece.sides):
                is_next = piece.first == base.zxid + 1 and (len(piece.sides) == 1 or base.disk in disks)
                if (is_next and not base.is_empty) or (base.disk in disks and self._is_first_after(base, number)):
                    self.bases.setdefault(Place(number, side), []).append(base)

    def _is_first_after(self, base: Base, number: int) -> bool:
        """Whether the disk of a base has nothing between it and this piece, neither kept nor lost."""
        if (base.disk, number) in self._uncertain:
            return False
        between = (piece for piece in self.pieces[:number] if piece.last > base.zxid)
        return not any(base.disk in side for piece in between for side in piece.sides)

    def _ending_at(self, base: Base) -> Place | None:
        """The place whose last transaction is that of a base, if it is the same one."""
        for number, piece in enumerate(self.pieces):
            if piece.last == base.zxid:
                sides = [side for side, disks in enumerate(piece.sides) if base.disk in disks]
                if sides or len(piece.sides) == 1:
                    return Place(number, sides[0] if sides else 0)
        return None

    def _reachable(self) -> set[Place]:
        reachable: set[Place] = set()
        for number, piece in enumerate(self.pieces):
            for side in range(len(piece.sides)):
                place = Place(number, side)
                if self.bases.get(place) or any(before in reachable for before in self.earlier.get(place, ())):
                    reachable.add(place)
        return reachable

    # --- histories

    def candidates(self) -> list[DiskHistory]:
        """The histories that may be kept, the one of Zab's rule first."""
        continued = {before for place in self.reachable for before in self.earlier.get(place, ())}
        ends = {place for place in self.reachable if place not in continued}
        ends |= {top for top in self.tops if top is not None and top in self.reachable}
        newest = [base for disk in self.disks for base in disk.bases[-1:]]
        ends |= {ending for ending in map(self._ending_at, newest) if ending is not None}
        candidates = [self._ending_with(end) for end in sorted(ends)]
        candidates += [self._ranked(base, ()) for base in newest if self._ending_at(base) is None]
        return sorted(candidates, key=self._rank, reverse=True)

    def _rank(self, history: DiskHistory) -> tuple[int, int, int, int]:
        holders = self.holders(history)
        return history.epoch, history.end, len(holders), -min(holders, default=0)

    def holders(self, history: DiskHistory) -> frozenset[int]:
        """The disks that have the last transaction of a history."""
        if history.places:
            return self.side(history.places[-1])
        ending = self._ending_at(history.base)
        return frozenset({history.base.disk}) | (self.side(ending) if ending is not None else frozenset())

    def side(self, place: Place) -> frozenset[int]:
        """The disks with the transactions of a place."""
        return self.pieces[place.piece].sides[place.side]

    def _ending_with(self, end: Place) -> DiskHistory:
        """The history that ends with a place: from the newest snapshot that holds nothing behind the end."""
        last, places, place = self.pieces[end.piece].last, list[Place](), end
        fuzzy: tuple[Base, int] | None = None
        while True:
            options = sorted(self.bases.get(place, ()), key=lambda base: base.zxid)
            for base in reversed(options):
                is_at_end = (place, base) in self._ending_bases
                if base.newest <= last:
                    return self._ranked(base, (*(() if is_at_end else (place,)), *places))
                fuzzy = fuzzy or (base, len(places) + (not is_at_end))
            places.insert(0, place)
            earlier = [before for before in self.earlier.get(place, ()) if before in self.reachable]
            if not earlier:
                break
            place = min(earlier)
        assert fuzzy is not None  # the place is reachable
        return self._ranked(fuzzy[0], tuple(places[len(places) - fuzzy[1] :]))

    def _ranked(self, base: Base, places: tuple[Place, ...]) -> DiskHistory:
        roots = list(places[:1])
        ending = self._ending_at(base)
        before = set[Place]()
        if ending is not None and (not places or base.zxid < self.pieces[places[0].piece].first):
            before.add(ending)
            roots.append(ending)
        while roots:
            for place in self.earlier.get(roots.pop(), ()):
                if place not in before:
                    before.add(place)
                    roots.append(place)
        end = self.pieces[places[-1].piece].last if places else base.zxid
        history = DiskHistory(base, places, frozenset(before), end, epoch_of(end))
        return msgspec.structs.replace(history, epoch=self._epoch(history))

    def _epoch(self, history: DiskHistory) -> int:
        """The epoch of a history: see the rules of this module."""
        epochs = [epoch_of(history.end)]
        for number, disk in enumerate(self.disks):
            top = self.last_of(number)
            if disk.current is None or not self._has_top(history, number):
                continue
            following = self._next_zxid(history, top)
            if following is None or epoch_of(following) >= disk.current or disk.may_have_lost(following):
                epochs.append(disk.current)
        return max(epochs)

    def last_of(self, disk: int) -> int:
        """The last zxid of a disk: that of its last record, or of its newest whole snapshot."""
        top = self.tops[disk]
        return max(self.disks[disk].covered, 0 if top is None else self.pieces[top.piece].last)

    def _has_top(self, history: DiskHistory, disk: int) -> bool:
        """Whether a history has the last transaction of a disk."""
        top, last = self.tops[disk], self.last_of(disk)
        if top is not None and self.pieces[top.piece].last == last:
            return top in history.all_places
        return last == history.base.zxid or any(self.pieces[place.piece].last == last for place in history.all_places)

    def _next_zxid(self, history: DiskHistory, zxid: int) -> int | None:
        """The next zxid of a history, as far as it is known."""
        firsts = [self.pieces[place.piece].first for place in history.all_places]
        later = [first for first in (*firsts, history.base.zxid) if first > zxid]
        return min(later, default=None)

    def kept_with(self, disk: int) -> DiskHistory | None:
        """The best history that has as much as possible of this disk; None if nothing of it can be used."""
        places = [place for place in sorted(self.reachable) if disk in self.side(place)]
        for place in reversed(places):
            having = [history for history in self.candidates() if place in history.all_places]
            return having[0] if having else self._ending_with(place)
        return next((history for history in self.candidates() if history.base.disk == disk), None)

    def places(self) -> Iterator[Place]:
        """All places, in the order of their zxids."""
        for number, piece in enumerate(self.pieces):
            yield from (Place(number, side) for side in range(len(piece.sides)))
