"""A command of `python -m checker`: its options, its exit code, and the streams that all commands print to.

The reader of an output may stop before the end: `python -m checker run ... | head`. The rest is then discarded, and the
exit code stays.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from importlib.util import find_spec
from typing import TYPE_CHECKING, NoReturn, TextIO

from checker.command_table import Entry, called
from spec.packages import needed
from spec.text import on_a_line, on_lines, required_decimal

if TYPE_CHECKING:
    from spec.releases import Release

STANDARD = (0, 1, 2)
"""The numbers of the standard streams."""


NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"  # as precise as a float


class ExitCode(IntEnum):
    """The exit codes of a run. Codes that TLC also has mean the same here."""

    PASSED = 0
    UNEXPECTED = 1  # it passed where another verdict was expected
    COMMAND_LINE = 2
    DEADLOCK = 11
    SAFETY = 12
    LIVENESS = 13
    INCOMPLETE = 20
    VACUOUS = 21
    ONLY_IN_STAGES = 22  # a roll-out: safe in stages, by commands or in one way of working, and not as it is applied
    SCENARIO = 150
    CONFIGURATION = 151
    TOO_LARGE = 152


class CommandError(Exception):
    """An error that ends a command: its message is one for the user, and the process ends with `exit_code`."""

    exit_code = ExitCode.COMMAND_LINE


class Parser(argparse.ArgumentParser):
    """A parser with a one-line error instead of the whole usage."""

    def error(self, message: str) -> NoReturn:
        """Print the error and the command for the help on standard error, and exit with code 2."""
        self.exit(2, f"error: {on_a_line(message)}; for the options: {self.prog} --help\n")


@dataclass(frozen=True)
class Command:
    """A command: `options` adds its options to the parser, `run` takes their values and returns the exit code.

    It imports the modules for its work in `run`, so that a bad command line or a help does not load them.
    """

    options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def command_parser(entry: Entry) -> argparse.ArgumentParser:
    """Make the parser of a command."""
    parser = command_line(called(entry.name), entry.line)
    command: Command = entry.load()
    command.options(parser)
    return parser


def command_line(prog: str, description: str, epilog: str | None = None) -> Parser:
    """Make a parser in the form of all commands."""
    return Parser(
        prog,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def release(text: str) -> "Release":
    """Parse a release of the table."""
    # Not at the top: `python -m harness fetch` imports this module before msgspec is installed.
    from spec.releases import ReleaseError, release_named  # noqa: PLC0415

    try:
        return release_named(text)
    except ReleaseError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def seconds(text: str) -> float:
    """Parse a time in seconds: a number, with an optional unit s, m or h."""
    match = re.fullmatch(rf"({NUMBER})([smh]?)", text.strip().lower())
    number = required_decimal(match[1]) if match is not None else 0
    if match is None or not number:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write 60s, 5m or 1h")
    return number * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def missing(module: str) -> str | None:
    """The message that a module is needed which is not installed; None if it is."""
    return needed(module) if find_spec(module) is None else None


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


def show_on_terminal(line: str = "") -> None:
    """Show a line on the terminal of standard error, which the next line replaces; nothing without a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{on_a_line(line)}", end="", file=sys.stderr, flush=True)


def discard(stream: TextIO) -> None:
    """Redirect the remaining output of a stream to the null device."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
