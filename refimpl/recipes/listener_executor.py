"""A caller of the application's listeners, one after the other, in a separate thread.

Rules of this module:

- A listener may block, raise, or call back into the object that it listens to. An exception that it raises is logged.
- Listeners are called in the order of the events. The thread exists only while calls are pending.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable

logger = logging.getLogger("quorate.recipes")


class ListenerExecutor:
    """Calls functions in order; `name` is the name of its thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._calls: deque[Callable[[], object]] = deque()
        self._works = False

    def call(self, *calls: Callable[[], object]) -> None:
        """Schedule these calls, after all earlier ones; does not block."""
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
