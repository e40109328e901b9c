"""Where what people read is printed: a console of `rich` whose reader may leave.

By itself `rich` ends the whole process with code 1 when a reader has left, whatever the verdict is. Here that is an
error like any other, for whoever prints to judge.
"""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console


class LeavableConsole(Console):
    """A console that raises BrokenPipeError where nobody reads it any more."""

    def on_broken_pipe(self) -> NoReturn:
        """Called where that error is handled, and hands it on."""
        raise  # noqa: PLE0704 (the error that is handled when this is called)
