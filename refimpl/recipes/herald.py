"""Calls the application's listeners, one after the other, by a thread of their own.

Rules of this module:

- A listener may block, raise, or call back into the object that it listens to. What it raises is logged.
- Listeners are called in the order of what they are told. The thread is there from the first call to the last.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable

logger = logging.getLogger("quorate.recipes")


class Herald:
    """Calls functions in order; `name` is that of its thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._calls: deque[Callable[[], object]] = deque()
        self._works = False

    def call(self, *calls: Callable[[], object]) -> None:
        """Have these called, after all that were given before; returns at once."""
        with self._lock:
            self._calls.extend(calls)
            if self._works or not self._calls:
                return
            self._works = True
        threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._calls:
                    self._works = False
                    return
                call = self._calls.popleft()
            try:
                call()
            except Exception:
                logger.exception("%s: a listener has failed", self._name)
