"""`gallery`: writes a page for each scenario, with all of its traces."""

from __future__ import annotations

import argparse
from pathlib import Path

from checker.cli.commands.command import Command, refused
from checker.report.verdict import ExitCode


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="where the pages are written")
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="shipped scenarios (default: all), whose pages are written"
    )


def _run(options: argparse.Namespace) -> int:
    from checker.gallery.command import write  # noqa: PLC0415
    from checker.scenario import ScenarioError  # noqa: PLC0415

    try:
        return write(options.folder, options.files)
    except ScenarioError as error:
        return refused(str(error), ExitCode.SCENARIO)
    except OSError as error:
        return refused(f"{options.folder}: no page can be written there ({error})", ExitCode.COMMAND_LINE)


COMMAND = Command("gallery", "Writes a page for each scenario, with every run that is found in it.", _options, _run)
