"""The transactions in doubt: on which disks they are, whether a client may have its answer, and whether they survive.

A transaction that a client was told of is on the disks of a quorum of voters. So it is in doubt only if the disks that
have it, with those that nobody has shown, contain a quorum. An election is won by the highest current epoch, then the
last zxid. A transaction survives if no quorum is won by a disk without it.

Rules of this module:

- Both answers hold for one view of all servers. Where views differ, or a change of members is pending, there is no
  answer, and the reason is given.
- A disk that was not shown may have any transaction or none: it counts for the worse.
- A disk may be erased only if the whole disks of the others contain a quorum. Each quorum that acknowledged a
  transaction has one of them, and so has each quorum that elects a leader among them. They must serve before the erased
  server starts.

Source: Junqueira, Reed, Serafini, "Zab", DSN 2011, section IV; `FastLeaderElection.totalOrderPredicate`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from itertools import combinations, groupby
from pathlib import Path
from zlib import crc32

from checker.diagnose.evidence import ServerEvidence
from checker.diagnose.situation import Situation, listed
from refimpl.disk.files import follows
from refimpl.disk.remedies import Damage
from refimpl.disk.survey import DiskSurvey, surviving_records
from refimpl.jute import JuteError
from refimpl.wire.txn import decode_txn
from spec.quorum import Sid, View
from spec.text import excerpt

MOST_RECORDS = 2_000_000
"""The number of the newest records of a disk that are compared."""
MOST_CHANGES = 10
"""The number of operations that are listed of each group of transactions in doubt."""


def zxid_text(zxid: int) -> str:
    """A zxid as ZooKeeper prints it."""
    return f"0x{zxid:x}"


@dataclass(frozen=True)
class RecordedHistory:
    """The newest records of one disk: their zxids with rising values, and a checksum of each payload.

    `vote` is what decides an election: the current epoch, and the last zxid. A transaction between the ends of one of
    the `spans`, and not among the records, was never part of the history of this disk.
    """

    zxids: array[int]
    checksums: array[int]
    newest_snapshot: int
    vote: tuple[int, int]
    spans: tuple[tuple[int, int], ...]

    @cached_property
    def by_zxid(self) -> Mapping[int, int]:
        """The checksum of each transaction."""
        return dict(zip(self.zxids, self.checksums, strict=True))

    def has(self, zxid: int) -> bool:
        """Whether the transaction is in the log, or older than a whole snapshot."""
        return zxid in self.by_zxid or zxid <= self.newest_snapshot


def history(server: ServerEvidence) -> RecordedHistory | None:
    """The history on the disk of a server; None if no data directory of it is known, or it is empty."""
    disk = server.disk
    if disk is None or disk.is_empty:
        return None
    zxids, checksums = array("q"), array("I")
    for record in surviving_records(Path(disk.log_dir)):
        zxids.append(record.zxid)
        checksums.append(crc32(record.payload))
        if len(zxids) >= 2 * MOST_RECORDS:
            del zxids[:MOST_RECORDS], checksums[:MOST_RECORDS]
    last = disk.reading.last
    epoch = disk.current.value if disk.current.value is not None else last >> 32
    saves = [save.zxid for save in disk.snapshots if save.fault is None]
    starts = [max((zxid for zxid in saves if follows(run.first, zxid)), default=run.first) for run in disk.runs]
    spans = tuple((start, run.last) for start, run in zip(starts, disk.runs, strict=True))
    return RecordedHistory(zxids, checksums, disk.newest_snapshot or 0, (epoch, last), spans)


def _skips(known: RecordedHistory, zxid: int) -> bool:
    """Whether a transaction that others have was never part of the history of a disk."""
    return zxid not in known.by_zxid and any(first < zxid < last for first, last in known.spans)


class WriteFate(Enum):
    """The fate of a transaction in doubt."""

    LOST = "a client may have its answer, and an election can drop it"
    KEPT = "a client may have its answer, and every election keeps it"
    OPEN = "no client has its answer; an election may keep it or drop it"


@dataclass(frozen=True)
class Doubt:
    """Transactions in doubt with the same fate on the same disks: the first and the last zxid, and their number.

    `changes` are the operations of the newest of them. `lacking` are the disks without them, `unknown` the voters whose
    disk was not shown.
    """

    first: int
    last: int
    count: int
    having: tuple[Sid, ...]
    lacking: tuple[Sid, ...]
    unknown: tuple[Sid, ...]
    fate: WriteFate
    changes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The transactions and their fate, for a reader."""
        zxids = zxid_text(self.first) if self.count == 1 else f"{zxid_text(self.first)} to {zxid_text(self.last)}"
        number = "1 transaction" if self.count == 1 else f"{self.count} transactions"
        places = f"on {_disks(self.having)}" + (f", not on {_disks(self.lacking)}" if self.lacking else "")
        if self.unknown:
            places += f", not known of {_disks(self.unknown)}"
        changes = "" if self.fate is WriteFate.KEPT or not self.changes else f" ({', '.join(self.changes)})"
        return f"{zxids}, {number}{changes}: {places}; {self.fate.value}"


