"""What a server still knows after a crash.

Rules this module keeps:

- Nothing here is volatile, and nothing volatile stands here: a crash keeps exactly this and the view, which
  is a file too.
- It is a summary. The log itself belongs to a later part of the specification; an election reads its last
  zxid only.

Sources: the files `acceptedEpoch` and `currentEpoch`, `QuorumPeer.getLastLoggedZxid`.
"""

import msgspec


class Durable(msgspec.Struct, frozen=True):
    """Epochs and the last logged zxid of one server.

    `accepted_epoch` is the last epoch whose proposal (LEADERINFO) was acknowledged, `current_epoch` the last
    one whose leader was followed; `last_zxid` has the epoch in its high 32 bits. Raises ValueError when the
    accepted epoch is behind the current one, as `QuorumPeer.loadDataBase` refuses to start.
    """

    accepted_epoch: int = 0
    current_epoch: int = 0
    last_zxid: int = 0

    def __post_init__(self) -> None:
        if self.accepted_epoch < self.current_epoch:
            raise ValueError(
                f"acceptedEpoch {self.accepted_epoch} is less than currentEpoch {self.current_epoch}"
            )
