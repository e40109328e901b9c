"""The files `acceptedEpoch` and `currentEpoch`: the two promises that a server keeps over a crash.

Rules this module keeps:

- A file is one decimal number. It is replaced as a whole and synced with its directory before anyone is told.
- Where one is missing the epoch of the last zxid stands for it, and is written: a directory of an old version, or of
  a server that starts for the first time.
- The accepted epoch is never behind the current one, nor behind the last zxid's: then the server has forgotten a
  promise, and is refused.
- currentEpoch may be behind the last zxid: on NEWLEADER the log is written first, and a crash came in between. If its
  next value stands in `currentEpoch.tmp` the rename was all that was missing, and it counts. Else the server starts
  with what the file says, votes with that, and finds its leader again (`spec.durable`). The real one refuses to start.

The real one takes any number, a negative one too, and in the temporary file one that is still behind.

Source: `QuorumPeer.loadDataBase`, `.readLongFromFile`, `.writeLongToFile`. The file `updatingEpoch` was written by 3.4
(`Learner.syncWithLeader`); 3.5 and later do not read it, and neither do we.
"""

from pathlib import Path
from typing import NamedTuple

from refimpl.disk.files import REMEDY, TEMPORARY, DataError, epoch_of, replace_file

ACCEPTED = "acceptedEpoch"
CURRENT = "currentEpoch"
_HIGHEST = (1 << 31) - 1


class Epochs(NamedTuple):
    """What the server has promised (`accepted`) and what its history is of (`current`)."""

    accepted: int
    current: int


def load(directory: Path, last_zxid: int) -> Epochs:
    """The epochs of a server whose last logged transaction is `last_zxid`; missing files are written.

    `directory` is the one of the snapshots (`version-2` in dataDir). Raises DataError and OSError.
    """
    of_zxid = epoch_of(max(last_zxid, 0))
    current = _read(directory / CURRENT)
    if current is None:
        current = of_zxid
        save_current(directory, current)
    if of_zxid > current and _interrupted(directory) >= of_zxid:
        current = _interrupted(directory)
        save_current(directory, current)
    accepted = _read(directory / ACCEPTED)
    if accepted is None:
        accepted = of_zxid
        save_accepted(directory, accepted)
    least = max(current, of_zxid)
    if accepted < least:
        raise DataError(
            f"{directory / ACCEPTED}: the accepted epoch is {accepted}, below {current} in {CURRENT} or {of_zxid} "
            f"of the last transaction; expected {least} or more: {REMEDY}"
        )
    return Epochs(accepted, current)


def save_accepted(directory: Path, epoch: int) -> None:
    """Make a promise durable (`acceptedEpoch`). Raises OSError, and DataError if no epoch is left."""
    _save(directory / ACCEPTED, epoch)


def save_current(directory: Path, epoch: int) -> None:
    """Make the epoch of the history durable (`currentEpoch`). Raises OSError, and DataError if no epoch is left."""
    _save(directory / CURRENT, epoch)


def _save(path: Path, epoch: int) -> None:
    if epoch > _HIGHEST:
        raise DataError(f"{path}: epoch {epoch} cannot be promised, {_HIGHEST} is the last one: {REMEDY}")
    replace_file(path, (str(epoch).encode(),))


def _interrupted(directory: Path) -> int:
    """The current epoch whose writing a crash has interrupted; -1 if none was, or the crash came before its end."""
    path = directory / CURRENT
    try:
        epoch = _read(path.with_name(path.name + TEMPORARY))
    except DataError:
        return -1
    return -1 if epoch is None else epoch


def _read(path: Path) -> int | None:
    """The number in a file; None if there is no such file. Like the real one, only the first line counts."""
    try:
        with path.open("rb") as file:
            text = file.read(64).split(b"\n")[0].rstrip(b"\r")
    except FileNotFoundError:
        return None
    if not (text.isdigit() and int(text) <= _HIGHEST):
        raise DataError(f"{path}: found {text!r}, expected an epoch, a number from 0 to {_HIGHEST}: {REMEDY}")
    return int(text)
