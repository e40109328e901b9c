"""`python -m harness`: its commands are those of the package `harness` in the table of all commands.

A command is loaded when it runs, since most need the dependencies of the project. The gate fetches releases before they
are installed.
"""

import argparse
import sys
from collections.abc import Sequence

from checker.command import Command, open_closed_streams, unread_output_discarded
from checker.command_table import commands_of

COMMANDS = commands_of("harness")


def main(arguments: Sequence[str] | None = None, program: str = "python -m harness") -> int:
    """Carry out one command. Returns 0, or 1 after an error, which is one line on standard error."""
    open_closed_streams()
    parser = argparse.ArgumentParser(prog=program, description="Released ZooKeeper servers to test with.")
    commands = parser.add_subparsers(dest="command", required=True)
    parsers = {
        name: commands.add_parser(name, help=entry.line, description=entry.line) for name, entry in COMMANDS.items()
    }
    words = sys.argv[1:] if arguments is None else arguments
    if not words or words[0] not in COMMANDS:
        parser.parse_args(words)  # the help, or an error
    command: Command = COMMANDS[words[0]].load()
    command.options(parsers[words[0]])
    options = parser.parse_args(words)
    with unread_output_discarded():
        return command.run(options)
    return 0  # the reader closed the stream before the end


if __name__ == "__main__":
    sys.exit(main())
