"""The judge of the recipes' chaos finds every kind of violation in a record that has one, and none in other records."""

from pathlib import Path

import pytest

from tests.node.recipes_chaos import record
from tests.node.recipes_chaos.hub import Guard
from tests.node.recipes_chaos.judge import ALIVE, EMPTY, FAILED, ORDER, ORPHAN, OWNER, SERVED, Bounds, judge
from tests.node.recipes_chaos.queues import sessions_of
from tests.node.recipes_chaos.record import Entry, Place

BOUNDS = Bounds(time_out=3.0, election=5.0, served=20.0)
Q = "/q"
A, B = "a.0/0", "b.0/0"
OPENED = [record.Opened(0.0, A, 1), record.Opened(0.0, B, 2)]
PEACE: list[Entry] = [
    record.Calm(100.0),
    record.Waits(100.0, A, Q, True),
    record.Held(100.1, A, Q, 90),
    record.Rests(100.2, A),
    record.Rests(100.3, B),
    record.Emptied(101.0, Q, (), 100.3),
]
"""Both clients are served, and no znode remains."""


def clauses(*entries: Entry) -> list[str]:
    """The violated clauses in a run of two clients that ends well, with these entries in it."""
    return [violation.clause for violation in judge([*OPENED, *entries, *PEACE], BOUNDS).violations]


def test_a_run_that_ends_well_violates_nothing() -> None:
    writes = [record.Write(1.0, A, Q, 10, True), record.Write(2.0, B, Q, 20, True), record.Write(3.0, A, Q, 10, False)]

    assert clauses(*writes) == []


def test_an_accepted_write_below_an_accepted_token_is_out_of_order() -> None:
    assert clauses(record.Write(1.0, B, Q, 20, True), record.Write(2.0, A, Q, 10, True)) == [ORDER]


def test_tokens_of_two_resources_have_nothing_to_do_with_one_another() -> None:
    other = record.Emptied(101.0, "/r", (), 100.3)

    assert clauses(record.Write(1.0, B, "/r", 20, True), record.Write(2.0, A, Q, 10, True), other) == []


def test_a_token_of_two_clients_is_found() -> None:
    assert clauses(record.Held(1.0, A, Q, 10), record.Write(2.0, B, Q, 10, True)) == [OWNER]


def test_a_znode_of_a_session_that_its_client_knew_to_be_over_is_found() -> None:
    ended, place = record.Ended(5.0, A, 1), (Place("n_1", 1, 10),)

    assert clauses(ended, record.Sample(6.0, Q, place)) == [ALIVE]
    assert clauses(record.Sample(4.0, Q, place), ended) == []


def test_a_znode_of_a_session_that_the_leader_does_not_know_is_found() -> None:
    place = (Place("n_1", 1, 10),)

    assert clauses(record.Sample(4.0, Q, place, (2,))) == [ALIVE]
    assert clauses(record.Sample(4.0, Q, place, (1, 2))) == []


def test_a_znode_of_an_unknown_session_is_found() -> None:
    assert clauses(record.Sample(4.0, Q, (Place("n_1", 7, 10),))) == [ALIVE]


@pytest.mark.parametrize(("seconds", "found"), [(5.9, []), (6.1, [ALIVE])])
def test_the_znode_of_a_client_that_was_killed_goes_with_its_session(seconds: float, found: list[str]) -> None:
    assert clauses(record.Killed(10.0, (A,)), record.Sample(10.0 + seconds, Q, (Place("n_1", 1, 10),))) == found


def test_a_new_leader_gives_the_sessions_of_the_dead_their_time_anew() -> None:
    killed, disturbed = record.Killed(10.0, (A,)), record.Disturbed(12.0, 14.0)
    place = (Place("n_1", 1, 10),)

    assert clauses(killed, disturbed, record.Sample(20.0, Q, place)) == []
    assert clauses(killed, disturbed, record.Sample(26.0, Q, place)) == [ALIVE]


def test_two_znodes_of_a_session_are_an_orphan_if_they_stay() -> None:
    places = (Place("n_1", 1, 10), Place("n_2", 1, 11))
    looks = [record.Sample(at, Q, places) for at in (10.0, 20.0, 27.0, 28.0)]

    assert clauses(*looks) == [ORPHAN]
    assert clauses(*looks[:2]) == []


