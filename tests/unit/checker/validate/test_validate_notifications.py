"""The notifications of two servers in their journals: which one was heard, if several are equal.

The journals are written by hand. The expected values follow from TCP: the bytes of one connection keep their order, and
those of an older connection may come late.
"""

from checker.validate.happens_before import HappensBefore, happens_before, merged, sender_of
from checker.validate.replay import Mismatch
from tests.support.written_journals import WrittenJournals

ONE, TWO = 1, 2


def order_of(journals: WrittenJournals) -> tuple[HappensBefore, list[int | Mismatch]]:
    """The senders by record, and the order of all records."""
    tracks = list(journals.tracks.values())
    found = happens_before(tracks)
    assert isinstance(found, HappensBefore)
    return found, list(merged(tracks, found))


def test_a_repeated_notification_is_heard_when_it_is_sent_last() -> None:
    journals = WrittenJournals()
    journals.sends(ONE, 1)
    journals.sends(ONE, 2)
    repeated = journals.sends(ONE, 1)
    journals.hears(TWO, 2)
    heard = journals.hears(TWO, 1)

    found, _ = order_of(journals)

    assert sender_of(found.of[TWO][heard]) == (0, repeated)


def test_a_notification_came_late_if_it_is_repeated_only_after_an_answer_to_it() -> None:
    journals = WrittenJournals()
    first = journals.sends(ONE, 1)
    journals.sends(ONE, 2)
    journals.hears(TWO, 2)
    heard = journals.hears(TWO, 1)
    journals.sends(TWO, 3)
    journals.hears(ONE, 3)
    journals.sends(ONE, 1)

    found, order = order_of(journals)

    assert sender_of(found.of[TWO][heard]) == (0, first)
    assert not [each for each in order if isinstance(each, Mismatch)]
    assert len(order) == sum(len(track) for track in journals.tracks.values())
    assert found.tolerated == ["server 2 heard a notification of server 1 behind newer ones, as of an older connection"]


def test_a_notification_that_is_first_sent_after_an_answer_to_it_has_no_order() -> None:
    journals = WrittenJournals()
    journals.hears(TWO, 1)
    journals.sends(TWO, 3)
    journals.hears(ONE, 3)
    journals.sends(ONE, 1)

    _, order = order_of(journals)

    assert [each for each in order if isinstance(each, Mismatch)] == order[-1:]
