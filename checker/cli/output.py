"""What happens to output that nobody reads to its end: `python -m checker run ... | head`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def unread_output_discarded() -> Iterator[None]:
    """Whoever read the output may have seen enough of it: then what is left goes nowhere, also at the process's end."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)


def say_on_error_stream(text: str) -> None:
    """Print on standard error, if anybody reads it; an exit code does not depend on that."""
    try:
        print(text, file=sys.stderr, flush=True)
    except BrokenPipeError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Have what is still to be written there go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
