"""What the application's objects share: a belief that a driver's thread changes and other threads wait for.

Rules of this module:

- Whoever waits looks at what is believed under one condition, and is woken by each change of it.
- Time is monotonic. A wait without a timeout ends all the same when the client is closed, which kazoo need not report
  (its listeners hear LOST once, and a client that is stopped after that stays LOST).
"""

import threading
import time
from collections.abc import Callable
from typing import Any

from kazoo.protocol.states import KeeperState

from refimpl.recipes.errors import ClientClosed

PULSE = 1.0
"""Seconds between two looks whether the client was closed."""


class Deadline:
    """A moment `timeout` seconds from now, or never (None)."""

    def __init__(self, timeout: float | None) -> None:
        self._at = None if timeout is None else time.monotonic() + timeout

    def left(self) -> float | None:
        """Seconds until then, not below 0; None for never."""
        return None if self._at is None else max(0.0, self._at - time.monotonic())


def closed(client: Any) -> bool:
    """Whether the application has stopped the client, or not yet started it: nobody else will end this state."""
    return client.client_state in (KeeperState.CLOSED, KeeperState.AUTH_FAILED)


def wait_for(
    condition: threading.Condition, holds: Callable[[], bool], deadline: Deadline, client: Any, path: str
) -> bool:
    """Wait, with the condition held, until `holds()`; False at the deadline, ClientClosed for a closed client."""
    while not holds():
        if closed(client):
            raise ClientClosed(path)
        left = deadline.left()
        if left == 0.0:
            return False
        condition.wait(PULSE if left is None else min(left, PULSE))
    return True
