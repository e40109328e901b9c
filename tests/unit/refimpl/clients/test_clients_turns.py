"""The turns of connections on the client port: requests within one budget, in the order of the connections."""

from collections import deque
from collections.abc import Callable
from typing import Any, cast

from refimpl.clients.connection import BYTES, Turns

LARGE, SMALL = BYTES - 1000, 2000
"""A large request and a small one exceed the budget of one turn together."""


class Asking:
    """A connection with requests of these sizes; `served` receives its name for each request that is handled."""

    def __init__(self, name: str, turns: Turns, served: list[str], *sizes: int) -> None:
        self.name, self._turns, self._served = name, turns, served
        self._sizes = deque(sizes)

    def work(self) -> None:
        while self._sizes and self._turns.may_handle(cast(Any, self), self._sizes[0]):
            self._sizes.popleft()
            self._served.append(self.name)


def served(*requests: tuple[str, tuple[int, ...]]) -> list[list[str]]:
    """Return the connections that are served in each turn; all of them have requests in the first turn."""
    due: deque[Callable[[], None]] = deque()
    handled: list[str] = []
    by_turn: list[list[str]] = []
    turns = Turns(due.append)
    for name, sizes in requests:
        Asking(name, turns, handled, *sizes).work()
    while due:
        by_turn.append(handled.copy())
        handled.clear()
        due.popleft()()
    return by_turn


def test_a_connection_without_a_turn_keeps_its_place() -> None:
    assert served(*((name, (LARGE,)) for name in "abcd")) == [["a"], ["b"], ["c"], ["d"]]


def test_a_connection_that_was_served_waits_behind_the_others() -> None:
    assert served(("a", (LARGE,) * 3), ("b", (LARGE,)), ("c", (LARGE,))) == [["a"], ["a"], ["b"], ["c"], ["a"]]


def test_small_requests_share_a_turn() -> None:
    assert served(("a", (LARGE,)), ("b", (SMALL,)), ("c", (SMALL,))) == [["a"], ["b", "c"]]
