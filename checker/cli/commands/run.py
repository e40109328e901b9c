"""`run`: explores scenarios."""

from __future__ import annotations

import argparse
from pathlib import Path

from checker.cli.commands.command import Command, refused
from checker.cli.options import add_exploration, wants_reports
from checker.report.verdict import ExitCode


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="scenario files (YAML)")
    add_exploration(parser)


def _run(options: argparse.Namespace) -> int:
    from checker.cli.scenarios import load_request  # noqa: PLC0415
    from checker.cli.wanted import InvalidScenario  # noqa: PLC0415
    from checker.output_files import OutputError  # noqa: PLC0415
    from checker.scenario import VariantError, bundled  # noqa: PLC0415

    try:
        asked = [load_request(path, options.variants) for path in options.files or bundled()]
        for each in asked:
            # Reports list every scenario. Without one, an error ends the command before the first run.
            if isinstance(each, InvalidScenario) and not wants_reports(options):
                return refused(each.why, each.code)
        from checker.cli.runner import run_requests  # noqa: PLC0415 (slow to import, so errors come first)

        return run_requests(asked, options)
    except (OutputError, VariantError) as error:
        return refused(str(error), ExitCode.COMMAND_LINE)


COMMAND = Command("run", "Runs scenarios; without files, all that come with the package.", _options, _run)
