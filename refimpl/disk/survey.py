"""The survey of a data directory: the contents of its files in any state.

Rules this module keeps:

- Damage is a part of the answer. Only a failure of this program or too little memory ends a survey.
- The directory is read and never changed. No file in it is followed except for a regular file.
- Zxids stream: transactions are counted, and neither kept nor decoded, except for configurations of the ensemble. The
  tree of one snapshot at a time is in memory.
- The readers are those of the node (`logreader`, `snapshot`, `epochs`), so a file is whole here exactly if it is there.

The order of transactions is that of their files. A record whose zxid is not above all before it is not counted.

Source: `FileTxnSnapLog`, `QuorumPeer.loadDataBase`, `QuorumPeerConfig.setupMyId`.
"""

import enum
import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec

from refimpl.disk import epochs, snapshot
from refimpl.disk.body import DamagedSnapshotError
from refimpl.disk.files import TEMPORARY, VERSION_DIRECTORY, DataError, follows, numbered
from refimpl.disk.logreader import PREFIX as LOG
from refimpl.disk.logreader import FileScan, LogEnd, Record, segments
from refimpl.disk.remedies import Damage
from refimpl.jute import JuteError
from refimpl.wire.txn import HEADER, decode_txn
from spec.config.dynamic_files import LONGEST_CONFIGURATION
from spec.text import LONG, excerpt, integer
from spec.tree.paths import CONFIG
from spec.tree.txns import TXN_TYPE_OF, ReconfigTxn
from spec.txn import epoch_of

MYID = "myid"
LARGEST_FILE = 16 << 30
"""The largest log or snapshot that is read, in bytes: a server begins a new log after 4 GiB at the latest."""
CONFIGURATIONS = 8
"""The number of the newest configurations that a survey holds."""
MOST_FILES = 4096
"""The number of the newest files of a kind that are read."""
_RECONFIG = TXN_TYPE_OF[ReconfigTxn]
_DYNAMIC = re.compile(r".{1,128}\.dynamic\.(?:([0-9a-f]{1,16})|next)", re.DOTALL)


class NumberFile(msgspec.Struct, frozen=True):
    """A file with one number: `myid`, `acceptedEpoch` or `currentEpoch`.

    Without `value` and `fault` the file is missing. `unfinished` is the number in its `.tmp`, which a crash left
    before the rename; `has_unfinished` if there is such a file.
    """

    name: str
    value: int | None = None
    fault: str | None = None
    unfinished: int | None = None
    has_unfinished: bool = False

    @property
    def is_absent(self) -> bool:
        """Whether the file is missing."""
        return self.value is None and self.fault is None


class SnapshotSurvey(msgspec.Struct, frozen=True):
    """A snapshot: the zxid in its name, and its fault; None if it is whole.

    `newest` is the newest transaction that it may hold, None if unknown; `znodes` is the number of znodes.
    """

    name: str
    zxid: int
    fault: str | None = None
    newest: int | None = None
    znodes: int = 0


class EndKind(enum.Enum):
    """The end of a log file."""

    WHOLE = "whole"
    TORN = "torn: a record that a crash cut short, which was never synced"
    CUT = "cut: other bytes follow the last record, and any number of records may be lost there"
    EMPTY = "empty: it has no record, and the one in its name may be lost"
    DAMAGED = "damaged: not all of its records can be read"


LOSING = frozenset({EndKind.CUT, EndKind.DAMAGED})
"""The ends of files that have lost records."""
OPEN = LOSING | {EndKind.EMPTY}
"""The ends of a last file behind which records may be lost."""


class LogSurvey(msgspec.Struct, frozen=True):
    """A log file: the zxid in its name, those of its first and last good record (0 without any), and their number.

    `end` is the first fault of the file, and `offset` its place. `recovers` is the place of the next good record behind
    it, None if there is none; `tail` is then the end behind the last good record. All good records count.
    """

    name: str
    named: int
    first: int = 0
    last: int = 0
    records: int = 0
    end: EndKind = EndKind.WHOLE
    offset: int = 0
    fault: str | None = None
    recovers: int | None = None
    tail: EndKind = EndKind.WHOLE


class Run(msgspec.Struct, frozen=True):
    """Transactions of a log without a gap, from `first` to `last`."""

    first: int
    last: int
    records: int


