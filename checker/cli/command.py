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

from checker.report.verdict import ExitCode
from spec.text import on_a_line


@dataclass(frozen=True)
class Command:
    """A command: `options` adds its options to the parser, `run` takes their values and returns the exit code.

    A command imports its modules in `run`, so that other commands do not load them.
    """

    name: str
    description: str
    options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def refused(message: str, code: ExitCode) -> int:
    """Print an error on standard error, and return the code. Control characters in the lines are escaped."""
    say_on_error_stream("error: " + "\n".join(map(on_a_line, message.split("\n"))))
    return int(code)


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
