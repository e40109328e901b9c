"""Ctrl-C, or SIGTERM where that is as Ctrl-C, while something is under way that should be finished first."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType

BOTH = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """While it is entered, a first Ctrl-C is only noted; a second one interrupts, as does the first when it is left.

    It changes nothing where a signal does not raise KeyboardInterrupt anyway: beside the main thread, or where the
    program has other plans for it. Whose handler is in place is asked and not kept: a signal may come at any moment.
    """

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for each in BOTH:
                if signal.getsignal(each) is signal.default_int_handler:
                    signal.signal(each, self._note)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._leave()
        if self.asked and kind is None:
            raise KeyboardInterrupt

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
        self._leave()

    def _leave(self) -> None:
        for each in BOTH:
            if signal.getsignal(each) == self._note:
                signal.signal(each, signal.default_int_handler)
