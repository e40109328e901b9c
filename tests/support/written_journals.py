"""The journals of two servers, written by hand: lists of the messages that were sent and read."""

from itertools import count
from pathlib import Path

from checker.validate.happens_before import Track
from checker.validate.journals import StartRecord, StepRecord
from spec.durable import Durable
from spec.effects import Effect, Send
from spec.election.messages import Deliver, Notification, Start
from spec.election.state import ElectionRules
from spec.election.vote import ServerState, Vote
from spec.quorum import Sid, majority_view
from spec.server import Event

SIDS = (1, 2)
VIEW = majority_view(SIDS)


class WrittenJournals:
    """The journals of servers 1 and 2. `skew` is how far the clock of server 1 is ahead."""

    def __init__(self, skew: float = 0.0) -> None:
        self.tracks = {sid: Track(Path(f"{sid}"), sid, frozenset(SIDS)) for sid in SIDS}
        self._skew, self._now = {1: skew, 2: 0.0}, count()
        for sid in SIDS:
            self.starts(sid)

    def starts(self, sid: Sid) -> None:
        track, time = self.tracks[sid], next(self._now) + self._skew[sid]
        track.begun(StartRecord(len(track), time, sid, VIEW, Durable(), ElectionRules(), None, ()))

    def handles(self, sid: Sid, event: Event, *effects: Effect) -> int:
        """Add a step, and return the number of its record."""
        track, time = self.tracks[sid], next(self._now) + self._skew[sid]
        track.handled(StepRecord(len(track), time, len(track), event, [], None, True, None), effects)
        return len(track) - 1

    def sends(self, sid: Sid, round: int) -> int:
        """Add a step that sends a notification to the other server; return the number of its record."""
        return self.handles(sid, Start(VIEW), Send(3 - sid, _notification(round)))

    def hears(self, sid: Sid, round: int) -> int:
        """Add a step that hears a notification of the other server; return the number of its record."""
        return self.handles(sid, Deliver(3 - sid, _notification(round)))


def _notification(round: int) -> Notification:
    return Notification(ServerState.LOOKING, Vote(1, 0, 0), round)
