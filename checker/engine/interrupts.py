"""Ctrl-C while something is under way that should be finished first."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class Interrupts:
    """While it is entered, a first Ctrl-C is only noted; a second one interrupts, as does the first when it is left.

    It changes nothing where Ctrl-C does not raise KeyboardInterrupt anyway: beside the main thread, or where the
    program has other plans for it.
    """

    def __init__(self) -> None:
        self.asked = False
        self._entered = False

    def __enter__(self) -> None:
        ours = threading.current_thread() is threading.main_thread()
        if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._entered = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._leave()
        if self.asked and kind is None:
            raise KeyboardInterrupt

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
        self._leave()

    def _leave(self) -> None:
        if self._entered:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._entered = False
