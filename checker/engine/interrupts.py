"""Ctrl-C, or SIGTERM where that is as Ctrl-C, while something is under way that should be finished first."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class Interrupts:
    """While it is entered, a first Ctrl-C is only noted; a second one interrupts, as does the first when it is left.

    It changes nothing where a signal does not raise KeyboardInterrupt anyway: beside the main thread, or where the
    program has other plans for it.
    """

    def __init__(self) -> None:
        self.asked = False
        self._noted: tuple[signal.Signals, ...] = ()

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            both = (signal.SIGINT, signal.SIGTERM)
            self._noted = tuple(each for each in both if signal.getsignal(each) is signal.default_int_handler)
        for each in self._noted:
            signal.signal(each, self._note)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._leave()
        if self.asked and kind is None:
            raise KeyboardInterrupt

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
        self._leave()

    def _leave(self) -> None:
        for each in self._noted:
            signal.signal(each, signal.default_int_handler)
        self._noted = ()
