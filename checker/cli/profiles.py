"""Names for several options at once, for the two gates that most projects have; and which options go together.

An option that stands on the command line goes before what a profile says of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from checker.cli.budget import Budget
from checker.files import OutputError

PROFILES: Mapping[str, Mapping[str, Callable[[], Any]]] = {
    "pull-request": {"budget": lambda: Budget(60.0)},
    "nightly": {"checkpoint": lambda: Path("quorate-checkpoints"), "resume": lambda: True},
}
"""For each profile the options that it stands for. A nightly run has no budget: what it cannot decide, fails."""


def settle(options: argparse.Namespace) -> None:
    """Give options what their profile says. Raises OutputError for options that do not go together."""
    for name, value in PROFILES.get(options.profile, {}).items():
        if not getattr(options, name):
            setattr(options, name, value())
    if options.resume and options.checkpoint is None:
        raise OutputError("--resume goes on with what --checkpoint DIR kept; name the folder")
    if options.checkpoint is not None and options.engine != "tables":
        raise OutputError(f"--checkpoint keeps searches by tables, and --engine {options.engine} is asked for")