def _disks(sids: tuple[Sid, ...]) -> str:
    return f"the disk{'s' * (len(sids) > 1)} of {listed(sids)}"


@dataclass(frozen=True)
class Doubts:
    """The transactions in doubt, in the order of their zxids. `unanswered` says why there is no answer.

    `differing` has, for each pair of servers whose disks have different transactions under one zxid, the first such
    zxid. `foreign` are the servers whose disk shares no transaction with any other one, where two others do.
    """

    groups: tuple[Doubt, ...] = ()
    unanswered: str = ""
    differing: Mapping[tuple[Sid, Sid], int] = field(default_factory=dict)
    foreign: frozenset[Sid] = frozenset()


def doubts(situation: Situation) -> Doubts:
    """The transactions in doubt on the disks that the evidence has."""
    histories = {
        sid: known for sid, server in sorted(situation.by_sid.items()) if (known := history(server)) is not None
    }
    differing = {
        (one, other): zxid
        for one, other in combinations(histories, 2)
        if (zxid := _first_difference(histories[one], histories[other])) is not None
    }
    foreign = _foreign(histories)
    view = situation.common_view
    if not histories:
        return Doubts(unanswered="no data directory was given")
    if view is None or situation.deviants:
        return Doubts(unanswered="the servers do not agree on who votes", differing=differing, foreign=foreign)
    if any(server.next_view is not None for server in situation.servers):
        return Doubts(unanswered="a change of members is pending", differing=differing, foreign=foreign)
    if differing:
        return Doubts(unanswered="two disks have different histories", differing=differing, foreign=foreign)
    newest = sorted({zxid for sid, known in histories.items() if sid in view.voters for zxid in known.zxids})
    in_doubt = (
        _doubt(zxid, histories, view) for zxid in newest if not all(known.has(zxid) for known in histories.values())
    )
    groups = list[Doubt]()
    for _, alike in groupby(in_doubt, lambda doubt: (doubt.having, doubt.lacking, doubt.fate)):
        members = list(alike)
        groups.append(replace(members[-1], first=members[0].first, count=len(members)))
    return Doubts(tuple(_with_changes(groups, situation)))


def _first_difference(one: RecordedHistory, other: RecordedHistory) -> int | None:
    """The first zxid under which two disks have different transactions, or one has none and later ones."""
    differing = {zxid for zxid, checksum in one.by_zxid.items() if other.by_zxid.get(zxid, checksum) != checksum}
    differing |= {zxid for zxid in one.by_zxid if _skips(other, zxid)}
    differing |= {zxid for zxid in other.by_zxid if _skips(one, zxid)}
    return min(differing, default=None)


def _foreign(histories: Mapping[Sid, RecordedHistory]) -> frozenset[Sid]:
    """The servers whose disk has no transaction in common with any other one, while two others have one."""
    related = {
        sid
        for one, other in combinations(histories, 2)
        if histories[one].by_zxid.items() & histories[other].by_zxid.items()
        for sid in (one, other)
    }
    return frozenset(sid for sid in histories if sid not in related) if related else frozenset()


