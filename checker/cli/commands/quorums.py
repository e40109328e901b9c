"""`quorums`: asks z3 whether quorums of configuration files may be disjoint."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from checker.cli.commands.command import Command
from checker.cli.output import unread_output_discarded
from checker.report.verdict import ExitCode


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="ZOO_CFG", help="one file or more")
    parser.add_argument("--json", action="store_true", help="the answer as JSON")


def _run(options: argparse.Namespace) -> int:
    from checker.symbolic.report import quorums_command  # noqa: PLC0415

    answer = quorums_command(options.files)
    failed = answer.exit_code in (ExitCode.CONFIGURATION, ExitCode.COMMAND_LINE)
    with unread_output_discarded():
        if options.json:
            print(json.dumps(answer.data))
        else:
            print(answer.text, file=sys.stderr if failed else sys.stdout)
    return answer.exit_code


COMMAND = Command("quorums", "Asks z3 whether quorums of two zoo.cfg files may be disjoint.", _options, _run)
