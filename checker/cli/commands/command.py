"""A command of `python -m checker`: its name, its options, and the function that runs it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from checker.cli.output import say_on_error_stream
from checker.printable import on_a_line
from checker.report.verdict import ExitCode


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
