"""`tables`: computes the tables of service after the loss of servers and links."""

from __future__ import annotations

import argparse
import json

from checker.cli.commands.command import Command
from checker.report.verdict import ExitCode


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="the tables as JSON")


def _run(options: argparse.Namespace) -> int:
    from checker.cli.tables import report  # noqa: PLC0415

    text, data = report()
    print(json.dumps(data) if options.json else text)
    return int(ExitCode.PASSED)


COMMAND = Command("tables", "Computes who survives the loss of servers and of links (R2, R3).", _options, _run)
