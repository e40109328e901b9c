"""Observers that have acknowledged NEWLEADER with a history in memory only.

An observer logs what is committed after UPTODATE, and enters the epoch before. If it ends in between and becomes a
voter, it has entered an epoch without the history of that epoch, as in ZooKeeper. The page is
docs/findings/observer-becomes-voter.md.

Source: `Learner.syncWithLeader`, which logs before the acknowledgement only for a `FollowerZooKeeperServer`.
"""

from __future__ import annotations

from spec.election.vote import is_observer
from spec.quorum import Sid
from spec.server import Server
from spec.zab.state import Learner, LearnerPhase


class UnloggedHistories:
    """The observers that have yet to log the history that they have acknowledged."""

    def __init__(self) -> None:
        self._owing: set[Sid] = set()

    def is_lost_after(self, server: Server) -> bool:
        """Whether a server has ended its part without logging the history; called after each step of a server."""
        part = server.zab
        if isinstance(part, Learner) and part.phase is LearnerPhase.SYNCED:
            if part.not_logged and is_observer(server.sid, server.view):
                self._owing.add(server.sid)
            return False
        return self.is_lost_by(server.sid) and part is None

    def is_lost_by(self, sid: Sid) -> bool:
        """Whether a server that starts again, or leaves this state, had not logged the history."""
        owed = sid in self._owing
        self._owing.discard(sid)
        return owed
