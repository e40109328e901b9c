"""`python -m harness`: its commands are those of the package `harness` in the table of all commands.

A command is loaded when it runs, since most need the dependencies of the project. The gate fetches releases before they
are installed. SIGTERM is handled like Ctrl-C, so that a command ends the servers that it started.
"""

import signal
import sys
from collections.abc import Sequence

from checker.command import (
    Command,
    CommandError,
    command_line,
    command_parser,
    open_closed_streams,
    refused,
    unread_output_discarded,
)
from checker.command_table import commands_of

COMMANDS = commands_of("harness")


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command. Returns 0, or 1 after an error, which is one line on standard error."""
    open_closed_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] not in COMMANDS:
        lines = ["commands:", *(f"  {name:<10}  {entry.line}" for name, entry in COMMANDS.items())]
        top = command_line("python -m harness", "Released ZooKeeper servers to test with.", "\n".join(lines))
        top.add_argument("command", choices=tuple(COMMANDS))
        top.parse_args(words[:1])  # the help, or an error
    entry = COMMANDS[words[0]]
    options = command_parser(entry).parse_args(words[1:])
    command: Command = entry.load()
    with unread_output_discarded():
        try:
            return command.run(options)
        except CommandError as error:
            return refused(str(error), error.exit_code)
    return 0  # the reader closed the stream before the end


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
