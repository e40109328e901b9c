"""A bound on the requests that the client port handles in one turn of the event loop.

The bound is shared by all connections, so that a client with long requests delays the others by one of them. Without it
15 requests of 1 MB each stopped the server for five seconds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

BYTES = 64 * 1024
"""Bytes of requests in one turn; a longer request gets a turn alone."""


class Worker(Protocol):
    """A connection with pending requests."""

    def work(self) -> None:
        """Resume the handling of requests."""


class Turns:
    """The budget of one turn, and the connections that wait for the next one.

    The connections are served in the order in which they began to wait. The first one is served in the next turn. A
    connection that has been served and waits again goes to the end. `call_soon` runs a function in the next turn.
    """

    def __init__(self, call_soon: Callable[[Callable[[], None]], None]) -> None:
        self._call_soon = call_soon
        self._handled = 0
        self._postponed: OrderedDict[Worker, None] = OrderedDict()

    def may_handle(self, connection: Worker, size: int) -> bool:
        """Whether a request of this many bytes fits into this turn; otherwise a later turn calls `connection.work`."""
        if not self._handled:
            self._call_soon(self._next)
        elif self._handled + size > BYTES:
            self._postponed[connection] = None
            return False
        self._handled += max(size, 1)
        return True

    def _next(self) -> None:
        self._handled = 0
        while self._postponed:
            connection, _ = self._postponed.popitem(last=False)
            before = self._handled
            connection.work()
            if connection in self._postponed:
                if self._handled == before:
                    self._postponed.move_to_end(connection, last=False)
                return
