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
    from checker.cli.runner import OutputError, run_all  # noqa: PLC0415
    from checker.scenario import ScenarioError, VariantError, bundled, load  # noqa: PLC0415

    try:
        return run_all([load(path, options.variants) for path in options.files or bundled()], options)
    except ScenarioError as error:
        return refused(str(error), ExitCode.SCENARIO)
    except (OutputError, VariantError) as error:
        return refused(str(error), ExitCode.COMMAND_LINE)


COMMAND = Command("run", "Runs scenarios; without files, all that come with the package.", _options, _run)
