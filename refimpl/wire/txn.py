"""The encoding of transactions, in the log and as the data of PROPOSAL and INFORM.

    TxnHeader (i64 session, i32 cxid, i64 zxid, i64 time, i32 type) · record · TxnDigest (i32 version, i64 digest)

Rules this module keeps:

- The digest is optional, and stays with the transaction wherever it goes. A server that finds none compares nothing.
- Old logs are readable: a create without `parent_cversion` gets -1, a closeSession without its list gets `()`.
- A check occurs only in a multi: `SerializeUtils` cannot read it elsewhere, and a log that has one is unreadable.
- Any other bytes after the record are an error, so that a wrong type does not go unnoticed.
- The record of a reconfiguration is a setData of `/zookeeper/config`. The protocol reads its text as a view, so the
  value of such a transaction has both.

Source: `SerializeUtils.deserializeTxn`, `Util.marshallTxnEntry`, `TxnHeader`, `TxnDigest`, `CreateTxnV0`.
"""

import struct

from refimpl.jute import JuteError, decode, encode
from spec.config import ConfigError
from spec.config.dynamic_files import view_in
from spec.quorum import Reconfiguration
from spec.tree.data import Record
from spec.tree.txns import (
    TXN_TYPE_OF,
    TXN_TYPES,
    Change,
    CheckVersionTxn,
    CloseSessionTxn,
    CreateTxn,
    ReconfigTxn,
    TxnDigest,
)
from spec.txn import Txn

HEADER = struct.Struct(">qiqqi")
DIGEST = struct.Struct(">iq")
TYPES = {number: cls for number, cls in TXN_TYPES.items() if cls is not CheckVersionTxn}
NO_PARENT_CVERSION = b"\xff\xff\xff\xff"


def encode_txn(zxid: int, change: Change) -> bytes:
    """Encode a transaction, with its digest if it has one. Raises JuteError."""
    record = change.record
    number = TXN_TYPE_OF.get(record.__class__)
    if number not in TYPES:
        raise JuteError("TxnHeader", "type", -1, f"{type(record).__name__} is not a complete transaction")
    try:
        plain = HEADER.pack(change.session, change.cxid, zxid, change.time, number) + encode(record)
        return plain if change.digest is None else plain + DIGEST.pack(change.digest.version, change.digest.tree)
    except struct.error as error:
        problem = f"session {change.session}, cxid {change.cxid}, zxid {zxid}, time {change.time}: {error}"
        raise JuteError("TxnHeader", "", -1, problem) from None


class TxnEncoder:
    """Encodes transactions, each of them once: for its preparation, for the log, and for every learner.

    A transaction is kept from its first use to its place in the log (`taken`), at most `KEPT` bytes of them.
    """

    KEPT = 16 << 20

    def __init__(self) -> None:
        self._known: dict[int, tuple[Change, bytes]] = {}
        self._bytes = 0

    def encoded(self, zxid: int, change: Change) -> bytes:
        """The bytes of a transaction, which are kept. Raises JuteError."""
        payload = self.taken(zxid, change)
        if self._bytes > self.KEPT:
            self._known.clear()
            self._bytes = 0
        self._known[zxid] = change, payload
        self._bytes += len(payload)
        return payload

    def taken(self, zxid: int, change: Change) -> bytes:
        """The bytes of a transaction, which are kept no longer. Raises JuteError."""
        entry = self._known.pop(zxid, None)
        if entry is not None:
            self._bytes -= len(entry[1])
            if entry[0] is change:
                return entry[1]
        return encode_txn(zxid, change)


def decode_txn(data: bytes) -> tuple[int, Change]:
    """Decode a transaction; return its zxid and its change. Raises JuteError."""
    if len(data) < HEADER.size:
        raise JuteError("TxnHeader", "", 0, f"{len(data)} bytes, where it takes {HEADER.size}")
    session, cxid, zxid, time, number = HEADER.unpack_from(data)
    cls = TYPES.get(number)
    if cls is None:
        problem = f"unknown type {number}; known are {sorted(TYPES)}"
        raise JuteError("TxnHeader", "type", HEADER.size - 4, problem)
    record, digest = _decode_record(cls, data)
    return zxid, Change(session, cxid, time, record, digest)


def txn_of(zxid: int, change: Change) -> Txn:
    """The transaction of a decoded change; a reconfiguration has its view.

    Raises JuteError for an invalid text, and for a version other than the zxid (`PrepRequestProcessor`, `setVersion`).
    """
    record = change.record
    if type(record) is not ReconfigTxn:
        return Txn(zxid, change)
    try:
        text = str(record.data or b"", "utf-8")
        view = view_in(text, "the reconfiguration")
    except (ConfigError, UnicodeDecodeError) as error:
        raise JuteError("ReconfigTxn", "data", -1, str(error)) from None
    if view.version != zxid:
        raise JuteError(
            "ReconfigTxn", "data", -1, f"version {view.version:#x}, where its zxid {zxid:#x} would be right"
        )
    return Txn(zxid, Reconfiguration(view, change))


def _decode_record(cls: type[Record], data: bytes) -> tuple[Record, TxnDigest | None]:
    try:
        record, end = decode(cls, data, HEADER.size)
    except JuteError:
        old = _decode_old(cls, data)
        if old is None:
            raise
        return old, None
    if len(data) - end == DIGEST.size:
        return record, TxnDigest(*DIGEST.unpack_from(data, end))
    if len(data) != end:
        raise JuteError(cls.__name__, "", end, f"{len(data) - end} bytes are left after it, and a digest takes 12")
    return record, None


def _decode_old(cls: type[Record], data: bytes) -> Record | None:
    """Decode the form of servers before 3.4 (create) and before 3.6 (closeSession); None for any other bytes."""
    if cls is CloseSessionTxn and len(data) - HEADER.size in (0, DIGEST.size):
        return CloseSessionTxn(())
    if cls is CreateTxn:
        longer = data + NO_PARENT_CVERSION
        try:
            record, end = decode(CreateTxn, longer, HEADER.size)
        except JuteError:
            return None
        return record if end == len(longer) else None
    return None
