"""The commands on real ensembles: on quorums of their files, their journals, and the histories of their clients."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from checker.command import Command, ExitCode, refused, say, unread_output_discarded

if TYPE_CHECKING:
    pass


def _quorums_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="ZOO_CFG", help="one file or more")
    parser.add_argument("--json", action="store_true", help="the answer as JSON")


def _quorums(options: argparse.Namespace) -> int:
    from checker.symbolic.report import quorums_command  # noqa: PLC0415

    answer = quorums_command(options.files)
    failed = answer.exit_code in (ExitCode.CONFIGURATION, ExitCode.COMMAND_LINE)
    with unread_output_discarded():
        if options.json:
            say(json.dumps(answer.data))
        else:
            say(answer.text, stream=sys.stderr if failed else sys.stdout)
    return answer.exit_code


QUORUMS = Command(
    "quorums", "Asks z3 whether quorums of two zoo.cfg files may be disjoint.", _quorums_options, _quorums
)


def _validate_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="the journal of a server, one for each, or a recording"
    )
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    parser.add_argument(
        "--refinement", action="store_true", help="journals: each step must also be a step of abstract Zab"
    )


def _validate(options: argparse.Namespace) -> int:
    from checker.validate.report import validate_command  # noqa: PLC0415

    return validate_command(options.files, as_json=options.json, refines=options.refinement)


VALIDATE = Command(
    "validate", "Holds journals or a recording of live servers to the specification.", _validate_options, _validate
)


def _history_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a recorded history, or its parts")
    parser.add_argument("--json", action="store_true", help="the findings as JSON")


def _history(options: argparse.Namespace) -> int:
    from checker.histories import ClientHistoryError, report_of  # noqa: PLC0415

    try:
        found = report_of(options.files)
    except ClientHistoryError as error:
        return refused(str(error), ExitCode.SCENARIO)
    with unread_output_discarded():
        say(json.dumps(found.data) if options.json else found.text)
    return int(found.exit_code)


HISTORY = Command(
    "history", "Judges what clients saw: linearizable, in order, nothing lost.", _history_options, _history
)
