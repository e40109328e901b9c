"""The one thread of a disk: work in order, results and errors for its users, and an end that leaves nothing undone."""

import threading
import time

import pytest

from refimpl.system import Thread


def test_work_is_done_in_the_order_in_which_it_was_given_by_one_thread() -> None:
    thread, done, doers = Thread("one"), list[int](), set[str]()

    def work(number: int) -> int:
        time.sleep(0.002 if number % 2 else 0)
        done.append(number)
        doers.add(threading.current_thread().name)
        return number * 10

    futures = [thread.submit(work, number) for number in range(20)]
    assert [future.result(10) for future in futures] == [number * 10 for number in range(20)]
    assert done == [*range(20)]
    assert doers == {"one"}
    thread.shutdown()


def test_an_error_is_raised_where_the_result_is_asked_for_and_the_thread_goes_on() -> None:
    thread = Thread("one")
    failing, following = thread.submit(int, "x"), thread.submit(int, "7")
    with pytest.raises(ValueError, match="invalid literal"):
        failing.result(10)
    assert following.result(10) == 7
    thread.shutdown()


def test_shutting_down_finishes_the_work_and_accepts_no_more() -> None:
    thread, done = Thread("one"), list[int]()
    for number in range(5):
        thread.submit(lambda number=number: (time.sleep(0.002), done.append(number)))
    thread.shutdown(wait=True)
    thread.shutdown(wait=True)
    assert done == [*range(5)]
    with pytest.raises(RuntimeError, match="shut down"):
        thread.submit(int)


def test_a_thread_without_work_ends_too() -> None:
    Thread("idle").shutdown(wait=True)
