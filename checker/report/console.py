"""The console for output to people; its reader may close the stream early.

On a broken pipe, a plain console of `rich` ends the whole process with code 1, for any verdict. Here a broken pipe is
an ordinary error, which the caller handles.
"""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console


class LeavableConsole(Console):
    """A console that raises BrokenPipeError if the reader has closed the stream."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise the error again; `rich` calls this method while it handles it."""
        raise  # noqa: PLE0704 (the error that is handled when this is called)