class Gap(msgspec.Struct, frozen=True):
    """A place in the log where transactions are missing, or may be: behind `after`, and before `before`.

    The number of those missing is known within an epoch (`missing`), and else None.
    """

    after: int
    before: int

    @property
    def missing(self) -> int | None:
        """The number of missing transactions, None if the epoch changes meanwhile."""
        return self.before - self.after - 1 if epoch_of(self.before) == epoch_of(self.after) else None


class Loss(msgspec.Struct, frozen=True):
    """Transactions that a disk may have had and lost: those behind `after`, up to the one before `before`.

    Without `before` it is the end of the log, and any number may be lost.
    """

    after: int
    before: int | None

    def has(self, zxid: int) -> bool:
        """Whether this transaction may be lost here."""
        return self.after < zxid and (self.before is None or zxid < self.before)


class Configuration(msgspec.Struct, frozen=True):
    """A configuration of the ensemble in the data: its text, and the zxid at which a file or a record has it."""

    zxid: int
    text: str
    place: str


class DynamicFile(msgspec.Struct, frozen=True):
    """A dynamic file: the version in its name (None for `.next`), and its text or its fault."""

    name: str
    version: int | None
    text: str | None = None
    fault: str | None = None


class Reading(msgspec.Struct, frozen=True):
    """The reading of a server that starts: its newest whole snapshot, and the transactions that continue it.

    `snapshot` is None if there is no whole one; the log then counts only if it begins with the first transaction.
    `is_whole`: it leads to the end of the log.
    """

    snapshot: int | None
    last: int
    is_whole: bool


