"""Files that a user names: input, read up to a limit of size, and output in folders and files.

Every input is opened here. It is a regular file, since a pipe on a disk may wait for ever. The time and the memory for
an input grow with its size, so every kind has a limit, well above real files. An error states the size of the file and
the limit. A file that cannot be written raises OutputError, which says where and why.
"""

import errno
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from checker.command import CommandError, ExitCode

LONGEST_STEM = 150  # characters of a file's name before its suffix


class OutputError(CommandError):
    """Requested output cannot be written; the message names the option or the file, and the reason."""


def holds(question: Callable[[], bool]) -> bool:
    """The answer to a question about a path, such as `path.is_dir`; False if this user may not ask it."""
    try:
        return question()
    except OSError:
        return False


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
TRACE = 256 * 1024 * 1024
"""The limit for a saved trace, in bytes."""
HISTORY = 256 * 1024 * 1024
"""The limit for one file of a recorded history, in bytes."""
EDN_HISTORY = 16 * 1024 * 1024
"""The limit for a history in EDN, in bytes; it is held in memory as a tree."""
JOURNAL = 1024 * 1024 * 1024
"""The limit for the journal of a server, in bytes; it is read as a stream."""
LINE = 64 * 1024 * 1024
"""The limit for one line of a journal, in bytes."""
LOG = 256 * 1024 * 1024
"""The limit for a log of any system, in bytes; its events are held in memory."""
LOG_LINE = 1024 * 1024
"""The limit for one line of such a log, in bytes."""


class TooLargeError(Exception):
    """A file above its limit; the message states the size and the limit."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"it has {size:,} bytes, and the limit is {limit:,}")
        self.size, self.limit = size, limit


@contextmanager
def opened(path: Path, limit: int, *, streams: bool = False) -> Iterator[BinaryIO]:
    """A file that is open to be read. Raises OSError, also for anything but a regular file, and TooLargeError.

    `streams`: a pipe that the shell has opened is read as well, as `/dev/stdin` and `<(command)` are.
    """
    # Without a wait for somebody who writes into a pipe.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
        status = os.fstat(stream.fileno())
        if streams and stat.S_ISFIFO(status.st_mode) and path.is_relative_to("/dev"):
            os.set_blocking(stream.fileno(), True)
        elif not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        if status.st_size > limit:
            raise TooLargeError(status.st_size, limit)
        yield stream


def read_bytes(path: Path, limit: int, *, streams: bool = False) -> bytes:
    """Read a file; `streams` as for `opened`. Raises OSError and TooLargeError."""
    with opened(path, limit, streams=streams) as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise TooLargeError(len(content), limit)  # a stream, or a file that grows
    return content


class UnreadableTraceError(CommandError):
    """A saved trace that cannot be read: the file, the reason and the correction."""

    exit_code = ExitCode.SCENARIO


def read_trace_text(path: Path) -> str:
    """Read a saved trace. Raises UnreadableTraceError, also for another encoding or a file that is too large."""
    try:
        return read_bytes(path, TRACE).decode("utf-8")
    except (OSError, TooLargeError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UnreadableTraceError(f"{path}: it cannot be read ({why}); name a saved trace") from None


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
    with opened(path, sys.maxsize) as stream:
        beginning = stream.read(4096)
    return next((kind for pattern, kind in _KINDS if pattern.search(beginning)), "a text of another kind")
