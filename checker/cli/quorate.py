"""The command `quorate`: all commands of the packages under one name.

    quorate rollout --from before --to after     as `python -m checker rollout`
    quorate node zoo.cfg                         as `python -m refimpl zoo.cfg`

As a program it handles SIGTERM like Ctrl-C, as `python -m checker` does. The node has a handler of its own.
"""

import signal
import sys
from collections.abc import Sequence

from checker.command import ExitCode, open_closed_streams, refused, say, unread_output_discarded
from checker.command_table import ENTRIES, GROUPS, Entry, called, called_as
from spec.packages import needed

PROGRAM = "quorate"
WIDTH = 10
MAINS = {
    package: Entry(package, f"{module}:main", "")
    for package, module in (("checker", "checker.cli.main"), ("harness", "harness.__main__"))
}
"""The programs that carry out a `Command` of their package."""


def run_program() -> int:
    """The console script: `main` in a process of its own."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return main()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (default: that of this process), and return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    open_closed_streams()
    with called_as(PROGRAM), unread_output_discarded():
        return _answer(words)
    return int(ExitCode.PASSED)  # the reader closed the stream before the end


def _answer(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        say(help_text())
        return int(ExitCode.PASSED)
    if words[0] == "--version":
        from checker.report.json_report import release  # noqa: PLC0415 (for this answer alone)

        say(f"{PROGRAM} {release()}")
        return int(ExitCode.PASSED)
    try:
        return _run(words)
    except KeyboardInterrupt:  # during the loading of the program
        return int(ExitCode.INCOMPLETE)
    except ModuleNotFoundError as error:
        if problem := needed(error.name):
            return refused(problem, ExitCode.COMMAND_LINE)
        raise


def help_text() -> str:
    """The commands by group, a line for each."""
    lines = [f"usage: {PROGRAM} COMMAND ...", ""]
    for heading, entries in GROUPS.items():
        lines += [heading, *(f"  {entry.name:<{WIDTH}}  {entry.line}" for entry in entries)]
    return "\n".join([*lines, "", f"{PROGRAM} COMMAND --help lists the options. Start with: {PROGRAM} rollout --help"])


def _run(words: list[str]) -> int:
    entry = ENTRIES.get(words[0])
    if entry is None:
        from checker.printable import nearest  # noqa: PLC0415 (for this error alone)

        return refused(f"unknown command {words[0]!r}; {nearest(words[0], ENTRIES)}", ExitCode.COMMAND_LINE)
    if entry.is_function:
        return int(entry.load()(words[1:], called(entry.name)))
    return int(MAINS[entry.package].load()(words))
