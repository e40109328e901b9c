"""The files `acceptedEpoch` and `currentEpoch`: the two promises that a server keeps across a crash.

Rules this module keeps:

- A file is one decimal number. It is replaced as a whole and synced with its directory before the promise is sent.
- If a file is missing, the epoch of the last zxid takes its place and is written. The directory is then that of an old
  version, or of a server that starts for the first time.
- The accepted epoch is never behind the current one, nor behind that of the last zxid. A server that violates this has
  forgotten a promise, and is refused.
- currentEpoch may be behind the last zxid: on NEWLEADER the log is written first, and a crash may follow. If
  `currentEpoch.tmp` has the next value, only the rename was missing, and that value counts. Otherwise the server starts
  with the value of the file, votes with it, and finds its leader again (`spec.durable`). ZooKeeper refuses to start.

ZooKeeper accepts any number, a negative one too, and in the temporary file one that is still behind.

Source: `QuorumPeer.loadDataBase`, `.readLongFromFile`, `.writeLongToFile`. The file `updatingEpoch` was written by 3.4
(`Learner.syncWithLeader`); 3.5 and later do not read it, and this module does not either.
"""

from pathlib import Path
from typing import NamedTuple

from refimpl.disk.files import TEMPORARY, DataError, replace_file
from refimpl.disk.remedies import Damage
from spec.text import integer
from spec.txn import epoch_of

ACCEPTED = "acceptedEpoch"
CURRENT = "currentEpoch"
HIGHEST = (1 << 31) - 1


class Epochs(NamedTuple):
    """The epoch that the server has promised (`accepted`), and the epoch of its history (`current`)."""

    accepted: int
    current: int


def load(directory: Path, last_zxid: int) -> Epochs:
    """Read the epochs of a server whose last logged transaction is `last_zxid`; missing files are written.

    `directory` is the one of the snapshots (`version-2` in dataDir). Raises DataError and OSError.
    """
    of_zxid = epoch_of(max(last_zxid, 0))
    current = read(directory / CURRENT)
    if current is None:
        current = of_zxid
        save_current(directory, current)
    if of_zxid > current and _interrupted(directory) >= of_zxid:
        current = _interrupted(directory)
        save_current(directory, current)
    accepted = read(directory / ACCEPTED)
    if accepted is None:
        accepted = of_zxid
        save_accepted(directory, accepted)
    least = max(current, of_zxid)
    if accepted < least:
        raise DataError(
            f"{directory / ACCEPTED}: the accepted epoch is {accepted}, below {current} in {CURRENT} or {of_zxid} "
            f"of the last transaction; expected {least} or more",
            Damage.PROMISE,
        )
    return Epochs(accepted, current)


def save_accepted(directory: Path, epoch: int) -> None:
    """Make a promise durable (`acceptedEpoch`). Raises OSError, and DataError beyond the last possible epoch."""
    _save(directory / ACCEPTED, epoch)


def save_current(directory: Path, epoch: int) -> None:
    """Make the epoch of the history durable (`currentEpoch`). Raises OSError, and DataError beyond the last epoch."""
    _save(directory / CURRENT, epoch)


def _save(path: Path, epoch: int) -> None:
    if epoch > HIGHEST:
        raise DataError(f"{path}: epoch {epoch} cannot be promised, {HIGHEST} is the last one", Damage.PROMISE)
    replace_file(path, (str(epoch).encode(),))


def _interrupted(directory: Path) -> int:
    """Return the current epoch whose writing a crash interrupted before the rename; -1 if there is no complete one."""
    path = directory / CURRENT
    try:
        epoch = read(path.with_name(path.name + TEMPORARY))
    except DataError:
        return -1
    return -1 if epoch is None else epoch


def read(path: Path) -> int | None:
    """Read the epoch in a file; None if the file is missing. As in ZooKeeper, only the first line counts.

    Raises DataError and OSError.
    """
    try:
        with path.open("rb") as file:
            text = file.read(64).split(b"\n")[0].rstrip(b"\r")
    except FileNotFoundError:
        return None
    epoch = integer(text.decode("latin-1"), 0, HIGHEST)
    if epoch is None:
        fault = f"{path}: found {text!r}, expected an epoch, a number from 0 to {HIGHEST}"
        raise DataError(fault, Damage.PROMISE)
    return epoch
