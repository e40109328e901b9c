"""`python -m checker validate FILE...`: the report on standard output, progress on standard error.

Rules this module keeps:

- Exit codes: 0 if everything fits, 12 if something does not, 21 if every evaluation of an invariant was trivial, 150
  for a file that cannot be read, 20 for an interrupt.
- On a terminal, progress is one line that is redrawn; elsewhere it is a plain line every few seconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from checker.cli.command import refused, unread_output_discarded
from checker.report.progress import EVERY, OFTEN
from checker.report.verdict import ExitCode
from checker.validate.journals import JournalError
from checker.validate.report import data, lines
from checker.validate.validate import validate


def validate_command(paths: Sequence[Path], *, as_json: bool = False) -> int:
    """Validate journals and print the report; return the exit code."""
    progress = _Progress()
    try:
        found = validate(paths, progress)
    except JournalError as error:
        progress.close()
        return refused(str(error), ExitCode.SCENARIO)
    finally:
        progress.close()
    with unread_output_discarded():
        print(json.dumps(data(found)) if as_json else "\n".join(lines(found)))
    return int(found.exit_code)


class _Progress:
    """The progress of a validation, as a callback."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._began = self._shown = time.monotonic()
        self._live: Live | None = None

    def __call__(self, what: str, done: int, of: int) -> None:
        now = time.monotonic()
        if now - self._shown < (OFTEN if self._console.is_terminal else EVERY):
            return
        self._shown = now
        line = f"{what}: {done:,} records" + (f" of {of:,}" if of else "") + f", {now - self._began:.0f} s"
        if not self._console.is_terminal:
            self._console.print(Text(line), soft_wrap=True)
            return
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(Text(line, overflow="ellipsis", no_wrap=True), refresh=True)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