def _doubt(zxid: int, histories: Mapping[Sid, RecordedHistory], view: View) -> Doubt:
    having = {sid for sid, known in histories.items() if known.has(zxid)}
    unknown = view.voters - histories.keys()
    fate = WriteFate.KEPT
    if not view.contains_quorum(having | unknown):
        fate = WriteFate.OPEN
    elif any(map(view.contains_quorum, _quorums_without(zxid, histories, unknown))):
        fate = WriteFate.LOST
    lacking = histories.keys() - having
    return Doubt(zxid, zxid, 1, tuple(sorted(having)), tuple(sorted(lacking)), tuple(sorted(unknown)), fate)


def _quorums_without(
    zxid: int, histories: Mapping[Sid, RecordedHistory], unknown: AbstractSet[Sid]
) -> Iterator[AbstractSet[Sid]]:
    """The largest sets of servers whose election is won by a disk without a transaction."""
    lacking = {sid for sid, known in histories.items() if not known.has(zxid)}
    yield lacking | unknown
    for winner in lacking:
        yield unknown | {sid for sid, known in histories.items() if known.vote <= histories[winner].vote}


def _with_changes(groups: Iterable[Doubt], situation: Situation) -> Iterator[Doubt]:
    """The groups with the operations of their newest transactions, from the first disk that has each."""
    for group in groups:
        changes: dict[int, str] = {}
        for sid in group.having if group.fate is not WriteFate.KEPT else ():
            disk = situation.by_sid[sid].disk
            for record in surviving_records(Path(disk.log_dir)) if disk is not None else ():
                if group.first <= record.zxid <= group.last:
                    changes.setdefault(record.zxid, _change_text(record.payload))
                    if len(changes) > MOST_CHANGES:
                        del changes[min(changes)]
        yield replace(group, changes=tuple(text for _, text in sorted(changes.items())))


def _change_text(payload: bytes) -> str:
    """The operation of a transaction with its path."""
    try:
        record = decode_txn(payload)[1].record
    except JuteError:
        return "not readable"
    name = type(record).__name__.removesuffix("Txn")
    path = getattr(record, "path", None)
    operation = name[:1].lower() + name[1:]
    return operation if path is None else f"{operation} {excerpt(path)}"


def erasure(situation: Situation, doubts: Doubts, server: ServerEvidence) -> tuple[bool, str]:
    """Whether the disk of a server may be erased, and the reason."""
    view, sid = situation.common_view, server.sid
    if sid is None:
        return False, "nothing says which server this is"
    if view is None or situation.deviants:
        return False, "the servers do not agree on who votes"
    if any(one.next_view is not None for one in situation.servers):
        return False, "a change of members is pending"
    if any(sid not in pair for pair in doubts.differing):
        return False, "two disks of other servers have different histories"
    whole = {
        other
        for other, evidence in situation.by_sid.items()
        if other != sid and (_is_whole(evidence) or (situation.has_quorum and other in situation.serving))
    }
    if sid not in view.voters:
        return True, f"server {sid} does not vote"
    if view.contains_quorum(whole):
        return True, f"the disks of {listed(whole & view.voters)} are whole, and they are a quorum without server {sid}"
    rest = view.voters - whole - {sid}
    return False, f"the disks of {listed(rest)} must be shown to be whole: without them there is no quorum"


def _is_whole(server: ServerEvidence) -> bool:
    """Whether a disk has all that was written to it."""
    disk = server.disk
    if disk is None or disk.is_empty:
        return False
    return disk.damage is None or (disk.damage is Damage.NO_SNAPSHOT and has_whole_log(disk))


def has_whole_log(disk: DiskSurvey) -> bool:
    """Whether a log has every transaction from the first one on, as 3.4 leaves it before its first snapshot."""
    return len(disk.runs) == 1 and follows(disk.runs[0].first, 0)