class DiskSurvey(msgspec.Struct, frozen=True):
    """All that a data directory says. `faults` are those of the directory itself, one text each."""

    data_dir: str
    log_dir: str
    faults: tuple[str, ...]
    myid: NumberFile
    accepted: NumberFile
    current: NumberFile
    snapshots: tuple[SnapshotSurvey, ...]
    unfinished_snapshots: tuple[str, ...]
    compressed_snapshots: tuple[tuple[int, str], ...]
    logs: tuple[LogSurvey, ...]
    runs: tuple[Run, ...]
    configurations: tuple[Configuration, ...]
    dynamic_files: tuple[DynamicFile, ...]

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """The gaps between the runs of the log, and between the newest whole snapshot and the log that continues it."""
        between = [Gap(one.last, other.first) for one, other in pairwise(self.runs)]
        base = self.newest_snapshot
        if base is not None:
            later = next((run for run in self.runs if run.last > base), None)
            if later is not None and later.first > base and not follows(later.first, base):
                between = [gap for gap in between if gap.before != later.first] + [Gap(base, later.first)]
        return tuple(sorted(between, key=lambda gap: gap.before))

    @property
    def losses(self) -> tuple[Loss, ...]:
        """The transactions above the newest whole snapshot that this disk may have lost, in order.

        An empty directory may have lost everything.
        """
        base = self.newest_snapshot or 0
        last, losses = base, list[Loss]()
        for run in self.runs:
            if run.last <= base:
                continue
            # The first transaction of a later epoch begins a run here only behind damage, or without any before it.
            is_first = run is self.runs[0] and follows(run.first, base)
            if run.first > base and not (last == base and (is_first or run.first == base + 1)):
                losses.append(Loss(last, run.first))
            last = run.last
        if self.is_empty or (self.logs and self.logs[-1].tail in OPEN):
            return (*losses, Loss(last, None))
        # A snapshot that cannot be read had all transactions up to its zxid.
        unread = [save.zxid for save in self.snapshots if save.fault is not None]
        unread += [zxid for zxid, _ in self.compressed_snapshots]
        newest = max(unread, default=0)
        return (*losses, Loss(last, newest + 1)) if newest > last else tuple(losses)

    @property
    def open_gaps(self) -> tuple[Gap, ...]:
        """The gaps where transactions may be lost.

        A snapshot of the leader covers the gap before it, and the log continues that snapshot.
        """
        ends = {loss.before for loss in self.losses}
        return tuple(gap for gap in self.gaps if gap.before in ends)

    @property
    def newest_snapshot(self) -> int | None:
        """The zxid of the newest whole snapshot."""
        return max((save.zxid for save in self.snapshots if save.fault is None), default=None)

    @property
    def last_zxid(self) -> int:
        """The highest zxid of a record or of a whole snapshot, 0 without any."""
        return max([0, *(run.last for run in self.runs), self.newest_snapshot or 0])

    @property
    def reading(self) -> Reading:
        """The part that a server reads."""
        base = self.newest_snapshot
        last = base or 0
        for run in self.runs:
            if run.last > last and (run.first <= last or follows(run.first, last)):
                last = run.last
            elif run.last > last:
                break
        return Reading(base, last, last == self.last_zxid and self.damage is None)

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a snapshot nor a transaction, whole or damaged."""
        return not (self.snapshots or self.logs or self.compressed_snapshots)

    @property
    def is_of_3_4(self) -> bool:
        """Whether this may be a directory of ZooKeeper 3.4: transactions from the first one on, and nothing else."""
        bare = (
            not self.snapshots and not self.compressed_snapshots and self.accepted.is_absent and self.current.is_absent
        )
        return bare and bool(self.runs) and follows(self.runs[0].first, 0)

    @property
    def damage(self) -> Damage | None:
        """The worst damage; None if a server starts on this directory with all that was written to it."""
        if not self.snapshots and self.logs:
            return Damage.NO_SNAPSHOT
        if self.snapshots and self.newest_snapshot is None:
            return Damage.SNAPSHOT
        is_unborn = bool(self.logs) and self.logs[-1].tail is EndKind.EMPTY
        is_short = any(loss.before is not None or not is_unborn for loss in self.losses if not self.is_empty)
        if is_short and self.last_zxid < max((save.zxid for save in self.snapshots), default=0):
            return Damage.SNAPSHOT
        # A server reads from the last file that begins at its snapshot or before.
        base = self.newest_snapshot or 0
        begin = max((place for place, log in enumerate(self.logs) if log.named <= base + 1), default=0)
        if is_short or any(log.end in LOSING for log in self.logs[begin:]):
            return Damage.RECORDS
        promises = (self.accepted, self.current)
        least = max(self.current.value or 0, epoch_of(self.last_zxid))
        forgotten = self.accepted.value is not None and self.accepted.value < least
        return Damage.PROMISE if forgotten or any(file.fault for file in promises) else None


class SurvivingRecord(NamedTuple):
    """A record that can be read: its zxid, its payload, and the place of its file among the files of the log.

    `continues`: nothing is missing between it and the record before it, as far as this disk shows.
    """

    zxid: int
    payload: bytes
    file: int
    continues: bool


def survey(data_dir: Path, log_dir: Path | None = None) -> DiskSurvey:
    """Read a dataDir, and a dataLogDir if it is another one; the folders that have `myid` and `version-2`."""
    home = data_dir if log_dir is None else log_dir
    snapshots, logs = data_dir / VERSION_DIRECTORY, home / VERSION_DIRECTORY
    faults = [
        f"{directory}: {'it is no directory' if directory.exists() else 'there is no such directory'}"
        for directory in dict.fromkeys((snapshots, logs))
        if not directory.is_dir()
    ]
    saves, configurations = _snapshots(snapshots, faults)
    files, runs = _logs(logs, configurations, faults)
    return DiskSurvey(
        data_dir=str(data_dir),
        log_dir=str(home),
        faults=tuple(faults),
        myid=_myid(data_dir / MYID),
        accepted=_epoch(snapshots / epochs.ACCEPTED),
        current=_epoch(snapshots / epochs.CURRENT),
        snapshots=tuple(saves),
        unfinished_snapshots=_names(
            snapshots, re.compile(rf"{snapshot.PREFIX}\.[0-9a-f]{{1,16}}{re.escape(TEMPORARY)}")
        ),
        compressed_snapshots=_compressed(snapshots),
        logs=tuple(files),
        runs=tuple(runs),
        configurations=tuple(sorted(configurations, key=lambda found: found.zxid)[-CONFIGURATIONS:]),
        dynamic_files=tuple(_dynamic_files(data_dir)),
    )


def surviving_records(log_dir: Path) -> Iterator[SurvivingRecord]:
    """Yield each readable record of a log, with rising zxids, across damage and gaps.

    `log_dir` is the folder that has `version-2`.
    """
    return _surviving(_numbered(log_dir / VERSION_DIRECTORY, LOG, []), {})


def _surviving(paths: list[tuple[int, Path]], ends: dict[int, list[tuple[int, LogEnd]]]) -> Iterator[SurvivingRecord]:
    """Yield the records, and note for each file the ends of its segments, each with the number of records before it."""
    last, is_lost = 0, False
    for place, (first, path) in enumerate(paths):
        following = paths[place + 1][0] if place + 1 < len(paths) else None
        count, file_ends = 0, ends.setdefault(place, [])
        for item in _scanned(path, first):
            if isinstance(item, LogEnd):
                file_ends.append((count, item))
                is_lost = is_lost or _end_kind(item, following) in LOSING
                continue
            count += 1
            zxid = item.zxid
            if zxid <= last:
                continue
            yield SurvivingRecord(zxid, item.payload, place, zxid == last + 1 or (follows(zxid, last) and not is_lost))
            last, is_lost = zxid, False


def _scanned(path: Path, first: int) -> Iterator[Record | LogEnd]:
    """Yield the good records of a file, and the end of each of its segments. A failure to read is an end, too."""
    unread = _why_unread(path)
    if unread is not None:
        yield LogEnd(0, 0, unread, foreign=True)
        return
    scan = FileScan(path, first)
    try:
        for scan in segments(path, first):
            yield from scan.good_records()
            yield scan.end
    except OSError as error:
        yield LogEnd(scan.end.zxid, scan.end.offset, f"it cannot be read ({error.strerror})", foreign=True)


def _logs(directory: Path, configurations: list[Configuration], faults: list[str]) -> tuple[list[LogSurvey], list[Run]]:
    paths, runs = _numbered(directory, LOG, faults), list[Run]()
    ends, spans = dict[int, list[tuple[int, LogEnd]]](), dict[int, tuple[int, int]]()
    for record in _surviving(paths, ends):
        zxid = record.zxid
        spans[record.file] = (spans.get(record.file, (zxid, 0))[0], zxid)
        if runs and record.continues:
            runs[-1] = Run(runs[-1].first, zxid, runs[-1].records + 1)
        else:
            runs.append(Run(zxid, zxid, 1))
        _note_configuration(configurations, record, paths[record.file][1].name)
    files = []
    for place, (number, path) in enumerate(paths):
        following = paths[place + 1][0] if place + 1 < len(paths) else None
        count, tail = ends[place][-1]
        worst = next((end for _, end in ends[place] if end.fault is not None), tail)
        kinds = (_end_kind(worst, following), _end_kind(tail, following))
        first, last = spans.get(place, (0, 0))
        files.append(
            LogSurvey(
                path.name, number, first, last, count, kinds[0], worst.offset, worst.fault, worst.recovers, kinds[1]
            )
        )
    return files, runs


def _end_kind(end: LogEnd, following: int | None) -> EndKind:
    """The end of a file, by its first fault. If the next file begins with the next zxid, nothing is missing."""
    if end.fault is None:
        return EndKind.WHOLE
    if end.recovers is not None or end.foreign:
        return EndKind.DAMAGED
    if end.torn or following == end.zxid + 1:
        return EndKind.TORN
    return EndKind.CUT if end.zxid or following is not None else EndKind.EMPTY


def _note_configuration(configurations: list[Configuration], record: SurvivingRecord, file: str) -> None:
    if HEADER.unpack_from(record.payload)[-1] != _RECONFIG:
        return
    try:
        change = decode_txn(record.payload)[1].record
    except JuteError:
        return
    assert isinstance(change, ReconfigTxn)
    _add_configuration(configurations, record.zxid, change.data, file)


def _add_configuration(configurations: list[Configuration], zxid: int, data: bytes | None, place: str) -> None:
    if data and len(data) <= LONGEST_CONFIGURATION:
        configurations.append(Configuration(zxid, data.decode("utf-8", "replace"), place))
        configurations.sort(key=lambda configuration: configuration.zxid)
        del configurations[:-CONFIGURATIONS]


def _snapshots(directory: Path, faults: list[str]) -> tuple[list[SnapshotSurvey], list[Configuration]]:
    saves, configurations = list[SnapshotSurvey](), list[Configuration]()
    for zxid, path in _numbered(directory, snapshot.PREFIX, faults):
        unread = _why_unread(path)
        if unread is not None:
            saves.append(SnapshotSurvey(path.name, zxid, unread))
            continue
        try:
            save = snapshot.read(path, zxid)
        except (DamagedSnapshotError, OSError) as error:
            fault = str(error).removeprefix(f"{path}: ")
            saves.append(SnapshotSurvey(path.name, zxid, fault))
            continue
        saves.append(SnapshotSurvey(path.name, zxid, None, snapshot.newest_in(save, zxid), len(save.tree)))
        znode = save.tree.node(CONFIG)
        if znode is not None:
            _add_configuration(configurations, zxid, znode.data, path.name)
        del save  # before the next one is read
    return saves, configurations


def _numbered(directory: Path, prefix: str, faults: list[str]) -> list[tuple[int, Path]]:
    try:
        files = numbered(directory, prefix)
    except OSError as error:
        faults.append(f"{directory}: it cannot be read ({error.strerror})")
        return []
    if len(files) > MOST_FILES:
        faults.append(f"{directory}: it has {len(files):,} files {prefix}.*, and the newest {MOST_FILES:,} are read")
    return files[-MOST_FILES:]


def _why_unread(path: Path) -> str | None:
    """Why a file is not opened; a pipe may wait for ever."""
    try:
        if not path.is_file():
            return "it is no regular file"
        size = path.stat().st_size
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    return f"it has {size:,} bytes, and the limit is {LARGEST_FILE:,}" if size > LARGEST_FILE else None


def _epoch(path: Path) -> NumberFile:
    unfinished = path.with_name(path.name + TEMPORARY)
    value, fault = _epoch_in(path)
    return NumberFile(path.name, value, fault, _epoch_in(unfinished)[0], os.access(unfinished, os.F_OK))


def _epoch_in(path: Path) -> tuple[int | None, str | None]:
    try:
        if path.exists() and not path.is_file():
            return None, "it is no regular file"
        return epochs.read(path), None
    except DataError as error:
        return None, error.fault.removeprefix(f"{path}: ")
    except OSError as error:
        return None, f"it cannot be read ({error.strerror})"


def _myid(path: Path) -> NumberFile:
    text, fault = _text(path, 64)
    if text is None:
        return NumberFile(MYID, fault=fault)
    line = text.split("\n")[0].rstrip("\r")
    sid = integer(line, *LONG)
    return NumberFile(MYID, sid, None if sid is not None else f"{excerpt(line)!r} is no id of a server")


def _text(path: Path, longest: int) -> tuple[str | None, str | None]:
    """The beginning of a file, or its fault; neither if the file is missing."""
    try:
        if not path.exists():
            return None, None
        if not path.is_file():
            return None, "it is no regular file"
        with path.open("rb") as file:
            return file.read(longest).decode("utf-8", "replace"), None
    except OSError as error:
        return None, f"it cannot be read ({error.strerror})"


def _compressed(directory: Path) -> tuple[tuple[int, str], ...]:
    try:
        return tuple((zxid, path.name) for zxid, path in snapshot.compressed(directory))
    except OSError:
        return ()


def _dynamic_files(data_dir: Path) -> Iterator[DynamicFile]:
    """The dynamic files in dataDir, and beside it if its zoo.cfg is there, too."""
    folders = [data_dir, *([data_dir.parent] if (data_dir.parent / "zoo.cfg").is_file() else [])]
    for folder in folders:
        for name in _names(folder, _DYNAMIC):
            match = _DYNAMIC.fullmatch(name)
            version = None if match is None or match[1] is None else integer(match[1], 0, LONG[1], base=16)
            text, fault = _text(folder / name, LONGEST_CONFIGURATION)
            yield DynamicFile(str(folder / name), version, text, fault)


def _names(directory: Path, pattern: re.Pattern[str]) -> tuple[str, ...]:
    try:
        names = sorted(path.name for path in directory.iterdir() if pattern.fullmatch(path.name))
    except OSError:
        return ()
    return tuple(names[-MOST_FILES:])
