"""`validate`: validates journals of live servers against the specification."""

from __future__ import annotations

import argparse
from pathlib import Path

from checker.cli.commands.command import Command


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="the journal of a server, one for each")
    parser.add_argument("--json", action="store_true", help="the report as JSON")


def _run(options: argparse.Namespace) -> int:
    from checker.validate.command import validate_command  # noqa: PLC0415

    return validate_command(options.files, as_json=options.json)


COMMAND = Command("validate", "Holds the journals of live servers to the specification.", _options, _run)
