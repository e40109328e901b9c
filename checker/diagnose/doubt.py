"""The transactions in doubt, and the decision whether a disk may be erased.

An acknowledged transaction is on the disks of a quorum of voters. So a client can have its answer only if the disks
with it, and the missing disks, contain a quorum, or if a server without a vote has it: an observer hears of commits
alone. An election is won by the highest current epoch, then the last zxid. A transaction survives if no quorum is won
by a disk without it.

Rules of this module:

- Both answers hold for one view of all servers. If views differ, or a change of members is pending, the answer is
  the reason alone.
- A server that follows a leader with a quorum has all up to the zxid that it answers; a copy of its disk is older.
- A disk that was not shown may have any transaction or none: it counts for the worse. So does a damaged disk at the
  transactions that it may have had and lost, and the disk of a server that has cut its log back before them.
- A disk may be erased only if the whole disks of the others contain a quorum. Each quorum that acknowledged a
  transaction has one of them, and so has each quorum that elects a leader among them. They must serve before the erased
  server starts.

Source: Junqueira, Reed, Serafini, "Zab", DSN 2011, section IV; `FastLeaderElection.totalOrderPredicate`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import combinations, groupby
from pathlib import Path

from checker.diagnose.evidence import ServerEvidence
from checker.diagnose.messages import LogKind
from checker.diagnose.situation import Situation, listed, servers_text
from checker.recover.bound import LossJudge, Missing
from checker.recover.evidence import Directory, SurvivingDisk, records_of
from checker.recover.histories import DiskClaim, HeldRecord, Histories, Piece
from checker.recover.transactions import described
from refimpl.disk.files import follows
from refimpl.disk.remedies import Damage
from refimpl.disk.survey import DiskSurvey
from spec.quorum import Sid, View
from spec.text import excerpt, required_integer
from spec.txn import epoch_of, zxid_text

TWINS = "two data directories have one id, or one has none"
RESTORED = (
    "the AdminServer has restored a snapshot, and what was acknowledged after that is in no data directory. The missing"
    " input is the newest log file that was moved away before the restore: the servers wrote on into it"
)
MOST_CHANGES = 10
"""The number of operations that are listed of each group of transactions in doubt."""


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
    """The transactions in doubt, in the order of their zxids. `unanswered` is the reason if the
    question has no answer.

    `unseen` are transactions that none of the disks has, and that may have been acknowledged. `differing` has, for each
    pair of servers whose disks have different transactions under one zxid, the first such zxid. `foreign` are the
    servers whose disk shares no transaction with any other one, where two others do.
    """

    groups: tuple[Doubt, ...] = ()
    unseen: tuple[Missing, ...] = ()
    unanswered: str = ""
    differing: Mapping[tuple[Sid, Sid], int] = field(default_factory=dict)
    foreign: frozenset[Sid] = frozenset()


def sides_text(differing: Mapping[tuple[Sid, Sid], int]) -> str:
    """The servers with equal histories, side by side, and the first zxid that differs; or each pair, if none are."""
    sids = sorted({sid for pair in differing for sid in pair})
    sides = {tuple(two for two in sids if tuple(sorted((one, two))) not in differing) for one in sids}
    if sum(map(len, sides)) > len(sids):  # a disk agrees with two that differ
        pairs = (f"{one} and {two} from {zxid_text(zxid)} on" for (one, two), zxid in sorted(differing.items()))
        return f"servers {', '.join(pairs)}"
    groups = " against ".join(map(servers_text, sorted(sides)))
    return f"{groups}, from {zxid_text(min(differing.values()))} on"


@dataclass(frozen=True)
class ComparedDisk:
    """A disk of the evidence, for the comparison with the others.

    `vote` is what decides an election: the current epoch, and the last zxid. A transaction between the ends of one of
    the `spans`, and not among the records, was never part of the history of this disk. Its server serves up to the zxid
    `served` now, and its copy may be older.
    """

    sid: Sid
    claim: DiskClaim
    vote: tuple[int, int]
    spans: tuple[tuple[int, int], ...]
    served: int = 0

    @classmethod
    def of(cls, number: int, disk: SurvivingDisk, sid: Sid, served: int) -> ComparedDisk:
        """The disk whose place among all disks is `number`."""
        survey, claim = disk.survey, disk.claim(number)
        last = survey.reading.last
        epoch = survey.current.value if survey.current.value is not None else epoch_of(last)
        saves = [base.zxid for base in claim.bases if not base.is_empty]
        starts = [max((zxid for zxid in saves if follows(run.first, zxid)), default=run.first) for run in survey.runs]
        spans = tuple((start, run.last) for start, run in zip(starts, survey.runs, strict=True))
        return cls(sid, claim, (epoch, last), spans, served)

    def skips(self, piece: Piece) -> bool:
        """Whether the transactions of a piece that others have were never part of the history of this disk."""
        return any(first < piece.first and piece.last < last for first, last in self.spans)


def doubts(situation: Situation) -> Doubts:
    """The transactions in doubt on the disks that the evidence has."""
    if not situation.with_data:
        return Doubts(unanswered="no data directory was given")
    surviving = [
        SurvivingDisk(Directory(situation.by_sid[sid].place, Path(disk.data_dir), Path(disk.log_dir), sid), disk, sid)
        for sid, disk in situation.with_data.items()
    ]
    served = _served(situation)
    disks = [
        ComparedDisk.of(number, surviving[number], sid, served.get(sid, 0))
        for number, sid in enumerate(situation.with_data)
    ]
    splits = {zxid for disk in disks for zxid in (*disk.claim.snapshots, *(base.zxid for base in disk.claim.bases))}
    changes = NewestChanges(records_of(surviving), splits)
    histories = Histories([disk.claim for disk in disks], changes)
    pieces = histories.pieces
    differing, foreign = _differing(pieces, disks), _foreign(pieces, disks)
    view, reason = _electorate(situation)
    if view is None:
        return Doubts(unanswered=reason, differing=differing, foreign=foreign)
    if differing:
        return Doubts(unanswered="two disks have different histories", differing=differing, foreign=foreign)
    if any(server.log is not None and LogKind.RESTORED in server.log.kinds for server in situation.servers):
        return Doubts(unanswered=RESTORED)
    if situation.has_twins:
        return Doubts(unanswered=TWINS)
    if not (candidates := histories.candidates()):
        return Doubts(unanswered="no disk has a whole history")
    unseen = LossJudge(histories, candidates[0], [view]).bound().missing or ()
    cuts = _cuts(situation)
    in_doubt = (_doubt(piece, disks, view, cuts) for piece in pieces if not _have_all(piece, disks))
    groups = list[Doubt]()
    for _, alike in groupby(in_doubt, lambda doubt: (doubt.having, doubt.lacking, doubt.fate)):
        members = list(alike)
        count = sum(member.count for member in members)
        doubt = replace(members[-1], first=members[0].first, count=count)
        groups.append(replace(doubt, changes=changes.of(doubt)))
    return Doubts(tuple(groups), unseen)


def _electorate(situation: Situation) -> tuple[View | None, str]:
    """The view of every next election; or None, and the reason why it is not known."""
    if situation.common_view is None and len(situation.views) < 2:
        return None, "the files of one server alone do not show who votes"
    if situation.common_view is None or situation.deviants:
        return None, "the servers do not agree on who votes"
    if any(server.next_view is not None for server in situation.servers):
        return None, "a change of members is pending"
    return situation.common_view, ""


def _differing(pieces: Iterable[Piece], disks: Sequence[ComparedDisk]) -> Mapping[tuple[Sid, Sid], int]:
    """For each pair of disks, the first zxid at which one has another transaction, or none and later ones."""
    differing: dict[tuple[Sid, Sid], int] = {}
    for piece in pieces:
        sides = {number: side for side, numbers in enumerate(piece.sides) for number in numbers}
        for one, other in combinations(range(len(disks)), 2):
            if one in sides and other in sides:
                differs = sides[one] != sides[other]
            else:
                lacking = other if one in sides else one
                differs = (one in sides or other in sides) and disks[lacking].skips(piece)
            if differs:
                differing.setdefault((disks[one].sid, disks[other].sid), piece.first)
    return differing


def _foreign(pieces: Iterable[Piece], disks: Sequence[ComparedDisk]) -> frozenset[Sid]:
    """The servers whose disk has no transaction in common with any other one, while two others have one."""
    related = {number for piece in pieces for side in piece.sides if len(side) > 1 for number in side}
    return frozenset(disk.sid for number, disk in enumerate(disks) if number not in related) if related else frozenset()


def _having(piece: Piece, disks: Sequence[ComparedDisk]) -> frozenset[Sid]:
    """The servers whose disk has a piece, in its log or in a snapshot."""
    (holders,) = piece.sides  # the caller has refused histories that differ
    return frozenset(
        disk.sid
        for number, disk in enumerate(disks)
        if number in holders or disk.claim.covered >= piece.first or disk.served >= piece.last
    )


def _have_all(piece: Piece, disks: Sequence[ComparedDisk]) -> bool:
    return len(_having(piece, disks)) == len(disks)


def _served(situation: Situation) -> Mapping[Sid, int]:
    """The zxid up to which each server of a leader with a quorum serves: a copy of its disk may be older."""
    if not situation.has_one_quorum:
        return {}
    answers = {sid: situation.by_sid[sid].answers for sid in situation.serving}
    return {sid: answer.zxid for sid, answer in answers.items() if answer is not None and answer.zxid is not None}


def _cuts(situation: Situation) -> Mapping[Sid, int]:
    """The zxid to which each server has cut its log back: it may have acknowledged later transactions (finding A)."""
    logs = {sid: server.log.kinds for sid, server in situation.by_sid.items() if server.log is not None}
    lines = {sid: kinds[LogKind.TRUNCATED] for sid, kinds in logs.items() if LogKind.TRUNCATED in kinds}
    return {
        sid: min(required_integer(line.values["zxid"], base=16) for line in (cut.first, cut.last))
        for sid, cut in lines.items()
    }


def _doubt(piece: Piece, disks: Sequence[ComparedDisk], view: View, cuts: Mapping[Sid, int]) -> Doubt:
    having = _having(piece, disks)
    lacking = [disk for disk in disks if disk.sid not in having]
    unknown = view.voters - {disk.sid for disk in disks}
    maybe = {
        disk.sid
        for disk in lacking
        if disk.claim.may_have_lost(piece.first) or cuts.get(disk.sid, piece.first) < piece.first
    }
    fate = WriteFate.KEPT
    if not (view.contains_quorum(having | unknown | maybe) or having - view.voters):
        fate = WriteFate.OPEN
    elif any(map(view.contains_quorum, _electors_without(lacking, disks, unknown))):
        fate = WriteFate.LOST
    return Doubt(
        piece.first,
        piece.last,
        piece.count,
        tuple(sorted(having)),
        tuple(sorted(disk.sid for disk in lacking)),
        tuple(sorted(unknown)),
        fate,
    )


def _electors_without(
    lacking: Iterable[ComparedDisk], disks: Iterable[ComparedDisk], unknown: AbstractSet[Sid]
) -> Iterator[AbstractSet[Sid]]:
    """The largest sets of servers whose election is won by a disk without a transaction."""
    yield unknown | {disk.sid for disk in lacking}
    for winner in lacking:
        yield unknown | {disk.sid for disk in disks if disk.vote <= winner.vote}


class NewestChanges:
    """The newest operations of each run of transactions that the same disks have, noted while the records stream.

    A run ends at least where a piece does: `splits` are the zxids of snapshots. No payload is held longer than its run.
    """

    def __init__(self, records: Iterable[tuple[HeldRecord, bytes]], splits: AbstractSet[int]) -> None:
        self.records = records
        self.splits = splits
        self.noted: list[tuple[int, str]] = []

    def __iter__(self) -> Iterator[HeldRecord]:
        """The records without their payloads."""
        run = deque[tuple[int, bytes]](maxlen=MOST_CHANGES)
        before, holders = 0, list[HeldRecord]()
        for zxid, group in groupby(self.records, lambda item: item[0].zxid):
            items = list(group)
            records = [record for record, _ in items]
            is_next = all(record.continues for record in records) and follows(zxid, before)
            if not is_next or before in self.splits or _places(records) != _places(holders):
                self.noted += (_change(*item) for item in run)
                run.clear()
            run.append((zxid, items[0][1]))
            before, holders = zxid, records
            yield from records
        self.noted += (_change(*item) for item in run)

    def of(self, doubt: Doubt) -> tuple[str, ...]:
        """The newest operations of transactions in doubt, none if they are kept."""
        if doubt.fate is WriteFate.KEPT:
            return ()
        return tuple(text for zxid, text in self.noted if doubt.first <= zxid <= doubt.last)[-MOST_CHANGES:]


def _places(records: Iterable[HeldRecord]) -> list[tuple[int, int]]:
    return [(record.disk, record.side) for record in records]


def _change(zxid: int, payload: bytes) -> tuple[int, str]:
    """The zxid and the operation of a transaction, with its paths."""
    change = described(zxid, payload)
    more = [f"and {len(change.paths) - MOST_CHANGES} more"] if len(change.paths) > MOST_CHANGES else []
    return zxid, " ".join((change.kind, *map(excerpt, change.paths[:MOST_CHANGES]), *more))


def erasure(situation: Situation, doubts: Doubts, server: ServerEvidence) -> tuple[bool, str]:
    """Whether the disk of a server may be erased, and the reason."""
    sid = server.sid
    if sid is None:
        return False, "nothing says which server this is"
    view, reason = _electorate(situation)
    if view is None:
        return False, reason
    if situation.has_twins:
        return False, TWINS
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
    missing = view.voters - whole - {sid}
    return False, f"the disks of {listed(missing)} must be shown to be whole: without them there is no quorum"


def _is_whole(server: ServerEvidence) -> bool:
    """Whether a disk has all that was written to it."""
    disk = server.data
    return disk is not None and (disk.damage is None or (disk.damage is Damage.NO_SNAPSHOT and has_whole_log(disk)))


def has_whole_log(disk: DiskSurvey) -> bool:
    """Whether a log has every transaction from the first one on, as 3.4 leaves it before its first snapshot."""
    return len(disk.runs) == 1 and follows(disk.runs[0].first, 0)
