"""Reads input files up to a limit of size.

The time and the memory for a file grow with its size, so every kind of input has a limit, well above real files. An
error states the size of the file and the limit.
"""

from __future__ import annotations

from pathlib import Path

SCENARIO = 256 * 1024
"""The limit for a scenario, in bytes; the largest shipped one has 3 kB."""
CONFIGURATION = 256 * 1024
"""The limit for a zoo.cfg or a dynamic file, in bytes, as `spec.config.zoo_cfg.LONGEST`."""
HISTORY = 256 * 1024 * 1024
"""The limit for one file of a recorded history, in bytes."""
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