def test_two_znodes_of_a_session_are_no_orphan_if_one_of_them_goes_in_between() -> None:
    both, one = (Place("n_1", 1, 10), Place("n_2", 1, 11)), (Place("n_2", 1, 11),)

    assert clauses(record.Sample(10.0, Q, both), record.Sample(20.0, Q, one), record.Sample(30.0, Q, both)) == []


def test_a_client_that_is_not_served_is_found() -> None:
    entries = [each for each in [*OPENED, *PEACE] if not (isinstance(each, record.Rests) and each.client == B)]

    assert [violation.clause for violation in judge(entries, BOUNDS).violations] == [SERVED]


def test_a_client_that_is_served_late_is_found() -> None:
    entries = [each for each in [*OPENED, *PEACE] if not (isinstance(each, record.Rests) and each.client == B)]
    late = [*entries, record.Rests(120.5, B)]

    assert [violation.clause for violation in judge(late, BOUNDS).violations] == [SERVED]


def test_a_client_that_was_killed_need_not_be_served() -> None:
    assert clauses(record.Opened(0.0, "c.0/0", 3), record.Killed(50.0, ("c.0/0",))) == []


def test_a_run_that_has_no_end_is_found() -> None:
    without = [each for each in PEACE if not isinstance(each, record.Calm)]

    assert [violation.clause for violation in judge([*OPENED, *without], BOUNDS).violations] == [SERVED]


def test_what_is_left_in_a_queue_is_found() -> None:
    left = [*PEACE[:-1], record.Emptied(107.0, Q, (Place("n_1", 1, 10),), 100.3)]

    assert [violation.clause for violation in judge([*OPENED, *left], BOUNDS).violations] == [EMPTY]


def test_a_queue_without_a_last_sample_is_found() -> None:
    assert [violation.clause for violation in judge([*OPENED, *PEACE[:-1]], BOUNDS).violations] == [EMPTY]


def test_an_exception_of_a_client_is_found() -> None:
    assert clauses(record.Failed(1.0, A, "AssertionError")) == [FAILED]


def test_figures_are_those_of_the_record() -> None:
    found = judge(
        [
            *OPENED,
            record.Waits(1.0, A, Q),
            record.Held(3.5, A, Q, 10),
            record.Write(4.0, A, Q, 10, True),
            record.Write(4.75, A, Q, 9, False),
            record.Waits(5.0, B, Q),
            record.GaveUp(6.0, B),
            record.Ended(7.0, B, 2),
            record.Fault(8.0, "drop now", A),
            *PEACE,
        ],
        BOUNDS,
    )

    assert found.violations == []
    assert (found.accepted, found.rejected, found.gave_up, found.sessions, found.expired) == (1, 1, 1, 2, 1)
    assert found.acquisitions == {Q: 2}
    assert found.faults == {"drop now": 1}
    assert found.longest_wait == 2.5
    assert found.longest_window == 0.75
    assert found.longest_last_wait == pytest.approx(0.1)


def test_a_record_is_the_same_when_it_was_saved_and_read(tmp_path: Path) -> None:
    entries = [*OPENED, record.Sample(1.0, Q, (Place("n_1", 1, 10),), (1, 2)), record.Killed(2.0, (A,)), *PEACE]
    file = tmp_path / "record.jsonl"
    record.save(file, entries)

    assert record.load(file) == entries


def test_the_resource_takes_no_token_below_the_greatest_it_has_taken() -> None:
    guard = Guard()

    assert [guard.take(Q, token) for token in (5, 5, 9, 7, 9)] == [True, True, True, False, True]
    assert guard.take("/r", 1)


def test_the_sessions_of_a_dump_are_those_before_the_ephemeral_nodes() -> None:
    dump = "SessionTracker dump:\nGlobal Sessions(1):\n0x10a\t3000ms\nephemeral nodes dump:\n0x2b:\n\t/q/n_1\n"

    assert sessions_of(dump) == {0x10A}
    assert sessions_of("This ZooKeeper instance is not currently serving requests") is None
