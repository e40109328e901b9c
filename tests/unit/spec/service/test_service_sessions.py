"""Session ids and passwords as ZooKeeper computes them, timeouts, expiry and ownership, and permitted clients."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.service.expiry import AttendedTime, ExpiryQueue
from spec.service.handshake import ConnectClaims, Invalid, Limits, NewSession, Rejection, Renew, present
from spec.service.sessions import Sessions, first_session_id, next_session_id, password
from spec.tree.data import Record
from spec.tree.replies import Code
from spec.tree.requests import CloseSession, CreateSession, Delete, DeleteContainer, Multi, Request

LIMITS = Limits(4000, 40000)
ALIVE = 0x1000012345670000


# Ids and passwords.

# Apache ZooKeeper 3.8.0 issued the first three pairs; the rest was drawn with java.util.Random directly.
PAIRS = [
    (0x1000023D78C0000, "56f09a562bcac203248237edec0961a6"),
    (0x1000023D78C0001, "69119556cb15a24819c59e18c0927573"),
    (0x1000023D78C0002, "30aea656eb32047a3afc689645f8370c"),
    (0x3001234567890005, "fc58eb628633c1db0daf814f4123ab86"),
    (1, "054cc74a37327db215e702e20c73f005"),
    (-1, "20f62cb5648dc2d771471c8a2486a9ee"),
    (-(1 << 56), "f22acd4a97e69d6d20a49bb638eadb38"),
]


@pytest.mark.parametrize(("session", "expected"), PAIRS)
def test_the_password_is_the_one_that_zookeeper_gives(session: int, expected: str) -> None:
    assert password(session).hex() == expected


def test_an_id_has_the_server_in_its_highest_byte_then_the_time_then_a_count() -> None:
    assert first_session_id(3, 0x1234567890) == 0x03_1234567890_0000


def test_the_time_of_an_id_keeps_its_lowest_five_bytes() -> None:
    assert first_session_id(1, 0xFF_1234567890) == 0x01_1234567890_0000


def test_the_ids_of_a_server_above_127_are_negative_as_java_has_them() -> None:
    assert first_session_id(255, 0) == -(1 << 56)


def test_the_id_that_marks_containers_is_never_given() -> None:
    assert first_session_id(128, 0) == -(1 << 63) + 1


def test_ids_count_on_and_wrap_as_java_does() -> None:
    assert next_session_id(ALIVE) == ALIVE + 1
    assert next_session_id((1 << 63) - 1) == -(1 << 63)


# Expiry.


def test_a_session_expires_at_the_first_tick_after_its_timeout() -> None:
    sessions = Sessions(2000)
    sessions.open(1, 5000, now=1500)
    assert sessions.expired(7999) == ()
    assert sessions.expired(8000) == (1,)


def test_a_timeout_that_ends_with_a_tick_lasts_until_the_next_one() -> None:
    sessions = Sessions(2000, [(1, 4000)], now=0)
    assert (sessions.expired(5999), sessions.expired(6000)) == ((), (1,))


def test_a_session_that_is_heard_of_lives_on() -> None:
    sessions = Sessions(1000, [(1, 5000)], now=0)
    assert sessions.touch(1, 5000, now=5000)
    assert sessions.expired(6000) == ()
    assert sessions.by_expiry() == ((11000, (1,)),)


def test_an_expired_session_is_told_once_and_does_not_come_back() -> None:
    sessions = Sessions(1000, [(1, 5000)], now=0)
    assert sessions.expired(6000) == (1,)
    assert sessions.expired(60000) == ()
    sessions.open(1, 5000, now=7000)
    assert not sessions.touch(1, 5000, now=7000)
    assert sessions.check(1, "a") is Code.SESSION_EXPIRED
    assert 1 in sessions


def test_a_closed_session_is_refused_at_once_and_forgotten_when_that_is_applied() -> None:
    sessions = Sessions(1000, [(1, 5000)], now=0)
    sessions.close(1)
    assert sessions.check(1, "a") is Code.SESSION_EXPIRED
    sessions.remove(1)
    assert 1 not in sessions
    assert len(sessions) == 0


def test_an_unknown_session_has_expired() -> None:
    sessions = Sessions(1000)
    assert not sessions.touch(9, 5000, now=0)
    assert not sessions.claim(9, "a")
    assert sessions.check(9, "a") is Code.SESSION_EXPIRED


def test_a_tick_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="a tick of 0 ms"):
        Sessions(0)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9000), st.integers(0, 3000)), max_size=30))
def test_expiry_agrees_with_a_table_of_deadlines(heard: list[tuple[int, int, int]]) -> None:
    """Each step: activity of a number, its timeout, and the time since the previous step."""
    queue, deadlines, now = ExpiryQueue(700), {}, 0
    for number, timeout, passed in heard:
        now += passed
        due = {each for each, deadline in deadlines.items() if deadline <= now}
        assert set(queue.expired(now)) == due
        deadlines = {each: deadline for each, deadline in deadlines.items() if each not in due}
        queue.update(number, timeout, now)
        # The smallest multiple of the tick that is greater than the end of the timeout.
        deadlines[number] = next(at for at in range(0, now + timeout + 701, 700) if at > now + timeout)
        assert {each: when for when, numbers in queue.by_time() for each in numbers} == deadlines


# Ownership.


def test_the_first_server_that_asks_for_a_session_owns_it() -> None:
    sessions = Sessions(1000, [(1, 5000)], now=0)
    assert sessions.check(1, "a") is Code.OK
    assert sessions.check(1, "b") is Code.SESSION_MOVED


@pytest.mark.parametrize(
    ("record", "code", "owned"),
    [
        (Delete("/a", -1), Code.SESSION_MOVED, Code.SESSION_MOVED),
        (Multi(()), Code.SESSION_MOVED, Code.SESSION_MOVED),
        (CreateSession(4000), Code.OK, Code.SESSION_MOVED),
        (CloseSession(), Code.OK, Code.SESSION_MOVED),
        (DeleteContainer("/a"), Code.OK, Code.SESSION_MOVED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Record) else None,
)
def test_requests_that_begin_or_end_a_session_need_no_owner_and_make_none(
    record: Record, code: Code, owned: Code
) -> None:
    """PrepRequestProcessor.pRequest2Txn checks no session for createSession, closeSession and deleteContainer."""
    sessions = Sessions(1000, [(1, 5000)], now=0)
    assert sessions.check(1, "a") is Code.OK
    assert sessions.check_request(Request(1, 1, record), "b") is code
    assert sessions.check(1, "b") is owned
    expected = Code.OK if code is Code.OK else Code.SESSION_EXPIRED
    assert sessions.check_request(Request(2, 1, record), "b") is expected


def test_a_session_that_is_renewed_elsewhere_has_moved() -> None:
    sessions = Sessions(1000, [(1, 5000)], now=0)
    sessions.check(1, "a")
    assert sessions.claim(1, "b")
    assert (sessions.check(1, "a"), sessions.check(1, "b")) == (Code.SESSION_MOVED, Code.OK)


# Connecting.


def presented(session: int = 0, passwd: bytes | None = bytes(16), zxid: int = 0, timeout: int = 10000) -> ConnectClaims:
    return ConnectClaims(zxid, timeout, session, passwd)


@pytest.mark.parametrize(("wanted", "given"), [(1, 4000), (10000, 10000), (99999, 40000), (-1, 4000)])
def test_the_timeout_is_brought_within_the_limits(wanted: int, given: int) -> None:
    assert present(presented(timeout=wanted), LIMITS, 0) == NewSession(given)


def test_a_client_that_has_seen_more_than_this_server_is_turned_away() -> None:
    assert present(presented(zxid=8), LIMITS, 7) == Rejection("it has seen zxid 0x8, our last one is 0x7")
    assert present(presented(zxid=7), LIMITS, 7) == NewSession(10000)


def test_a_session_is_renewed_for_its_password() -> None:
    assert present(presented(ALIVE, password(ALIVE)), LIMITS, 0) == Renew(ALIVE, 10000)


@pytest.mark.parametrize("passwd", [None, b"", bytes(16), password(ALIVE)[:15]])
def test_a_wrong_password_is_answered_as_an_expired_session(passwd: bytes | None) -> None:
    assert present(presented(ALIVE, passwd), LIMITS, 0) == Invalid()


def test_a_new_session_needs_no_password() -> None:
    assert present(presented(passwd=None), LIMITS, 0) == NewSession(10000)


# A server that stands still.


def test_sessions_outlive_a_pause_of_their_leader() -> None:
    """Nobody was heard during the pause, so it ends no session; ticks without a word from a client do."""
    time = AttendedTime(most=2000, now=0)
    sessions = Sessions(2000, [(ALIVE, 4000)], time.at(0))
    assert sessions.expired(time.tick(1000)) == ()
    assert sessions.expired(time.tick(3_600_000)) == ()
    sessions.touch(ALIVE, 4000, time.at(3_600_100))

    later = [sessions.expired(time.tick(3_600_000 + 1000 * tick)) for tick in range(1, 9)]
    assert later.count((ALIVE,)) == 1
    assert later.index((ALIVE,)) >= 3


@given(st.lists(st.integers(0, 5000), min_size=1))
def test_attended_time_is_the_clock_without_what_exceeds_an_interval(pauses: list[int]) -> None:
    time, now = AttendedTime(most=2000, now=500), 500
    for pause in pauses:
        now += pause
        assert time.tick(now) == time.at(now)
    assert time.at(now) == 500 + sum(min(pause, 2000) for pause in pauses)
