"""The position of a server: whether it counts, the last zxid that it delivered, the snapshot that its disk has just
written.

Each function reads only the server and, for the disk, the effects of its step.
"""

from __future__ import annotations

from spec.effects import DiskOperation, Effects, Persist
from spec.server import Server
from spec.txn import Txn
from spec.zab.state import Leader, LeaderPhase, Learner, LearnerPhase, TakeSnapshot


def is_present(server: Server) -> bool:
    """Whether a server leads an established epoch, or has acknowledged NEWLEADER."""
    part = server.zab
    if isinstance(part, Leader):
        return part.phase in (LeaderPhase.NEWLEADER_ACK, LeaderPhase.BROADCAST)
    return isinstance(part, Learner) and part.phase in (LearnerPhase.SYNCED, LearnerPhase.BROADCAST)


def delivered(server: Server) -> int | None:
    """The last zxid that a serving server has delivered; None if it does not serve."""
    part = server.zab
    if part is None or not part.serves:
        return None
    return part.committed if isinstance(part, Leader) else part.delivered


def tree_in_memory(server: Server) -> tuple[Txn, ...] | None:
    """The tree of a learner after TRUNC or SNAP, until it is on disk; None if the disk already has it."""
    return server.zab.tree if isinstance(server.zab, Learner) else None


def _queue(server: Server) -> tuple[DiskOperation, ...]:
    """The pending operations of the disk."""
    return () if server.zab is None else tuple(server.zab.queue)


def written(before: Server, after: Server, effects: Effects) -> TakeSnapshot | None:
    """The snapshot that the disk has finished in this step."""
    asked = (*_queue(before), *(each.operation for each in effects if isinstance(each, Persist)))
    left = _queue(after)
    ended = (each for each in asked if isinstance(each, TakeSnapshot) and each not in left)
    return next(ended, None)
