"""One connection of a leader with a learner, from the leader's side: the order of its packets.

Rules of this module:

- DIFF, TRUNC or SNAP comes first, NEWLEADER once, UPTODATE once and after it.
- Proposals follow each other without a gap in the leader's history; a COMMIT is for the oldest proposal on this
  connection that has none.
- After a SNAP, proposals may begin before its zxid: the leader reads the zxid of the snapshot after it has begun to
  forward proposals.

Source: `spec.zab.leader_sync.stream`; `LearnerHandler.run`, `LearnerHandler.syncFollower`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from spec.quorum import Sid
from spec.txn import Txn, format_zxid
from spec.zab.packets import AckEpoch, Commit, QuorumPacket, Snap, Trunc, described


class Unfit(Exception):  # noqa: N818 - it is a finding, and not an error of the program
    """An observation does not fit; the message names the allowed one."""


class LearnerStream:
    """A connection. `delivered` are the learner's packets that reached the leader; `floor` is a zxid that the leader
    had certainly committed when it chose DIFF, TRUNC or SNAP.
    """

    def __init__(self, number: int, learner: Sid, leader: Sid) -> None:
        self.number, self.learner, self.leader = number, learner, leader
        self.delivered: list[QuorumPacket] = []
        self.floor = 0
        self.closed = False
        self._first: QuorumPacket | None = None
        self._last = 0  # the last zxid that the learner has, or was sent
        self._snap = False  # a SNAP was the last packet
        self._uncommitted: deque[int] = deque()
        self._new_leader = self._up_to_date = False

    @property
    def last_zxid(self) -> int:
        """The learner's last zxid, from its ACKEPOCH."""
        return next(each.last_zxid for each in self.delivered if isinstance(each, AckEpoch))

    @property
    def has_accepted(self) -> bool:
        """Whether ACKEPOCH has reached the leader."""
        return any(isinstance(each, AckEpoch) for each in self.delivered[:2])

    def is_current(self, read: Mapping[int, int]) -> bool:
        """Whether the leader has read the beginning of this connection."""
        return bool(read.get(self.number))

    def begin(self, packet: QuorumPacket) -> None:
        """DIFF, TRUNC or SNAP. Raises Unfit for a second one."""
        if self._first is not None:
            raise Unfit(f"nothing of this kind after {described(self._first)}")
        self._first, self._snap = packet, isinstance(packet, Snap)
        self._last = packet.zxid if isinstance(packet, Snap | Trunc) else self.last_zxid

    def following(self, known: tuple[Txn, ...]) -> Txn | None:
        """The next transaction of the leader's history for this learner; None if it has all known ones.

        Raises Unfit before DIFF, TRUNC or SNAP.
        """
        if self._first is None:
            raise Unfit("DIFF, TRUNC or SNAP first")
        low, high = 0, len(known)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if known[middle].zxid <= self._last else (low, middle)
        return known[low] if low < len(known) else None

    def may_repeat(self, zxid: int) -> bool:
        """Whether a proposal may be one that the snapshot of the SNAP before it has."""
        return self._snap and self.floor < zxid <= self._last

    def proposed(self, zxid: int) -> None:
        """Note a proposal."""
        self._last, self._snap = zxid, False
        self._uncommitted.append(zxid)

    def committed(self, zxid: int) -> None:
        """Note a COMMIT. Raises Unfit if it is not that of the oldest uncommitted proposal."""
        if not self._uncommitted:
            raise Unfit("no COMMIT: every proposal of this connection is committed")
        if self._uncommitted[0] != zxid:
            raise Unfit(described(Commit(self._uncommitted[0])))
        self._uncommitted.popleft()

    def new_leader(self, needed: int) -> None:
        """Note NEWLEADER. Raises Unfit for a second one, or if the learner lacks a transaction up to `needed`."""
        if self._first is None:
            raise Unfit("DIFF, TRUNC or SNAP first")
        if self._new_leader:
            raise Unfit("no second NEWLEADER")
        if self._last < needed:
            raise Unfit(f"the transactions up to {format_zxid(needed)}, which was committed, before NEWLEADER")
        if self._uncommitted and self._uncommitted[0] <= needed:
            raise Unfit(f"COMMIT {format_zxid(self._uncommitted[0])} before NEWLEADER")
        self._new_leader = True

    def up_to_date(self) -> None:
        """Note UPTODATE. Raises Unfit for a second one, or before NEWLEADER."""
        if not self._new_leader or self._up_to_date:
            raise Unfit("no second UPTODATE" if self._up_to_date else "NEWLEADER before UPTODATE")
        self._up_to_date = True
