"""The data directories that are left, and the transactions on all of them in one order.

Rules of this module:

- A DIR is a dataDir (with `version-2`), the folder of a server that has one, or a folder of several of these. Two
  folders side by side, one with snapshots alone and one with logs alone, are one server's. `SID=DIR` states the id
  where `myid` is lost.
- Every directory is read twice: once for its survey, and once for its transactions. No payload is kept.
- Contents are compared without the digest of the tree, which a server of another release leaves out.
"""

import os
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import groupby
from pathlib import Path

import msgspec

from checker.recover.histories import Base, DiskClaim, HeldRecord
from checker.user_files import holds
from refimpl.disk.epochs import ACCEPTED, CURRENT
from refimpl.disk.files import VERSION_DIRECTORY, numbered
from refimpl.disk.logreader import PREFIX as LOG
from refimpl.disk.snapshot import PREFIX as SNAPSHOT
from refimpl.disk.survey import MYID, DiskSurvey, SurvivingRecord, survey, surviving_records
from refimpl.jute import JuteError
from refimpl.wire.txn import decode_txn
from spec.quorum import Sid
from spec.text import LONG, integer
from spec.txn import make_zxid

MOST_DISKS = 64
"""The number of directories that are compared; an ensemble has few servers."""
READ = (f"{LOG}.", f"{SNAPSHOT}.", ACCEPTED, CURRENT)
"""The beginnings of the names of files that a survey reads."""
FIRST_ZXIDS = (1, make_zxid(1, 1))
"""The first transactions of a server that runs alone, and of an ensemble."""


class RecoverError(Exception):
    """The directories or options cannot be used; the message says which one, why, and what would be right."""


class Directory(msgspec.Struct, frozen=True):
    """The place of a disk: the name that the user gives it, its dataDir and its dataLogDir, and a stated id."""

    name: str
    data: Path
    logs: Path
    sid: Sid | None = None


class SurvivingDisk(msgspec.Struct, frozen=True):
    """A disk that is left: its place, its survey, and the id of its server, None if it is unknown."""

    directory: Directory
    survey: DiskSurvey
    sid: Sid | None

    @property
    def name(self) -> str:
        """The name of the disk in an answer."""
        return self.directory.name if self.sid is None else f"server {self.sid}"

    def claim(self, number: int) -> DiskClaim:
        """The claims of this disk, whose place among all disks is `number`."""
        survey = self.survey
        bases = [
            Base(save.zxid, number, save.zxid if save.newest is None else save.newest)
            for save in survey.snapshots
            if save.fault is None
        ]
        if survey.runs and survey.runs[0].first in FIRST_ZXIDS and not any(base.zxid == 0 for base in bases):
            bases.insert(0, Base(0, number, 0, is_empty=True))
        return DiskClaim(
            sid=self.sid,
            current=survey.current.value,
            bases=tuple(bases),
            snapshots=(*(save.zxid for save in survey.snapshots), *(zxid for zxid, _ in survey.compressed_snapshots)),
            losses=survey.losses,
        )


def directories_in(names: Sequence[str], log_dirs: Sequence[str] = ()) -> list[Directory]:
    """The data directories that the arguments name, each with its dataLogDir. Raises RecoverError."""
    directories = [directory for name in names for directory in _directories_of(name)]
    if len(directories) > MOST_DISKS:
        raise RecoverError(f"there are {len(directories)} data directories, and the limit is {MOST_DISKS}")
    places = [directory.data.resolve() for directory in directories]
    twice = next((path for number, path in enumerate(places) if path in places[:number]), None)
    if twice is not None:
        raise RecoverError(f"{twice} is named twice; name each data directory once")
    if not log_dirs:
        return directories
    if len(log_dirs) != len(directories):
        raise RecoverError(
            f"--log-dir is given {len(log_dirs)} times for {len(directories)} data directories; give it once for each, "
            "in their order"
        )
    for log_dir in log_dirs:
        if not (Path(log_dir) / VERSION_DIRECTORY).is_dir():
            raise RecoverError(f"{log_dir}: it has no folder {VERSION_DIRECTORY}; name a dataLogDir")
    return [
        msgspec.structs.replace(directory, logs=Path(log_dir))
        for directory, log_dir in zip(directories, log_dirs, strict=True)
    ]


