"""Files that a user names: input, read up to a limit of size, and output in folders and files.

The time and the memory for an input grow with its size, so every kind has a limit, well above real files. An error
states the size of the file and the limit. A file that cannot be written raises OutputError, which says where and why.
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


def check_writable(path: Path) -> None:
    """Raises OutputError for a file that cannot be written, before the work for its text is done.

    A file that does not exist is made and removed again. A pipe or a device is not opened.
    """
    try:
        if path.is_file() or path.is_dir():
            path.open("ab").close()
        elif not path.exists():
            path.open("xb").close()
            path.unlink()
    except (OSError, ValueError) as error:
        raise OutputError(f"{path}: it cannot be written ({error})") from None


def slug(text: str) -> str:
    """A text as a part of a file's name."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")[:LONGEST_STEM]


SCENARIO = 256 * 1024
"""The limit for a scenario, in bytes; the largest shipped one has 3 kB."""
CONFIGURATION = 256 * 1024
"""The limit for a zoo.cfg or a dynamic file, in bytes, as `spec.config.zoo_cfg.LONGEST`."""
HISTORY = 256 * 1024 * 1024
"""The limit for one file of a recorded history, in bytes."""
EDN_HISTORY = 16 * 1024 * 1024
"""The limit for a history in EDN, in bytes; it is held in memory as a tree."""
JOURNAL = 1024 * 1024 * 1024
"""The limit for the journal of a server, in bytes; it is read as a stream."""
LINE = 64 * 1024 * 1024
"""The limit for one line of a journal, in bytes."""


class TooLargeError(Exception):
    """A file above its limit; the message states the size and the limit."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"it has {size:,} bytes, and the limit is {limit:,}")
        self.size, self.limit = size, limit


def check_size(path: Path, limit: int) -> None:
    """Check the size of a file before it is read. Raises OSError and TooLargeError."""
    size = path.stat().st_size
    if size > limit:
        raise TooLargeError(size, limit)


def read_bytes(path: Path, limit: int) -> bytes:
    """Read a file. Raises OSError, and TooLargeError, also for an endless device."""
    check_size(path, limit)
    with path.open("rb") as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise TooLargeError(len(content), limit)
    return content


JOURNAL_KIND = "the journal of a node, which `validate` reads"
JSON_KIND = "JSON of another program"
HISTORY_KIND = "a recorded history of clients, which `history` reads"
_KINDS = tuple(
    (re.compile(pattern, re.MULTILINE), kind)
    for pattern, kind in (
        (rb"\A\s*\{\"(?:journal|n|t)\"", JOURNAL_KIND),
        (rb"\A\s*\{\"(?:recording|e)\"", "a recording of servers, which `validate` reads alone"),
        (rb"\A\s*\{\"(?:entry|client|server)\"", HISTORY_KIND),
        (rb"\A[\s\[(]*\{:", "a history in EDN, which `history` reads if its suffix is .edn"),
        (rb"\AZKLG", "a transaction log of ZooKeeper, which no command reads"),
        (rb"\AZKSN", "a snapshot of ZooKeeper, which no command reads"),
        (rb"\A(?:\x1f\x8b|PK\x03\x04|BZh|\xfd7zXZ|\x28\xb5\x2f\xfd)", "a packed file, which must be unpacked first"),
        (rb"\x00", "a binary file of another program"),
        (rb"^\s*(?:tickTime|dataDir|clientPort|initLimit|server\.\d+)\s*[=:]", "a zoo.cfg, which `quorums` reads"),
        (rb"^(?:file|servers|protocol|members|recipe|clients)[ \t]*:", "a scenario, which `run` reads"),
        (rb"\A\s*[\[{]", JSON_KIND),
    )
)


def kind_of(path: Path) -> str:
    """Say by its beginning what kind of file this is, and which command reads it. Raises OSError."""
    if not path.is_file():
        return "no file, whose beginning could be read again"
    with path.open("rb") as stream:
        beginning = stream.read(4096)
    return next((kind for pattern, kind in _KINDS if pattern.search(beginning)), "a text of another kind")
