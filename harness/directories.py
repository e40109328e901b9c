"""The directory of a command's servers: a temporary one, or one that `--keep` names.

Rule: a named directory is new, so that no earlier run is mixed with this one, and it is never removed.
"""

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def add_keep(parser: argparse.ArgumentParser) -> None:
    """Add the option `--keep`."""
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the servers' directories in a new folder")


def keep_mistake(keep: Path | None) -> str | None:
    """The mistake in the value of `--keep`; None if there is no mistake."""
    return f"--keep {keep}: the folder exists; name a new one" if keep is not None and keep.exists() else None


@contextmanager
def directories(keep: Path | None) -> Iterator[Path]:
    """The folder for the servers' directories, removed at the end if it is a temporary one. Raises OSError."""
    folder = keep or Path(tempfile.mkdtemp(prefix="quorate-"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
