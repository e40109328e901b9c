"""The treatment of output whose reader stops before the end: `python -m checker run ... | head`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def unread_output_discarded() -> Iterator[None]:
    """A context that discards the remaining output after the reader has closed the stream, including that at process
    exit.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)


def say_on_error_stream(text: str) -> None:
    """Print on standard error. A closed stream is ignored, since an exit code does not depend on it."""
    try:
        print(text, file=sys.stderr, flush=True)
    except BrokenPipeError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Redirect the remaining output of a stream to the null device."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
