"""Transactions: what the leader makes of a request, and every server applies (module `org.apache.zookeeper.txn`).

Rules this module keeps:

- A transaction says the outcome, not the wish: a sequential name is chosen, versions are counted, and the ephemeral
  znodes that a closing session takes along are listed. Applying it needs no decision.
- A request that fails is a transaction too, `ErrorTxn`: it takes a zxid, and its client's place in the order.
- `TXN_TYPES` is the only table of their types; the numbers are opcodes, and -1 for an error.

Source: `zookeeper.jute`, `SerializeUtils.deserializeTxn`, `TxnHeader`.
"""

import msgspec

from spec.tree.data import Acl
from spec.tree.fields import Boolean, Buffer, Int, Long, Record, Ustring


class CreateTxn(Record, frozen=True, gc=False):
    """A znode; `parent_cversion` is its parent's afterwards, -1 in logs of old servers."""

    path: Ustring
    data: Buffer
    acl: tuple[Acl, ...]
    ephemeral: Boolean
    parent_cversion: Int


class Create2Txn(CreateTxn, frozen=True, gc=False):
    """The same, of a create2."""


class CreateTtlTxn(Record, frozen=True, gc=False):
    """A TTL znode."""

    path: Ustring
    data: Buffer
    acl: tuple[Acl, ...]
    parent_cversion: Int
    ttl: Long


class CreateContainerTxn(Record, frozen=True, gc=False):
    """A container znode."""

    path: Ustring
    data: Buffer
    acl: tuple[Acl, ...]
    parent_cversion: Int


class DeleteTxn(Record, frozen=True, gc=False):
    """A znode goes."""

    path: Ustring


class DeleteContainerTxn(DeleteTxn, frozen=True, gc=False):
    """A container or an expired TTL znode goes."""


class SetDataTxn(Record, frozen=True, gc=False):
    """New data; `version` is the one after it."""

    path: Ustring
    data: Buffer
    version: Int


class SetAclTxn(Record, frozen=True, gc=False):
    """A new ACL; `version` is the aversion after it."""

    path: Ustring
    acl: tuple[Acl, ...]
    version: Int


class CheckVersionTxn(Record, frozen=True, gc=False):
    """Part of a multi: the check has passed; `version` is one more than the znode's."""

    path: Ustring
    version: Int


class CreateSessionTxn(Record, frozen=True, gc=False):
    """A session begins, with this timeout in milliseconds."""

    time_out: Int


class CloseSessionTxn(Record, frozen=True, gc=False):
    """A session ends, and these ephemeral znodes with it; old servers write no list at all, read as an empty one."""

    paths_to_delete: tuple[Ustring, ...]


class ErrorTxn(Record, frozen=True, gc=False):
    """A request that failed, with its code."""

    err: Int


class MultiTxn(Record, frozen=True, gc=False):
    """Several transactions as one; on the wire each is its type and a buffer with its record.

    If one operation of a multi fails it is an ErrorTxn, and so are those after it; none of the others is carried out.
    """

    txns: tuple[Record, ...]


TXN_TYPES: dict[int, type[Record]] = {
    1: CreateTxn,
    2: DeleteTxn,
    5: SetDataTxn,
    7: SetAclTxn,
    13: CheckVersionTxn,
    14: MultiTxn,
    15: Create2Txn,
    19: CreateContainerTxn,
    20: DeleteContainerTxn,
    21: CreateTtlTxn,
    -1: ErrorTxn,
    -10: CreateSessionTxn,
    -11: CloseSessionTxn,
}
"""The record of each type of transaction (`TxnHeader.type`)."""

TXN_TYPE_OF: dict[type[Record], int] = {record: number for number, record in TXN_TYPES.items()}


class Change(msgspec.Struct, frozen=True):
    """A transaction but for its zxid, which Zab gives it: the value of a `spec.txn.Txn`.

    `session` and `cxid` name the request it came from; `time` is the leader's clock, in milliseconds.
    """

    session: Long
    cxid: Int
    time: Long
    record: Record
