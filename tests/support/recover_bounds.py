"""The bound of `recover` for disks of the model, in the model's own terms."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from checker.recover.bound import LossJudge, Standing
from checker.recover.histories import Base, DiskClaim, HeldRecord, Histories
from refimpl.disk.survey import Loss
from spec.quorum import View
from spec.txn import make_zxid
from tests.support.zab_disks import Log, Txn


class Shown(NamedTuple):
    """The rest of a disk: its epoch, its records, and its losses, each behind one write and before another."""

    current: int | None
    log: Log
    losses: tuple[tuple[Txn, Txn | None], ...] = ()


class Answered(NamedTuple):
    """The kept history, the transactions on disks that may have been acknowledged, and whether unknown ones may."""

    kept: Log
    possible: frozenset[Txn]
    unknown: bool


def answered(shown: Mapping[int, Shown], view: View) -> Answered:
    """The answer of the program for these disks."""
    claims = [
        DiskClaim(
            sid=server,
            current=disk.current,
            bases=(Base(0, number, 0),),
            snapshots=(0,),
            losses=tuple(
                Loss(make_zxid(*after), None if before is None else make_zxid(*before)) for after, before in disk.losses
            ),
        )
        for number, (server, disk) in enumerate(shown.items())
    ]
    records = sorted(record for number, disk in enumerate(shown.values()) for record in _records(number, disk))
    histories = Histories(claims, records)
    history = histories.candidates()[0]
    bound = LossJudge(histories, history, (view,)).bound()
    zxids = {record.zxid for record in records}
    kept = {zxid for place in history.all_places for zxid in _zxids(histories, place.piece, zxids)}
    possible = {
        zxid
        for unkept in bound.unkept
        if unkept.standing is Standing.POSSIBLE
        for zxid in zxids
        if unkept.first <= zxid <= unkept.last
    }
    return Answered(tuple(map(_txn, sorted(kept))), frozenset(map(_txn, possible)), bool(bound.missing))


def _records(number: int, disk: Shown) -> Iterable[HeldRecord]:
    gaps = {before for _, before in disk.losses}
    for place, txn in enumerate(disk.log):
        yield HeldRecord(make_zxid(*txn), number, 0, txn not in gaps and (place > 0 or txn == (1, 1) or txn[1] == 1))


def _zxids(histories: Histories, number: int, zxids: Iterable[int]) -> Iterable[int]:
    piece = histories.pieces[number]
    return (zxid for zxid in zxids if piece.first <= zxid <= piece.last)


def _txn(zxid: int) -> Txn:
    return zxid >> 32, zxid & 0xFFFFFFFF
