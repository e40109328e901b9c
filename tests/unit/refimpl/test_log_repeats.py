"""A fact that stays as it is: logged when it is new, then once in five minutes, whatever an hour brings."""

import socket

import pytest

from refimpl.log_lines import MOST_SUBJECTS, REPEATED, Repeats, reason_of


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_peer_that_is_down_for_an_hour_has_a_line_in_five_minutes() -> None:
    clock = Clock()
    repeats = Repeats(clock)
    lines = 0
    for second in range(3600):
        clock.now = float(second)
        lines += repeats.is_due("peer", "refused")
    assert (lines, REPEATED) == (12, 300.0)


def test_another_fact_another_subject_and_a_fact_that_returns_are_news() -> None:
    repeats = Repeats(Clock())
    assert [repeats.is_due(1, "refused"), repeats.is_due(1, "refused")] == [True, False]
    assert [repeats.is_due(1, "no answer"), repeats.is_due(2, "refused")] == [True, True]
    assert [repeats.forget(1), repeats.forget(1), repeats.is_due(1, "no answer")] == [True, False, True]


def test_strangers_without_end_need_bounded_memory() -> None:
    repeats = Repeats(Clock())
    assert all(repeats.is_due(sid, "unknown") for sid in range(3 * MOST_SUBJECTS))
    assert len(repeats._logged) == MOST_SUBJECTS


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
        (socket.gaierror(-2, "Name or service not known"), "the name cannot be resolved (Name or service not known)"),
        (TimeoutError(), "no answer in time"),
        (TimeoutError(110, "Connection timed out"), "Connection timed out"),
        (ValueError("bad label"), "bad label"),
    ],
)
def test_the_reason_of_a_failed_connection_is_in_words(error: Exception, reason: str) -> None:
    assert reason_of(error) == reason
