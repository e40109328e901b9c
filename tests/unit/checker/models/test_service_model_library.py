"""The client library as a state machine: the zxid it has seen, its watches, its outstanding requests."""

import pytest

from spec import client
from spec.client import Awaits, Library, SessionState
from spec.tree.apply import EventType
from spec.tree.data import Record
from spec.tree.replies import Code
from spec.tree.requests import Exists, GetChildren2, GetData, SetData, SetWatches

SET, GET = SetData("/a", b"", -1), GetData("/a", True)
WATCHING = Library(
    session=17, seen=4, watches=frozenset({(Awaits.DATA, "/b"), (Awaits.DATA, "/a"), (Awaits.CHILDREN, "/a")})
)


def test_answers_take_what_they_answer_off_what_is_outstanding() -> None:
    asked = client.submit(client.submit(Library(), SET), GET)

    assert asked.outstanding == (SET, GET)
    assert client.answered(asked, SET, Code.OK, 1).outstanding == (GET,)


def test_what_was_seen_is_the_greatest_zxid_of_an_answer() -> None:
    assert client.answered(Library(seen=3), SET, Code.OK, 5).seen == 5
    assert client.answered(Library(seen=3), SET, Code.OK, 2).seen == 3


def test_a_notice_is_nothing_that_was_seen() -> None:
    assert client.notified(WATCHING, EventType.NODE_DATA_CHANGED, "/a").seen == 4


@pytest.mark.parametrize(
    ("read", "code", "awaits"),
    [
        (GetData("/a", True), Code.OK, Awaits.DATA),
        (GetData("/a", True), Code.NO_NODE, None),
        (GetData("/a", False), Code.OK, None),
        (GetChildren2("/a", True), Code.OK, Awaits.CHILDREN),
        (Exists("/a", True), Code.OK, Awaits.DATA),
        (Exists("/a", True), Code.NO_NODE, Awaits.CREATION),
        (SetData("/a", b"", -1), Code.OK, None),
    ],
)
def test_a_watch_is_registered_by_the_answer_to_a_read(read: Record, code: Code, awaits: Awaits | None) -> None:
    watches = client.answered(Library(), read, code, 1).watches

    assert watches == (frozenset() if awaits is None else {(awaits, "/a")})


@pytest.mark.parametrize(
    ("event", "left"),
    [
        (EventType.NODE_DATA_CHANGED, {(Awaits.DATA, "/b"), (Awaits.CHILDREN, "/a")}),
        (EventType.NODE_CHILDREN_CHANGED, {(Awaits.DATA, "/b"), (Awaits.DATA, "/a")}),
        (EventType.NODE_DELETED, {(Awaits.DATA, "/b")}),
    ],
)
def test_a_notice_ends_the_watches_that_it_explains(event: EventType, left: set[tuple[Awaits, str]]) -> None:
    assert client.notified(WATCHING, event, "/a").watches == left


def test_with_a_connection_goes_what_is_outstanding_and_watches_stay_where_they_are_kept() -> None:
    asked = client.submit(WATCHING, SET)

    kept = client.lost(asked, keeps_watches=True)
    assert (kept.phase, kept.outstanding, kept.watches) == (SessionState.CONNECTING, (), WATCHING.watches)
    assert client.lost(asked, keeps_watches=False).watches == frozenset()


def test_watches_are_registered_again_with_what_was_seen() -> None:
    assert WATCHING.set_watches == SetWatches(4, ("/a", "/b"), (), ("/a",))
    assert Library().set_watches is None


def test_a_new_session_begins_with_nothing_to_watch() -> None:
    assert client.connected(WATCHING, 17).watches == WATCHING.watches
    assert client.connected(WATCHING, 18).watches == frozenset()


def test_an_expired_session_binds_no_other_to_what_it_saw() -> None:
    assert client.expired(WATCHING) == Library(SessionState.EXPIRED, 17)
