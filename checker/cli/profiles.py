"""Profiles, which are names for several options, for the two most common gates; and the check of combined options.

An option on the command line takes precedence over the profile.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from checker.cli.budget import Budget
from checker.output_files import OutputError

PROFILES: Mapping[str, Mapping[str, Callable[[], Any]]] = {
    "pull-request": {"budget": lambda: Budget(60.0)},
    "nightly": {"checkpoint": lambda: Path("quorate-checkpoints"), "resume": lambda: True},
}
"""The options of each profile. A nightly run has no budget, so an undecided run fails."""


def apply_profile(options: argparse.Namespace) -> None:
    """Set the options of the profile. Raises OutputError for options that exclude each other."""
    for name, value in PROFILES.get(options.profile, {}).items():
        if not getattr(options, name):
            setattr(options, name, value())
    if options.resume and options.checkpoint is None:
        raise OutputError("--resume goes on with what --checkpoint DIR kept; name the folder")
    if options.checkpoint is not None and options.engine != "tables":
        raise OutputError(f"--checkpoint keeps searches by tables, and --engine {options.engine} is asked for")
