"""Shows the progress of a run: a line that changes on a terminal, a new line every few seconds elsewhere.

The lines go to standard error; standard output has the report. Rules:

- `explore` calls the object as often as it likes; the object limits the number of lines.
- `close` removes the line from a terminal and ends the output.
- A closed stream ends the output, and the run continues.
- Each line is made from the exploration in the call; the object has no state of the search.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from checker.engine.result import COMPILING, Exploration
from checker.report.text import LeavableConsole
from checker.report.verdict import memory
from spec.text import on_a_line

EVERY = 5.0  # seconds between lines without a terminal
OFTEN = 0.1  # seconds between changes of the line on a terminal


class Progress:
    """The `progress` argument of `explore`: a callable, and a context manager that calls `close`."""

    def __init__(
        self,
        name: str = "",
        stream: TextIO | None = None,
        *,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console or LeavableConsole(file=stream or sys.stderr)
        self._prefix = f"{on_a_line(name)}: " if name else ""
        self._clock = clock
        self._shown = clock()
        self._live: Live | None = None
        self._closed = self._compiling = False

    def __call__(self, exploration: Exploration) -> None:
        """Show the progress of the search, unless the last line is too recent."""
        if exploration.compiling:
            self.compiling()
            return
        self.update(lambda: progress_line(exploration))

    def update(self, line: Callable[[], str]) -> None:
        """Show a line, unless the last one is too recent; `line` is called only to show it."""
        now = self._clock()
        wait = OFTEN if self._console.is_terminal else EVERY
        if now - self._shown >= wait:
            self._shown = now
            self._show(line())

    def compiling(self) -> None:
        """Show that kernels are compiled, in one line for all calls."""
        if not self._compiling:
            self._compiling = True
            self._show(COMPILING)

    def close(self) -> None:
        """Remove the line from the terminal, and show no further lines."""
        self._closed = True
        if self._live is not None:
            self._live.stop()
            self._live = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _show(self, line: str) -> None:
        if self._closed:
            return
        try:
            self._print(Text(self._prefix + line, overflow="ellipsis", no_wrap=True))
        except BrokenPipeError:
            self._closed, self._live = True, None

    def _print(self, text: Text) -> None:
        if not self._console.is_terminal:
            self._console.print(text, soft_wrap=True)
            return
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(text, refresh=True)


def progress_line(exploration: Exploration) -> str:
    """Return the progress of a search on one line."""
    e = exploration
    # Within a level, only the coverage has the number of new states.
    states = max(e.states, 1 + sum(coverage.new for coverage in e.coverage.values()))
    parts = [
        f"{states:,} states",
        f"{states / e.seconds:,.0f}/s" if e.seconds > 0 else "",
        f"depth {max(e.depth, 0)}",
        f"frontier {e.levels[-1]:,}" if e.levels else "",
        memory(e.peak_bytes) if e.peak_bytes else "",
        f"{memory(e.spilled_bytes)} written to disk" if e.spilled_bytes else "",
        f"{e.seconds:.0f} s",
        *e.workers[:1],
    ]
    return ", ".join(part for part in parts if part)
