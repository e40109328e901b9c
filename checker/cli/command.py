"""A command of `python -m checker`, and the streams that all commands print to.

The reader of an output may stop before the end: `python -m checker run ... | head`. The rest is then discarded, and the
exit code stays.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from spec.text import on_lines

STANDARD = (0, 1, 2)
"""The numbers of the standard streams."""


@dataclass(frozen=True)
class Command:
    """A command: `options` adds its options to the parser, `run` takes their values and returns the exit code.

    A command imports its modules in `run`, so that other commands do not load them.
    """

    name: str
    description: str
    options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def refused(message: str, code: int) -> int:
    """Print an error on standard error, and return the code."""
    say_on_error_stream(f"error: {message}")
    return int(code)


def open_closed_streams() -> None:
    """Open the null device in the place of closed standard streams, so that no file that is opened later takes it."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= STANDARD[-1]:
        os.set_inheritable(number, True)
    os.close(number)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))


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


def say(text: str = "", end: str = "\n", stream: TextIO | None = None) -> None:
    """Print lines, on standard output unless a stream is given: the way of all commands, for text of any origin.

    Nothing in them moves a cursor, turns the direction of a line or is invisible.
    """
    print(on_lines(text), end=end, file=stream or sys.stdout, flush=True)


def say_on_error_stream(text: str) -> None:
    """Print on standard error. A closed stream is ignored, since an exit code does not depend on it."""
    try:
        say(text, stream=sys.stderr)
    except BrokenPipeError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Redirect the remaining output of a stream to the null device."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
