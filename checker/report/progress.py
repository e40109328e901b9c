"""Shows a run under way: one line that changes on a terminal, a plain line every few seconds elsewhere.

It goes to standard error, so that standard output holds the report alone. Rules of this module:

- It is given to `explore` as `progress` and called at will; it decides itself how often to show anything.
- Once closed the line is gone from a terminal, and nothing is shown any more.
- A reader who has left needs no progress: a run goes on without.
- It keeps no state of the search: each line is made from the exploration that it is given.
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

from checker.engine.result import Exploration
from checker.report.console import LeavableConsole
from checker.report.verdict import memory

EVERY = 5.0  # seconds between lines where there is no terminal
OFTEN = 0.1  # seconds between changes of the line on a terminal
COMPILING = "compiling kernels, on first use only"


class Progress:
    """A callable for `explore(progress=...)` that shows it; use it with `with`, or call `close`."""

    def __init__(
        self,
        name: str = "",
        stream: TextIO | None = None,
        *,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console or LeavableConsole(file=stream or sys.stderr)
        self._prefix = f"{name}: " if name else ""
        self._clock = clock
        self._shown = clock()
        self._live: Live | None = None
        self._closed = False

    def __call__(self, exploration: Exploration) -> None:
        """Show how far the search is, if it is time to."""
        now = self._clock()
        wait = OFTEN if self._console.is_terminal else EVERY
        if now - self._shown >= wait:
            self._shown = now
            self._show(progress_line(exploration))

    def compiling(self) -> None:
        """Say, at once, that kernels are being compiled, and that it will not happen again."""
        self._show(COMPILING)

    def close(self) -> None:
        """Take the line off the terminal."""
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
    """How far a search is, in one line."""
    e = exploration
    # Inside a level the states found so far are known from the coverage alone.
    states = max(e.states, 1 + sum(coverage.new for coverage in e.coverage.values()))
    parts = [
        f"{states:,} states",
        f"{states / e.seconds:,.0f}/s" if e.seconds > 0 else "",
        f"depth {max(e.depth, 0)}",
        f"frontier {e.levels[-1]:,}" if e.levels else "",
        memory(e.peak_bytes) if e.peak_bytes else "",
        f"{e.seconds:.0f} s",
    ]
    return ", ".join(part for part in parts if part)
