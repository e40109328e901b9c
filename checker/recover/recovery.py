"""The recovery: the kept history, the bound of the loss, the transactions in doubt, and the tree.

Rules of this module:

- The history of Zab's rule is kept, or the best one with the disk that the operator has chosen.
- A choice is needed if writes that may have been acknowledged are not kept, and another history has them.
- The new epochs are the highest epoch that anything on a surviving disk names. The next election makes a higher one,
  so its zxids are above all that clients have seen from these disks.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from checker.recover.bound import NEVER, LossBound, LossJudge, Unkept
from checker.recover.electorate import Electorate
from checker.recover.evidence import RecoverError, SurvivingDisk, held_records, records_of
from checker.recover.histories import DiskHistory, Histories
from checker.recover.transactions import Described, described
from refimpl.disk import snapshot
from refimpl.disk.body import DamagedSnapshotError
from refimpl.disk.epochs import HIGHEST
from refimpl.jute import JuteError
from refimpl.tree import Tree
from refimpl.wire.txn import decode_txn
from spec.quorum import Sid
from spec.tree.apply import apply
from spec.txn import epoch_of

MOST_LISTED = 10_000
"""The number of transactions of one kind that an answer lists; all are counted."""


class Doubtful(msgspec.Struct, frozen=True):
    """Transactions outside the kept history, and their operations; `writes` is the number of changes of the tree."""

    unkept: Unkept
    transactions: tuple[Described, ...]
    writes: int


class Recovery(msgspec.Struct, frozen=True):
    """The answer of the analysis.

    `rivals` are kept transactions at or behind the first place where a surviving disk has others.
    """

    disks: tuple[SurvivingDisk, ...]
    electorate: Electorate
    lost: frozenset[Sid]
    history: DiskHistory
    holders: frozenset[int]
    bound: LossBound
    doubtful: tuple[Doubtful, ...]
    rivals: tuple[Described, ...]
    needs_choice: bool
    epoch: int
    tree: Tree
    notes: tuple[str, ...]

    @property
    def servers(self) -> tuple[Sid | None, ...]:
        """The servers that get a new directory: all members, or those of the remaining disks without them."""
        members = self.electorate.members
        if members and not self.electorate.runs_alone:
            return members
        return tuple(disk.sid for disk in self.disks)


def recovery_of(disks: Sequence[SurvivingDisk], electorate: Electorate, chosen: Path | None = None) -> Recovery:
    """Analyse the disks that are left. Raises RecoverError if no history can be read at all."""
    claims = [disk.claim(number) for number, disk in enumerate(disks)]
    if electorate.runs_alone:
        claims = [msgspec.structs.replace(claim, sid=min(electorate.members)) for claim in claims]
    histories = Histories(claims, held_records(disks))
    history = _history(histories, disks, chosen)
    judge = LossJudge(histories, history, electorate.views)
    bound = judge.bound()
    doubtful, rivals, tree, notes = _contents(disks, histories, history, bound)
    is_open = any(
        unkept.unkept.standing not in NEVER and unkept.unkept.reachable and unkept.writes for unkept in doubtful
    )
    return Recovery(
        disks=tuple(disks),
        electorate=electorate,
        lost=judge.lost,
        history=history,
        holders=histories.holders(history),
        bound=bound,
        doubtful=doubtful,
        rivals=rivals,
        needs_choice=is_open and chosen is None,
        epoch=_epoch(disks),
        tree=tree,
        notes=notes,
    )


def _history(histories: Histories, disks: Sequence[SurvivingDisk], chosen: Path | None) -> DiskHistory:
    if chosen is None:
        candidates = histories.candidates()
        if not candidates:
            raise RecoverError(
                "nothing can be kept: no directory has a whole snapshot, or a log from the first transaction on"
            )
        return candidates[0]
    place = chosen.resolve()
    folders = {number: disk.directory.data.resolve() for number, disk in enumerate(disks)}
    numbers = [number for number, folder in folders.items() if place in (folder, folder.parent)]
    if len(numbers) != 1:
        names = ", ".join(disk.directory.name for disk in disks)
        raise RecoverError(f"--keep {chosen}: it is none of the directories; name one of {names}")
    history = histories.kept_with(numbers[0])
    if history is None:
        raise RecoverError(f"--keep {chosen}: nothing of it can be kept, since it has no whole snapshot to begin with")
    return history


def _epoch(disks: Sequence[SurvivingDisk]) -> int:
    """The highest epoch that a surviving disk names in any way."""
    epochs = [0]
    for disk in disks:
        survey = disk.survey
        for file in (survey.accepted, survey.current):
            epochs += [number for number in (file.value, file.unfinished) if number is not None]
        zxids = [survey.last_zxid, *(log.named for log in survey.logs), *(save.zxid for save in survey.snapshots)]
        epochs += [epoch_of(zxid) for zxid in zxids]
    epoch = max(epoch for epoch in epochs if epoch <= HIGHEST)
    if epoch == HIGHEST:
        raise RecoverError(f"a surviving disk names epoch {HIGHEST}, the last one: no server can begin a later one")
    return epoch


def _contents(
    disks: Sequence[SurvivingDisk], histories: Histories, history: DiskHistory, bound: LossBound
) -> tuple[tuple[Doubtful, ...], tuple[Described, ...], Tree, tuple[str, ...]]:
    """Read the transactions again: apply those that are kept, and describe those in doubt."""
    tree, notes = _base_tree(disks, history)
    pieces = [(histories.pieces[place.piece], histories.side(place)) for place in history.places]
    fork = min((unkept.first for unkept in bound.unkept), default=1 << 64)
    lists: list[list[Described]] = [[] for _ in bound.unkept]
    writes, rivals = [0] * len(bound.unkept), list[Described]()
    current, last = 0, history.base.zxid
    for record, payload in records_of(disks):
        while current < len(pieces) and pieces[current][0].last < record.zxid:
            current += 1
        if current < len(pieces) and pieces[current][0].first <= record.zxid and record.disk in pieces[current][1]:
            if record.zxid > last:
                last = record.zxid
                _apply(tree, record.zxid, payload, disks[record.disk])
                if record.zxid >= fork and len(rivals) < MOST_LISTED:
                    rivals.append(described(record.zxid, payload))
            continue
        for number, unkept in enumerate(bound.unkept):
            if unkept.first <= record.zxid <= unkept.last and record.disk == min(unkept.disks):
                line = described(record.zxid, payload)
                writes[number] += line.changes
                if len(lists[number]) < MOST_LISTED:
                    lists[number].append(line)
    doubtful = tuple(map(Doubtful, bound.unkept, map(tuple, lists), writes))
    return doubtful, tuple(rivals), tree, notes


def _base_tree(disks: Sequence[SurvivingDisk], history: DiskHistory) -> tuple[Tree, tuple[str, ...]]:
    base = history.base
    disk = disks[base.disk]
    if base.is_empty:
        note = f"{disk.name} has no snapshot; its log begins with the first transaction, and is taken for all of them"
        return Tree(), (note,)
    name = f"{snapshot.PREFIX}.{base.zxid:x}"
    path = disk.directory.data / "version-2" / name
    try:
        tree = snapshot.read(path, base.zxid).tree
    except (DamagedSnapshotError, OSError) as error:
        raise RecoverError(f"{path}: it has changed since it was read the first time ({error})") from None
    if base.newest > history.end:
        note = (
            f"{name} of {disk.name} was written while the tree changed, and may have parts of the transactions up to "
            f"0x{base.newest:x}, which no log has any more"
        )
        return tree, (note,)
    return tree, ()


def _apply(tree: Tree, zxid: int, payload: bytes, disk: SurvivingDisk) -> None:
    try:
        change = decode_txn(payload)[1]
    except JuteError as error:
        raise RecoverError(
            f"{disk.directory.logs}: transaction 0x{zxid:x} cannot be understood ({error}), so those behind it cannot "
            "be applied; name only directories without it, or use a version that knows the release that wrote it"
        ) from None
    tree.carry_out(apply(tree, zxid, change).operations)
