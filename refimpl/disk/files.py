"""The common part of the files of a data directory: their names, and durable changes to them.

Rules this module keeps:

- A log is `log.<zxid>`, a snapshot `snapshot.<zxid>`, the zxid in hexadecimal. Files with other names are left alone.
  ZooKeeper also accepts `log.5.bak` as a log that begins with 5, and would read it in addition to `log.5`.
- A file is replaced as follows: it is written under another name, synced and renamed, and the directory is synced.
  After a crash either the old or the new one exists, whole. ZooKeeper does not sync the directory.
- Errors are OSErrors of the operating system, or a `DataError` that names the file, the fault and the expected state.

Source: `Util.getZxidFromName`, `Util.sortDataDir`, `AtomicFileOutputStream`, `FileTxnSnapLog`.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from refimpl.disk.remedies import Damage, Others, remedy
from refimpl.system import system
from spec.text import required_integer
from spec.txn import counter_of, epoch_of

VERSION_DIRECTORY = "version-2"
TEMPORARY = ".tmp"


class DataError(Exception):
    """The data directory is unusable in its present state; the message names the file, the fault and the remedy.

    `fault` is the message without its remedy. A directory that is damaged has a `damage`, which decides the remedy.
    """

    def __init__(self, fault: str, damage: Damage | None = None, others: Others = Others.UNKNOWN) -> None:
        super().__init__(fault if damage is None else f"{fault}; {remedy(damage, others)}")
        self.fault, self.damage = fault, damage


class TruncationError(DataError):
    """The disk cannot go back to a zxid. `below_snapshot`: its newest snapshot has later transactions.

    A leader may send a snapshot with transactions that are not committed, and the next leader may lack them.
    """

    def __init__(self, fault: str, damage: Damage, *, below_snapshot: bool) -> None:
        super().__init__(fault, damage)
        self.below_snapshot = below_snapshot


def follows(zxid: int, before: int) -> bool:
    """Whether a transaction may directly follow another one.

    Each transaction of an epoch takes the next zxid, failed requests too, and each epoch starts with 1 in the lower
    half. So a lost record is detected, except at the end of an epoch.
    """
    return zxid == before + 1 or (epoch_of(zxid) > epoch_of(before) and counter_of(zxid) == 1)


def numbered(directory: Path, prefix: str) -> list[tuple[int, Path]]:
    """Return the files `<prefix>.<zxid>` of a directory, lowest zxid first; none if the directory is missing."""
    pattern = re.compile(re.escape(prefix) + r"\.([0-9a-f]{1,16})")
    if not directory.is_dir():
        return []
    matches = ((pattern.fullmatch(path.name), path) for path in directory.iterdir())
    return sorted((required_integer(match[1], base=16), path) for match, path in matches if match)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable: a created, renamed or removed file remains so after a crash."""
    descriptor = system().open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        system().fsync(descriptor)
    finally:
        system().close(descriptor)


def replace_file(path: Path, chunks: Iterable[bytes], mode: int | None = None) -> None:
    """Write a file durably, entirely or not at all; raises OSError, and then leaves the old one.

    `mode` are its permissions; None for those of any new file.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        with temporary.open("wb") as file:
            if mode is not None:
                system().fchmod(file.fileno(), mode)
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            system().fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def make_directories(data_dir: Path, log_dir: Path) -> tuple[Path, Path]:
    """Return the folders of the snapshots and of the logs, and create them if necessary.

    Their names, and the names in them, are durable then. Raises DataError if a path is not a writable directory, or
    if logs are in the folder of the snapshots or the reverse: the two were exchanged in the configuration
    (`FileTxnSnapLog.checkLogDir`, `checkSnapDir`).
    """
    snapshots, logs = data_dir / VERSION_DIRECTORY, log_dir / VERSION_DIRECTORY
    for directory in (snapshots, logs):
        try:
            _make_directory(directory)
            sync_directory(directory)  # a killed process may have left names that are not durable
        except OSError as error:
            raise DataError(
                f"{directory}: cannot be created ({error.strerror}); dataDir and dataLogDir must name "
                "directories that this server may write"
            ) from error
        if not system().is_writable(directory):
            raise DataError(f"{directory}: not writable; dataDir and dataLogDir must be writable for this server")
    if snapshots != logs:
        _refuse(logs, "snapshot", "dataLogDir", "snapshots belong to dataDir")
        _refuse(snapshots, "log", "dataDir", "logs belong to dataLogDir")
    return snapshots, logs


def _make_directory(directory: Path) -> None:
    """Create a directory with its parents, if necessary; its name is durable when this returns. Raises OSError."""
    if not directory.parent.is_dir():
        _make_directory(directory.parent)
    directory.mkdir(exist_ok=True)
    sync_directory(directory.parent)  # for an old directory too: the process that made it may have been killed here


def _refuse(directory: Path, prefix: str, option: str, rule: str) -> None:
    files = numbered(directory, prefix)
    if files:
        raise DataError(f"{files[0][1]}: does not belong into {option}; {rule}: check dataDir and dataLogDir")
