"""The disks of real servers: the initial content, and the records in the files.

Rules of this module:

- Initial disks are written by the coders of `refimpl`; a separate reader reads the records back.
- The sessions of clients are open on every initial disk. A session that a client opens would take a zxid, and a local
  one needs ZooKeeper 3.5.

Source: `ZooKeeperServer.generatePasswd`, `ZooKeeperServer.reopenSession`.
"""

import re
import struct
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from refimpl.disk import epochs, snapshot
from refimpl.disk.files import DataError
from refimpl.disk.txnlog import TxnLog
from refimpl.tree import Tree
from refimpl.wire.txn import encode_txn
from spec.durable import Durable
from spec.text import required_integer
from spec.tree.apply import apply
from spec.tree.data import OPEN_ACL_UNSAFE
from spec.tree.store import OpenSession, Operation
from spec.tree.txns import Change, CreateTxn
from spec.txn import Txn, counter_of, epoch_of

FILE_HEADER_BYTES = 16
LOG_MAGIC = b"ZKLG"  # the beginning of the header
RECORD = struct.Struct(">qi")  # checksum and length
NO_CVERSION = -1
TXN_HEADER = struct.Struct(">qiqqi")  # session, cxid, zxid, time, type
SESSION_MILLISECONDS = 600_000
HEXADECIMAL = re.compile("[0-9a-f]{1,16}")
SECRET = 0xB3415C00  # of every server


def write_disk(data: Path, durable: Durable, znodes: int = 0, sessions: Iterable[int] = ()) -> None:
    """Write the content of a model's disk into an empty `dataDir`, with `sessions` that are open.

    The tree has `znodes` further znodes below /base.
    """
    directory = data / "version-2"
    directory.mkdir(parents=True)
    tree = Tree()
    tree.carry_out(OpenSession(session, SESSION_MILLISECONDS) for session in sessions)
    tree.carry_out(_base_operations(znodes))
    for txn in durable.log:
        if txn.zxid <= durable.snapshot:
            tree.carry_out(apply(tree, txn.zxid, creation_of(txn)).operations)
    snapshot.save(directory, tree, durable.snapshot)
    log = TxnLog(directory)
    for txn in durable.records:
        log.append(txn.zxid, encode_txn(txn.zxid, creation_of(txn)))
    log.close()
    epochs.save_accepted(directory, durable.accepted_epoch)
    epochs.save_current(directory, durable.current_epoch)


@cache
def _base_operations(znodes: int) -> tuple[Operation, ...]:
    """The operations that make a tree with this number of znodes below /base: a larger tree makes slower reads."""
    tree = Tree()
    operations: list[Operation] = []
    for path in ("/base", *(f"/base/{number:06d}" for number in range(znodes))) if znodes else ():
        creation = apply(tree, 0, _creation(path, "")).operations
        tree.carry_out(creation)
        operations += creation
    return tuple(operations)


def password_of(session: int) -> bytes:
    """The password of a session, 16 bytes: a server derives it from the id, by `java.util.Random`."""
    mask = (1 << 48) - 1
    seed = (session ^ SECRET ^ 0x5DEECE66D) & mask
    words = []
    for _ in range(4):
        seed = (seed * 0x5DEECE66D + 0xB) & mask
        words.append(seed >> 16)
    return struct.pack("<4I", *words)


def path_of(zxid: int, value: object) -> str:
    """The znode that a transaction of the model creates: by the number of a client's write, or by the zxid."""
    return f"/write-{value}" if isinstance(value, int) else f"/zxid-{epoch_of(zxid)}-{counter_of(zxid)}"


def creation_of(txn: Txn) -> Change:
    """A transaction of the model, as a real server has it."""
    return _creation(path_of(txn.zxid, txn.value), txn.value)


def _creation(path: str, value: object) -> Change:
    return Change(0, 0, 0, CreateTxn(path, str(value).encode(), OPEN_ACL_UNSAFE, False, NO_CVERSION))


def read_current_epoch(data: Path) -> int | None:
    """The epoch of the history in a `dataDir`; None without the file."""
    return epochs.read(data / "version-2" / epochs.CURRENT)


def read_accepted_epoch(data: Path) -> int | None:
    """The last accepted epoch in a `dataDir`; None without the file."""
    return epochs.read(data / "version-2" / epochs.ACCEPTED)


def snapshot_paths(data: Path, zxid: int) -> frozenset[str] | None:
    """The znodes of transactions in the snapshot of this zxid; None without such a snapshot, or before its end."""
    try:
        tree = snapshot.read(data / "version-2" / f"{snapshot.PREFIX}.{zxid:x}", zxid).tree
    except (OSError, DataError):
        return None
    return frozenset(path for path, _ in tree.preorder() if path.startswith(("/write-", "/zxid-")))


def newest_snapshot_paths(data: Path) -> frozenset[str]:
    """The znodes of transactions in the newest snapshot that is complete."""
    files = (data / "version-2").glob(f"{snapshot.PREFIX}.*")
    names = [file.suffix[1:] for file in files]
    zxids = sorted((required_integer(name, base=16) for name in names if HEXADECIMAL.fullmatch(name)), reverse=True)
    contents = (snapshot_paths(data, zxid) for zxid in zxids)
    return next((paths for paths in contents if paths is not None), frozenset())


def logged_zxids(data: Path) -> tuple[int, ...]:
    """The zxids of all records in the log files of a `dataDir`, in the order of the files."""
    files = sorted((data / "version-2").glob("log.*"), key=lambda file: required_integer(file.suffix[1:], base=16))
    return tuple(zxid for file in files for zxid in zxids_in(file.read_bytes()[FILE_HEADER_BYTES:]))


def zxids_in(records: bytes) -> tuple[int, ...]:
    """The zxids of consecutive records, up to the padding or an incomplete record."""
    zxids, offset = [], 0
    while offset + RECORD.size + TXN_HEADER.size <= len(records):
        _, length = RECORD.unpack_from(records, offset)
        end = offset + RECORD.size + length + 1  # and the end mark
        if length < TXN_HEADER.size or end > len(records):
            break
        zxids.append(TXN_HEADER.unpack_from(records, offset + RECORD.size)[2])
        offset = end
    return tuple(zxids)
