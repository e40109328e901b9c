"""What a command of `python -m checker` is: its name, its options, and what runs it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from checker.cli.output import say_on_error_stream
from checker.report.verdict import ExitCode


@dataclass(frozen=True)
class Command:
    """`options` adds what the command takes to its parser; `run` gets what was given, and returns the exit code.

    What a command needs it imports when it runs, so that no other command waits for it.
    """

    name: str
    description: str
    options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def refused(message: str, code: ExitCode) -> int:
    """Say on standard error what is wrong, and return the code."""
    say_on_error_stream(f"error: {message}")
    return int(code)
