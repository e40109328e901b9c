"""What a server still knows after a crash.

Rules this module keeps:

- Nothing here is volatile, and nothing volatile stands here: a crash keeps exactly this and the view, which
  is a file too. What was written and not yet synced is not here.
- `txns` is what the data tree holds, in the order in which it came: all of it in the checker, the end of it in a
  node. What the snapshot covers can be sent to another server as a snapshot only.
- Of `txns` only indexing, slices, iteration and `+` are used, so that a node can give a sequence whose costs do not
  grow with history where the checker gives a tuple.

Sources: the files `acceptedEpoch` and `currentEpoch`, `FileTxnSnapLog`, `QuorumPeer.getLastLoggedZxid`.
"""

import msgspec
from msgspec.structs import replace

from spec.txn import Txn


class Durable(msgspec.Struct, frozen=True):
    """Epochs, snapshot and log of one server.

    `accepted_epoch` is the last epoch whose proposal (LEADERINFO) was acknowledged, `current_epoch` the last
    one whose leader was followed. `snapshot` is the zxid of the newest snapshot, 0 without one; `txns` are
    the transactions, those of the snapshot included where they are known. Raises ValueError when the
    accepted epoch is behind the current one, as `QuorumPeer.loadDataBase` refuses to start. It also refuses
    when the last zxid is of a later epoch than the current one, after a crash between log and epoch; here such
    a server starts, and finds its leader again.
    """

    accepted_epoch: int = 0
    current_epoch: int = 0
    snapshot: int = 0
    txns: tuple[Txn, ...] = ()

    def __post_init__(self) -> None:
        if self.accepted_epoch < self.current_epoch:
            raise ValueError(f"acceptedEpoch {self.accepted_epoch} is less than currentEpoch {self.current_epoch}")

    @property
    def last_zxid(self) -> int:
        """The zxid of the last transaction, or of the snapshot if nothing is behind it."""
        return max(self.snapshot, self.txns[-1].zxid) if self.txns else self.snapshot

    def appended(self, txn: Txn) -> "Durable":
        """With one more transaction at the end of the log (`FileTxnLog.append`)."""
        return replace(self, txns=self.txns + (txn,))  # noqa: RUF005 - a node's sequence is no tuple

    def truncated(self, zxid: int) -> "Durable":
        """Without what is beyond this zxid (`ZKDatabase.truncateLog`)."""
        kept = len(self.txns)
        while kept and self.txns[kept - 1].zxid > zxid:
            kept -= 1
        return replace(self, snapshot=min(self.snapshot, zxid), txns=self.txns[:kept])
