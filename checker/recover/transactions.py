"""The transactions in doubt, in the words of their authors: type and paths."""

import msgspec

from refimpl.jute import JuteError
from refimpl.wire.txn import decode_txn
from spec.tree.data import Record
from spec.tree.txns import (
    CheckVersionTxn,
    CloseSessionTxn,
    Create2Txn,
    CreateContainerTxn,
    CreateSessionTxn,
    CreateTtlTxn,
    CreateTxn,
    DeleteContainerTxn,
    DeleteTxn,
    ErrorTxn,
    MultiTxn,
    ReconfigTxn,
    SetAclTxn,
    SetDataTxn,
)

KINDS: dict[type[Record], str] = {
    CreateTxn: "create",
    Create2Txn: "create",
    CreateTtlTxn: "create with a time to live",
    CreateContainerTxn: "create a container",
    DeleteTxn: "delete",
    DeleteContainerTxn: "delete",
    SetDataTxn: "setData",
    ReconfigTxn: "reconfig",
    SetAclTxn: "setACL",
    CheckVersionTxn: "check",
    CreateSessionTxn: "open session",
    CloseSessionTxn: "close session",
    ErrorTxn: "failed request",
    MultiTxn: "multi",
}
MOST_PATHS = 64
"""The number of paths of one transaction that are kept."""


class Described(msgspec.Struct, frozen=True):
    """A transaction: its zxid, its kind, its paths, and whether it changes anything."""

    zxid: int
    kind: str
    paths: tuple[str, ...]
    changes: bool = True


def described(zxid: int, payload: bytes) -> Described:
    """Describe a record of a log."""
    try:
        change = decode_txn(payload)[1]
    except JuteError as error:
        return Described(zxid, f"not understood: {error}", ())
    record = change.record
    if isinstance(record, CreateSessionTxn | CloseSessionTxn):
        paths = record.paths_to_delete if isinstance(record, CloseSessionTxn) else ()
        return Described(zxid, f"{KINDS[type(record)]} 0x{change.session % (1 << 64):x}", paths[:MOST_PATHS])
    if isinstance(record, MultiTxn):
        failed = any(isinstance(part, ErrorTxn) for part in record.txns)
        paths = tuple(path for part in record.txns[:MOST_PATHS] if (path := getattr(part, "path", None)) is not None)
        return Described(zxid, "failed multi" if failed else "multi", paths, not failed)
    path = getattr(record, "path", None)
    changes = not isinstance(record, ErrorTxn)
    return Described(zxid, KINDS[type(record)], () if path is None else (path,), changes)
