"""The waiting that the recipe objects share: one thread, the driver's, updates a belief and others wait for it.

Rules of this module:

- A waiting thread reads the belief under one condition, and each change of the belief wakes it.
- Time is monotonic. A wait without a timeout ends too when the client is closed, which kazoo need not report: its
  listeners receive LOST once, and a client that is stopped after that stays LOST.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

from kazoo.protocol.states import KeeperState

from refimpl.recipes.errors import ClientClosed

PULSE = 1.0
"""Seconds between two checks for a closed client."""


class Deadline:
    """A moment `timeout` seconds from now, or never (None)."""

    def __init__(self, timeout: float | None) -> None:
        self._at = None if timeout is None else time.monotonic() + timeout

    def left(self) -> float | None:
        """Return the seconds left, at least 0; None for never."""
        return None if self._at is None else max(0.0, self._at - time.monotonic())


def closed(client: Any) -> bool:
    """Whether the application has stopped the client or not started it: only the application can end this state."""
    return client.client_state in (KeeperState.CLOSED, KeeperState.AUTH_FAILED)


def wait_for(
    condition: threading.Condition, holds: Callable[[], bool], deadline: Deadline, client: Any, path: str
) -> bool:
    """Wait, with the condition held, until `holds()`; return False at the deadline, raise ClientClosed if closed."""
    while not holds():
        if closed(client):
            raise ClientClosed(path)
        left = deadline.left()
        if left == 0.0:
            return False
        condition.wait(PULSE if left is None else min(left, PULSE))
    return True
