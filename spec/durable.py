"""The state of a server that survives a crash.

Rules of this module:

- Nothing here is volatile: a crash keeps exactly this state and the view, which is also a file. Writes that are not yet
  synced are not here.
- The disk holds snapshots and the records of a log. The tree that a server restores from them (`txns`) is derived. The
  tree in memory is a third part, and it is not here: `spec.zab.state` has it where it differs from the restored one.
- `log` holds all transactions in the checker, and the end of them in a node. The part up to `snapshot` came as a
  snapshot. It has no records, so it can be sent to another server only as a snapshot.
- A snapshot whose content is the log up to its zxid changes nothing that a step reads, and is not kept here. `dirty` is
  one with other content.
- The code uses only the operations of `TxnSequence` on `log`. The checker passes a tuple; a node can pass a sequence
  whose costs do not grow with its history.

Sources: the files `acceptedEpoch` and `currentEpoch`, `FileTxnLog`, `FileSnap`, `FileTxnSnapLog`,
`QuorumPeer.getLastLoggedZxid`.
"""

from collections.abc import Iterator
from typing import Protocol, overload

import msgspec
from msgspec.structs import replace

from spec.txn import Layout, Txn, epoch_of


class TxnSequence(Protocol):
    """Transactions in the order of the log, oldest first: an immutable sequence, such as a tuple."""

    def __len__(self) -> int:
        """The number of transactions."""

    def __iter__(self) -> Iterator[Txn]:
        """The transactions, oldest first."""

    def __reversed__(self) -> Iterator[Txn]:
        """The transactions, newest first."""

    def __contains__(self, txn: object, /) -> bool:
        """Whether a transaction is in the log."""

    @overload
    def __getitem__(self, place: int, /) -> Txn: ...
    @overload
    def __getitem__(self, part: slice, /) -> "TxnSequence": ...

    def __add__(self, txns: tuple[Txn, ...], /) -> "TxnSequence":
        """The log with these transactions at its end."""


class Snapshot(msgspec.Struct, frozen=True):
    """A snapshot on disk: the zxid in the name of its file, and its transactions, also those beyond that zxid."""

    zxid: int
    txns: tuple[Txn, ...]


class Durable(msgspec.Struct, frozen=True):
    """Epochs, snapshots and log of one server.

    `accepted_epoch` is the last epoch whose proposal (LEADERINFO) was acknowledged, `current_epoch` the last one whose
    leader was followed. `snapshot` is the zxid of the snapshot that the log continues, 0 without one; `log` are the
    transactions of that snapshot, where they are known, and the records after it. `dirty` is the newest snapshot if its
    content differs from the log up to its zxid, which only variants cause. `covered` is the zxid of the last record in
    the log files that the snapshot covers; it matters to `trunc-after-snap` alone, and is 0 without it. `layout` is the
    file `zxidLayoutSwitchEpoch` of a server with the pull request 2417, and its setting; None with every release.
    Raises ValueError when the accepted epoch is behind the current one, as `QuorumPeer.loadDataBase` refuses to start.
    ZooKeeper also refuses when the last zxid is of a later epoch than the current one, after a crash between log and
    epoch; here such a server starts, and finds its leader again.
    """

    accepted_epoch: int = 0
    current_epoch: int = 0
    snapshot: int = 0
    log: TxnSequence = ()
    dirty: Snapshot | None = None
    covered: int = 0
    layout: Layout | None = None

    def __post_init__(self) -> None:
        if self.accepted_epoch < self.current_epoch:
            raise ValueError(f"acceptedEpoch {self.accepted_epoch} is less than currentEpoch {self.current_epoch}")

    @property
    def txns(self) -> TxnSequence:
        """The restored tree: the newest snapshot, and the records beyond its zxid (`FileTxnSnapLog.restore`)."""
        dirty = self.dirty
        if dirty is None:
            return self.log
        later = (txn for txn in self.log if txn.zxid > dirty.zxid and txn not in dirty.txns)
        return (*dirty.txns, *later)

    @property
    def last_zxid(self) -> int:
        """The zxid of the last record, or of the newest snapshot if no record follows it."""
        snapshot = self.snapshot if self.dirty is None else max(self.snapshot, self.dirty.zxid)
        return max(snapshot, self.log[-1].zxid) if self.log else snapshot

    @property
    def records(self) -> tuple[Txn, ...]:
        """The records of the log, without the transactions that came as a snapshot."""
        return tuple(txn for txn in self.log if txn.zxid > self.snapshot)

    def with_epochs(self) -> "Durable":
        """A copy with the epochs that `QuorumPeer.loadDataBase` derives where the files of both epochs are missing.

        A standalone server writes no epochs, so its disk has them only from an earlier life in an ensemble. Missing
        files count as the epoch of the last zxid. Here epochs of 0 are missing files if the last zxid is of a later
        epoch: a member of an ensemble accepts an epoch before it logs a transaction of it.
        """
        epoch = epoch_of(self.last_zxid, self.layout)
        missing = self.accepted_epoch == self.current_epoch == 0 < epoch
        return replace(self, accepted_epoch=epoch, current_epoch=epoch) if missing else self

    def appended(self, txn: Txn) -> "Durable":
        """A copy with this transaction at the end of the log (`FileTxnLog.append`)."""
        return replace(self, log=self.log + (txn,))  # noqa: RUF005 - a node's sequence is not a tuple

    def truncated(self, zxid: int) -> "Durable":
        """A copy without the transactions after this zxid, in the log and in snapshots.

        The corrections of `FileTxnLog.truncate` and `FileTxnSnapLog.truncateLog`; `spec.zab.disk.truncated` has their
        behaviour.
        """
        count = len(self.log)
        while count and self.log[count - 1].zxid > zxid:
            count -= 1
        dirty = self.dirty
        if dirty is not None and (dirty.zxid > zxid or any(txn.zxid > zxid for txn in dirty.txns)):
            dirty = None
        return replace(self, snapshot=min(self.snapshot, zxid), log=self.log[:count], dirty=dirty)