def _directories_of(name: str) -> list[Directory]:
    head, equals, folder = name.partition("=")
    sid = integer(head, *LONG) if equals and not Path(name).exists() else None
    path = Path(name if sid is None else folder)
    if not path.is_dir():
        right = "name a dataDir, or a folder of servers"
        raise RecoverError(f"{path}: {'it is no folder' if path.exists() else 'there is no such folder'}; {right}")
    if path.name == VERSION_DIRECTORY:
        raise RecoverError(f"{path}: it is the folder inside of a dataDir; name the dataDir, {path.parent}")
    try:
        pairs = _pairs_below(path, levels=2)
    except OSError as error:
        raise RecoverError(f"{path}: it cannot be read ({error.strerror})") from None
    if not pairs:
        right = f"name a folder with {VERSION_DIRECTORY}, or a folder of servers that have one"
        raise RecoverError(f"{path}: no data of ZooKeeper is there; {right}")
    if sid is not None and len(pairs) > 1:
        raise RecoverError(f"{name}: {len(pairs)} data directories are there, and one has this id; name that one")
    return [Directory(str(data), data, logs, sid) for data, logs in pairs]


def _pairs_below(folder: Path, levels: int) -> list[tuple[Path, Path]]:
    """The dataDir and dataLogDir of each server in a folder."""
    if (folder / VERSION_DIRECTORY).is_dir():
        return [(folder, folder)]
    children = sorted(path for path in folder.iterdir() if path.is_dir())
    direct = [path for path in children if (path / VERSION_DIRECTORY).is_dir()]
    if pair := paired(direct):
        return [pair]
    return [pair for path in children if levels for pair in _pairs_below(path, levels - 1)]


def paired(folders: Sequence[Path]) -> tuple[Path, Path] | None:
    """The dataDir and the dataLogDir if these are two folders of one server: one of them alone is for logs."""
    data = [path for path in folders if _has_files(path, SNAPSHOT) or holds((path / MYID).exists)]
    if len(folders) != 2 or len(data) != 1 or _has_files(data[0], LOG):
        return None
    return data[0], next(path for path in folders if path != data[0])


def _has_files(data_dir: Path, prefix: str) -> bool:
    try:
        return bool(numbered(data_dir / VERSION_DIRECTORY, prefix))
    except OSError:
        return False


def hidden(*homes: Path) -> str:
    """Why the data in these directories is not seen from here; empty if it is. Data that is hidden is not lost."""
    for home in dict.fromkeys(homes):
        folder = home / VERSION_DIRECTORY
        if not holds(folder.is_dir):
            if os.path.lexists(folder) or not os.access(home, os.X_OK):
                return f"{folder}: it is no folder that can be read here"
            continue
        if not os.access(folder, os.R_OK | os.X_OK):
            return f"{folder}: it cannot be read here"
        files = (path for path in sorted(folder.iterdir()) if path.name.startswith(READ))
        if (path := next((path for path in files if not os.access(path, os.R_OK)), None)) is not None:
            return f"{path}: it cannot be read here"
    return ""


def disks_in(directories: Sequence[Directory]) -> list[SurvivingDisk]:
    """Survey the directories. Raises RecoverError if two of them have the same id."""
    disks = []
    for directory in directories:
        if reason := hidden(directory.data, directory.logs):
            raise RecoverError(f"{reason}; run as a user who can read it, or copy it, so that nothing in it is lost")
        said = survey(directory.data, directory.logs)
        disks.append(SurvivingDisk(directory, said, said.myid.value if directory.sid is None else directory.sid))
    for number, disk in enumerate(disks):
        same = next((other for other in disks[:number] if disk.sid is not None and other.sid == disk.sid), None)
        if same is not None:
            raise RecoverError(
                f"{same.directory.name} and {disk.directory.name} both have the id {disk.sid} in {MYID}; name one of "
                f"them, or state the ids: {disk.sid}={disk.directory.name}"
            )
    return disks


def held_records(disks: Sequence[SurvivingDisk]) -> Iterator[HeldRecord]:
    """Yield the records of all disks in the order of their zxids, with equal sides for equal contents."""
    for held, _ in records_of(disks):
        yield held


def records_of(disks: Sequence[SurvivingDisk]) -> Iterator[tuple[HeldRecord, bytes]]:
    """Yield the records of all disks in the order of their zxids, each with its payload."""
    streams = [_stream(number, disk) for number, disk in enumerate(disks)]
    ordered = merge(*streams, key=lambda item: (item[1].zxid, item[0]))
    for zxid, group in groupby(ordered, key=lambda item: item[1].zxid):
        contents: list[bytes] = []
        for number, record in group:
            side = next((place for place, other in enumerate(contents) if _equal(other, record.payload)), None)
            if side is None:
                side = len(contents)
                contents.append(record.payload)
            yield HeldRecord(zxid, number, side, record.continues), record.payload


def _stream(number: int, disk: SurvivingDisk) -> Iterator[tuple[int, SurvivingRecord]]:
    for record in surviving_records(disk.directory.logs):
        yield number, record


def _equal(one: bytes, other: bytes) -> bool:
    """Whether two payloads are the same transaction, with or without the digest of the tree."""
    if one == other:
        return True
    try:
        changes = [msgspec.structs.replace(decode_txn(payload)[1], digest=None) for payload in (one, other)]
    except JuteError:
        return False
    return changes[0] == changes[1]
