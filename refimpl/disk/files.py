"""What the files of a data directory have in common: their names, and how a change of them is made to last.

Rules this module keeps:

- A log is `log.<zxid>`, a snapshot `snapshot.<zxid>`, the zxid in hexadecimal. Any other name is not ours and is left
  alone (the real one also takes `log.5.bak` for a log that begins with 5, and would read it beside `log.5`).
- A file that is replaced is written under another name, synced, renamed, and the directory is synced: after a crash
  there is the old one or the new one, whole. The real one does not sync the directory.
- Errors are OSErrors of the operating system, or a `DataError` that names the file, what is wrong with it and what
  would be right.

Source: `Util.getZxidFromName`, `Util.sortDataDir`, `AtomicFileOutputStream`, `FileTxnSnapLog`.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

VERSION_DIRECTORY = "version-2"
TEMPORARY = ".tmp"
REMEDY = "restore it from a copy, or remove this server's data and let it synchronise with the others"
"""What helps when a promise or a transaction is lost; the end of such messages."""


class DataError(Exception):
    """The data directory cannot be used as it is; the message names the file, the fault and what would be right."""


def epoch_of(zxid: int) -> int:
    """The upper half of a zxid."""
    return zxid >> 32


def follows(zxid: int, before: int) -> bool:
    """Whether a transaction may come directly after another one.

    Each transaction of an epoch takes the next zxid, failed requests too, and each epoch starts with 1 in the lower
    half. So a lost record shows, but for those at the end of an epoch.
    """
    return zxid == before + 1 or (epoch_of(zxid) > epoch_of(before) and zxid & 0xFFFFFFFF == 1)


def numbered(directory: Path, prefix: str) -> list[tuple[int, Path]]:
    """The files `<prefix>.<zxid>` of a directory, lowest zxid first; none if there is no such directory."""
    pattern = re.compile(re.escape(prefix) + r"\.([0-9a-f]{1,16})")
    if not directory.is_dir():
        return []
    matches = ((pattern.fullmatch(path.name), path) for path in directory.iterdir())
    return sorted((int(match[1], 16), path) for match, path in matches if match)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory last: a file that was created, renamed or removed is so after a crash too."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file so that it is there whole or not at all, and lasts; raises OSError, and then leaves the old one."""
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        with temporary.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def make_directories(data_dir: Path, log_dir: Path) -> tuple[Path, Path]:
    """The folders of the snapshots and of the logs, created if need be.

    Raises DataError if a path is not a directory that can be written, or if logs stand where the snapshots belong or
    the reverse: the two were exchanged in the configuration (`FileTxnSnapLog.checkLogDir`, `checkSnapDir`).
    """
    snapshots, logs = data_dir / VERSION_DIRECTORY, log_dir / VERSION_DIRECTORY
    for directory in (snapshots, logs):
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"{directory}: cannot be created ({error.strerror}); dataDir and dataLogDir must name "
                "directories that this server may write"
            ) from error
        if not os.access(directory, os.W_OK | os.X_OK):
            raise DataError(f"{directory}: not writable; dataDir and dataLogDir must be writable for this server")
    if snapshots != logs:
        _refuse(logs, "snapshot", "dataLogDir", "snapshots belong to dataDir")
        _refuse(snapshots, "log", "dataDir", "logs belong to dataLogDir")
    return snapshots, logs


def _refuse(directory: Path, prefix: str, option: str, rule: str) -> None:
    found = numbered(directory, prefix)
    if found:
        raise DataError(f"{found[0][1]}: does not belong into {option}; {rule}: check dataDir and dataLogDir")
