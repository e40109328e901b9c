"""The notifications of two servers in their journals: which one was heard, if several are equal.

The journals are written by hand. The expected values follow from TCP: the bytes of one connection keep their order, and
those of an older connection may come late.
"""

from pathlib import Path

from checker.validate.happens_before import HappensBefore, Track, happens_before, merged, sender_of
from checker.validate.journals import StartRecord, StepRecord
from checker.validate.replay import Mismatch
from spec.durable import Durable
from spec.effects import Effect, Send
from spec.election.messages import Deliver, Notification, Start
from spec.election.state import ElectionRules
from spec.election.vote import ServerState, Vote
from spec.quorum import Sid, majority_view
from spec.server import Event

ONE, TWO = 1, 2
VIEW = majority_view([ONE, TWO])


class Ensemble:
    """Two servers; the clocks of both show 0 all the time."""

    def __init__(self) -> None:
        self.tracks = [Track(Path(f"{sid}"), sid, frozenset((ONE, TWO))) for sid in (ONE, TWO)]
        for track in self.tracks:
            track.begun(StartRecord(0, 0.0, track.sid, VIEW, Durable(), ElectionRules(), None, ()))

    def _handles(self, sid: Sid, event: Event, *effects: Effect) -> int:
        track = self.tracks[sid - 1]
        track.handled(StepRecord(len(track), 0.0, len(track), event, [], None, True, None), effects)
        return len(track) - 1

    def sends(self, sid: Sid, round: int) -> int:
        """Add a step that sends a notification to the other server; return the number of its record."""
        return self._handles(sid, Start(VIEW), Send(3 - sid, _notification(round)))

    def hears(self, sid: Sid, round: int) -> int:
        """Add a step that hears a notification of the other server; return the number of its record."""
        return self._handles(sid, Deliver(3 - sid, _notification(round)))

    def order(self) -> tuple[HappensBefore, list[int | Mismatch]]:
        """The senders by record, and the order of all records."""
        found = happens_before(self.tracks)
        assert isinstance(found, HappensBefore)
        return found, list(merged(self.tracks, found))


def _notification(round: int) -> Notification:
    return Notification(ServerState.LOOKING, Vote(1, 0, 0), round)


def test_a_repeated_notification_is_heard_when_it_is_sent_last() -> None:
    ensemble = Ensemble()
    ensemble.sends(ONE, 1)
    ensemble.sends(ONE, 2)
    repeated = ensemble.sends(ONE, 1)
    ensemble.hears(TWO, 2)
    heard = ensemble.hears(TWO, 1)

    found, _ = ensemble.order()

    assert sender_of(found.of[TWO][heard]) == (0, repeated)


def test_a_notification_came_late_if_it_is_repeated_only_after_an_answer_to_it() -> None:
    ensemble = Ensemble()
    first = ensemble.sends(ONE, 1)
    ensemble.sends(ONE, 2)
    ensemble.hears(TWO, 2)
    heard = ensemble.hears(TWO, 1)
    ensemble.sends(TWO, 3)
    ensemble.hears(ONE, 3)
    ensemble.sends(ONE, 1)

    found, order = ensemble.order()

    assert sender_of(found.of[TWO][heard]) == (0, first)
    assert not [each for each in order if isinstance(each, Mismatch)]
    assert len(order) == sum(len(track) for track in ensemble.tracks)
    assert found.tolerated == ["server 2 heard a notification of server 1 behind newer ones, as of an older connection"]


def test_a_notification_that_is_first_sent_after_an_answer_to_it_has_no_order() -> None:
    ensemble = Ensemble()
    ensemble.hears(TWO, 1)
    ensemble.sends(TWO, 3)
    ensemble.hears(ONE, 3)
    ensemble.sends(ONE, 1)

    _, order = ensemble.order()

    assert [each for each in order if isinstance(each, Mismatch)] == order[-1:]
