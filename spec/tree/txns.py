"""Transactions: the leader makes them of requests, and every server applies them (module `org.apache.zookeeper.txn`).

Rules of this module:

- A transaction contains the outcome of a request: its sequential name is chosen, its versions are counted, and the
  ephemeral znodes of a closing session are listed. Applying it needs no decision.
- A request that fails is also a transaction, `ErrorTxn`. It takes a zxid, and its client's place in the order.
- `TXN_TYPES` is the only table of their types; the numbers are opcodes, and -1 for an error.

Source: `zookeeper.jute`, `SerializeUtils.deserializeTxn`, `TxnHeader`.
"""

import msgspec

from spec.tree.data import Acl, Boolean, Buffer, Int, Long, Record, Ustring


class CreateTxn(Record, frozen=True, gc=False):
    """Creates a znode; `parent_cversion` is its parent's cversion afterwards, -1 in logs of old servers."""

    path: Ustring
    data: Buffer
    acl: tuple[Acl, ...]
    ephemeral: Boolean
    parent_cversion: Int


class Create2Txn(CreateTxn, frozen=True, gc=False):
    """Creates a znode for a create2."""


class CreateTtlTxn(Record, frozen=True, gc=False):
    """Creates a TTL znode."""

    path: Ustring
    data: Buffer
    acl: tuple[Acl, ...]
    parent_cversion: Int
    ttl: Long


class CreateContainerTxn(Record, frozen=True, gc=False):
    """Creates a container znode."""

    path: Ustring
    data: Buffer
    acl: tuple[Acl, ...]
    parent_cversion: Int


class DeleteTxn(Record, frozen=True, gc=False):
    """Deletes a znode."""

    path: Ustring


class DeleteContainerTxn(DeleteTxn, frozen=True, gc=False):
    """Deletes a container or an expired TTL znode."""


class SetDataTxn(Record, frozen=True, gc=False):
    """Replaces the data of a znode; `version` is the version afterwards."""

    path: Ustring
    data: Buffer
    version: Int


class ReconfigTxn(SetDataTxn, frozen=True, gc=False):
    """Replaces the data of `/zookeeper/config` by a new configuration; the version of the znode stays -1."""


class SetAclTxn(Record, frozen=True, gc=False):
    """Replaces the ACL of a znode; `version` is the aversion afterwards."""

    path: Ustring
    acl: tuple[Acl, ...]
    version: Int


class CheckVersionTxn(Record, frozen=True, gc=False):
    """Part of a multi: records a passed check; `version` is one more than the znode's."""

    path: Ustring
    version: Int


class CreateSessionTxn(Record, frozen=True, gc=False):
    """Opens a session with this timeout in milliseconds."""

    time_out: Int


class CloseSessionTxn(Record, frozen=True, gc=False):
    """Ends a session and deletes these ephemeral znodes; old servers write no list, which is read as an empty one."""

    paths_to_delete: tuple[Ustring, ...]


class ErrorTxn(Record, frozen=True, gc=False):
    """Records a failed request, with its code."""

    err: Int


class MultiTxn(Record, frozen=True, gc=False):
    """Several transactions as one; on the wire each is its type and a buffer with its record.

    If one operation of a multi fails, it and all operations after it are ErrorTxn, and none of the others is applied.
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
    16: ReconfigTxn,
    19: CreateContainerTxn,
    20: DeleteContainerTxn,
    21: CreateTtlTxn,
    -1: ErrorTxn,
    -10: CreateSessionTxn,
    -11: CloseSessionTxn,
}
"""The record of each type of transaction (`TxnHeader.type`)."""

TXN_TYPE_OF: dict[type[Record], int] = {record: number for number, record in TXN_TYPES.items()}


class TxnDigest(msgspec.Struct, frozen=True, gc=False):
    """The digest of the tree after a transaction, and the version of its calculation (`DigestCalculator`)."""

    version: int
    tree: int


class Change(msgspec.Struct, frozen=True):
    """A transaction without its zxid, which Zab assigns: the value of a `spec.txn.Txn`.

    `session` and `cxid` identify its request; `time` is the leader's clock, in milliseconds. `digest` is None if its
    leader computed none.
    """

    session: Long
    cxid: Int
    time: Long
    record: Record
    digest: TxnDigest | None = None
