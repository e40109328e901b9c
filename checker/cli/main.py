"""`python -m checker`: selects the command, and turns errors into one message and an exit code.

Errors in a command line, a scenario, a configuration file or a saved trace never end in a stack trace. Defects of the
program do.
"""

import argparse
import errno
import io
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence

from checker.cli.options import parser
from checker.command import (
    Command,
    CommandError,
    ExitCode,
    command_parser,
    discard,
    open_closed_streams,
    refused,
    say,
    unread_output_discarded,
)
from checker.command_table import commands_of
from checker.engine.model import ModelError
from checker.printable import nearest
from spec.config import ConfigError
from spec.packages import needed
from spec.text import on_a_line

COMMANDS = commands_of("checker")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (default: that of this process), and return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    return _answered(lambda: _command(words))


def nodes(words: Sequence[str], _program: str) -> int:
    """Run the main job, or the ensemble that options describe, and return the exit code."""
    return _answered(lambda: _nodes(list(words)))


def _answered(work: Callable[[], int]) -> int:
    """The exit code of the work; an error of the machine or the reader of the output ends in a message."""
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal may lack characters
    try:
        with unread_output_discarded():
            return _with_messages(work)
    except MemoryError as error:
        why = str(error) or "there is not enough memory for this; allow more (ulimit -v), or ask for less"
        return refused(why, ExitCode.TOO_LARGE)
    except OSError as error:
        if error.filename is None and tempfile.tempdir is None and error.errno == errno.ENOENT:
            problem = "no folder takes temporary files; name one in TMPDIR that can be written"
            return refused(problem, ExitCode.COMMAND_LINE)
        if error.errno != errno.ENOSPC:
            raise
        discard(sys.stdout)
        return refused(f"standard output cannot take what there is to say ({error.strerror})", ExitCode.COMMAND_LINE)
    return int(ExitCode.PASSED)  # the reader closed the stream before the verdict


def _with_messages(work: Callable[[], int]) -> int:
    """The exit code of the work; an invalid file, a missing package or an interrupt ends in a message."""
    try:
        return work()
    except SystemExit as end:  # the parser has printed the error
        return end.code if isinstance(end.code, int) else int(ExitCode.COMMAND_LINE)
    except CommandError as error:
        return refused(str(error), error.exit_code)
    except ConfigError as error:
        return refused("\n".join(on_a_line(str(problem)) for problem in error.problems), ExitCode.CONFIGURATION)
    except ModelError as error:
        return refused(on_a_line(str(error)), ExitCode.SCENARIO)
    except ModuleNotFoundError as error:
        if problem := needed(error.name):
            return refused(problem, ExitCode.COMMAND_LINE)
        raise
    except KeyboardInterrupt:
        return refused("interrupted before there was anything to report", ExitCode.INCOMPLETE)


def _command(words: list[str]) -> int:
    if words and words[0] in COMMANDS:
        entry = COMMANDS[words[0]]
        options = command_parser(entry).parse_args(words[1:], argparse.Namespace(words=words))
        command: Command = entry.load()
        return command.run(options)
    if words and not words[0].startswith("-"):
        return refused(f"unknown command {words[0]!r}; {nearest(words[0], COMMANDS)}", ExitCode.COMMAND_LINE)
    return _nodes(words, COMMANDS)


def _nodes(words: list[str], commands: Iterable[str] = ()) -> int:
    options = parser(commands).parse_args(words, argparse.Namespace(words=words))
    from checker.cli.nodes import requests_of  # noqa: PLC0415
    from checker.cli.runner import run_requests  # noqa: PLC0415

    if options.list_variants:
        return _variants(options)
    return run_requests(requests_of(options), options)


def _variants(options: argparse.Namespace) -> int:
    from checker.cli.reference_commands import variants_report  # noqa: PLC0415

    text, data = variants_report()
    say(json.dumps(data) if options.json else text)
    return int(ExitCode.PASSED)
