"""The process of a search: its available memory, and deferred interrupts.

This module is separate from the engines, so that commands without a search need not import psutil.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType

import psutil

BOTH = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """A context that records a first Ctrl-C and raises KeyboardInterrupt at its end; a second one interrupts
    immediately.

    It has no effect where a signal does not raise KeyboardInterrupt anyway: outside the main thread, or if the program
    has another handler. The present handler is queried each time and not stored, since a signal may arrive at any
    moment.
    """

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for each in BOTH:
                if signal.getsignal(each) is signal.default_int_handler:
                    signal.signal(each, self._note)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._leave()
        if self.requested and kind is None:
            raise KeyboardInterrupt

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
        self._leave()

    def _leave(self) -> None:
        for each in BOTH:
            if signal.getsignal(each) == self._note:
                signal.signal(each, signal.default_int_handler)


def free_memory(share: float) -> int:
    """A share of the available memory, in bytes."""
    return int(share * psutil.virtual_memory().available)
