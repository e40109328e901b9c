"""The order in which the requests of one connection are answered, and the effect of an answer on the connection."""

from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.service.connection import (
    ROUTES,
    Ending,
    PendingRequest,
    Route,
    answered_at_once,
    ending,
    number_settled,
    throttled,
)
from spec.tree import requests
from spec.tree.replies import Code
from spec.tree.requests import OPCODES

IN_FLIGHT = (Route.WRITE, Route.SYNC)
Waiting: TypeAlias = tuple[PendingRequest, ...]


def asked(xid: int, route: Route) -> PendingRequest:
    return PendingRequest(xid, None, route)


def arrive(waiting: Waiting, new: PendingRequest) -> tuple[Waiting, bool]:
    if answered_at_once(new, behind_others=bool(waiting)):
        return waiting, True
    return (*waiting, new), False


def settle(waiting: Waiting, xid: int, route: Route, *, closes: bool = False) -> tuple[Waiting, Waiting]:
    """Return the requests that still wait after a transaction or the end of a sync, and the answered ones."""
    end = number_settled(waiting, xid, route, closes=closes)
    return waiting[end:], waiting[:end]


def test_every_request_has_a_route_and_no_write_is_a_read() -> None:
    """PrepRequestProcessor contains the requests that change the tree: they become transactions."""
    assert set(ROUTES) == set(OPCODES.values())
    writes = {record for record, route in ROUTES.items() if route is Route.WRITE}
    made = {requests.Create, requests.Create2, requests.CreateContainer, requests.CreateTtl, requests.Delete}
    changed = {
        requests.SetData,
        requests.SetAcl,
        requests.Check,
        requests.Multi,
        requests.Reconfig,
        requests.CloseSession,
    }
    assert writes == made | changed


def all_of(*routes: Route) -> Waiting:
    """Return requests that have arrived one after the other, with the xids 1, 2, ..."""
    waiting: Waiting = ()
    for xid, route in enumerate(routes, 1):
        waiting, _ = arrive(waiting, asked(xid, route))
    return waiting


def xids(waiting: Waiting) -> list[int]:
    return [each.xid for each in waiting]


def test_a_read_is_answered_at_once_when_nothing_waits() -> None:
    assert arrive((), asked(1, Route.READ)) == ((), True)


@pytest.mark.parametrize("route", IN_FLIGHT)
def test_a_read_waits_behind_a_write_or_a_sync_of_its_connection(route: Route) -> None:
    assert xids(all_of(route, Route.READ)) == [1, 2]


def test_a_commit_answers_its_write_and_the_reads_up_to_the_next_write() -> None:
    waiting, answered = settle(all_of(Route.WRITE, Route.READ, Route.READ, Route.WRITE, Route.READ), 1, Route.WRITE)
    assert (xids(answered), xids(waiting)) == ([1, 2, 3], [4, 5])


def test_the_next_write_is_answered_by_its_own_commit_only() -> None:
    waiting = all_of(Route.WRITE, Route.WRITE)
    assert settle(waiting, 2, Route.WRITE) == (waiting, ())


def test_a_commit_of_an_earlier_connection_of_the_session_answers_nobody() -> None:
    waiting = all_of(Route.WRITE)
    assert settle(waiting, -5, Route.WRITE) == (waiting, ())


def test_the_end_of_a_sync_does_not_answer_a_write_of_the_same_xid() -> None:
    waiting = all_of(Route.WRITE)
    assert settle(waiting, 1, Route.SYNC) == (waiting, ())


def test_a_commit_while_nothing_waits_answers_nobody() -> None:
    assert settle((), 0, Route.WRITE) == ((), ())


def test_authentication_is_answered_ahead_of_what_waits() -> None:
    waiting = all_of(Route.WRITE)
    assert arrive(waiting, asked(-4, Route.AUTH)) == (waiting, True)


def test_what_is_not_implemented_keeps_its_place() -> None:
    assert xids(all_of(Route.WRITE, Route.UNIMPLEMENTED, Route.MALFORMED)) == [1, 2, 3]


def test_every_opcode_has_a_route() -> None:
    assert ROUTES.keys() == set(OPCODES.values())


def test_sessions_are_opened_and_containers_deleted_by_servers_only() -> None:
    assert {ROUTES[requests.CreateSession], ROUTES[requests.DeleteContainer]} == {Route.REFUSED}


def test_the_answer_to_close_session_is_the_last() -> None:
    closing = PendingRequest(7, requests.CloseSession(), Route.WRITE)
    assert ending(closing, Code.OK) is Ending.ENDS


def test_failed_authentication_is_answered_and_ends_the_connection() -> None:
    auth = PendingRequest(-4, requests.SetAuth(0, "none", b""), Route.AUTH)
    assert (ending(auth, Code.AUTH_FAILED), ending(auth, Code.OK)) == (Ending.ENDS, Ending.STAYS)


def test_a_session_that_has_moved_is_cut_off_without_an_answer() -> None:
    assert ending(asked(3, Route.WRITE), Code.SESSION_MOVED) is Ending.DROPPED


def test_an_ordinary_error_leaves_the_connection() -> None:
    assert ending(asked(3, Route.WRITE), Code.NO_NODE) is Ending.STAYS


def test_over_the_limit_of_the_server_each_connection_may_have_one_request() -> None:
    assert not throttled(0, 1001, 1000)
    assert throttled(1, 1001, 1000)
    assert not throttled(500, 1000, 1000)


ROUTED = st.sampled_from([Route.READ, Route.WRITE, Route.SYNC, Route.UNIMPLEMENTED, Route.MALFORMED])


@given(st.lists(st.one_of(ROUTED, st.just(None)), max_size=40))
def test_answers_come_in_the_order_of_the_requests_each_once(steps: list[Route | None]) -> None:
    """A step is a request, or None: the oldest write or sync in flight completes."""
    waiting: Waiting = ()
    answers: list[int] = []
    in_flight: list[tuple[int, Route]] = []
    count = 0
    for step in steps:
        if step is not None:
            count += 1
            waiting, at_once = arrive(waiting, asked(count, step))
            if at_once:
                answers.append(count)
            if step in IN_FLIGHT:
                in_flight.append((count, step))
        elif in_flight:
            waiting, answered = settle(waiting, *in_flight.pop(0))
            answers += xids(answered)
    for xid, route in in_flight:
        waiting, answered = settle(waiting, xid, route)
        answers += xids(answered)
    assert (answers, waiting) == (list(range(1, count + 1)), ())


@given(st.lists(ROUTED, max_size=20))
def test_what_waits_always_begins_with_a_write_or_a_sync(routes: list[Route]) -> None:
    waiting = all_of(*routes)
    while waiting:
        assert waiting[0].route in IN_FLIGHT
        waiting, _ = settle(waiting, waiting[0].xid, waiting[0].route)


def test_the_end_of_the_session_asked_for_elsewhere_answers_nothing_here() -> None:
    waiting = (PendingRequest(1, requests.Create("/a", b"", (), 0), Route.WRITE),)
    assert settle(waiting, 1, Route.WRITE, closes=True) == (waiting, ())
