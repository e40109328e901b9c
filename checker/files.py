"""Files that a user asks for: folders, texts, and names made of what runs are called.

Whatever cannot be written is an OutputError that says where, and why.
"""

from __future__ import annotations

import re
from pathlib import Path

LONGEST_STEM = 150  # characters of a file's name before its suffix


class OutputError(Exception):
    """What was asked for cannot be written; the message names the option or the file, and says why."""


def make_folder(folder: Path, named: str = "") -> None:
    """Make a folder, if it is not there; `named` is what an error calls it. Raises OutputError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise OutputError(f"{named or folder}: no folder can be there ({error})") from None


def write(path: Path, text: str, mode: str = "w") -> None:
    """Write a text, or with the mode `a` add it. Raises OutputError."""
    try:
        with path.open(mode, encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except (OSError, ValueError) as error:
        raise OutputError(f"{path}: it cannot be written ({error})") from None


def slug(text: str) -> str:
    """A text as a part of a file's name."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")[:LONGEST_STEM]
