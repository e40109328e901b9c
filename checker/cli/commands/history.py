"""`history`: judges recorded histories of clients."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from checker.cli.commands.command import Command, refused
from checker.cli.output import unread_output_discarded
from checker.report.verdict import ExitCode


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a recorded history, or its parts")
    parser.add_argument("--json", action="store_true", help="the findings as JSON")


def _run(options: argparse.Namespace) -> int:
    from checker.histories import ClientHistoryError  # noqa: PLC0415
    from checker.histories.findings import report_of  # noqa: PLC0415

    try:
        found = report_of(options.files)
    except ClientHistoryError as error:
        return refused(str(error), ExitCode.SCENARIO)
    with unread_output_discarded():
        print(json.dumps(found.data) if options.json else found.text)
    return int(found.exit_code)


COMMAND = Command("history", "Judges what clients saw: linearizable, in order, nothing lost.", _options, _run)
