"""`run`: explores scenarios."""

from __future__ import annotations

import argparse
from pathlib import Path

from checker.cli.commands.command import Command, refused
from checker.cli.options import add_exploration
from checker.report.verdict import ExitCode


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="scenario files (YAML)")
    add_exploration(parser)


def _run(options: argparse.Namespace) -> int:
    from checker.cli.kept import wants_reports  # noqa: PLC0415
    from checker.cli.runner import Refused, run_wanted  # noqa: PLC0415
    from checker.cli.scenarios import wanted  # noqa: PLC0415
    from checker.files import OutputError  # noqa: PLC0415
    from checker.scenario import VariantError, bundled  # noqa: PLC0415

    try:
        asked = [wanted(path, options.variants) for path in options.files or bundled()]
        for each in asked:
            # A report accounts for everything; a person is told at once, before anything is run.
            if isinstance(each, Refused) and not wants_reports(options):
                return refused(each.why, each.code)
        return run_wanted(asked, options)
    except (OutputError, VariantError) as error:
        return refused(str(error), ExitCode.COMMAND_LINE)


COMMAND = Command("run", "Runs scenarios; without files, all that come with the package.", _options, _run)
