"""The state of a server that survives a crash.

Rules of this module:

- Nothing here is volatile: a crash keeps exactly this state and the view, which is also a file. Writes that are not yet
  synced are not here.
- `txns` is the content of the data tree, in the order of arrival: all of it in the checker, the end of it in a node.
  The part that the snapshot covers can be sent to another server only as a snapshot.
- The code uses only the operations of `TxnSequence` on `txns`. The checker passes a tuple; a node can pass a sequence
  whose costs do not grow with its history.

Sources: the files `acceptedEpoch` and `currentEpoch`, `FileTxnSnapLog`, `QuorumPeer.getLastLoggedZxid`.
"""

from collections.abc import Iterator
from typing import Protocol, overload

import msgspec
from msgspec.structs import replace

from spec.txn import Txn


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


class Durable(msgspec.Struct, frozen=True):
    """Epochs, snapshot and log of one server.

    `accepted_epoch` is the last epoch whose proposal (LEADERINFO) was acknowledged, `current_epoch` the last one whose
    leader was followed. `snapshot` is the zxid of the newest snapshot, 0 without one; `txns` are the transactions,
    including those of the snapshot where they are known. Raises ValueError when the accepted epoch is behind the
    current one, as `QuorumPeer.loadDataBase` refuses to start. ZooKeeper also refuses when the last zxid is of a later
    epoch than the current one, after a crash between log and epoch; here such a server starts, and finds its leader
    again.
    """

    accepted_epoch: int = 0
    current_epoch: int = 0
    snapshot: int = 0
    txns: TxnSequence = ()

    def __post_init__(self) -> None:
        if self.accepted_epoch < self.current_epoch:
            raise ValueError(f"acceptedEpoch {self.accepted_epoch} is less than currentEpoch {self.current_epoch}")

    @property
    def last_zxid(self) -> int:
        """The zxid of the last transaction, or of the snapshot if no transaction follows it."""
        return max(self.snapshot, self.txns[-1].zxid) if self.txns else self.snapshot

    def appended(self, txn: Txn) -> "Durable":
        """A copy with this transaction at the end of the log (`FileTxnLog.append`)."""
        return replace(self, txns=self.txns + (txn,))  # noqa: RUF005 - a node's sequence is not a tuple

    def truncated(self, zxid: int) -> "Durable":
        """A copy without the transactions after this zxid (`ZKDatabase.truncateLog`)."""
        kept = len(self.txns)
        while kept and self.txns[kept - 1].zxid > zxid:
            kept -= 1
        return replace(self, snapshot=min(self.snapshot, zxid), txns=self.txns[:kept])
