"""Files that a user asks for: folders, texts, and file names made of the names of runs.

A file that cannot be written raises OutputError, which says where and why.
"""

from __future__ import annotations

import re
from pathlib import Path

LONGEST_STEM = 150  # characters of a file's name before its suffix


class OutputError(Exception):
    """Requested output cannot be written; the message names the option or the file, and the reason."""


def make_folder(folder: Path, named: str = "") -> None:
    """Make a folder, unless it exists; `named` is its name in errors. Raises OutputError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise OutputError(f"{named or folder}: no folder can be there ({error})") from None


def write(path: Path, text: str, mode: str = "w") -> None:
    """Write a text, or append it with the mode `a`. Raises OutputError."""
    try:
        with path.open(mode, encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except (OSError, ValueError) as error:
        raise OutputError(f"{path}: it cannot be written ({error})") from None


def slug(text: str) -> str:
    """A text as a part of a file's name."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")[:LONGEST_STEM]
