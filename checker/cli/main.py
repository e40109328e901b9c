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
from collections.abc import Sequence

from checker.cli.ensemble_commands import HISTORY, PLAN, QUORUMS, VALIDATE
from checker.cli.options import parser
from checker.cli.reference_commands import GALLERY, LISTING, PROOFS, TABLES
from checker.cli.scenario_commands import EXPLORE, REPLAY, RUN, SWARM
from checker.command import (
    Command,
    ExitCode,
    command_parser,
    discard,
    open_closed_streams,
    refused,
    say,
    unread_output_discarded,
)
from checker.diagnose.command import DIAGNOSE
from checker.engine.model import ModelError
from checker.printable import nearest
from checker.recover_command import RECOVER
from checker.rollout_command import ROLLOUT
from spec.config import ConfigError
from spec.text import on_a_line

COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        RUN,
        SWARM,
        REPLAY,
        ROLLOUT,
        PLAN,
        DIAGNOSE,
        RECOVER,
        EXPLORE,
        VALIDATE,
        HISTORY,
        QUORUMS,
        PROOFS,
        TABLES,
        GALLERY,
        LISTING,
    )
}
"""The commands, in the order of the help."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (default: that of this process), and return the exit code."""
    open_closed_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal may lack characters
    try:
        with unread_output_discarded():
            return _answered(words)
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


def _answered(words: list[str]) -> int:
    """Run a command line; an invalid file or an interrupt ends in a message."""
    try:
        return _command(words)
    except SystemExit as end:  # the parser has printed the error
        return end.code if isinstance(end.code, int) else int(ExitCode.COMMAND_LINE)
    except ConfigError as error:
        return refused("\n".join(on_a_line(str(problem)) for problem in error.problems), ExitCode.CONFIGURATION)
    except ModelError as error:
        return refused(on_a_line(str(error)), ExitCode.SCENARIO)
    except KeyboardInterrupt:
        return refused("interrupted before there was anything to report", ExitCode.INCOMPLETE)


def _command(words: list[str]) -> int:
    if words and words[0] in COMMANDS:
        command = COMMANDS[words[0]]
        return command.run(command_parser(command).parse_args(words[1:], argparse.Namespace(words=words)))
    if words and not words[0].startswith("-"):
        return refused(f"unknown command {words[0]!r}; {nearest(words[0], COMMANDS)}", ExitCode.COMMAND_LINE)
    return _nodes(parser(COMMANDS).parse_args(words, argparse.Namespace(words=words)))


def _nodes(options: argparse.Namespace) -> int:
    from checker.cli.nodes import NodesError, jobs  # noqa: PLC0415
    from checker.cli.runner import run_all  # noqa: PLC0415
    from checker.user_files import OutputError  # noqa: PLC0415

    if options.list_variants:
        return _variants(options)
    try:
        return run_all(jobs(options), options)
    except (NodesError, OutputError) as error:
        return refused(str(error), ExitCode.COMMAND_LINE)


def _variants(options: argparse.Namespace) -> int:
    from checker.cli.reference_commands import variants_report  # noqa: PLC0415

    text, data = variants_report()
    say(json.dumps(data) if options.json else text)
    return int(ExitCode.PASSED)
